"""The workbench with other agents and surfaces: a hosted ACP agent, and one question on several surfaces at once."""

import asyncio
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from isthmus.a2a.token_file import TOKEN_FILE
from support.acp_hosting import PROGRAM
from support.claude_cli import ClaudeCli, claude_cli
from support.coding_cli_agents import CHOSEN, CodingCliAgent, coding_cli_agent
from support.isthmus_program import ISTHMUS, TERMINAL, companion_program
from support.neovim import RunningNeovim, running_neovim
from support.pty_program import PtyProgram, pty_program
from support.scripted_wire import Reply, Say
from support.waiting import eventually_async
from support.workbench import DESKTOP, SECONDS, Workbench

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]

BEFORE = "one\ntwo\nthree\n"
PROPOSED = "one\nTWO\nthree\n"
PROMPT = r"(?m)^\u203a ?\n *default"
"""Prompt of the terminal without text."""
OF_PAGE, OF_NEOVIM, OF_IDE_COMMAND = PROPOSED + "page", "one\nneovim\n", "terminal\n"
CHANGE = """
scenarios:
  - prompt: change
    replies:
      - call: {name: write_file, arguments: {file_path: a.txt, content: "one\\nTWO\\nthree\\n"}}
      - text: It is over.
"""
NO_MODEL = "scenarios: [{prompt: '.', replies: [{text: Not asked.}]}]"


@asynccontextmanager
async def served(
    folder: Path, workspace: Path, script: str, *arguments: str, editor: Sequence[str] = ("--no-ide",)
) -> AsyncGenerator[Workbench]:
    """Start ``isthmus serve --ui`` with its script and data in ``folder``."""
    (folder / "script.yaml").write_text(script, "utf-8")
    workbench = Workbench(workspace, folder, arguments, command=("serve", "--ui"), editor=editor)
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


async def edit_in(page: Page, text: str, card: str = "isthmus-question") -> None:
    """Add a text at the end of the right side of the shown diff."""
    await page.click(f"{card} .actions >> text=Edit first")
    await page.locator(f"{card} isthmus-diff .cm-content[contenteditable=true]").last.click()
    await page.keyboard.press("Control+End")
    await page.keyboard.type(text)
    await page.wait_for_selector(f"{card} >> text=changed by you")


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
        await expect(page.locator("isthmus-task .call").last).to_contain_text("accepted with your change, ")


async def test_what_a_hosted_agent_states_of_tokens_and_cost_is_beside_its_conversation(
    tmp_path: Path, workspace: Path, browser_beside: Browser
) -> None:
    command = shlex.join((sys.executable, str(PROGRAM)))
    async with (
        served(tmp_path, workspace, NO_MODEL, "--agent", command, "--trust-agent") as workbench,
        entered(browser_beside, workbench) as page,
    ):
        await begin(page, workbench, "usage")
        beside = page.locator("isthmus-aside")
        await expect(beside).to_contain_text("53,000 of 200,000 tokens")
        await expect(beside).to_contain_text("$0.42")
        await expect(beside).to_contain_text("135 tokens of input, 100 (74 %) of them cached")
        await begin(page, workbench, "hello")
        await expect(page.locator("isthmus-task .prose").last).to_contain_text("You said: hello")
        await expect(beside).not_to_contain_text("USD")


@pytest.mark.extended
async def test_of_answers_everywhere_at_once_one_wins_and_the_others_say_whose(
    tmp_path: Path, workspace: Path, browser_beside: Browser
) -> None:
    (workspace / "other.txt").touch()  # where keys go that Neovim gets after its view was closed
    # The strict client of Claude Code is in the process that starts the browser and `isthmus ide`.
    command = ("companion", "--editor", "nvim", "--allow-agent-accept")
    async with running_neovim(workspace, "other.txt") as neovim:
        with companion_program(workspace, "--address", neovim.address, command=command):
            async with (
                served(tmp_path, workspace, CHANGE, editor=()) as workbench,
                entered(browser_beside, workbench) as page,
                claude_cli(workspace) as cli,
            ):
                surfaces = Surfaces(workspace / "a.txt", f"{workbench.url}ui/", page, neovim)
                token = (tmp_path / "data" / TOKEN_FILE).read_text("utf-8").strip()
                environment = {**os.environ, "TERM": "xterm-256color", "ISTHMUS_A2A_TOKEN": token}
                program = [*ISTHMUS, "connect", workbench.url]
                with pty_program(program, folder=workspace, environment=environment) as terminal:
                    await surfaces.answer_a_review(cli, at_once=True)
                    await surfaces.answer_a_review(cli, at_once=False)
                    await surfaces.answer_a_task(terminal, at_once=True)
                    await surfaces.answer_a_task(terminal, at_once=False)


