"""Reviews of a companion that runs as a program: it is killed or stopped while they are open, and started again."""

import asyncio
import json
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from support.companion import BareAgent, EventStream
from support.isolation import IsolatedFolders
from support.isthmus_program import CompanionProgram, companion_program, isthmus
from support.neovim import RunningNeovim, running_neovim
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


@pytest.fixture
def file(workspace: Path) -> Path:
    path = workspace / "a.py"
    path.write_text("old\n", encoding="utf-8")
    return path


@asynccontextmanager
async def _agent(companion: CompanionProgram) -> AsyncGenerator[BareAgent]:
    """Yield an agent that has only port and token, and therefore survives the companion."""
    headers = {"authorization": f"Bearer {companion.discovered['authToken']}"}
    base = f"http://127.0.0.1:{companion.ready['port']}"
    async with httpx2.AsyncClient(base_url=base, headers=headers, timeout=60, trust_env=False) as http:
        yield BareAgent(http)


async def _propose(agent: BareAgent, file: Path, content: str = "new\n") -> None:
    arguments = {"filePath": str(file), "newContent": content}
    answer = await agent.request("tools/call", {"name": "openDiff", "arguments": arguments})
    assert answer["result"] == {"content": []}


async def _accepted(stream: EventStream) -> str:
    return (await stream.until("ide/diffAccepted"))[1]["params"]["content"]


async def _ide(workspace: Path, *arguments: str) -> str:
    done = await asyncio.to_thread(isthmus, "ide", *arguments, folder=workspace)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _kept(isolated_folders: IsolatedFolders) -> list[Path]:
    folder = isolated_folders.home / ".local" / "share" / "isthmus" / "kept"
    return list(folder.iterdir()) if folder.is_dir() else []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
async def test_an_edit_is_shown_again_after_a_restart_and_answered_in_the_old_session(
    workspace: Path, file: Path, number: signal.Signals
) -> None:
    with companion_program(workspace, "--allow-agent-accept") as companion:
        async with _agent(companion) as agent:
            await agent.initialize()
            await _propose(agent, file)
            assert "a.py" in await _ide(workspace, "diffs")
            await asyncio.to_thread(companion.end, number)
            with companion_program(workspace, "--allow-agent-accept"):
                async with agent.stream() as stream:
                    await stream.next()
                    assert "a.py" in await _ide(workspace, "diffs", "--wait", "60")
                    await _propose(agent, file)  # which replaces the open view
                    await _ide(workspace, "accept", "a.py")
                    assert await _accepted(stream) == "new\n"
    assert file.read_text(encoding="utf-8") == "old\n"


async def test_an_edit_waiting_at_a_companions_kill_is_shown_again_unless_answered(workspace: Path, file: Path) -> None:
    other = file.with_name("b.py")
    with companion_program(workspace, "--allow-agent-accept") as companion:
        async with _agent(companion) as agent:
            await agent.initialize()
            await _propose(agent, file)
            await _propose(agent, other)
            await asyncio.to_thread(companion.end, signal.SIGKILL)
            with companion_program(workspace, "--allow-agent-accept"):
                await agent.request("tools/call", {"name": "closeDiff", "arguments": {"filePath": str(other)}})
                async with agent.stream() as stream:
                    await _ide(workspace, "diffs", "--wait", "60")
                    await _ide(workspace, "accept", "a.py")
                    assert await _accepted(stream) == "new\n"
                    assert "no diff waits" in await _ide(workspace, "diffs")


async def test_what_was_answered_in_the_agents_absence_is_told_after_a_companions_kill(
    workspace: Path, file: Path, isolated_folders: IsolatedFolders
) -> None:
    lives = isolated_folders.home / ".local" / "share" / "isthmus" / "companions"
    with companion_program(workspace, "--allow-agent-accept") as companion:
        async with _agent(companion) as agent:
            await agent.initialize()
            await _propose(agent, file)
            await _ide(workspace, "accept", "a.py")
            await eventually_async(
                lambda: any("ide/diffAccepted" in path.read_text(encoding="utf-8") for path in lives.glob("*.json")),
                what="the answer is written down",
            )
            await asyncio.to_thread(companion.end, signal.SIGKILL)
            with companion_program(workspace, "--allow-agent-accept"):
                async with agent.stream() as stream:
                    assert await _accepted(stream) == "new\n"
                assert "no diff waits" in await _ide(workspace, "diffs")


