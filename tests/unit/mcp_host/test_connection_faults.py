import sys
from pathlib import Path

import pytest

from isthmus.mcp_host.config import Origin, ServerConfig, StdioEndpoint
from isthmus.mcp_host.connection import ServerConnection
from isthmus.mcp_host.surroundings import Surroundings
from isthmus.tools.servers import ServerState


@pytest.mark.anyio
async def test_a_fault_of_ours_is_told_and_nobody_waits_for_the_server(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "isthmus.mcp_host.attempt", None)  # importing it fails
    config = ServerConfig("one", Origin.USER, StdioEndpoint("x", (), {}, workspace))
    connection = ServerConnection(config, Surroundings({}, workspace))
    connection.start()
    assert await connection.settled(20)
    assert connection.state is ServerState.DISCONNECTED
    assert connection.problem is not None
    assert "a fault of isthmus: ModuleNotFoundError" in connection.problem
    await connection.aclose()
