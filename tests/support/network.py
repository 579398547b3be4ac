"""A guard that confines the tests' own process to this machine: no other name is resolved, no other address reached.

A test that tries gets the error of a machine without a network, at once and everywhere. Programs that tests start
are not confined by it; they get only addresses of this machine.
"""

import errno
import ipaddress
import os
import socket
import sys
from typing import Any, cast

_RESOLVING = frozenset({"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"})
_REACHING = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})


def is_here(host: object) -> bool:
    """Return whether `host`, a name or an address, is this machine, or an address that needs no resolving.

    For ``getaddrinfo`` a missing host means this machine.
    """
    if host is None or host in ("", b""):
        return True
    name = host.decode("latin-1") if isinstance(host, bytes) else str(host)
    if name.casefold().rstrip(".") == "localhost" or name.casefold().endswith(".localhost"):
        return True
    return _address(name) is not None


def may_reach(address: object) -> bool:
    """Return whether a socket may connect or send to `address`: loopback, a Unix socket, or a missing address."""
    if not isinstance(address, tuple) or not address:
        return True
    host = str(cast("tuple[object, ...]", address)[0])
    found = _address(host)
    return host in ("", "localhost") or (found is not None and (found.is_loopback or found.is_unspecified))


def stay_on_this_machine() -> None:
    """Refuse, from now on and in this process, to resolve foreign names and to reach foreign addresses."""
    sys.addaudithook(_refuse)


def trust_no_authority() -> None:
    """Let this process and the programs that it starts trust no certificate but those that a test names.

    They have TLS with this machine alone, and to read the authorities of a system takes 60 ms of each HTTP client.
    """
    os.environ.pop("SSL_CERT_FILE", None)
    os.environ["SSL_CERT_DIR"] = os.devnull


def _refuse(
    event: str, arguments: tuple[Any, ...], resolving: frozenset[str] = _RESOLVING, reaching: frozenset[str] = _REACHING
) -> None:
    # By parameters: at the end of the process this module's own names are gone, and the hook is still called.
    if event in resolving and not is_here(arguments[0]):
        raise socket.gaierror(socket.EAI_NONAME, f"tests resolve no name but localhost, and not {arguments[0]!r}")
    if event in reaching and not may_reach(arguments[1]):
        raise OSError(errno.ENETUNREACH, f"tests reach no machine but this one, and not {arguments[1]!r}")


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
