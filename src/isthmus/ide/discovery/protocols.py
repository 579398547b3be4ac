"""Companion protocols, and the discovery files that their agent CLIs find here. File access blocks."""

from collections.abc import Mapping
from pathlib import Path

from isthmus.ide.claude.protocol import CLAUDE
from isthmus.ide.cli_choice import Announcement
from isthmus.ide.discovery_file import RejectedFile
from isthmus.ide.gemini.protocol import GEMINI
from isthmus.ide.ide_protocol import AgentCli

IDE_PROTOCOLS = (GEMINI, CLAUDE)
"""Every protocol, in the order in which they are served, listed and explained."""
BY_PREFERENCE = IDE_PROTOCOLS[::-1]
"""Every protocol, in the order of preference of our own agent between equally near IDEs."""
AGENT_CLIS = tuple(cli for protocol in IDE_PROTOCOLS for cli in protocol.clis)


def announcements(environment: Mapping[str, str]) -> tuple[Announcement, ...]:
    """Return all discovery files in the places where CLIs with this environment look."""
    return tuple(_announcement(cli, path) for cli in AGENT_CLIS for path in cli.discovery_files(environment))


def _announcement(cli: AgentCli, path: Path) -> Announcement:
    read, number = cli.read(path), cli.old_number(path)
    if isinstance(read, RejectedFile):
        return Announcement(cli.name, str(path), read.reason, number=number)
    return Announcement(
        cli.name,
        str(path),
        None,
        read.port,
        read.pid,
        read.folders,
        read.display_name,
        read.has_identity,
        number,
        read.modified_at or _modified_at(path),
    )


def _modified_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
