"""Instructions for the agent as data: what its files say, and how a file stood when it was read.

Deliberately not here: which files those are (:mod:`isthmus.agent.memory.reading`), and when they are read again
(:mod:`isthmus.agent.memory.memory`).
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

Stamp: TypeAlias = tuple[int, int, int, int] | None
"""Inode, size and both times of a file or folder; None when there is none."""


MARKDOWN = (".md", ".mdx", ".markdown")
"""Suffixes read from the user's own folder, which also holds settings, keys and tokens."""


def is_markdown(name: str) -> bool:
    """Return whether a file of the user's own folder may hold instructions."""
    return name.lower().endswith(MARKDOWN)


@dataclass(frozen=True, slots=True)
class InstructionFile:
    """One file of instructions. ``shown`` is its name for people, ``text`` has its imports in place."""

    path: Path
    shown: str
    text: str
    imports: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Instructions:
    """The content of the files, the most general first; ``problems`` say what was left out or cut, and why."""

    files: tuple[InstructionFile, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The text for the model; empty when there is none."""
        parts = [
            f"--- Context from: {file.shown} ---\n{file.text.strip()}\n--- End of Context from: {file.shown} ---"
            for file in self.files
        ]
        return "\n\n".join([*parts, *(f"[Note: {problem}]" for problem in self.problems)])


def stamp_of(path: Path) -> Stamp:
    """Return a value that differs when a file or folder has changed."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
