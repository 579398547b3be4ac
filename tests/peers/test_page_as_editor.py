"""The page as the editor of ``isthmus companion``: its files and selections in the contexts of real agents."""

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, Request, expect

from support.claude_cli import ClaudeCli, claude_cli
from support.gemini_cli import GeminiCli, gemini_cli
from support.isthmus_program import CompanionProgram, companion_program, user
from support.workbench import DESKTOP, PHONE, SECONDS

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]
AXE = Path(__file__).parents[2] / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
COMMAND = ("companion", "--editor", "web")


@pytest.fixture
def project(workspace: Path) -> Path:
    (workspace / "src").mkdir()
    (workspace / "src" / "tide.py").write_bytes(b"one\r\ntwo\r\nthree\r\nfour\r\n")
    (workspace / "README.md").write_text("# Harbour\n")
    (workspace / ".env").write_text("SECRET=1\n")
    (workspace / "logo.png").write_bytes(b"\x89PNG\r\n\x00")
    (workspace / "evil.txt").write_text("<img src=x onerror=alert(1)> \u202edrow\x1b[31m\n")
    return workspace


@asynccontextmanager
async def _files_page(
    browser: Browser, companion: CompanionProgram, size: tuple[int, int], *, is_clock_ours: bool = False
) -> AsyncGenerator[Page]:
    """Open the list of files of a companion's page, and fail if a script of the page has failed at the end."""
    page = await browser.new_page(viewport={"width": size[0], "height": size[1]})
    try:
        problems: list[str] = []
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.set_default_timeout(1000 * SECONDS)
        if is_clock_ours:
            await page.clock.install()
        await page.goto(companion.ready["page"])
        await page.locator("nav").get_by_role("link", name="Files").click()
        yield page
        assert problems == []
    finally:
        await page.context.close()


async def _opens(page: Page, words: str, name: str) -> None:
    """Search with the keyboard, and open the first file that is found."""
    await page.keyboard.press("/")
    await page.keyboard.press("Control+a")
    await page.keyboard.type(words)
    await page.keyboard.press("Enter")
    await expect(page.locator(".pane.surface .head code")).to_have_text(name)


async def test_agents_get_the_files_selections_and_mentions_of_the_page(project: Path, browser_beside: Browser) -> None:
    with companion_program(project, "--open", "README.md", command=COMMAND) as companion:
        async with (
            gemini_cli(project) as gemini,
            claude_cli(project) as claude,
            _files_page(browser_beside, companion, DESKTOP) as page,
        ):
            await _lines_selected_by_keyboard_are_in_both_contexts(gemini, claude, page, project)
            await _a_mention_goes_to_the_agent_whose_protocol_has_it(claude, page, project)
            await _a_word_selected_by_mouse_is_the_selection(claude, page)
            await page.evaluate(AXE.read_text("utf-8"))
            assert (await page.evaluate("axe.run({ preload: false })"))["violations"] == []
            await _a_file_that_is_left_is_in_no_context(gemini, claude, page, project)


async def _lines_selected_by_keyboard_are_in_both_contexts(
    gemini: GeminiCli, claude: ClaudeCli, page: Page, project: Path
) -> None:
    path = project / "src" / "tide.py"
    await _opens(page, "TID src", "src/tide.py")
    await expect(page.locator("isthmus-file .cm-content")).to_be_focused()
    await claude.selects(filePath=str(path), text="")
    for key in ("ArrowDown", "Shift+ArrowDown", "Shift+ArrowDown"):
        await page.keyboard.press(key)
    await expect(page.locator(".file-foot")).to_have_text("Lines 2 to 3 selected")
    selected = await claude.selects(filePath=str(path), text="two\r\nthree\r\n")
    assert selected["selection"] == {
        "start": {"line": 1, "character": 0}, "end": {"line": 3, "character": 0}, "isEmpty": False
    }  # fmt: skip
    await gemini.sees_files(2)
    context = await gemini.ask("first")
    assert context["activeFile"]["path"] == str(path)
    assert context["activeFile"]["selectedText"] == "two\r\nthree\r\n"
    assert context["activeFile"]["cursor"]["line"] == 4
    assert context["otherOpenFiles"] == [str(project / "README.md")]


async def _a_mention_goes_to_the_agent_whose_protocol_has_it(claude: ClaudeCli, page: Page, project: Path) -> None:
    await page.keyboard.press("m")
    assert await claude.mentioned() == {
        "filePath": str(project / "src" / "tide.py"), "lineStart": 1, "lineEnd": 2
    }  # fmt: skip
    await expect(page.locator(".file-foot")).to_have_text("Sent to the agent: src/tide.py, lines 2 to 3")


async def _a_word_selected_by_mouse_is_the_selection(claude: ClaudeCli, page: Page) -> None:
    await page.locator("isthmus-file .cm-line", has_text="four").dblclick(position={"x": 12, "y": 10})
    selected = await claude.selects(text="four")
    assert selected["selection"]["start"] == {"line": 3, "character": 0}


async def _a_file_that_is_left_is_in_no_context(
    gemini: GeminiCli, claude: ClaudeCli, page: Page, project: Path
) -> None:
    await page.keyboard.press("x")
    await gemini.sees_files(1)
    await claude.selects(filePath=str(project / "README.md"))
    await expect(page.locator(".pane.surface .head code")).to_have_text("README.md")


async def test_what_the_page_may_not_show_is_not_shown_and_what_is_written_is(
    project: Path, browser_beside: Browser
) -> None:
    with companion_program(project, command=COMMAND) as companion:
        async with _files_page(browser_beside, companion, PHONE) as page:
            dialogs: list[str] = []
            page.on("dialog", lambda dialog: dialogs.append(dialog.message))
            rows = page.locator(".file .cover")
            await expect(rows).to_have_text(["README.md", "evil.txt", "logo.png", re.compile(r"tide\.py\s*src")])
            await rows.nth(2).click()
            await expect(page.locator(".pane.surface")).to_contain_text("logo.png is not text (7 bytes)")
            assert (await user("status", folder=project))["context"]["workspaceState"]["openFiles"] == []
            await page.get_by_role("button", name="Back").click()
            await rows.nth(1).click()
            text = page.locator("isthmus-file .cm-content")
            await expect(text).to_contain_text("<img src=x onerror=alert(1)>")
            assert await page.locator("isthmus-file .cm-specialChar").count() == 2
            (project / "evil.txt").write_text("harmless\n")
            await expect(text).to_contain_text("harmless")
            await expect(page.locator(".file-foot")).to_contain_text("The file was written")
            await user("close", "evil.txt", folder=project)
            await expect(page.locator(".file .b.icon")).to_have_count(0)
            await expect(page.locator(".find input")).to_be_visible()
            assert dialogs == []


async def test_an_idle_page_asks_nothing_and_learns_of_changes_at_once(project: Path, browser_beside: Browser) -> None:
    with companion_program(project, command=COMMAND) as companion:
        async with _files_page(browser_beside, companion, DESKTOP, is_clock_ours=True) as page:
            await user("open", "README.md", folder=project)
            await expect(page.locator(".file.on")).to_contain_text("README.md")
            await page.clock.run_for(1_000)
            asked: list[Request] = []
            page.on("request", lambda request: asked.append(request))
            await page.clock.run_for(30_000)
            assert [request.url for request in asked if "/api/" in request.url] == []
            await user("open", "src/tide.py", folder=project)
            await expect(page.locator(".file .b.icon")).to_have_count(2)
            assert {request.url.partition("/ui/api/")[2] for request in asked if "/api/" in request.url} == {"reviews"}
