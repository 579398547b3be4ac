"""The place of tasks among several processes: how many this one runs at once, and the folders that only some have."""

import re
from pathlib import Path

from isthmus.record import record

LABELS = "up to 63 letters, digits, '.', '_' and '-'"
"""The form of labels, for messages."""


def is_label(text: str) -> bool:
    """Return whether a text has the form of a label."""
    return re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", text) is not None


@record
class Placement:
    """The part of this process in running tasks: at most ``slots`` at once, or any number for None.

    ``folders`` are the folders whose tasks only processes with a label run, each with the label; the deepest one that
    holds a workspace counts. ``labels`` are this process's, which runs the tasks of all other folders, too. Others may
    go on with its tasks when it has not renewed their leases for ``lease_seconds``.
    """

    slots: int | None = None
    labels: tuple[str, ...] = ()
    folders: tuple[tuple[Path, str], ...] = ()
    lease_seconds: float = 20.0

    def label_of(self, workspace: str) -> str:
        """Return the label of the tasks in a workspace; empty if any process runs them."""
        if not self.folders:
            return ""
        path = Path(workspace)
        holding = [(len(folder.parts), label) for folder, label in self.folders if path.is_relative_to(folder)]
        return max(holding, default=(0, ""))[1]

    @property
    def elsewhere(self) -> tuple[Path, ...]:
        """The folders whose tasks other processes run, so that they need not exist here."""
        return tuple(folder for folder, label in self.folders if label not in self.labels)


EVERY_TASK = Placement()
"""Placement of a process that runs any number of tasks, in any folder."""
