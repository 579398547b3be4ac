"""Gemini CLI companion protocol as one object: MCP over HTTP, announced to Gemini CLI and Qwen Code."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from isthmus.ide.gemini import qwen_lock
from isthmus.ide.gemini.cli_choice import QWEN_PORT_VARIABLE, gemini_choice, qwen_choice
from isthmus.ide.gemini.cli_settings import gemini_remarks, qwen_remarks
from isthmus.ide.gemini.discovery import GEMINI_CLI, QWEN_CODE
from isthmus.ide.gemini.finding import PORT_VARIABLE, discovery_files, find_companions, old_number, read_companion
from isthmus.ide.ide_protocol import AgentCli, IdeProtocol

if TYPE_CHECKING:
    from isthmus.ide.agent_server import AgentServer
    from isthmus.ide.clients.ide_client import ConnectableClient
    from isthmus.ide.companion import Companion


def _client(workspace: Path, environment: Mapping[str, str]) -> "ConnectableClient":
    from isthmus.ide.gemini.peer import GeminiPeer

    return GeminiPeer(workspace, environment)


def _server(companion: "Companion", state_changed: Callable[[], None]) -> "AgentServer":
    from isthmus.ide.gemini.server import GeminiServer

    return GeminiServer(companion, state_changed, companion.limits.gemini)


_GEMINI_CLI = AgentCli(
    GEMINI_CLI,
    PORT_VARIABLE,
    discovery_files,
    read_companion,
    gemini_choice,
    gemini_remarks,
    old_number,
    removes_dead=False,
)
_QWEN_CODE = AgentCli(
    QWEN_CODE,
    QWEN_PORT_VARIABLE,
    qwen_lock.lock_files,
    qwen_lock.read_lock,
    qwen_choice,
    qwen_remarks,
    qwen_lock.legacy_number,
)

GEMINI = IdeProtocol("gemini", PORT_VARIABLE, (_GEMINI_CLI, _QWEN_CODE), find_companions, _client, _server)
