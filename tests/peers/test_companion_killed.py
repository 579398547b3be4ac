"""A companion that is killed while real CLIs wait for the person: what waits is shown again by the next one."""

import asyncio
import os
import signal
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from support.coding_cli import CodingCli
from support.companion import BareAgent
from support.gemini_cli import gemini_cli
from support.isthmus_program import companion_program, person
from support.plain_http import plain_client
from support.programs import require
from support.qwen_cli import qwen_code
from support.scripted_wire import Call

pytestmark = pytest.mark.anyio


@pytest.fixture
def file(workspace: Path) -> Path:
    path = workspace / "a.py"
    path.write_text("one\n", encoding="utf-8")
    return path


async def _accept(file: Path) -> None:
    """In the companion that runs now, as soon as it shows the edit."""
    (shown,) = (await person("diffs", "--wait", "60", folder=file.parent))["diffs"]
    assert (shown["file"], shown["new_content"]) == (str(file), "two\n")
    await person("accept", file.name, "--content", "-", folder=file.parent, text="reviewed\n")


@contextmanager
def _holding(cli: CodingCli) -> Generator[None]:
    """It does not run meanwhile: real CLIs come back to a companion once, after a second, and never again."""
    group = os.getpgid(cli.terminal.process.pid)
    os.killpg(group, signal.SIGSTOP)
    try:
        yield
    finally:
        os.killpg(group, signal.SIGCONT)


async def test_an_edit_of_gemini_cli_outlives_the_companion(workspace: Path, file: Path) -> None:
    with companion_program(workspace, "--open", "a.py") as companion, ExitStack() as next_life:
        async with gemini_cli(workspace) as cli:
            await cli.propose(Call("write_file", {"file_path": str(file), "content": "two\n"}), "Accepted, I see.")
            await person("diffs", "--wait", "60", folder=workspace)
            with _holding(cli):
                await asyncio.to_thread(companion.end, signal.SIGKILL)
                next_life.enter_context(companion_program(workspace, "--open", "a.py"))
            await _accept(file)
            await cli.shows("Accepted, I see.")
            assert file.read_text(encoding="utf-8") == "reviewed\n"


async def test_an_edit_of_qwen_code_outlives_the_companion(workspace: Path, file: Path) -> None:
    with companion_program(workspace, "--open", "a.py") as companion, ExitStack() as next_life:
        async with qwen_code(workspace) as cli:
            await cli.sees_file("a.py")
            await cli.rewrite(file, "two\n", "Accepted, I see.")
            await person("diffs", "--wait", "60", folder=workspace)
            with _holding(cli):
                await asyncio.to_thread(companion.end, signal.SIGKILL)
                next_life.enter_context(companion_program(workspace, "--open", "a.py"))
            await _accept(file)
            await cli.shows("Accepted, I see.")
            assert file.read_text(encoding="utf-8") == "reviewed\n"


_READ_STREAM = """
const [url, token, session] = process.argv.slice(1);
const headers = { accept: "text/event-stream", authorization: `Bearer ${token}`, "mcp-session-id": session };
const response = await fetch(url, { headers });
for await (const chunk of response.body) process.stdout.write(chunk);
"""
"""What real CLIs do below their SDK, with the client that Node brings: a stream that breaks off is an error."""


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
