"""The column of a session: its questions at their calls, with answers that stay in view, in a real browser."""

import json
from collections.abc import Generator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from support.extended import first_of
from support.waiting import eventually
from support.workbench import Workbench, answer_by, until_answers_count, workbench

LINES = "".join(f"line {number} of the harbour\n" for number in range(1, 61))
AFTER = "".join(f"line {number} of the {'port' if number % 3 else 'harbour'}\n" for number in range(1, 61))


def _write(name: str, content: str) -> dict[str, Any]:
    return {"call": {"name": "write_file", "arguments": {"file_path": name, "content": content, "instruction": "x"}}}


SCRIPT = json.dumps(
    {
        "name": "practice",
        "scenarios": [
            {
                "prompt": r"\Atell",
                "replies": [{"text": "I read every time in the zone of its harbour.\n\n" * 40}],
            },
            {
                "prompt": r"\Along (?P<file>\S+)",
                "replies": [
                    {"steps": [{"text": "Each line that names the harbour.\n\n" * 20}, _write("{{file}}", AFTER)]},
                    {"text": "It is done."},
                ],
            },
            {
                "prompt": r"\Aboth (?P<file>\S+)",
                "replies": [
                    {"steps": [_write("one-{{file}}", LINES), _write("two-{{file}}", "A line.\n")]},
                    {"text": "Both are done."},
                ],
            },
            {"prompt": ".", "replies": [{"text": "You said: {{prompt}}"}]},
        ],
    }
)  # a YAML document, too


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Generator[Workbench]:
    workspace = tmp_path_factory.mktemp("workspace")
    for name in ("wide.txt", "narrow.txt"):
        (workspace / name).write_text(LINES, "utf-8")
    with workbench(tmp_path_factory.mktemp("served"), workspace, SCRIPT) as found:
        yield found


@pytest.fixture
def served(running: Workbench) -> Generator[Workbench]:
    """Return the shared server, whose tasks before were cancelled."""
    yield running
    running.cancel_tasks()


def box(page: Page, selector: str) -> dict[str, float]:
    """Return the place of an element on the screen, with its lower edge."""
    found = page.locator(selector).bounding_box()
    assert found is not None, selector
    return {**found, "end": found["y"] + found["height"]}  # pyright: ignore[reportReturnType]


@pytest.mark.parametrize(
    ("name", "width", "height"), first_of([("wide.txt", 1440, 900), ("narrow.txt", 1100, 800)], are_rows=True)
)
def test_a_question_stands_at_its_call_and_its_answers_stay_in_view(
    browser: Browser, served: Workbench, name: str, width: int, height: int
) -> None:
    with served.let_in(browser) as context:
        page = served.watched(context)
        page.set_viewport_size({"width": width, "height": height})
        served.prompt(page, f"long {name}")
        until_answers_count(page)
        pane, card = box(page, "isthmus-items"), box(page, ".inline")
        # In the column, with a part of the text before it above.
        assert card["width"] <= 720
        assert abs(card["x"] + card["width"] / 2 - pane["x"] - pane["width"] / 2) <= 8
        assert pane["y"] + 100 < card["y"] < pane["y"] + pane["height"] / 2
        # It is taller than the pane: its answers are at the end of that, wherever the reader is in it.
        assert card["end"] > pane["end"] + 200
        foot = box(page, ".inline .card-foot")
        assert abs(foot["end"] - pane["end"]) <= 1
        below = page.locator(".inline .below")
        expect(below).to_have_text(f"{lines_below(page)} lines below ")
        top = box(page, ".inline h2")["y"]
        below.click()
        eventually(lambda: box(page, ".inline h2")["y"] < top)
        assert abs(box(page, ".inline .card-foot")["end"] - pane["end"]) <= 1
        page.locator("isthmus-items").evaluate("list => { list.scrollTop = list.scrollHeight }")
        expect(below).to_have_count(0)
        assert box(page, ".inline .card-foot")["end"] <= box(page, ".inline")["end"] < pane["end"]
        # After the answer the reader is at the end again, and the call is a row.
        answer_by(page, "y")
        expect(page.locator("isthmus-task .prose").last).to_have_text("It is done.")
        expect(page.locator(".inline")).to_have_count(0)
        expect(page.locator("isthmus-task .prose").last).to_be_in_viewport()
        assert (served.workspace / name).read_text("utf-8") == AFTER


def lines_below(page: Page) -> int:
    """Return how many lines of a diff end below the upper edge of its answers."""
    return page.evaluate(
        """() => {
          const end = document.querySelector('.inline isthmus-diff').getBoundingClientRect().bottom;
          return Math.ceil((end - document.querySelector('.inline .card-foot').getBoundingClientRect().top - 1) / 20);
        }"""
    )


def test_a_question_that_comes_below_a_reader_moves_nothing_and_a_pill_leads_there(
    browser: Browser, served: Workbench
) -> None:
    with served.let_in(browser) as context:
        page = served.watched(context)
        served.prompt(page, "tell me")
        expect(page.locator("isthmus-task .head .st-done")).to_be_visible()
        other = served.watched(context)
        other.goto(page.url)
        page.locator("isthmus-items").evaluate("list => { list.scrollTop = 60 }")
        before = box(page, ".said >> nth=0")["y"]
        other.fill("isthmus-task textarea", "both tide.txt")
        other.press("isthmus-task textarea", "Enter")
        pill = page.locator(".beyond button")
        expect(pill).to_contain_text("2 more questions wait")
        assert box(page, ".said >> nth=0")["y"] == before
        page.keyboard.press(".")
        # Two questions of one step: the first one in view takes the keys, or the one with the focus.
        cards = page.locator(".inline")
        expect(cards.nth(0)).to_contain_text("one-tide.txt")
        expect(cards.nth(0).locator("h2")).to_be_focused()
        expect(page.locator(".inline.keyed")).to_contain_text("one-tide.txt")
        expect(pill).to_contain_text("A question waits below")
        pill.click()
        expect(page.locator(".inline.keyed")).to_contain_text("two-tide.txt")
        expect(page.locator(".inline.keyed .primary:not([aria-disabled])")).to_be_visible()
        answer_by(page, "y")
        expect(cards).to_have_count(1)
        # The focus goes on to the question that still waits, and nothing of it is pressed.
        expect(page.locator(".inline h2")).to_have_text("Create one-tide.txt")
        expect(page.locator(".inline h2")).to_be_focused()
        until_answers_count(page)
        answer_by(page, "Shift+N")
        expect(page.locator(".inline")).to_have_count(0)
        names = sorted(path.name for path in served.workspace.glob("*tide.txt"))
        assert names == ["two-tide.txt"]
