"""Reviews in the workbench of a real companion, in a real Chromium, asked for by the editor tools of our own agents."""

import asyncio
import os
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.async_api import Locator, Page, expect

from isthmus.app.editor_directory import EditorDirectory
from isthmus.app.mcp_editor_tools import EditorTools, EditorToolTimeouts
from support.isthmus_program import companion_program
from support.workbench import DESKTOP, chromium_beside

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]


@dataclass
class Desk:
    """A companion's page, and an agent that asks for reviews."""

    page: Page
    tools: EditorTools
    workspace: Path

    @property
    def card(self) -> Locator:
        return self.page.locator("isthmus-review")

    async def propose(self, name: str, text: str) -> "asyncio.Task[str]":
        """Ask for a review; wait until its card can be answered. The result is the text that the agent gets."""

        async def ask() -> str:
            result = await self.tools.call("review_edit", {"file_path": name, "new_content": text}, _unheard)
            return "\n".join(str(block["text"]) for block in result.content)

        asked = asyncio.create_task(ask())
        await expect(self.card).to_contain_text(name)
        await expect(self.button("Accept")).to_be_enabled()
        return asked

    def button(self, name: str) -> Locator:
        return self.card.locator(".actions").get_by_role("button", name=name).first


async def _unheard(_text: str) -> None:
    """Take a progress report."""


@pytest.fixture
async def desk(workspace: Path) -> AsyncGenerator[Desk]:
    (workspace / "a.py").write_text("".join(f"line{number}\n" for number in range(1, 31)), "utf-8")
    editors = EditorDirectory(os.environ)
    # The browser is started by the process that asks, as an agent could do.
    command = ("companion", "--editor", "web", "--allow-agent-accept")
    with companion_program(workspace, command=command) as companion:
        async with chromium_beside() as browser:
            page = await browser.new_page(viewport={"width": DESKTOP[0], "height": DESKTOP[1]})
            problems: list[str] = []
            page.on("pageerror", lambda error: problems.append(str(error)))
            page.on("console", lambda line: problems.append(line.text) if "Security Policy" in line.text else None)
            page.set_default_timeout(20_000)
            await page.goto(companion.ready["page"])
            tools = EditorTools(editors, workspace, timeouts=EditorToolTimeouts(context=30.0, review=100.0))
            yield Desk(page, tools, workspace)
            assert problems == []
            await editors.aclose()


async def test_words_about_a_rejection_reach_the_agent_that_asked(desk: Desk) -> None:
    asked = await desk.propose("a.py", "new\n")
    await desk.page.keyboard.press("t")
    await desk.page.keyboard.type("keep the lines")
    await desk.page.keyboard.press("Enter")
    assert (await asyncio.wait_for(asked, 30)).endswith("The user's reason: keep the lines")
    await expect(desk.page.locator(".item.done")).to_contain_text("Rejected by Chrome on Linux")
