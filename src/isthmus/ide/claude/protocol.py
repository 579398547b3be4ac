"""The Claude IDE protocol as one object: MCP over WebSocket, announced by lock files."""

from collections.abc import Mapping
from pathlib import Path

from isthmus.ide.claude.finding import PORT_VARIABLE, find_ides, lock_files, read_ide
from isthmus.ide.ide_protocol import ConnectableClient, DiscoveryFiles, IdeProtocol


def _client(workspace: Path, environment: Mapping[str, str]) -> ConnectableClient:
    from isthmus.ide.claude.peer import ClaudePeer  # loads websockets only if there is such an IDE

    return ClaudePeer(workspace, environment)


CLAUDE = IdeProtocol(
    "claude",
    "Claude IDE protocol",
    PORT_VARIABLE,
    (DiscoveryFiles("Claude Code", lock_files, read_ide, lambda _path: None),),
    find_ides,
    _client,
)
