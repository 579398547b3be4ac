"""The port to the files of tasks that a journal keeps for other machines: attachments, and outputs too long to show.

Only a journal of several machines has one. Not here: the folders in which agents write and read them, see
`isthmus.parts.files.carried`.
"""

from collections.abc import Sequence
from typing import Protocol

from isthmus.record import record

MAXIMUM_FILE_BYTES = 16 * 1024 * 1024
"""Maximum size in bytes of a file that is kept."""
MAXIMUM_FOUND = 1000
"""Maximum number of files that one search returns."""


@record
class StoredFile:
    """A kept file. ``folders`` are those in which servers have it: texts of the task name it there.

    Nothing in it is to be trusted: another server, or whoever has its database, wrote it.
    """

    task_id: str
    name: str
    size: int
    folders: tuple[str, ...]


class TaskFileStore(Protocol):
    """Files by the id of their task and their name; removed with their task. All methods raise JournalError."""

    async def keep(self, task_id: str, name: str, folder: str, data: bytes) -> None:
        """Store a file of up to :data:`MAXIMUM_FILE_BYTES`, which ``folder/task_id/name`` is on this machine.

        The task need not be there yet. A file that was stored before is replaced if the same folder has more of it now.
        """
        ...

    async def find(self, task_ids: Sequence[str], names: Sequence[str]) -> Sequence[StoredFile]:
        """Return the files of these tasks that have one of these names."""
        ...

    async def read(self, task_id: str, name: str) -> bytes | None:
        """Return the content of a file; None if it is not there (any more)."""
        ...

    async def add_folder(self, files: Sequence[StoredFile], folder: str) -> None:
        """Note that this machine has these files in ``folder``, too."""
        ...
