"""The companion as a program, for Claude CLIs: its restart, and the user's answer from another terminal."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from support.claude_cli import RECONNECT_SECONDS, ClaudeCli, Edit, claude_cli, locks
from support.isthmus_program import companion_program, isthmus, user
from support.neovim import RunningNeovim, running_neovim
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


@pytest.fixture
def file(workspace: Path) -> Path:
    path = workspace / "a.py"
    path.write_text("one\ntwo\n", encoding="utf-8")
    return path


@asynccontextmanager
async def _waiting_edit(cli: ClaudeCli, file: Path, workspace: Path) -> AsyncGenerator["asyncio.Task[Edit]"]:
    """Start an edit that waits in the companion and in the terminal, whose answer comes only from the test."""
    editing = asyncio.create_task(cli.edit(file, "proposed\n"))
    try:
        await user("diffs", "--wait", "30", folder=workspace)
        yield editing
    finally:
        editing.cancel()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
async def test_a_cli_finds_a_restarted_companion_with_the_token_that_it_has(
    workspace: Path, file: Path, number: signal.Signals
) -> None:
    with companion_program(workspace) as companion:
        async with claude_cli(workspace) as cli:
            await asyncio.to_thread(companion.end, number)
            assert await cli.lost() == (1001 if number == signal.SIGTERM else 1006)
            with companion_program(workspace, "--open", "a.py"):
                assert await cli.reconnect()
                assert cli.connections == 2
                await cli.selects(filePath=str(file))
                assert json.loads(await cli.text("getWorkspaceFolders"))["rootPath"] == str(workspace)


async def test_a_cli_gives_up_when_the_companion_was_started_afresh(workspace: Path) -> None:
    with companion_program(workspace) as companion:
        async with claude_cli(workspace) as cli:
            await asyncio.to_thread(companion.end, signal.SIGKILL)
            await cli.lost()
            with companion_program(workspace, "--fresh"):
                assert cli.lock not in locks()
                waits: list[float] = []

                async def note(seconds: float) -> None:
                    waits.append(seconds)

                assert not await cli.reconnect(note)
                assert tuple(waits) == RECONNECT_SECONDS


async def test_an_edit_outlives_a_killed_companion_and_is_answered_in_the_terminal(workspace: Path, file: Path) -> None:
    with companion_program(workspace) as companion:
        async with claude_cli(workspace) as cli:
            terminal: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
            editing = asyncio.create_task(cli.edit(file, "proposed\n", terminal))
            await user("diffs", "--wait", "30", folder=workspace)
            await asyncio.to_thread(companion.end, signal.SIGKILL)
            await cli.lost()
            with companion_program(workspace):
                assert await cli.reconnect()
                terminal.set_result(True)
                assert await editing == Edit("written", "proposed\n")
                assert (await user("diffs", folder=workspace))["diffs"] == []


async def test_the_user_answers_from_another_terminal(workspace: Path, file: Path) -> None:
    # This process is the agent, and so are all its children.
    with companion_program(workspace, "--allow-agent-accept"):
        async with claude_cli(workspace) as cli:
            async with _waiting_edit(cli, file, workspace) as editing:
                await user("accept", "a.py", "--content", "-", folder=workspace, text="mine\r\n")
                assert await editing == Edit("written", "mine\r\n", is_modified=True)
            async with _waiting_edit(cli, file, workspace) as editing:
                await user("reject", "a.py", folder=workspace)
                assert await editing == Edit("rejected")
    assert file.read_bytes() == b"mine\r\n"


async def test_an_agent_does_not_answer_its_own_question(workspace: Path, file: Path) -> None:
    with companion_program(workspace):
        # This process holds the connection, so its children run below an attached agent.
        async with claude_cli(workspace) as cli, _waiting_edit(cli, file, workspace) as editing:
            refused = await asyncio.to_thread(isthmus, "ide", "accept", "a.py", folder=workspace)
            assert refused.returncode == 1
            assert "--allow-agent-accept" in refused.stderr
            assert str(os.getpid()) in refused.stderr
            assert not editing.done()


async def test_in_neovim_a_selection_is_told_and_a_review_is_not(workspace: Path, file: Path) -> None:
    file.write_text("\U0001f600 one\ntwo\n", encoding="utf-8")
    async with running_neovim(workspace) as neovim:
        with companion_program(workspace, "--editor", "nvim", "--address", neovim.address):
            async with claude_cli(workspace) as cli:
                (lock,) = locks()
                assert lock.name == "Neovim"
                await neovim.command("edit a.py")
                await neovim.type("0wviw")
                selection = await cli.selects(text="one", filePath=str(file))
                assert selection["selection"] == {
                    "start": {"line": 0, "character": 3},  # in UTF-16 units
                    "end": {"line": 0, "character": 6},
                    "isEmpty": False,
                }
                await neovim.type("<Esc>")
                await cli.selects(text="")
                editing = asyncio.create_task(cli.edit(file, "mine\r\n"))
                await eventually_async(lambda: _tabs(neovim, 2), what="the tab of the review")
                await neovim.enter("write")
                assert await editing == Edit("written", "mine\r\n")
                editing = asyncio.create_task(cli.edit(file, "other\n"))
                await eventually_async(lambda: _tabs(neovim, 2), what="the tab of the review")
                await neovim.command("quit")
                assert await editing == Edit("rejected")
                assert {params["filePath"] for params in cli.told("selection_changed")} == {str(file)}


async def _tabs(neovim: RunningNeovim, count: int) -> bool:
    return await neovim.tabs() == count


async def test_who_wants_to_tell_nothing_tells_nothing(workspace: Path, file: Path) -> None:
    with companion_program(workspace, "--no-context", "--no-diff", "--open", "a.py"):
        async with claude_cli(workspace) as cli:
            refused = await asyncio.to_thread(isthmus, "ide", "mention", "a.py:1", folder=workspace)
            assert "--no-context" in refused.stderr
            terminal: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
            editing = asyncio.create_task(cli.edit(file, "new\n", terminal))
            assert json.loads(await cli.text("getDiagnostics")) == []
            terminal.set_result(True)
            assert await editing == Edit("written", "new\n")
            assert cli.received == []
