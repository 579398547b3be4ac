"""First bytes of a connection: no protocol is made before a whole request may be there. No I/O.

Making a protocol, and cutting its connection again, costs many times what a look at these bytes does.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

LONGEST = 16 * 1024
"""Maximum number of bytes looked at; beyond it the protocol decides."""

_REQUEST_LINE = re.compile(rb"[!-~]+[ \t][^\n]*HTTP/[0-9.]+[ \t]*\r?\n")
_TLS_HANDSHAKE = b"\x16"
_TLS_RECORD_HEADER = 5
_NO_REQUEST = b"Expected an HTTP/1.1 request.\n"


@dataclass(frozen=True, slots=True)
class Part:
    """More is to come before there is something to do."""


@dataclass(frozen=True, slots=True)
class Whole:
    """There is work for the protocol."""


@dataclass(frozen=True, slots=True)
class Foreign:
    """Something else is spoken; ``answer`` is sent before the connection is closed."""

    answer: bytes = b""


Beginning: TypeAlias = Part | Whole | Foreign
ReadBeginning: TypeAlias = Callable[[bytes], Beginning]

_PART, _WHOLE = Part(), Whole()
_FOREIGN_TLS = Foreign()
_FOREIGN_HTTP = Foreign(
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b"
    % (len(_NO_REQUEST), _NO_REQUEST)
)


def any_beginning(data: bytes) -> Beginning:
    """Return that the first byte is enough."""
    return _WHOLE if data else _PART


def http_beginning(data: bytes) -> Beginning:
    """Return whether the head of a request in HTTP/1.1 is there, blank line included; WebSockets begin so, too."""
    data = data.lstrip(b"\r\n")
    if len(data) >= LONGEST:
        return _WHOLE
    if b"\n" not in data:
        return _PART if not data or b"!" <= data[:1] <= b"~" else _FOREIGN_HTTP
    if _REQUEST_LINE.match(data) is None:
        return _FOREIGN_HTTP
    return _WHOLE if b"\n\r\n" in data or b"\n\n" in data else _PART


def tls_beginning(data: bytes) -> Beginning:
    """Return whether the first record of a TLS handshake is there."""
    if not _TLS_HANDSHAKE.startswith(data[:1]):
        return _FOREIGN_TLS
    if len(data) < _TLS_RECORD_HEADER:
        return _PART
    whole = _TLS_RECORD_HEADER + int.from_bytes(data[3:5], "big")
    return _WHOLE if len(data) >= min(whole, LONGEST) else _PART