async def test_what_was_typed_in_neovim_is_kept_at_a_stop_and_the_next_says_where(
    workspace: Path, file: Path, isolated_folders: IsolatedFolders
) -> None:
    async with running_neovim(workspace) as neovim:
        with companion_program(workspace, "--editor", "nvim", "--address", neovim.address) as companion:
            async with _agent(companion) as agent:
                await agent.initialize()
                await _propose(agent, file)
                await eventually_async(lambda: _tabs(neovim, 2), what="the view")
                await neovim.type("Amine<Esc>")
                assert await asyncio.to_thread(companion.end) == 0
            assert companion.process.stderr is not None
            told = companion.process.stderr.read()
        (kept,) = _kept(isolated_folders)
        assert kept.read_text(encoding="utf-8") == "newmine\n"
        assert str(kept) in told
        assert str(file) in told
        await eventually_async(lambda: _tabs(neovim, 1), what="the view is closed")
        with companion_program(workspace, "--editor", "nvim", "--address", neovim.address):
            assert str(kept) in await _ide(workspace, "status")


async def test_after_a_crash_of_the_companion_neovim_has_one_view_of_what_is_asked_again(
    workspace: Path, file: Path
) -> None:
    async with running_neovim(workspace) as neovim:
        arguments = ("--editor", "nvim", "--address", neovim.address)
        with companion_program(workspace, *arguments) as companion:
            async with _agent(companion) as agent:
                await agent.initialize()
                await _propose(agent, file)
                await asyncio.to_thread(companion.end, signal.SIGKILL)
                with companion_program(workspace, *arguments):
                    async with agent.stream() as stream:
                        await _propose(agent, file)
                        await eventually_async(lambda: _tabs(neovim, 2), what="one view")
                        await neovim.type("Amine<Esc>")
                        await neovim.enter("write")
                        assert await _accepted(stream) == "newmine\n"


async def test_what_was_typed_in_neovim_stays_at_a_companions_kill_and_is_closed_at_once(
    workspace: Path, file: Path
) -> None:
    async with running_neovim(workspace) as neovim:
        with companion_program(workspace, "--editor", "nvim", "--address", neovim.address) as companion:
            async with _agent(companion) as agent:
                await agent.initialize()
                await _propose(agent, file)
                await neovim.type("Amine<Esc>")
                await asyncio.to_thread(companion.end, signal.SIGKILL)

        async def is_told() -> bool:
            return "nobody waits" in await neovim.lua("return vim.wo.winbar")

        await neovim.type(":w<CR>")  # the answer is refused here
        await eventually_async(is_told, what="the view says that nobody waits for it")
        await neovim.type(":w kept.py<CR>:q<CR>")
        await eventually_async(lambda: _tabs(neovim, 1), what="both sides are closed")
        assert (workspace / "kept.py").read_text(encoding="utf-8") == "newmine\n"


async def _tabs(neovim: RunningNeovim, count: int) -> bool:
    return await neovim.tabs() == count


async def test_an_empty_text_that_an_agent_does_not_take_is_told_as_rejected_everywhere(
    workspace: Path, file: Path
) -> None:
    with companion_program(workspace, "--allow-agent-accept") as companion:
        async with _agent(companion) as agent:
            await agent.initialize()
            async with agent.stream() as stream:
                await _propose(agent, file)
                arguments = ("ide", "accept", "a.py", "--content", "-", "--json")
                done = await asyncio.to_thread(isthmus, *arguments, folder=workspace, text="")
                await stream.until("ide/diffRejected")
            assert done.returncode == 1
            assert "sent as rejected, this agent takes no empty file" in json.loads(done.stdout or done.stderr)["error"]
