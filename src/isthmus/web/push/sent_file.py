"""The file of the questions that devices were told of, around :mod:`isthmus.web.push.sent_questions`.

It is in the data folder, with mode 0600, and is changed atomically; processes that share the folder wait for each
other.
"""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from isthmus.files.atomic import exclusive, read_regular, write_atomic
from isthmus.files.locations import make_private_directory
from isthmus.web.push.sent_questions import SentQuestionsError, SentTable

T = TypeVar("T")

FILE = "notified-questions.json"
"""Name of the file in the data folder."""
MAXIMUM_BYTES = 4 * 1024 * 1024

log = logging.getLogger(__name__)


class SentFile:
    """The questions in the file of a data folder, which may be missing. All methods block."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE

    def read(self) -> SentTable:
        """Return the questions; none, with a line in the log, if the file has been damaged.

        Raises:
            SentQuestionsError: it cannot be read.
        """
        try:
            return SentTable.decode(read_regular(self._path, MAXIMUM_BYTES))
        except FileNotFoundError:
            return SentTable()
        except OSError as error:
            raise SentQuestionsError(f"{self._path} cannot be read: {error.strerror or error}") from error
        except SentQuestionsError as error:
            log.warning("%s is not used, and begun again with the next notification: %s", self._path, error)
            return SentTable()

    def change(self, change: Callable[[SentTable], tuple[SentTable, T]]) -> T:
        """Replace the questions by those that ``change`` returns; return the other value of ``change``.

        Raises:
            SentQuestionsError: the file cannot be read or written; it was not changed.
        """
        try:
            make_private_directory(self._path.parent)
            with exclusive(self._path.with_suffix(".lock")):
                table = self.read()
                changed, result = change(table)
                if changed is not table:
                    write_atomic(self._path, changed.encode(), mode=0o600, through_links=False)
        except OSError as error:
            raise SentQuestionsError(f"{self._path} cannot be written: {error.strerror or error}") from error
        return result
