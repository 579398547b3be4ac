import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from isthmus.mcp_host.catalogue.manifests import Manifests
from isthmus.mcp_host.config.server_config import Origin, ServerConfig, StdioEndpoint
from isthmus.mcp_host.connection.connection import ServerConnection
from isthmus.mcp_host.connection.connection_context import ConnectionContext
from isthmus.tools.port.servers import ServerState


@pytest.mark.anyio
async def test_a_bug_in_isthmus_is_reported_and_wakes_waiting_callers(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "isthmus.mcp_host.connection.attempt", None)  # importing it fails
    config = ServerConfig("one", Origin.USER, StdioEndpoint("x", (), {}, workspace))
    connection = ServerConnection(config, ConnectionContext({}, workspace))
    connection.start()
    assert await connection.settled(20)
    assert connection.state is ServerState.DISCONNECTED
    assert connection.problem is not None
    assert "a bug in isthmus: ModuleNotFoundError" in connection.problem
    await connection.aclose()


@pytest.mark.anyio
async def test_a_server_that_was_not_tried_is_not_kept_as_one_that_hangs(workspace: Path, tmp_path: Path) -> None:
    config = ServerConfig("one", Origin.USER, StdioEndpoint("x", (), {}, workspace))
    manifests = Manifests(tmp_path / "cache")
    connection = ServerConnection(config, ConnectionContext({}, workspace, manifests=manifests))
    connection.start()
    await connection.aclose()  # before its task ran for the first time
    assert manifests.load(config, workspace) is None


@pytest.mark.anyio
async def test_a_call_goes_on_waiting_when_the_connection_came_and_went_before_its_turn(workspace: Path) -> None:
    config = ServerConfig("one", Origin.USER, StdioEndpoint("x", (), {}, workspace))
    connection: Any = ServerConnection(config, ConnectionContext({}, workspace))
    connection._owner = asyncio.create_task(asyncio.Event().wait())
    connection.state = ServerState.CONNECTING

    async def answered(session: object) -> object:
        return session

    call = asyncio.create_task(connection.request(answered))
    for _ in range(20):
        await asyncio.sleep(0)
    connection._settled.set()
    connection._settled.clear()
    for _ in range(20):
        await asyncio.sleep(0)
    assert not call.done()
    connection._session, connection.state = "session", ServerState.CONNECTED
    connection._settled.set()
    assert await call == "session"
    connection._owner.cancel()


@pytest.mark.anyio
async def test_who_is_cancelled_when_the_server_is_just_connected_does_not_go_on(workspace: Path) -> None:
    config = ServerConfig("one", Origin.USER, StdioEndpoint("x", (), {}, workspace))
    connection: Any = ServerConnection(config, ConnectionContext({}, workspace))
    waiting = asyncio.create_task(connection.settled(60))
    for _ in range(20):
        await asyncio.sleep(0)
    connection._settled.set()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
