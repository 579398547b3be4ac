"""The file with a server's users, around :mod:`isthmus.a2a.server.users.users`.

It has mode 0600 and is changed atomically; programs that change it wait for each other. Running servers read it again
when it has changed.
"""

import contextlib
import logging
import os
import stat
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TypeVar

from isthmus.a2a.server.users.users import UsersError, UserTable
from isthmus.files.atomic import exclusive, read_regular, write_atomic
from isthmus.files.locations import make_private_directory

T = TypeVar("T")

FILE = "users.json"
MAXIMUM_BYTES = 16 * 1024 * 1024

log = logging.getLogger(__name__)


class UsersFile:
    """The users in the file ``path``, which may be missing."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: tuple[tuple[int, int, int] | None, UserTable] = (None, UserTable())
        """Time, number and size of the file when it was read last, and the table that was in it."""

    def table(self) -> UserTable:
        """Return the current users; each call checks the file's time, and reads the file only if it has changed.

        If it cannot be read, the table is empty, so that no user is let in, and the log has the reason.
        """
        try:
            status = os.stat(self._path)  # noqa: PTH116 - each request comes here; pathlib is slow
            stamp = (status.st_mtime_ns, status.st_ino, status.st_size)
        except FileNotFoundError:
            nobody = UserTable()
            self._known = (None, nobody)
            return nobody
        except OSError as error:
            log.error("%s cannot be accessed (%s): no user with a token is let in", self._path, error.strerror)
            return UserTable()
        known, table = self._known
        if stamp != known:
            try:
                table = self.read()
            except UsersError as error:
                log.error("%s; no user with a token is let in", error)
                table = UserTable()
            # Both at once: another thread must never find the new time with the table of before.
            self._known = (stamp, table)
        return table

    def read(self) -> UserTable:
        """Return the users in the file.

        Raises:
            UsersError: it cannot be read, or does not contain a table of users.
        """
        try:
            mode = stat.S_IMODE(self._path.stat().st_mode)
            data = read_regular(self._path, MAXIMUM_BYTES)
        except FileNotFoundError:
            return UserTable()
        except OSError as error:
            raise UsersError(f"{self._path} cannot be read: {error.strerror or error}") from error
        if mode & 0o077:
            log.warning("%s could be read by others (mode %04o); only you can read it now", self._path, mode)
            with contextlib.suppress(OSError):
                self._path.chmod(0o600)
        try:
            return UserTable.decode(data)
        except UsersError as error:
            raise UsersError(f"{self._path}: {error}") from error

    def change(self, change: Callable[[UserTable], tuple[UserTable, T]]) -> T:
        """Replace the table by the one that ``change`` returns; return the other value of ``change``.

        Raises:
            UsersError: the file cannot be read or written; it was not changed.
        """
        try:
            make_private_directory(self._path.parent)
            with self._locked():
                table, result = change(self.read())
                write_atomic(self._path, table.encode(), mode=0o600, through_links=False)
        except OSError as error:
            raise UsersError(f"{self._path} cannot be written: {error.strerror or error}") from error
        return result

    @contextlib.contextmanager
    def _locked(self) -> Generator[None]:
        with exclusive(self._path.with_suffix(".lock")):
            yield