@dataclass(frozen=True, slots=True)
class Surfaces:
    """The places where the same edit of ``file`` is shown. ``ui`` is the address of the inbox."""

    file: Path
    ui: str
    page: Page
    neovim: RunningNeovim

    async def answer_a_review(self, cli: ClaudeCli, *, at_once: bool) -> None:
        """Accept an edit at the companion; without ``at_once`` the page is first, and the terminal late."""
        self.file.write_text(BEFORE, "utf-8")
        await cli.begin_turn()
        edit = asyncio.create_task(cli.edit(self.file, PROPOSED))
        await self._is_shown()
        terminal = await asyncio.create_subprocess_exec(
            *(sys.executable, "-S", str(TERMINAL), *ISTHMUS, "ide", "accept", self.file.name, "--content", "-"),
            cwd=self.file.parent, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        stdin, review = terminal.stdin, self.page.locator("isthmus-review")
        assert stdin is not None
        stdin.write(OF_IDE_COMMAND.encode())
        await edit_in(self.page, "page", "isthmus-review")
        await review.locator(".actions").get_by_role("button", name="Accept").click()
        if at_once:
            stdin.close()
            await self._write()
        await asyncio.wait_for(edit, 30)
        stdin.close()
        _, problem = await asyncio.wait_for(terminal.communicate(), 30)
        answers = {OF_PAGE: "Chrome on Linux", PROPOSED: "Neovim", OF_IDE_COMMAND: "isthmus ide"}
        winner = answers[self.file.read_text("utf-8")]
        assert at_once or winner == "Chrome on Linux"
        await expect(review.locator(".ended")).to_contain_text(f"Accepted by {winner}")
        assert (f"was accepted by {winner}" in problem.decode()) == (winner != "isthmus ide"), problem
        await self._neovim_says("accepted a.txt" if winner == "Neovim" else f"a.txt: accepted by {winner}")

    async def answer_a_task(self, terminal: PtyProgram, *, at_once: bool) -> None:
        """Allow an edit of a task that was begun in the terminal; without ``at_once`` only there."""
        self.file.write_text(BEFORE, "utf-8")
        await asyncio.to_thread(terminal.wait_for, PROMPT, 30)
        terminal.press("change it\r")
        await self._is_shown()
        await self.neovim.set_lines(*OF_NEOVIM.splitlines())
        await asyncio.to_thread(terminal.wait_for, r"1  Allow once(?s:.*)\n *\u203a ?$", 30)
        question = self.page.locator("isthmus-question .primary")
        await expect(question).to_be_visible()
        if at_once:
            await edit_in(self.page, "page")
            await question.click()
            await self._write()
        terminal.press("1")
        await asyncio.to_thread(terminal.wait_for, r"It is over\.", 30)
        answers = {OF_PAGE: "Chrome on Linux", OF_NEOVIM: "Neovim", PROPOSED: "terminal"}
        winner = answers[self.file.read_text("utf-8")]
        assert at_once or winner == "terminal"
        assert (f"answered in {winner}" in terminal.screen) == (winner != "terminal"), terminal.screen
        said = "You: Allow once" if winner == "Chrome on Linux" else f"Answered by {winner}"
        await expect(self.page.locator(".item.done")).to_contain_text(said)
        await self._neovim_says("accepted a.txt" if winner == "Neovim" else f"Isthmus was answered in {winner}")
        # The prompt is there, so that it gets the key that clears the screen. A late answer was typed into it.
        await asyncio.to_thread(terminal.wait_for, PROMPT.replace("\\n", "1?\\n", 1), 30)
        terminal.press("\x15")
        await asyncio.to_thread(terminal.wait_for, PROMPT, 30)
        terminal.press("\x0c")
        await asyncio.to_thread(terminal.wait_until_gone, "It is over", 30)

    async def _is_shown(self) -> None:
        await self.page.goto(self.ui)

        async def shown() -> bool:
            return await self.neovim.tabs() == 2

        await eventually_async(shown, what="the proposal in a tab page of Neovim")
        await self.neovim.command("messages clear")

    async def _write(self) -> None:
        await self.neovim.type(":write<CR>")

    async def _neovim_says(self, text: str) -> None:
        async def said() -> bool:
            messages: str = await self.neovim.lua("return vim.fn.execute('messages')")
            assert text in " ".join(messages.split()), messages
            return True

        await eventually_async(said, what=f"{text!r} among the messages of Neovim")
