"""Finds the user whose process listens on a local port: a port outlives the discovery file of an editor that crashed.

Another user may listen there by now; a client that took that process for the editor would send it our token. Only
Linux tells; elsewhere, and across network namespaces, the user is unknown and the port is accepted.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

TABLES: Final = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_LISTENING: Final = "0A"
_NOBODY_HERE: Final = 65_534
"""User id that the system shows for users that do not exist in this user namespace."""


def listening_users(port: int, table: str) -> Iterator[int]:
    """Yield the ids of the users that listen on a port, from the text of ``/proc/net/tcp`` (proc(5)). Pure."""
    for line in table.splitlines()[1:]:
        match line.split():
            case [_, local, _, state, _, _, _, user, *_] if state == _LISTENING and user.isdecimal():
                if local.rpartition(":")[2] == f"{port:04X}":
                    yield int(user)
            case _:
                pass


def another_user_at(port: int, tables: Sequence[Path] = TABLES) -> str | None:
    """Return why a port must not be trusted (another user listens), or None if nothing speaks against it. Blocks."""
    ours = {os.getuid(), 0, _NOBODY_HERE}  # the superuser can read everything anyway
    for path in tables:
        with suppress(OSError):
            for user in listening_users(port, path.read_text(encoding="ascii", errors="replace")):
                if user not in ours:
                    return f"a process of another user (uid {user}) listens on port {port}"
    return None
