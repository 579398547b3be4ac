"""Two pages that answer one question: the first one wins, and the other is told by whom, with what was typed there."""

import itertools
import json
import re
from collections.abc import Generator

import pytest
from playwright.sync_api import Browser, Page, expect

from support.extended import first_of
from support.workbench import Workbench, answer_by, show_new, until_answers_count, workbench

SCRIPT = json.dumps(
    {
        "name": "practice",
        "scenarios": [
            {
                "prompt": r"\Awrite (?P<name>\w+)",
                "replies": [
                    {
                        "call": {
                            "name": "write_file",
                            "arguments": {"file_path": "{{name}}.txt", "content": "A line.\n", "instruction": "Write"},
                        }
                    },
                    {"text": "It is over."},
                ],
            },
            {"prompt": ".", "replies": [{"text": "You said: {{prompt}}"}]},
        ],
    }
)  # a YAML document, too
NUMBERS = itertools.count(1)
NAMES = {"y": "Allow once", "N": "Reject", "3": "Allow write_file, this session"}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Generator[Workbench]:
    with workbench(tmp_path_factory.mktemp("served"), tmp_path_factory.mktemp("workspace"), SCRIPT) as found:
        yield found


@pytest.fixture
def served(running: Workbench) -> Generator[Workbench]:
    """Return the shared server, whose tasks before were cancelled."""
    yield running
    running.cancel_tasks()


def opened(page: Page, served: Workbench, place: str = "") -> Page:
    page.goto(f"{served.url}ui/{place}")
    until_answers_count(page)
    return page


@pytest.mark.parametrize("late", first_of(["edit", "y", "N", "words"]))
@pytest.mark.parametrize("first", first_of(["y", "N"]))
def test_who_is_late_sees_who_was_first_and_loses_no_text(
    browser: Browser, served: Workbench, first: str, late: str
) -> None:
    """Of three pages the first two are late: the inbox, and the page of the task."""
    with served.let_in(browser) as one, served.let_in(browser) as two:
        winner, inbox, task = served.watch(one.new_page()), served.watch(two.new_page()), served.watch(two.new_page())
        winner.goto(f"{served.url}ui/")
        name = f"one{next(NUMBERS)}"
        task_id = served.begin(winner, f"write {name}")
        opened(winner, served)
        for page, place in ((inbox, ""), (task, f"task/{task_id}")):
            opened(page, served, place)
            begin_answer(page, late)
        answer_by(winner, first)
        expect(winner.locator(".item.done")).to_have_count(1)
        for page in (inbox, task):
            page.unroute_all(behavior="ignoreErrors")
            page.bring_to_front()
            sees_who_was_first(page, first, late)
        task.locator("isthmus-items").focus()
        task.keyboard.press("Escape")
        expect(task.locator("isthmus-question")).to_have_count(0)
        for page in (inbox, task):
            answer_by(page, "y")
        assert (served.workspace / f"{name}.txt").exists() == (first == "y")


def begin_answer(page: Page, late: str) -> None:
    """Begin an answer in a way that ends after that of somebody else."""
    match late:
        case "words":
            answer_by(page, "n")
            page.keyboard.type("use notes.md")
        case "edit":
            page.keyboard.press("e")
            page.keyboard.type("Mine. ")
        case _:
            page.route(re.compile("message"), lambda route: None)  # the answer does not arrive before the other
            answer_by(page, late)


def sees_who_was_first(page: Page, first: str, late: str) -> None:
    ended = page.locator("isthmus-question .ended")
    expect(ended).to_contain_text(f"Answered by Chrome on Linux: {NAMES[first]}")
    if late in ("words", "edit"):
        expect(ended).to_contain_text("What you changed or typed here was not sent.")
    if late == "words":
        expect(ended.locator("pre")).to_have_text("use notes.md")
    if late == "edit":
        expect(page.locator("isthmus-question .cm-content")).to_contain_text("Mine.")
    expect(page.locator("isthmus-question .actions")).to_have_count(0)


def test_the_next_question_comes_by_a_key_after_one_that_was_answered_elsewhere(
    browser: Browser, served: Workbench
) -> None:
    with served.let_in(browser) as one, served.let_in(browser) as two:
        winner, loser = served.watch(one.new_page()), served.watch(two.new_page())
        winner.goto(f"{served.url}ui/")
        for number, name in enumerate(("one", "two"), 1):
            served.begin(winner, f"write {name}")
            if number > 1:
                show_new(winner)
            expect(winner.locator(".item")).to_have_count(number)
        opened(loser, served)
        shown = loser.locator("isthmus-question h2").inner_text()
        winner.locator(".item", has_text=shown.removeprefix("Create ")).click()
        until_answers_count(winner)
        answer_by(winner, "N")
        expect(loser.locator("isthmus-question .ended")).to_contain_text("Reject")
        loser.keyboard.press("j")
        expect(loser.locator("isthmus-question h2")).not_to_have_text(shown)
        until_answers_count(loser)
        answer_by(loser, "y")
        expect(loser.locator(".item.done")).to_have_count(2)
