"""The workbench with other agents and surfaces: a hosted ACP agent, and one question on several surfaces at once."""

import shlex
import signal
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from support.coding_cli_agents import CHOSEN, CodingCliAgent, coding_cli_agent
from support.scripted_wire import Reply, Say
from support.workbench import DESKTOP, SECONDS, Workbench

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]

BEFORE = "one\ntwo\nthree\n"
PROPOSED = "one\nTWO\nthree\n"
NO_MODEL = "scenarios: [{prompt: '.', replies: [{text: Not asked.}]}]"


@asynccontextmanager
async def served(folder: Path, workspace: Path, script: str, *arguments: str) -> AsyncGenerator[Workbench]:
    """Start ``isthmus serve --ui`` with its script and data in ``folder``."""
    (folder / "script.yaml").write_text(script, "utf-8")
    workbench = Workbench(workspace, folder, arguments, command=("serve", "--ui"))
    workbench.start()
    try:
        yield workbench
    finally:
        workbench.end(signal.SIGTERM)


@asynccontextmanager
async def entered(browser: Browser, workbench: Workbench) -> AsyncGenerator[Page]:
    """Open a page that was let in by the server's link."""
    page = await browser.new_page(viewport={"width": DESKTOP[0], "height": DESKTOP[1]})
    try:
        page.set_default_timeout(1000 * SECONDS)
        await page.goto(workbench.link)
        await page.wait_for_selector("nav")
        yield page
    finally:
        await page.context.close()


async def begin(page: Page, workbench: Workbench, text: str) -> None:
    """Begin a task in the page."""
    await page.goto(f"{workbench.url}ui/new")
    await page.fill("isthmus-new textarea", text)
    await page.press("isthmus-new textarea", "Enter")


async def edit_in(page: Page, text: str) -> None:
    """Add a text at the end of the right side of the shown diff."""
    await page.click("isthmus-question .actions >> text=Edit first")
    await page.locator("isthmus-question isthmus-diff .cm-content").last.click()
    await page.keyboard.press("Control+End")
    await page.keyboard.type(text)
    await page.wait_for_selector("isthmus-question >> text=changed by you")


@pytest.fixture(params=CHOSEN)
def agent(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Generator[CodingCliAgent]:
    with coding_cli_agent(request.param) as found:
        for name, value in found.environment.items():
            monkeypatch.setenv(name, value)
        yield found


async def test_the_edit_of_a_hosted_agent_is_written_as_it_was_changed_in_the_page(
    tmp_path: Path, workspace: Path, agent: CodingCliAgent, browser_beside: Browser
) -> None:
    file = workspace / "a.txt"
    file.write_text(BEFORE, "utf-8")
    agent.writes(file, PROPOSED)
    agent.wire.add(Reply.of(Say("Done.")))
    variables = [word for name in agent.environment for word in ("--agent-env", name)]
    arguments = ("--agent", shlex.join(agent.command), "--trust-agent", *variables)
    async with (
        served(tmp_path, workspace, NO_MODEL, *arguments) as workbench,
        entered(browser_beside, workbench) as page,
    ):
        await begin(page, workbench, "Make the second line loud.")
        question = page.locator("isthmus-question")
        await expect(question).to_contain_text("Change a.txt")
        await edit_in(page, "mine")
        await question.locator(".primary").click()
        await expect(page.locator("isthmus-task .prose").last).to_contain_text("Done.")
        assert file.read_text("utf-8") == PROPOSED + "mine"
        await expect(page.locator("isthmus-task .call").last).to_contain_text("Answered by Chrome on Linux")
