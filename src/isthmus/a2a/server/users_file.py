"""The file that holds a server's users: changed atomically, noticed by running servers at their next look.

A thin shell around :mod:`isthmus.a2a.server.users`. The file is 0600; two programs that change it wait for each other.
"""

import contextlib
import logging
import stat
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TypeVar

from isthmus.a2a.server.users import UsersError, UserTable
from isthmus.files.atomic import exclusive, read_regular, write_atomic
from isthmus.files.locations import make_private_directory

T = TypeVar("T")

FILE = "users.json"
MAXIMUM_BYTES = 16 * 1024 * 1024

log = logging.getLogger(__name__)


class UsersFile:
    """The users in the file ``path``, which need not be there."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: tuple[int, int, int] | None = None
        self._table = UserTable()

    def table(self) -> UserTable:
        """The users as they are now. A look at the file's times for each call; it is read again only when it changed.

        One that cannot be read lets nobody in, which is said in the log.
        """
        try:
            status = self._path.stat()
            stamp = (status.st_mtime_ns, status.st_ino, status.st_size)
        except FileNotFoundError:
            self._stamp, self._table = None, UserTable()
            return self._table
        except OSError as error:
            log.error("%s cannot be looked at (%s): nobody with a user's token is let in", self._path, error.strerror)
            return UserTable()
        if stamp != self._stamp:
            self._stamp = stamp
            try:
                self._table = self.read()
            except UsersError as error:
                log.error("%s; nobody with a user's token is let in", error)
                self._table = UserTable()
        return self._table

    def read(self) -> UserTable:
        """Return the users in the file.

        Raises:
            UsersError: it cannot be read, or others may read it.
        """
        try:
            mode = stat.S_IMODE(self._path.stat().st_mode)
            data = read_regular(self._path, MAXIMUM_BYTES)
        except FileNotFoundError:
            return UserTable()
        except OSError as error:
            raise UsersError(f"{self._path} cannot be read: {error.strerror or error}") from error
        if mode & 0o077:
            log.warning("%s could be read by others (mode %04o) and is yours alone now", self._path, mode)
            with contextlib.suppress(OSError):
                self._path.chmod(0o600)
        try:
            return UserTable.decode(data)
        except UsersError as error:
            raise UsersError(f"{self._path}: {error}") from error

    def change(self, change: Callable[[UserTable], tuple[UserTable, T]]) -> T:
        """Replace the table by a changed one; returns what ``change`` gives along.

        Raises:
            UsersError: the file cannot be read or written; it is as it was.
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
