"""The workbench of ``isthmus companion`` in a real Chromium: edits of the real Gemini CLI and of other agents."""

import re
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from support.companion import attached_agent
from support.gemini_cli import gemini_cli
from support.isthmus_program import CompanionProgram, companion_program, user
from support.scripted_wire import Call
from support.workbench import DESKTOP, chromium_beside

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]

BEFORE = "one\r\ntwo\r\nthree\r\n"
PROPOSED = "one\r\nTWO\r\nthree\r\n"
WEB = ("companion", "--editor", "web")


@pytest.fixture
def file(workspace: Path) -> Path:
    path = workspace / "a.py"
    path.write_bytes(BEFORE.encode())
    return path


async def entered(companion: CompanionProgram, page: Page) -> Page:
    """Follow the companion's link."""
    page.set_default_timeout(20_000)
    await page.goto(companion.ready["page"])
    await expect(page.locator("nav")).to_be_visible()
    assert "code=" not in page.url
    return page


async def test_an_edit_of_gemini_cli_is_accepted_in_the_browser_with_changed_text(workspace: Path, file: Path) -> None:
    with companion_program(workspace, "--open", "a.py", command=WEB) as companion:
        async with gemini_cli(workspace) as cli, chromium_beside() as browser:
            page = await entered(companion, await browser.new_page(viewport={"width": DESKTOP[0], "height": DESKTOP[1]}))
            await expect(page.locator("main")).to_contain_text("Attached: Gemini CLI")
            await cli.propose(Call("write_file", {"file_path": str(file), "content": PROPOSED}), "Accepted, I see.")
            review = page.locator("isthmus-review")
            await expect(review).to_contain_text("Change a.py")
            await expect(page).to_have_title("(1) Isthmus")
            await review.get_by_role("button", name="Edit first").click()
            await page.locator("isthmus-review isthmus-diff .cm-content").last.click()
            await page.keyboard.press("Control+End")
            await page.keyboard.type("mine")
            await expect(review).to_contain_text("changed by you")
            await review.get_by_role("button", name="Accept", exact=False).first.click()
            await cli.shows("Accepted, I see.")
            await expect(page.locator("isthmus-review .ended")).to_contain_text("Accepted by Chrome on Linux")
            await expect(page).to_have_title("Isthmus")
            assert (await user("diffs", folder=workspace))["diffs"] == []
    assert file.read_bytes() == PROPOSED.encode() + b"mine"


async def test_a_review_that_ends_elsewhere_while_it_is_shown_says_who_ended_it(workspace: Path, file: Path) -> None:
    other = workspace / "b.py"
    with companion_program(workspace, command=WEB) as companion:
        async with (
            attached_agent(companion.url, companion.discovered["authToken"]) as agent,
            chromium_beside() as browser,
        ):
            page = await entered(companion, await browser.new_page(viewport={"width": DESKTOP[0], "height": DESKTOP[1]}))
            await agent.open_diff(file, PROPOSED)
            await expect(page.locator("isthmus-review")).to_contain_text("Change a.py")
            await agent.open_diff(other, "new\n")
            await expect(page.locator(".item")).to_have_count(2)
            await user("reject", "a.py", folder=workspace)
            await expect(page.locator("isthmus-review .ended")).to_contain_text("Rejected by isthmus ide")
            await expect(page.locator("isthmus-review .actions")).to_have_count(0)
            await page.keyboard.press("y")  # meant for the one that has just ended
            await page.keyboard.press("j")
            await expect(page.locator("isthmus-review")).to_contain_text("Create b.py")
            await page.keyboard.press("y")  # within the time in which a key may have been meant for something else
            # The agent is a part of this process, and the browser was started by it.
            await expect(page.get_by_role("button", name="Accept")).to_be_enabled()
            await page.keyboard.press("y")
            await expect(page.locator("isthmus-review .problem")).to_contain_text("an agent does not answer its own")
            await agent.close_diff(other)
            await expect(page.locator("isthmus-review .ended")).to_contain_text(re.compile("Taken back by .*document"))
            assert [name for name, _ in agent.received if "diff" in name] == ["ide/diffRejected"]
