"""Isthmus on a machine whose name server and keyring never answer: a call of either blocks, as in the C library.

The name of each blocked call is a file in the folder STUCK. Only names below ``.example`` block.
HTTP requests of a login have a timeout of two seconds instead of ten.
"""

import os
import socket
import time
from pathlib import Path
from typing import Any, NoReturn

from keyring.backend import KeyringBackend

_resolve = socket.getaddrinfo


class StuckKeyring(KeyringBackend):
    """A keyring behind a D-Bus service that hangs."""

    priority = 1.0  # pyright: ignore[reportAssignmentType, reportIncompatibleMethodOverride] - as keyring's own have it

    def get_password(self, service: str, username: str) -> NoReturn:
        stand_still("keyring")

    def set_password(self, service: str, username: str, password: str) -> NoReturn:
        stand_still("keyring")

    def delete_password(self, service: str, username: str) -> NoReturn:
        stand_still("keyring")


def stand_still(what: str) -> NoReturn:
    (Path(os.environ["STUCK"]) / what).touch()
    while True:
        time.sleep(3600)  # delay: the library stands still until the program is ended


def resolve(host: Any, *arguments: Any, **options: Any) -> Any:
    name = host.decode() if isinstance(host, bytes) else str(host)
    if name.endswith(".example"):
        stand_still("resolver")
    return _resolve(host, *arguments, **options)


if __name__ == "__main__":
    import keyring

    socket.getaddrinfo = resolve
    keyring.set_keyring(StuckKeyring())
    from isthmus.__main__ import main
    from isthmus.mcp_host.oauth import challenge, http, login_flow

    http.ANSWER_SECONDS = login_flow.ANSWER_SECONDS = challenge.ANSWER_SECONDS = 2.0
    main()
