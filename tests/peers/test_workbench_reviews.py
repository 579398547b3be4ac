"""Reviews in the workbench of a real companion, in a real Chromium, asked for by the editor tools of our own agents."""

import asyncio
import json
import os
import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.async_api import Browser, Locator, Page, Route, expect

from isthmus.parts.editor.directory import EditorDirectory
from isthmus.programs.mcp.editor_tools import EditorTools, EditorToolTimeouts
from isthmus.text.hunks import hunks_between, with_hunks
from support.images import png
from support.isthmus_program import companion_program
from support.workbench import DESKTOP, SECONDS, answer_beside

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]


@dataclass
class CompanionReviews:
    """A companion's page, and an agent that asks for reviews."""

    page: Page
    tools: EditorTools
    workspace: Path

    @property
    def card(self) -> Locator:
        return self.page.locator("isthmus-review")

    def ask(self, name: str, text: str) -> "asyncio.Task[str]":
        """Ask for a review; the result is the text that the agent gets."""

        async def ask() -> str:
            result = await self.tools.call("review_edit", {"file_path": name, "new_content": text}, _unheard)
            return "\n".join(str(block["text"]) for block in result.content)

        return asyncio.create_task(ask())

    async def propose(self, name: str, text: str, *, is_shown: bool = True) -> "asyncio.Task[str]":
        """Ask for a review; wait until its card can be answered, or with ``is_shown`` false until it is listed."""
        asked = self.ask(name, text)
        listed, gathered = self.page.locator(".item:not(.done)", has_text=name), self.page.locator(".inbox .new")
        await expect(listed.or_(gathered).first).to_be_visible()
        if not await listed.count():
            await gathered.click()
        await expect(listed).to_have_count(1)
        if not is_shown:
            return asked
        await expect(self.card).to_contain_text(name)
        await expect(self.button("Accept")).to_be_enabled()
        return asked

    def button(self, name: str) -> Locator:
        return self.card.locator(".actions").get_by_role("button", name=name).first


async def _unheard(_text: str) -> None:
    """Take a progress report."""


@pytest.fixture
async def reviews(workspace: Path, browser_beside: Browser) -> AsyncGenerator[CompanionReviews]:
    (workspace / "a.py").write_text("".join(f"line{number}\n" for number in range(1, 31)), "utf-8")
    editors = EditorDirectory(os.environ)
    # The browser is started by the process that asks, as an agent could do.
    command = ("companion", "--editor", "web", "--allow-agent-accept")
    with companion_program(workspace, command=command) as companion:
        page = await browser_beside.new_page(viewport={"width": DESKTOP[0], "height": DESKTOP[1]}, has_touch=True)
        try:
            problems: list[str] = []
            page.on("pageerror", lambda error: problems.append(str(error)))
            page.on("console", lambda line: problems.append(line.text) if "Security Policy" in line.text else None)
            page.set_default_timeout(1000 * SECONDS)
            await page.goto(companion.ready["page"])
            tools = EditorTools(editors, workspace, timeouts=EditorToolTimeouts(context=30.0, review=100.0))
            yield CompanionReviews(page, tools, workspace)
            assert problems == []
        finally:
            await page.context.close()
            await editors.aclose()


async def test_words_about_a_rejection_reach_the_agent_that_asked(reviews: CompanionReviews) -> None:
    asked = await reviews.propose("a.py", "new\n")
    await reviews.page.keyboard.press("n")
    await reviews.page.keyboard.type("keep the lines")
    await reviews.page.keyboard.press("Enter")
    assert (await asyncio.wait_for(asked, 30)).endswith("The user's reason: keep the lines")
    await expect(reviews.page.locator(".item.done")).to_contain_text("Rejected by Chrome on Linux")


async def test_a_diff_that_still_comes_cannot_be_edited_and_then_can(reviews: CompanionReviews) -> None:
    held: asyncio.Queue[Route] = asyncio.Queue()
    await reviews.page.route("**/reviews/*", held.put)
    asked = await reviews.propose("a.py", "new\n", is_shown=False)
    route = await asyncio.wait_for(held.get(), 30)
    await expect(reviews.button("Edit first")).to_be_disabled()
    await route.continue_()
    await reviews.page.unroute("**/reviews/*")
    await reviews.button("Edit first").click()
    await expect(reviews.card.locator(".cm-content[contenteditable=true]")).to_be_visible()
    await reviews.button("Reject…").click()
    await reviews.card.get_by_role("button", name="Reject without").click()
    assert (await asyncio.wait_for(asked, 30)).startswith("Rejected")


