"""Claude IDE protocol as one object: MCP over WebSocket, announced by lock files."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from isthmus.ide.claude.discovery.cli_choice import CLAUDE_CODE, claude_choice, claude_remarks
from isthmus.ide.claude.discovery.finding import PORT_VARIABLE, find_ides, lock_files, read_ide
from isthmus.ide.ide_protocol import AgentCli, IdeProtocol

if TYPE_CHECKING:
    from isthmus.ide.agent_server import AgentServer
    from isthmus.ide.clients.ide_client import ConnectableClient
    from isthmus.ide.companion import Companion
    from isthmus.ide.permissions import PermissionHook
    from isthmus.ide.turns import TurnReader


def _client(workspace: Path, environment: Mapping[str, str]) -> "ConnectableClient":
    from isthmus.ide.claude.peer import ClaudePeer  # loads websockets only if there is such an IDE

    return ClaudePeer(workspace, environment)


def _server(companion: "Companion", _state_changed: Callable[[], None]) -> "AgentServer":
    from isthmus.ide.claude.server import ClaudeServer

    return ClaudeServer(companion, companion.limits.claude)


def _permissions() -> "PermissionHook":
    from isthmus.ide.claude.permissions import CLAUDE_PERMISSIONS

    return CLAUDE_PERMISSIONS


def _turns() -> "TurnReader":
    from isthmus.ide.claude.turns import read_turn

    return read_turn


CLAUDE = IdeProtocol(
    "claude",
    PORT_VARIABLE,
    (AgentCli(CLAUDE_CODE, PORT_VARIABLE, lock_files, read_ide, claude_choice, claude_remarks),),
    find_ides,
    _client,
    _server,
    _permissions,
    _turns,
)
