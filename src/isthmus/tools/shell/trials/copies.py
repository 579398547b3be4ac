"""Copies of workspaces: of files where they are small, otherwise an overlay, where the system has it. Blocks."""

import os
from pathlib import Path
from threading import Lock

from isthmus.sandbox.overlay import UPPER, Overlays, find_overlays, make_folders
from isthmus.tools.port.workspace import Workspace
from isthmus.tools.shell.trials.copying import CopyLimits, FolderCopy, copy_of


class Copies:
    """Makes copies below ``folder``. Whether overlays work there is found when the first is needed."""

    def __init__(self, folder: Path, limits: CopyLimits) -> None:
        self._folder = folder
        self._limits = limits
        self._lock = Lock()
        self._overlays: list[Overlays | None] = []

    def make(self, workspace: Workspace, place: Path) -> tuple[FolderCopy, tuple[str, ...]]:
        """Return a copy of a workspace in `place`, with the words before a command that mount it, if it is an overlay.

        A copy is better: what is left out is not there, instead of closed.

        Raises:
            TrialError: the workspace is too large.
            OSError: it cannot be read, or the copy cannot be written.
        """
        limits = self._limits
        seen = copy_of(workspace, place / UPPER, limits, is_overlay=True)
        if seen.size < limits.overlay_from_size and len(seen.originals) < limits.overlay_from:
            return copy_of(workspace, place / "copy", limits), ()
        overlays = self._found()
        may_overlay = overlays is not None and overlays.can_show(workspace.root, place)
        if overlays is None or not may_overlay or len(seen.hidden) > limits.hidden:
            return copy_of(workspace, place / "copy", limits), ()
        make_folders(place)
        return seen, overlays.around(workspace.root, place)

    def _found(self) -> Overlays | None:
        with self._lock:
            if not self._overlays:
                self._overlays = [find_overlays(os.environ, self._folder)]
            return self._overlays[0]