ARE_LEVEL = """async (view, text) => {
  const top = side => [...view.querySelectorAll(`${side} .cm-line`)].find(line => line.textContent === text)?.offsetTop;
  for (const until = performance.now() + 10_000; performance.now() < until; await new Promise(requestAnimationFrame)) {
    if (top(".cm-merge-a") === top(".cm-merge-b")) return top(".cm-merge-a") > 0;
  }
  return false;
}"""
"""Function that returns whether the lines with a text come to stand beside each other."""


def _with_three_hunks(workspace: Path) -> str:
    """Return the file with a changed line, a changed and an added line, and a removed line."""
    lines = (workspace / "a.py").read_text("utf-8").splitlines()
    lines[1], lines[20:21] = "two", ["twentyone", "and more"]
    del lines[27]
    return "\n".join(lines) + "\n"


async def test_comments_on_lines_go_back_with_the_rejection(reviews: CompanionReviews) -> None:
    page, card = reviews.page, reviews.card
    asked = await reviews.propose("a.py", _with_three_hunks(reviews.workspace))
    for key in ("]", "]", "ArrowDown", "m"):
        await page.keyboard.press(key)
    await page.keyboard.type("say more")
    await page.keyboard.press("Enter")
    # A redraw and another card in between lose nothing.
    await page.keyboard.press("v")
    await card.locator(".cm-merge-b textarea").wait_for()
    other = await reviews.propose("b.py", "new\n", is_shown=False)
    await page.keyboard.press("k")  # what came later stands above
    await expect(card).to_contain_text("Create b.py")
    await page.keyboard.press("j")
    # The line as it was, by touch; then by its key in one column, where deleted lines have no editor of their own.
    await card.locator(".cm-merge-a .cm-line", has_text="line21").tap()
    await card.get_by_role("button", name="Comment on line 21 as it was").tap()
    await page.keyboard.type("why not keep")
    await page.keyboard.press("Escape")
    await page.keyboard.press("v")
    await card.locator(".cm-deletedLine", has_text="line2").first.tap()
    await page.keyboard.press("m")
    await page.keyboard.type("keep")
    await page.keyboard.press("Enter")
    bar = card.locator("isthmus-comments")
    await expect(bar).to_contain_text("3 comments")
    await expect(bar).to_contain_text("if you accept, no comment is sent")
    await expect(reviews.button("Reject with comments (3)")).to_be_enabled()
    await answer_beside(page, "n")
    await page.locator("isthmus-reason textarea").wait_for()
    await page.keyboard.type("Again, please.")
    await page.keyboard.press("Enter")
    reason = (await asyncio.wait_for(asked, 30)).partition("reason: ")[2]
    assert reason.splitlines() == [
        "Again, please.",
        "",
        *("a.py:2 (the line as it was)", "> line2", "keep", ""),
        *("a.py:21 (the line as it was)", "> line21", "why not keep", ""),
        *("a.py:22 (the line as you proposed it)", "> and more", "say more"),
    ]
    other.cancel()


COMMENT_IN_A_FRAME = """async () => {
  const press = (target, key) => target.dispatchEvent(
    new KeyboardEvent('keydown', {key, bubbles: true, composed: true, cancelable: true}));
  const field = () => {
    let found = document.activeElement;
    while (found?.shadowRoot?.activeElement) found = found.shadowRoot.activeElement;
    return found?.localName === 'textarea' ? found : undefined;
  };
  press(document.body, 'm');
  for (let turn = 0; turn < 10000 && !field(); turn += 1) await Promise.resolve();
  const first = field();
  first.value = 'no';
  first.dispatchEvent(new Event('input', {bubbles: true, composed: true}));
  press(first, 'Enter');
  const left = !field();
  for (let frame = 0; frame < 4; frame += 1) await new Promise(requestAnimationFrame);
  return [left, !field()];
}"""
"""Function that writes a comment faster than the page is drawn; returns whether its field was left, and stayed so."""


async def test_the_field_of_a_comment_takes_no_key_that_follows_it(reviews: CompanionReviews) -> None:
    asked = await reviews.propose("a.py", _with_three_hunks(reviews.workspace))
    await reviews.page.keyboard.press("]")
    assert await reviews.page.evaluate(COMMENT_IN_A_FRAME) == [True, True]
    asked.cancel()


