"""The discovery files of every protocol as one kind of thing, for whoever explains what agent CLIs find.

Only reading: what lives and which CLI takes which is in :mod:`doctor` and :mod:`cli_choice`. Blocking file access.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from isthmus.ide.claude import finding as claude_finding
from isthmus.ide.claude.finding import ClaudeIde
from isthmus.ide.discovery_file import RejectedFile
from isthmus.ide.gemini import finding as gemini_finding
from isthmus.ide.gemini import qwen_lock
from isthmus.ide.gemini.finding import Companion


class Protocol(StrEnum):
    """Whose file it is, as people know the CLI."""

    GEMINI = "Gemini CLI"
    QWEN = "Qwen Code"
    CLAUDE = "Claude Code"


@dataclass(frozen=True, slots=True)
class Announcement:
    """What one file says. ``problem``: why it is of no use to anybody; the rest is empty then.

    ``pid`` is the process that the file names: the editor, or its companion. ``number`` is that in the name of a file
    of an old form, a process id or a port; None for the form of today. ``has_identity``: it says what the editor is.
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
    """All discovery files in the places where CLIs with this environment look."""
    return (*_gemini(environment), *_qwen(environment), *_claude(environment))


def _gemini(environment: Mapping[str, str]) -> Iterator[Announcement]:
    for path in gemini_finding.discovery_files(environment):
        read = gemini_finding.read_companion(path)
        number = gemini_finding.old_number(path)
        yield _announcement(Protocol.GEMINI, path, read, number)


def _qwen(environment: Mapping[str, str]) -> Iterator[Announcement]:
    for path in qwen_lock.lock_files(environment):
        yield _announcement(Protocol.QWEN, path, qwen_lock.read_lock(path), qwen_lock.legacy_number(path))


def _announcement(protocol: Protocol, path: Path, read: Companion | RejectedFile, number: int | None) -> Announcement:
    if isinstance(read, RejectedFile):
        return Announcement(protocol, str(path), read.reason, number=number)
    return Announcement(
        protocol,
        str(path),
        None,
        read.port,
        read.pid,
        read.folders,
        read.display_name,
        read.has_identity,
        number,
        _modified_at(path),
    )


def _claude(environment: Mapping[str, str]) -> Iterator[Announcement]:
    for path in claude_finding.lock_files(environment):
        read = claude_finding.read_ide(path)
        match read:
            case RejectedFile():
                yield Announcement(Protocol.CLAUDE, str(path), read.reason)
            case ClaudeIde():
                yield Announcement(
                    Protocol.CLAUDE,
                    str(path),
                    None,
                    read.port,
                    read.pid,
                    read.folders,
                    read.ide_name,
                    modified_at=read.modified_at,
                )


def _modified_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
