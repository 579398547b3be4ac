"""The tasks of a process whose work broke off because of a fault: a failed write, or a bug. No I/O.

The next check of the leases resumes them; one for which that has failed :data:`BREAKS` times waits until its lease has
expired, for this process or another.
"""

from collections import Counter
from collections.abc import Iterator

from isthmus.errors import IsthmusError
from isthmus.journal.port.task_rows import TaskRow

BREAKS = 3
"""Maximum number of times that a task is resumed at once."""


class BrokenTasks:
    """The broken tasks of the process ``owner``, with the reason of each."""

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._reasons: dict[str, str] = {}
        self._breaks: Counter[str] = Counter()

    def __iter__(self) -> Iterator[str]:
        return iter([*self._reasons])

    def broke(self, task_id: str, error: Exception) -> None:
        """Note that the work on a task broke off."""
        self._reasons[task_id] = str(error) if isinstance(error, IsthmusError) else "internal error, see the log"
        self._breaks[task_id] += 1

    def resumed(self, task_id: str) -> None:
        """Note that a task is at work again."""
        self._reasons.pop(task_id, None)

    def ended(self, task_id: str) -> None:
        """Note that the work on a task came to its end, or is another process's."""
        self._reasons.pop(task_id, None)
        self._breaks.pop(task_id, None)

    def may_resume(self, task_id: str) -> bool:
        """Return whether a task may be resumed at once."""
        return self._breaks[task_id] <= BREAKS

    def has(self, row: TaskRow) -> bool:
        """Return whether a task is this process's, and broke off."""
        return self.reason(row) is not None

    def reason(self, row: TaskRow) -> str | None:
        """Return why a task of this process broke off; None if it did not."""
        return self._reasons.get(row.task_id) if row.owner == self._owner else None