async def test_hunks_are_kept_one_by_one_side_by_side(reviews: CompanionReviews) -> None:
    page, card = reviews.page, reviews.card
    before, proposed = (reviews.workspace / "a.py").read_text("utf-8"), _with_three_hunks(reviews.workspace)
    asked = await reviews.propose("a.py", proposed)
    await page.keyboard.press("v")
    await expect(card.locator(".neck .nk")).to_have_count(3)
    assert await card.locator(".cm-mergeView").evaluate(ARE_LEVEL, "line30")
    await card.locator(".neck .nk").nth(2).get_by_role("button", name="Keep as it was").click()
    await page.keyboard.press("]")
    await page.keyboard.press("x")
    await page.keyboard.press("]")
    await page.keyboard.press("x")
    await page.keyboard.press("a")
    await expect(card.locator(".hint")).to_have_text("Hunks to write: 1, kept as they were: 2")
    await page.keyboard.press("v")
    await expect(card.locator(".cm-hunk [aria-pressed=true]")).to_have_text(
        ["Keep as it was", "Accept", "Keep as it was"]
    )
    await answer_beside(page, "y")
    said = await asyncio.wait_for(asked, 30)
    assert said.endswith(before.replace("line21\n", "twentyone\nand more\n"))


async def test_the_neck_shows_choices_and_comments_name_the_line_on_the_screen(reviews: CompanionReviews) -> None:
    page, card = reviews.page, reviews.card
    asked = await reviews.propose("a.py", _with_three_hunks(reviews.workspace))
    await page.keyboard.press("v")
    ribbons = card.locator(".neck .nk")
    await expect(ribbons).to_have_count(3)
    for key in ("]", "a", "]", "x"):
        await page.keyboard.press(key)
    await expect(ribbons.nth(0)).to_have_class(re.compile("yes"))
    await expect(ribbons.nth(1)).to_have_class(re.compile("no"))
    await expect(ribbons.nth(1).get_by_role("button", name="Keep as it was")).to_have_attribute("aria-pressed", "true")
    kept = card.locator(".cm-merge-b .cm-kept")
    await expect(kept).to_have_text("line21")
    assert await kept.get_attribute("data-end") == "kept as it was"
    await page.keyboard.press("m")
    await expect(card.locator(".cm-comment")).to_contain_text("line 21 as it was")
    await page.keyboard.press("Escape")
    await card.locator(".cm-merge-b .cm-line", has_text="line30").tap()
    await card.get_by_role("button", name="Comment on line 29").tap()
    await page.keyboard.type("why")
    await page.keyboard.press("Enter")
    # What is open again is proposed again; the agent reads the number of the line in what it has proposed.
    await ribbons.nth(1).get_by_role("button", name="Keep as it was").tap()
    await expect(card.locator(".cm-comment")).to_contain_text("Your comment on line 30")
    await expect(card.locator(".cm-merge-b .cm-added", has_text="and more")).to_have_attribute("data-said", "added ")
    await reviews.button("Edit first").click()
    await expect(card.locator(".cm-content[contenteditable=true]")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(card.locator("h2")).to_be_focused()
    asked.cancel()


async def test_hunks_are_counted_as_in_every_editor_also_around_blank_lines(reviews: CompanionReviews) -> None:
    card, before, proposed = reviews.card, "one\n\ntwo\nx\n}\ny\n", "ONE\n\nTWO\nX\n}\nY\nz\n"
    (reviews.workspace / "a.py").write_text(before, encoding="utf-8")
    asked = await reviews.propose("a.py", proposed)
    bars = card.locator(".cm-hunk")
    await expect(bars).to_have_count(3)
    await expect(bars.nth(1)).to_contain_text("2 of 3")
    await bars.nth(1).get_by_role("button", name="Keep as it was").click()
    await answer_beside(reviews.page, "y")
    said = await asyncio.wait_for(asked, 30)
    assert said.endswith(with_hunks(before, proposed, [1, 3]))
    assert len(hunks_between(before, proposed)) == 3


async def test_all_files_of_an_agent_are_accepted_as_they_were_listed(reviews: CompanionReviews) -> None:
    page, names = reviews.page, ("one.py", "two.py", "three.py")
    asked = [await reviews.propose(name, f"{name}\n", is_shown=False) for name in names]
    await expect(reviews.button("Accept")).to_be_enabled()
    await page.keyboard.press("A")
    sheet = page.locator("isthmus-all")
    await expect(sheet.locator(".file")).to_have_count(3)
    await expect(sheet.locator(".file")).to_contain_text(["three.py", "two.py", "one.py"])
    late = reviews.ask("late.py", "late\n")
    await expect(page.locator("nav").get_by_role("link", name="Inbox 4 waiting")).to_be_visible()
    await expect(sheet.locator(".file")).to_have_count(3)
    # Only the one that was on the screen before counts as looked at.
    await expect(sheet.get_by_role("button", name="Accept files (1)")).to_be_enabled()
    await expect(sheet.get_by_label("not looked at", exact=True)).to_have_count(2)
    await page.keyboard.press("[")
    await expect(sheet.locator(".dhead")).to_contain_text("two.py")
    await expect(sheet.get_by_role("button", name="Accept files (2)")).to_be_enabled()
    await answer_beside(page, "y")
    for accepted in asked[:2]:
        assert (await asyncio.wait_for(accepted, 30)).startswith("Accepted")
    await page.locator(".inbox .new", has_text="1 new").click()
    await expect(page.locator(".item:not(.done)")).to_have_count(2)
    assert not late.done()
    await expect(reviews.button("Accept")).to_be_enabled()
    await page.keyboard.press("A")
    await expect(sheet.get_by_role("button", name="Reject all (2)")).to_be_enabled()
    await answer_beside(page, "n")
    for rejected in (asked[2], late):
        assert (await asyncio.wait_for(rejected, 30)).startswith("Rejected")


async def test_what_is_no_text_is_shown_as_an_image_or_said(reviews: CompanionReviews) -> None:
    page, card, workspace = reviews.page, reviews.card, reviews.workspace
    asked = await reviews.propose("logo.png", "words\n")
    (workspace / "logo.png").write_bytes(png(60, 40))
    await answer_beside(page, "y")  # it was a new file when it was seen
    await expect(card.locator(".problem")).to_contain_text("changed while you looked")
    await expect(card).to_contain_text("Change logo.png")
    image = card.locator("isthmus-before img")
    assert await image.evaluate("image => image.decode().then(() => [image.naturalWidth, image.src.slice(0, 5)])") == [
        60,
        "blob:",
    ]
    await expect(card.locator("isthmus-before")).to_contain_text("A text of 6 characters replaces it.")
    (workspace / "logo.png").write_bytes(b"\0binary")
    await expect(reviews.button("Accept")).to_be_enabled()
    await answer_beside(page, "y")
    await expect(card.locator("isthmus-before")).to_contain_text("Not text, 7 B. It is not shown.")
    await expect(image).to_have_count(0)
    assert not asked.done()
    asked.cancel()


def _cell(number: int, source: str, **more: object) -> dict[str, object]:
    cell: dict[str, object] = {
        "cell_type": "code",
        "id": f"c{number}",
        "metadata": {},
        "execution_count": 1,
        "outputs": [],
    }
    return {**cell, "source": source.splitlines(keepends=True), **more}


def _notebook(*cells: dict[str, object], **more: object) -> str:
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5, **more}, indent=1) + "\n"


