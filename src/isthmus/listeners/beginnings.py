"""First bytes of a connection, which show whether a whole request may have arrived. No I/O.

Only then is a protocol created for the connection: creating one and cutting it off costs many times more.
"""

import re
from collections.abc import Callable
from typing import TypeAlias

from isthmus.record import record

LONGEST = 16 * 1024
"""Maximum number of bytes that are examined; beyond it the protocol decides."""

_REQUEST_LINE = re.compile(rb"[!-~]+[ \t][^\n]*HTTP/[0-9.]+[ \t]*\r?\n")
_TLS_HANDSHAKE = b"\x16"
_TLS_RECORD_HEADER = 5
_NO_REQUEST = b"Expected an HTTP/1.1 request.\n"


@record
class Partial:
    """Part of a request; the rest has not arrived."""


@record
class Whole:
    """Possibly a whole request: the protocol takes over."""


@record
class Foreign:
    """Beginning of another protocol; ``answer`` is sent before the connection is closed."""

    answer: bytes = b""


Beginning: TypeAlias = Partial | Whole | Foreign
ReadBeginning: TypeAlias = Callable[[bytes], Beginning]

_PARTIAL, _WHOLE = Partial(), Whole()
_FOREIGN_TLS = Foreign()
_FOREIGN_HTTP = Foreign(
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b"
    % (len(_NO_REQUEST), _NO_REQUEST)
)


def any_beginning(data: bytes) -> Beginning:
    """Return Whole from the first byte on."""
    return _WHOLE if data else _PARTIAL


def http_beginning(data: bytes) -> Beginning:
    """Return whether the head of an HTTP/1.1 request is whole, with its blank line. WebSockets begin like this, too."""
    data = data.lstrip(b"\r\n")
    if len(data) >= LONGEST:
        return _WHOLE
    if b"\n" not in data:
        return _PARTIAL if not data or b"!" <= data[:1] <= b"~" else _FOREIGN_HTTP
    if _REQUEST_LINE.match(data) is None:
        return _FOREIGN_HTTP
    return _WHOLE if b"\n\r\n" in data or b"\n\n" in data else _PARTIAL


def tls_beginning(data: bytes) -> Beginning:
    """Return whether the first record of a TLS handshake is whole."""
    if not _TLS_HANDSHAKE.startswith(data[:1]):
        return _FOREIGN_TLS
    if len(data) < _TLS_RECORD_HEADER:
        return _PARTIAL
    whole = _TLS_RECORD_HEADER + int.from_bytes(data[3:5], "big")
    return _WHOLE if len(data) >= min(whole, LONGEST) else _PARTIAL
