"""The Gemini companion protocol as one object: MCP over HTTP, announced to Gemini CLI and Qwen Code."""

from collections.abc import Mapping
from pathlib import Path

from isthmus.ide.gemini import qwen_lock
from isthmus.ide.gemini.finding import PORT_VARIABLE, discovery_files, find_companions, old_number, read_companion
from isthmus.ide.ide_protocol import ConnectableClient, DiscoveryFiles, IdeProtocol


def _client(workspace: Path, environment: Mapping[str, str]) -> ConnectableClient:
    from isthmus.ide.gemini.peer import GeminiPeer

    return GeminiPeer(workspace, environment)


GEMINI = IdeProtocol(
    "gemini",
    "Gemini companion",
    PORT_VARIABLE,
    (
        DiscoveryFiles("Gemini CLI", discovery_files, read_companion, old_number),
        DiscoveryFiles("Qwen Code", qwen_lock.lock_files, qwen_lock.read_lock, qwen_lock.legacy_number),
    ),
    find_companions,
    _client,
)
