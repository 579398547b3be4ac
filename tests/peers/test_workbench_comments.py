"""Comments on lines of a change gather in the workbench, outlive the page, and go back with an answer, in a browser."""

import json
import re
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

from support.waiting import eventually
from support.workbench import Workbench, answer_by, until_answers_count, workbench

OLD = "".join(f"line {number}\n" for number in range(1, 41))
NEW = OLD.replace("line 2\n", "").replace("line 20\n", "line twenty\n").replace("line 38\n", "line 38!\n")


def _write() -> dict[str, Any]:
    arguments = {"file_path": "code.txt", "instruction": "Say it", "content": NEW}
    return {"call": {"name": "write_file", "arguments": arguments}}


SCRIPT = json.dumps(
    {
        "name": "practice",
        "scenarios": [
            {"prompt": "^I allowed", "replies": [{"text": "Heard: {{prompt}}"}]},
            {"prompt": ".", "replies": [_write(), {"text": "Written."}]},
        ],
    }
)


@pytest.fixture
def served(tmp_path: Path, workspace: Path) -> Generator[Workbench]:
    (workspace / "code.txt").write_text(OLD, "utf-8")
    with workbench(tmp_path, workspace, SCRIPT) as found:
        yield found


def comment(page: Page, card: Locator, text: str, words: str) -> None:
    """Comment on the line with a text."""
    card.locator(".cm-merge-b .cm-line", has_text=re.compile(f"^{text}$")).click()
    page.keyboard.press("m")
    page.keyboard.type(words)
    page.keyboard.press("Enter")


def test_comments_gather_outlive_the_page_and_go_back_with_the_answer(served: Workbench, browser: Browser) -> None:
    with served.let_in(browser) as context:
        page = served.watched(context)
        served.prompt(page, "write it")
        card = page.locator("isthmus-question")
        until_answers_count(page)
        if not card.locator(".cm-merge-b").is_visible():
            page.keyboard.press("v")
        comment(page, card, "line twenty", "In digits.")
        comment(page, card, "line 38!", "No mark.")
        bar = card.locator("isthmus-comments")
        expect(bar).to_contain_text("2 comments")
        expect(bar).to_contain_text("They go back with any answer.")
        page.reload()
        until_answers_count(page)
        expect(bar).to_contain_text("2 comments")
        # The bar leads through them.
        bar.get_by_role("button", name="Next comment").click()
        expect(card.locator(".cm-comment textarea:focus")).to_have_value("In digits.")
        page.keyboard.press("Escape")
        # The first hunk is kept as it was: the lines below have other numbers in what is written.
        card.locator(".neck .nk").first.get_by_role("button", name="Keep as it was").click()
        expect(card.locator(".cm-merge-b .cm-line", has_text=re.compile("^line 2$"))).to_be_visible()
        accept = card.get_by_role("button", name="Allow once and send 2 comments")
        expect(accept).to_be_enabled()

        def tell_late(route: Route) -> None:
            """Let the page hear that its answer was stored once the card is gone."""
            stored = route.fetch()
            expect(card).to_have_count(0)
            route.fulfill(response=stored)

        page.route("**/message:send", tell_late)
        answer_by(page, "y")
        said = page.locator("isthmus-task .said").last
        expect(said).to_contain_text("I allowed the call of write_file, with comments:")
        expect(said).to_contain_text("code.txt:20\n> line twenty\nIn digits.\n\ncode.txt:38\n> line 38!\nNo mark.")
        expect(page.locator("isthmus-task .prose").last).to_contain_text("Heard: I allowed")
        assert (served.workspace / "code.txt").read_text("utf-8") == NEW.replace("line 1\n", "line 1\nline 2\n", 1)
        eventually(lambda: page.evaluate("localStorage.getItem('isthmus.comments') === null"))


def test_comments_without_an_answer_wait_and_leave_the_question_open(served: Workbench, browser: Browser) -> None:
    with served.let_in(browser) as context:
        page = served.watched(context)
        served.prompt(page, "write it")
        card = page.locator("isthmus-question")
        until_answers_count(page)
        if not card.locator(".cm-merge-b").is_visible():
            page.keyboard.press("v")
        comment(page, card, "line twenty", "In digits.")
        card.get_by_role("button", name="Send after this turn").click()
        expect(card.locator(".hint")).to_have_text(re.compile("wait in the queue"))
        expect(page.locator("isthmus-queued li")).to_contain_text("code.txt:19")
        expect(card.get_by_role("button", name="Allow once", exact=False)).to_be_enabled()
        answer_by(page, "y")
        expect(page.locator("isthmus-task .said").last).to_contain_text("In digits.")
