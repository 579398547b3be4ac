"""The workbench of ``isthmus companion`` in a real Chromium, with edits of the real Gemini CLI."""

from pathlib import Path

import pytest
from playwright.async_api import Locator, Page, expect

from support.gemini_cli import GeminiCli, gemini_cli
from support.isthmus_program import companion_program, user
from support.scripted_wire import Call
from support.workbench import DESKTOP, chromium_beside

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]

BEFORE = "one\r\ntwo\r\nthree\r\n"
PROPOSED = "one\r\nTWO\r\nthree\r\n"


def write_file(path: Path, content: str) -> Call:
    return Call("write_file", {"file_path": str(path), "content": content})


async def test_edits_of_gemini_cli_are_answered_in_the_browser_and_elsewhere(workspace: Path) -> None:
    file = workspace / "a.py"
    file.write_bytes(BEFORE.encode())
    with companion_program(workspace, "--open", "a.py", command=("companion", "--editor", "web")) as companion:
        async with gemini_cli(workspace) as cli, chromium_beside() as browser:
            page = await browser.new_page(viewport={"width": DESKTOP[0], "height": DESKTOP[1]})
            page.set_default_timeout(20_000)
            await page.goto(companion.ready["page"])
            await expect(page.locator("main")).to_contain_text("Attached: Gemini CLI")
            assert "code=" not in page.url
            await _an_edit_is_accepted_with_changed_text(cli, page, file)
            await _a_review_that_is_rejected_elsewhere_stays_and_says_by_whom(cli, page, workspace)


async def _an_edit_is_accepted_with_changed_text(cli: GeminiCli, page: Page, file: Path) -> None:
    await cli.propose(write_file(file, PROPOSED), "Accepted, I see.")
    review = page.locator("isthmus-review")
    await expect(review).to_contain_text("Change a.py")
    await expect(page).to_have_title("(1) Isthmus")
    await review.get_by_role("button", name="Edit first").click()
    await page.locator("isthmus-review isthmus-diff .cm-content").last.click()
    await page.keyboard.press("Control+End")
    await page.keyboard.type("mine")
    await expect(review).to_contain_text("changed by you")
    await _answer(review, "Accept").click()
    await cli.shows("Accepted, I see.")
    await expect(page.locator("isthmus-review .ended")).to_have_text("Accepted by Chrome on Linux")
    await expect(page).to_have_title("Isthmus")
    assert file.read_bytes() == PROPOSED.encode() + b"mine"


async def _a_review_that_is_rejected_elsewhere_stays_and_says_by_whom(
    cli: GeminiCli, page: Page, workspace: Path
) -> None:
    await cli.propose(write_file(workspace / "b.py", "new\n"))
    await expect(page.locator("isthmus-review")).to_contain_text("Create b.py")
    await user("reject", "b.py", folder=workspace)
    await cli.shows("Rejected")
    await expect(page.locator("isthmus-review .ended")).to_contain_text("Rejected by isthmus ide")
    await expect(page.locator("isthmus-review .actions")).to_have_count(0)
    await page.keyboard.press("y")  # meant for the one that has just ended
    await expect(page.locator(".item.done").last).to_contain_text("Rejected by isthmus ide")
    assert not (workspace / "b.py").exists()


def _answer(review: Locator, name: str) -> Locator:
    return review.locator(".actions").get_by_role("button", name=name)
