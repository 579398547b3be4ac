"""The workbench of ``isthmus companion`` in a real Chromium, with edits of the real Gemini CLI and Qwen Code.

Claude Code is the strict client, and the real one, too, if ISTHMUS_CLAUDE is its path.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Browser, Locator, Page, expect

from isthmus.ide.claude.discovery.lock_file import claude_variables
from support.claude_code import PROGRAM, cli_in_a_terminal
from support.gemini_cli import GeminiCli, gemini_cli
from support.isthmus_program import CompanionProgram, companion_program, user
from support.qwen_cli import qwen_code
from support.scripted_wire import Call
from support.workbench import DESKTOP, SECONDS

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]

BEFORE = "one\r\ntwo\r\nthree\r\n"
PROPOSED = "one\r\nTWO\r\nthree\r\n"
CHANGED = PROPOSED + "mine\r\n"  # with an end of line, which Claude Code adds otherwise


def write_file(path: Path, content: str) -> Call:
    return Call("write_file", {"file_path": str(path), "content": content})


@asynccontextmanager
async def companion_with_page(
    workspace: Path, browser: Browser, *arguments: str
) -> AsyncGenerator[tuple[CompanionProgram, Page]]:
    """Start a companion whose editor is the page, and open its page."""
    command = ("companion", "--editor", "web", "--open", "a.py")
    with companion_program(workspace, *arguments, command=command) as companion:
        page = await browser.new_page(viewport={"width": DESKTOP[0], "height": DESKTOP[1]})
        try:
            page.set_default_timeout(1000 * SECONDS)
            await page.goto(companion.ready["page"])
            yield companion, page
        finally:
            await page.context.close()


@pytest.fixture
def file(workspace: Path) -> Path:
    path = workspace / "a.py"
    path.write_bytes(BEFORE.encode())
    return path


async def test_edits_of_gemini_cli_are_answered_in_the_browser_and_elsewhere(
    workspace: Path, file: Path, browser_beside: Browser
) -> None:
    async with companion_with_page(workspace, browser_beside) as (_, page), gemini_cli(workspace) as cli:
        await expect(page.locator("main")).to_contain_text("Attached: Gemini CLI")
        assert "code=" not in page.url
        await cli.propose(write_file(file, PROPOSED), "Accepted, I see.")
        await _accept_with_changed_text(page, "Gemini CLI")
        await cli.shows("Accepted, I see.")
        assert file.read_bytes() == CHANGED.encode()
        await _a_review_that_is_rejected_elsewhere_stays_and_says_by_whom(cli, page, workspace)


@pytest.mark.extended
async def test_qwen_code_writes_its_edit_as_it_was_changed_in_the_browser(
    workspace: Path, file: Path, browser_beside: Browser
) -> None:
    async with companion_with_page(workspace, browser_beside) as (_, page), qwen_code(workspace) as cli:
        await expect(page.locator("main")).to_contain_text("Attached: Qwen Code")
        await cli.rewrite(file, PROPOSED, "Accepted, I see.")
        await _accept_with_changed_text(page, "Qwen Code")
        await cli.shows("Accepted, I see.")
        assert file.read_bytes() == CHANGED.encode()
        assert "User modified the `content`" in cli.tool_response()


@pytest.mark.parametrize("kind", ["strict", *(["real"] if PROGRAM else [])])
async def test_claude_code_writes_its_edit_as_it_was_changed_in_the_browser(
    workspace: Path, file: Path, browser_beside: Browser, kind: str
) -> None:
    # The strict client is in the process that started the browser; an agent's own browser is refused otherwise.
    allowed = ("--allow-agent-accept",) if kind == "strict" else ()
    async with companion_with_page(workspace, browser_beside, *allowed) as (companion, page):
        variables = claude_variables(companion.ready["servers"]["claude"]["port"])
        async with cli_in_a_terminal(kind, workspace, variables) as cli:
            await expect(page.locator("main")).to_contain_text("Attached: Claude Code")
            await cli.propose(file, "two", "TWO")
            await _accept_with_changed_text(page, "Claude Code")
            await cli.ended()
            assert file.read_bytes() == CHANGED.encode()


async def _accept_with_changed_text(page: Page, agent: str) -> None:
    review = page.locator("isthmus-review")
    await expect(page.locator(".item")).to_contain_text(agent)
    await expect(review).to_contain_text("Change a.py")
    await expect(page).to_have_title("Inbox (1) · Isthmus")
    await review.get_by_role("button", name="Edit first").click()
    await page.locator("isthmus-review isthmus-diff .cm-content[contenteditable=true]").last.click()
    await page.keyboard.press("Control+End")
    await page.keyboard.type("mine\n")
    await expect(review).to_contain_text("changed by you")
    await _answer(review, "Accept").click()
    await expect(page.locator("isthmus-review .ended")).to_have_text("Accepted by Chrome on Linux")
    await expect(page).to_have_title("Inbox · Isthmus")


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
    # What came later stands above what was answered before it.
    await expect(page.locator(".item.done").nth(0)).to_contain_text("Rejected by isthmus ide")
    await expect(page.locator(".item.done").nth(1)).to_contain_text("Accepted by Chrome on Linux")
    assert not (workspace / "b.py").exists()


def _answer(review: Locator, name: str) -> Locator:
    return review.locator(".actions").get_by_role("button", name=name)
