"""The time that ``isthmus mcp list`` and ``doctor`` give a server to connect."""

from pathlib import Path

import pytest

from isthmus.cli.mcp.connecting import with_timeout
from isthmus.mcp_host.config.server_config import Origin, ServerConfig, StdioEndpoint


@pytest.mark.parametrize(
    ("own", "given", "expected"),
    [
        (None, None, 15.0),
        (2.0, None, 2.0),
        (40.0, None, 40.0),
        (600.0, None, 60.0),  # such times are for calls
        (40.0, 1_000, 1.0),
        (None, 120_000, 120.0),
    ],
)
def test_a_servers_own_timeout_counts(own: float | None, given: int | None, expected: float) -> None:
    config = ServerConfig("one", Origin.USER, StdioEndpoint("x", (), {}, Path("/")), timeout=own)
    assert with_timeout(config, given).timeout == expected
