"""Permission questions of Claude Code in the inbox, in a real Chromium: answered there, with words, or in its terminal.

The CLI is the strict one, and the real one, too, if ISTHMUS_CLAUDE is its path.
"""

from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from support.isthmus_program import companion_program
from support.permission_cli import KINDS, Ended, PermissionCli, permission_cli
from support.workbench import DESKTOP, PHONE, SECONDS

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(200)]

COMMAND = "echo one > one.txt"


async def _asks(cli: PermissionCli, page: Page, command: str = COMMAND) -> None:
    await cli.asks("Bash", {"command": command})
    await page.locator(".item:not(.done)").first.click()
    await expect(page.locator("isthmus-review h2")).to_have_text("Claude Code wants to run a command")


@pytest.mark.parametrize("kind", KINDS)
async def test_what_a_terminal_asks_is_answered_in_the_inbox(
    kind: str, workspace: Path, browser_beside: Browser
) -> None:
    command = ("companion", "--editor", "web", "--allow-agent-accept")
    with companion_program(workspace, command=command) as companion:
        page = await browser_beside.new_page(viewport={"width": DESKTOP[0], "height": DESKTOP[1]})
        page.set_default_timeout(1000 * SECONDS)
        card = page.locator("isthmus-review")
        try:
            await page.goto(companion.ready["page"])
            async with permission_cli(kind, workspace) as cli:
                await _asks(cli, page)
                await expect(card).to_contain_text(COMMAND)
                await expect(card).to_contain_text("Claude Code asks in its terminal too")
                await expect(card.get_by_role("button", name="Allow until it disconnects")).to_have_count(0)
                await card.get_by_role("button", name="Reject\u2026").click()
                await card.locator("textarea").fill("use make")
                await card.get_by_role("button", name="Reject").first.click()
                refused = await cli.ended()
                assert (refused.is_allowed, refused.by) == (False, "hook")
                assert refused.message.endswith(": use make")
                await _asks(cli, page)
                await page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
                await card.get_by_role("button", name="Allow once").click()
                assert await cli.ended() == Ended(True, "hook")
                await page.set_viewport_size({"width": DESKTOP[0], "height": DESKTOP[1]})
                await _asks(cli, page)
                await cli.answers(yes=True)
                await expect(card).to_contain_text("answered in its own terminal")
                assert await cli.ended() == Ended(True, "terminal")
        finally:
            await page.context.close()
