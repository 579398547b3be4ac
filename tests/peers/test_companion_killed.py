"""A companion that is killed while real CLIs wait for the user: the next one shows the waiting reviews again."""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from isthmus.ide.control.control_client import running
from support.companion import BareAgent
from support.extended import first_of
from support.gemini_cli import GeminiCli, gemini_cli
from support.isthmus_program import companion_program, user
from support.neovim import RunningNeovim, neovim_with_plugin
from support.plain_http import plain_client
from support.programs import require
from support.qwen_cli import QwenCode, qwen_code
from support.scripted_wire import Call
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


KILLS = int(os.environ.get("KILLS", "1"))
"""Number of times that the companion of each CLI is killed; `make kills` sets it."""
PROGRAM = [os.environ.get("KILLS_PYTHON", sys.executable), "-m", "isthmus"]
"""The companion's command, perhaps of another installation than the tests'."""
CLIS = {"Gemini CLI": gemini_cli, "Qwen Code": qwen_code}


async def _propose(cli: GeminiCli | QwenCode, file: Path, text: str, closing: str) -> None:
    if isinstance(cli, GeminiCli):
        await cli.propose(Call("write_file", {"file_path": str(file), "content": text}), closing)
    else:
        await cli.rewrite(file, text, closing)


@pytest.mark.timeout(120 + 60 * KILLS)
@pytest.mark.parametrize("name", first_of(CLIS))
async def test_a_cli_comes_back_to_a_companion_that_is_killed_and_gets_its_answer(workspace: Path, name: str) -> None:
    file = workspace / "a.py"
    file.write_text("one\n", encoding="utf-8")
    settings: dict[str, Any] = {"program": PROGRAM, "arguments": ["--allow-agent-accept"]}
    async with neovim_with_plugin(workspace, **settings) as neovim:
        await neovim.command("edit a.py")
        await _companion_of(neovim)
        async with CLIS[name](workspace) as cli:
            for number in range(KILLS):
                proposed, accepted, closing = f"new {number}\n", f"reviewed {number}\n", f"Accepted number {number}."
                await _propose(cli, file, proposed, closing)
                assert (await user("diffs", "--wait", "60", folder=workspace))["diffs"][0]["new_content"] == proposed
                killed = await _companion_of(neovim)
                os.kill(killed, signal.SIGKILL)
                await _companion_of(neovim, but=killed)
                (shown,) = (await user("diffs", "--wait", "60", folder=workspace))["diffs"]
                assert (shown["file"], shown["new_content"]) == (str(file), proposed)
                await user("accept", "a.py", "--content", "-", folder=workspace, text=accepted)
                await cli.shows(closing)
                assert file.read_text(encoding="utf-8") == accepted
                assert "Connected to Neovim" in await cli.status()


async def _companion_of(neovim: RunningNeovim, *, but: int | None = None) -> int:
    """Wait until a companion of this Neovim answers; return its process id, which is not `but`."""

    def pids() -> list[int]:
        return [found.pid for found in running() if found.editor_pid == neovim.process.pid and found.pid != but]

    return (await eventually_async(pids, what="a companion that can be asked"))[0]


_READ_STREAM = """
const [url, token, session] = process.argv.slice(1);
const headers = { accept: "text/event-stream", authorization: `Bearer ${token}`, "mcp-session-id": session };
const response = await fetch(url, { headers });
for await (const chunk of response.body) process.stdout.write(chunk);
"""
"""Program that reads a stream as real CLIs do below their SDK, with Node's client: a cut-off stream is an error."""


async def test_the_event_stream_of_a_killed_companion_ends_without_an_error(workspace: Path) -> None:
    with companion_program(workspace) as companion:
        token = companion.discovered["authToken"]
        async with plain_client(
            base_url=companion.url.removesuffix("/mcp"), headers={"authorization": f"Bearer {token}"}
        ) as http:
            agent = BareAgent(http)
            await agent.initialize()
            reader = await asyncio.create_subprocess_exec(
                require("node"), "--input-type=module", "-e", _READ_STREAM, companion.url, token,
                agent.session["mcp-session-id"], stdout=asyncio.subprocess.PIPE,
            )  # fmt: skip
            assert reader.stdout is not None
            await reader.stdout.readuntil(b"ide/contextUpdate")
            await asyncio.to_thread(companion.end, signal.SIGKILL)
            assert await reader.wait() == 0
