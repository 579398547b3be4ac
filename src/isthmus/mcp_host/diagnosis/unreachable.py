"""Messages about URLs that could not be reached. Does not import the MCP SDK, because logins use them too."""

import errno
import re
from collections.abc import Iterator
from typing import cast

import httpx2

CERTIFICATE_ADVICE = (
    "If your network or the server has authorities of its own, name their file (PEM) in the variable SSL_CERT_FILE, or"
    " add them to those of the system with NODE_EXTRA_CA_CERTS, and start Isthmus again"
)
_ERRNO = re.compile(r"\A\[Errno -?\d+\] ")


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the single exceptions in a group, or the exception itself."""
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        for inner in group.exceptions:
            yield from causes(inner)
    else:
        yield error


def is_reached(error: BaseException) -> bool:
    """Return whether the connection was established before it broke."""
    return not any(isinstance(inner, httpx2.ConnectError | httpx2.ConnectTimeout) for inner in causes(error))


def connection_problem(error: Exception) -> str:
    """Return a short reason why a URL could not be reached."""
    cause: BaseException | None = error
    while cause is not None:
        if any(isinstance(inner, OSError) and inner.errno == errno.ECONNREFUSED for inner in causes(cause)):
            return "Connection refused"
        cause = cause.__cause__ or cause.__context__
    text = str(error)
    if "CERTIFICATE_VERIFY_FAILED" in text:
        return f"{_ERRNO.sub('', text)}. {CERTIFICATE_ADVICE}"
    if isinstance(error, httpx2.ConnectError) and text == "All connection attempts failed":
        return "Connection refused"
    return _ERRNO.sub("", text) or type(error).__name__