async def test_a_notebook_is_shown_by_cell_and_accepted_as_text(reviews: CompanionReviews) -> None:
    output = {"output_type": "stream", "name": "stdout", "text": "secret output"}
    same = [_cell(number, f"x = {number}") for number in range(2, 5)]
    old = _notebook(_cell(1, "a = 1\nb = 1", outputs=[output]), *same, _cell(5, "gone"))
    new = _notebook(
        _cell(1, "a = 1\nb = 2"),
        same[1],
        same[0],
        same[2],
        _cell(6, "# <img src=x>", cell_type="markdown"),
        metadata={"k": 1},
    )
    (reviews.workspace / "n.ipynb").write_text(old, "utf-8")
    asked = await reviews.propose("n.ipynb", new)
    page, notebook = reviews.page, reviews.card.locator("isthmus-notebook")
    headings = [
        "The notebook itself",
        "code cell 1 changed",
        "code cell 3 moved",
        "markdown cell 5 new",
        "code cell 5 removed",
    ]
    await expect(notebook.locator("h3")).to_have_text(headings)
    first = notebook.locator("section", has_text="code cell 1")
    await expect(first).to_contain_text("Outputs: 1 before, 0 after. They are not shown.")
    await expect(first.locator(".cm-content").last).to_contain_text("b = 2")
    assert "secret output" not in await notebook.inner_text()
    assert await notebook.locator("img").count() == 0
    await reviews.card.get_by_role("button", name="As JSON").click()
    await expect(reviews.card.locator("isthmus-diff.main")).to_contain_text('"cell_type"')
    await reviews.card.get_by_role("button", name="By cell").click()
    await expect(reviews.button("Accept")).to_be_enabled()
    await answer_beside(page, "y")
    assert (await asyncio.wait_for(asked, 30)).startswith("Accepted")
