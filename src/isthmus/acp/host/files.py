"""The port to the files of a session's workspace, and ``fs/read_text_file`` on top of it."""

from typing import Protocol

from isthmus.errors import IsthmusError
from isthmus.record import record
from isthmus.text.diff import split_lines


class FileRefusedError(IsthmusError):
    """A file that may not be read or written, or cannot be; the text is for the agent.

    ``is_missing``: it does not exist. ``is_outside``: it is not in the workspace.
    """

    def __init__(self, text: str, *, is_missing: bool = False, is_outside: bool = False) -> None:
        self.is_missing, self.is_outside = is_missing, is_outside
        super().__init__(text)


@record
class Expected:
    """Text that a file must still have; None if it must not exist."""

    text: str | None


@record
class AskedRead:
    """A question about reading a file that holds secrets, or that git ignores.

    ``covered`` is the absolute path of the file with secrets, or of the folder with ignored files; a lasting answer
    holds for it. ``reason`` is why the user is asked, after "which".
    """

    covered: str
    reason: str
    lasting: str
    """Words of the lasting answer."""


class SessionFiles(Protocol):
    """The text files of a workspace. Paths are absolute; symbolic links are resolved before they are compared."""

    async def read(self, path: str) -> str:
        """Return the text of a file.

        Raises:
            FileRefusedError: it is outside of the workspace, does not exist, or is not text.
        """
        ...

    async def write(self, path: str, text: str, expected: Expected | None = None) -> None:
        """Write a file atomically, in the encoding that it has. With ``expected`` only if it still has that text.

        Raises:
            FileRefusedError: it is outside of the workspace, cannot be written, or has another text.
        """
        ...

    def asked_read(self, path: str) -> AskedRead | None:
        """Return the question about reading a file of the workspace; None if it is read without one."""
        ...

    def is_same(self, path: str, other: str) -> bool:
        """Return whether two paths mean the same file."""
        ...


def lines_of(text: str, line: int | None, limit: int | None) -> str:
    """Return ``limit`` lines of a text from the 1-based ``line`` on."""
    if line is None and limit is None:
        return text
    first = max(0, (line or 1) - 1)
    last = None if limit is None else first + max(0, limit)
    return "".join(split_lines(text)[first:last])
