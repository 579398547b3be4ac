"""The discovery files of every protocol in one form, to explain what agent CLIs find.

Only reads the files; :mod:`doctor` judges which are alive, :mod:`cli_choice` which CLI takes which. File access blocks.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from isthmus.ide.discovery.protocols import IDE_PROTOCOLS
from isthmus.ide.discovery_file import RejectedFile
from isthmus.ide.ide_protocol import DiscoveryFiles


class Protocol(StrEnum):
    """CLI that reads a file, by the name that users know."""

    GEMINI = "Gemini CLI"
    QWEN = "Qwen Code"
    CLAUDE = "Claude Code"


@dataclass(frozen=True, slots=True)
class Announcement:
    """Contents of one file. ``problem`` is why no CLI can use it; the other fields are empty then.

    ``pid`` is the process that the file names: the editor, or its companion. ``number`` is that in the name of a file
    of an old form, a process id or a port; None for the current form. ``has_identity``: the file names the editor.
    ``modified_at`` is Unix time in seconds.
    """

    protocol: Protocol
    path: str
    problem: str | None = None
    port: int = 0
    pid: int | None = None
    folders: tuple[str, ...] = ()
    editor: str = ""
    has_identity: bool = True
    number: int | None = None
    modified_at: float = 0.0


def announcements(environment: Mapping[str, str]) -> tuple[Announcement, ...]:
    """Return all discovery files in the places where CLIs with this environment look."""
    return tuple(
        _announcement(files, path)
        for protocol in reversed(IDE_PROTOCOLS)
        for files in protocol.discovery_files
        for path in files.paths(environment)
    )


def _announcement(files: DiscoveryFiles, path: Path) -> Announcement:
    read, cli, number = files.read(path), Protocol(files.cli), files.old_number(path)
    if isinstance(read, RejectedFile):
        return Announcement(cli, str(path), read.reason, number=number)
    return Announcement(
        cli,
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
