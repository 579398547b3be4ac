"""The server of the Claude IDE protocol by itself, through its Python interface."""

import asyncio
import json
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from isthmus.editors.headless import HeadlessEditor
from isthmus.encoding.codec import JsonObject
from isthmus.ide.claude.server import ClaudeServer
from isthmus.ide.companion import Companion
from isthmus.ide.options import ClaudeServerLimits
from support.claude_cli import claude_cli
from support.editor_deadlines import PATIENT_LIMITS
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def _serving(server: ClaudeServer, folder: Path, former: JsonObject | None = None) -> AsyncGenerator[bool]:
    """Run the server from its start to its stop; yield whether it has its former port."""
    again = await server.start(former)
    serving = asyncio.create_task(server.serve())
    await server.listening()
    server.announce([str(folder)])
    try:
        yield again
    finally:
        server.withdraw()
        await server.stop()
        await asyncio.wait_for(serving, 30)


def _server(workspace: Path, limits: ClaudeServerLimits = ClaudeServerLimits()) -> tuple[Companion, ClaudeServer]:
    companion = Companion(HeadlessEditor((str(workspace),)), limits=PATIENT_LIMITS)
    return companion, ClaudeServer(companion, limits)


@pytest.mark.requirement("CLD-084")
async def test_a_tool_that_comes_later_is_announced_once_and_can_be_called(workspace: Path) -> None:
    companion, server = _server(workspace)
    async with _serving(server, workspace), claude_cli(workspace) as cli:
        await server.housekeep()

        @companion.tool
        def weather(city: str) -> str:
            """Tell the weather of a city."""
            return f"Rain in {city}"

        for _ in range(2):
            await server.housekeep()
        await eventually_async(lambda: cli.told("notifications/tools/list_changed"), what="the news of a tool")
        tools = (await cli.request("tools/list"))["tools"]
        assert [tool["name"] for tool in tools[-1:]] == ["weather"]
        assert await cli.text("weather", {"city": "Kyoto"}) == "Rain in Kyoto"
        assert len(cli.told("notifications/tools/list_changed")) == 1
        assert weather("Oslo") == "Rain in Oslo"


async def test_an_agent_is_told_when_the_editor_can_do_more_than_before(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, server = _server(workspace)
    async with _serving(server, workspace), claude_cli(workspace) as cli:
        assert "executeCode" not in [tool["name"] for tool in cli.tools]
        monkeypatch.setattr(HeadlessEditor, "unavailable", {})
        await server.housekeep()
        await eventually_async(lambda: cli.told("notifications/tools/list_changed"), what="the news of a tool")
        assert "executeCode" in [tool["name"] for tool in (await cli.request("tools/list"))["tools"]]


async def test_the_port_and_token_of_the_life_before_are_taken_over(workspace: Path) -> None:
    _, server = _server(workspace)
    async with _serving(server, workspace) as again:
        assert not again
        former = server.saved_state()
    _, following = _server(workspace)
    async with _serving(following, workspace, former) as again, claude_cli(workspace) as cli:
        assert again
        assert (cli.lock.port, cli.lock.token) == (former["port"], former["token"])


async def test_a_port_that_somebody_took_is_left_with_its_token(workspace: Path) -> None:
    _, server = _server(workspace)
    async with _serving(server, workspace):
        former = server.saved_state()
    with socket.create_server(("127.0.0.1", former["port"])):
        _, following = _server(workspace)
        async with _serving(following, workspace, former) as again:
            assert not again
            assert following.port != former["port"]
            assert following.saved_state()["token"] != former["token"]


@pytest.mark.parametrize(
    "former",
    [{}, {"port": "1", "token": "x"}, {"port": 20_000}, {"port": 99_999, "token": "x"}, {"port": -1, "token": "x"}],
)
async def test_a_life_that_makes_no_sense_is_no_life(workspace: Path, former: JsonObject) -> None:
    _, server = _server(workspace)
    async with _serving(server, workspace, former) as again, claude_cli(workspace) as cli:
        assert not again
        assert json.loads(await cli.text("getWorkspaceFolders"))["success"]


async def test_it_knows_whether_its_lock_file_is_there(workspace: Path) -> None:
    _, server = _server(workspace)
    async with _serving(server, workspace):
        (path,) = server.discovery_files
        assert server.is_announced
        Path(path).unlink()
        assert not server.is_announced
        server.announce([str(workspace), "/other"])
        assert json.loads(Path(path).read_text(encoding="utf-8"))["workspaceFolders"] == [str(workspace), "/other"]
    assert not Path(path).exists()


async def test_a_connection_that_never_says_who_it_is_does_not_hold_up_the_end(workspace: Path) -> None:
    _, server = _server(workspace, ClaudeServerLimits(head_seconds=600.0))
    async with _serving(server, workspace), claude_cli(workspace):
        strangers = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(2)]
        strangers[0][1].write(b"GET / HTTP/1.1\r\n")
        await strangers[0][1].drain()
    for reader, writer in strangers:
        # Linux does not hand over a silent connection, and ends it when it sends.
        writer.write(b"GET / HTTP/1.1\r\n")
        with suppress(ConnectionError):
            assert await asyncio.wait_for(reader.read(), 30) == b""
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def test_ports_are_random_and_within_the_range(workspace: Path) -> None:
    ports: set[int] = set()
    for _ in range(5):
        _, server = _server(workspace)
        async with _serving(server, workspace):
            ports.add(server.port)
    assert len(ports) > 1
    assert all(10_000 <= port <= 65_535 for port in ports)
