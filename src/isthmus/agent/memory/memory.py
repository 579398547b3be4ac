"""The agent's memory: the instructions in GEMINI.md, AGENTS.md and CLAUDE.md, a part of the system prompt.

:mod:`isthmus.agent.memory.reading` finds and reads the files; this module caches the result until one of the files or
folders changes on the disk. Not here: changing the files, see :mod:`isthmus.agent.memory.save_memory`.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from isthmus.agent.memory.instructions import Instructions, is_markdown
from isthmus.agent.memory.reading import read_instructions
from isthmus.files.stamps import Stamps
from isthmus.record import record

DEFAULT_CONTEXT_FILES = ("GEMINI.md", "AGENTS.md", "CLAUDE.md")
KEPT = 64
"""Maximum number of workspaces whose instructions are cached."""

_Key: TypeAlias = tuple[Path, Path | None, tuple[str, ...]]
"""Workspace, the user's own folder, and the names of the files."""


def own_file(home: Path, names: Sequence[str]) -> Path:
    """Return the file in the user's folder ``home`` to which facts are added; ``names`` are those of context files.

    A project's settings may name any file; only a Markdown file of the user is written.
    """
    return home / next(name for name in (*names, *DEFAULT_CONTEXT_FILES) if is_markdown(name))


@record
class Reading:
    """Instructions, with the state of every file and folder on which they depend."""

    instructions: Instructions
    stamps: Stamps


class Memory:
    """The instructions for each workspace and user."""

    def __init__(self, bounds: Sequence[Path] = (), clock: Callable[[], int] = time.time_ns) -> None:
        """Take the folders ``bounds`` of other users: files above them do not instruct their agents.

        ``clock`` returns the time in nanoseconds, to which the times of files are compared.
        """
        self._bounds = tuple(bounds)
        self._clock = clock
        self._readings: OrderedDict[_Key, Reading] = OrderedDict()

    async def instructions(self, workspace: Path, home: Path | None, names: Sequence[str] = ()) -> Instructions:
        """Return the instructions for a workspace.

        ``home`` is the folder of the user's own files, or None if the user has no folder. ``names``, if given, replace
        the default ones.
        """
        return await asyncio.to_thread(self.read, workspace, home, names)

    def known(self, workspace: Path, home: Path | None, names: Sequence[str] = ()) -> Instructions | None:
        """Return the last instructions read, if any, without reading."""
        reading = self._readings.get((workspace, home, tuple(names) or DEFAULT_CONTEXT_FILES))
        return reading.instructions if reading is not None else None

    def read(self, workspace: Path, home: Path | None, names: Sequence[str] = ()) -> Instructions:
        """Return what :meth:`instructions` does. Blocking; for threads that look up more than this."""
        key: _Key = (workspace, home, tuple(names) or DEFAULT_CONTEXT_FILES)
        reading = self._readings.get(key)
        if reading is None or not reading.stamps.are_current():
            at = self._clock()
            instructions, stamps = read_instructions(workspace, key[2], home, self._bounds if home is None else ())
            reading = Reading(instructions, Stamps(stamps, at))
        self._readings[key] = reading
        self._readings.move_to_end(key)
        while len(self._readings) > KEPT:
            self._readings.popitem(last=False)
        return reading.instructions
