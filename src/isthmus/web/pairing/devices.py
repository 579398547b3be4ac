"""The port of the table in which the devices of users are kept."""

from collections.abc import Callable
from typing import Protocol, TypeVar

from isthmus.a2a.server.users.users import UserTable

T = TypeVar("T")


class Devices(Protocol):
    """The table of users with their devices, as :class:`isthmus.a2a.server.users.users_file.UsersFile` keeps it."""

    def table(self) -> UserTable:
        """Return the current table."""
        ...

    def change(self, change: Callable[[UserTable], tuple[UserTable, T]]) -> T:
        """Replace the table by the one that ``change`` returns; return the other value of ``change``. Blocks."""
        ...
