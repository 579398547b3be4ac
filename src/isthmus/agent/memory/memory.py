"""The agent's memory: what GEMINI.md and AGENTS.md tell it, as part of the system prompt of every model request.

Files are found and read by :mod:`isthmus.agent.memory.reading`; here what was read is kept as long as nothing that was
looked at has changed on the disk. Deliberately not here: changing the files (:mod:`isthmus.agent.memory.save_memory`).
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from isthmus.agent.memory.instructions import Instructions, Stamp, stamp_of
from isthmus.agent.memory.reading import read_instructions

DEFAULT_CONTEXT_FILES = ("GEMINI.md", "AGENTS.md")
KEPT = 64
"""Workspaces whose instructions are kept."""
UNSETTLED_NANOSECONDS = 50_000_000
"""A file changed so shortly before it was read may change again without a difference to be seen."""

_Key: TypeAlias = tuple[Path, Path | None, tuple[str, ...]]
"""Workspace, the user's own folder, and the names of the files."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Instructions, and everything that was looked at for them, as it was then."""

    instructions: Instructions
    stamps: tuple[tuple[Path, Stamp], ...]
    at: int

    def is_current(self) -> bool:
        """Whether no file that was read has changed since."""
        newest = max((max(stamp[2:]) for _, stamp in self.stamps if stamp is not None), default=0)
        return self.at - newest > UNSETTLED_NANOSECONDS and all(stamp_of(path) == was for path, was in self.stamps)


class Memory:
    """The instructions for each workspace and user."""

    def __init__(self, bounds: Sequence[Path] = ()) -> None:
        """Take the folders ``bounds`` of other users: files above them do not instruct their agents."""
        self._bounds = tuple(bounds)
        self._readings: OrderedDict[_Key, Reading] = OrderedDict()

    async def instructions(self, workspace: Path, home: Path | None, names: Sequence[str] = ()) -> Instructions:
        """Return the instructions for a workspace.

        ``home`` is the folder of the user's own files; None: they have none. ``names`` stand in place of GEMINI.md
        and AGENTS.md when given.
        """
        return await asyncio.to_thread(self._instructions, (workspace, home, tuple(names) or DEFAULT_CONTEXT_FILES))

    def known(self, workspace: Path, home: Path | None, names: Sequence[str] = ()) -> Instructions | None:
        """Return the instructions that were read last, if any."""
        reading = self._readings.get((workspace, home, tuple(names) or DEFAULT_CONTEXT_FILES))
        return reading.instructions if reading is not None else None

    def _instructions(self, key: _Key) -> Instructions:
        workspace, home, names = key
        reading = self._readings.get(key)
        if reading is None or not reading.is_current():
            at = time.time_ns()
            instructions, looked_at = read_instructions(workspace, names, home, self._bounds if home is None else ())
            reading = Reading(instructions, looked_at, at)
        self._readings[key] = reading
        self._readings.move_to_end(key)
        while len(self._readings) > KEPT:
            self._readings.popitem(last=False)
        return reading.instructions
