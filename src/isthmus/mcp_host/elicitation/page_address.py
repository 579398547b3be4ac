"""The host of a page that a server sends a user to, as a browser will read it. Pure.

A URL that Python and browsers read differently is refused: the user would see another host than the browser opens.
"""

import ipaddress
import re
from urllib.parse import urlsplit

from isthmus.errors import IsthmusError
from isthmus.network.loopback import LOOPBACK_NAMES

LONGEST_URL = 4096
_NAME = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


class UrlError(IsthmusError):
    """A URL that a user should not be sent to."""


def host_of(url: str) -> str:
    """Return the host of a server's URL, for the question to the user.

    Raises:
        UrlError: it is not the address of a page, or it hides its real host.
    """
    if len(url) > LONGEST_URL:
        raise UrlError(f"its URL has {len(url):,} characters; at most {LONGEST_URL:,} are accepted")
    if any(not character.isprintable() or character.isspace() for character in url):
        raise UrlError("its URL contains characters that cannot be shown")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise UrlError(f"its URL is invalid: {error}") from error
    if parts.scheme not in ("http", "https") or not host:
        raise UrlError("its URL is not an http(s) address")
    if parts.username is not None or parts.password is not None:
        raise UrlError("its URL has a user name or password before its host, which hides the host")
    if not host.isascii():
        try:
            ascii_host = host.encode("idna").decode("ascii").lower()
        except UnicodeError as error:
            raise UrlError("its URL's host is not a name") from error
        _require_host(ascii_host)
        host = f"{ascii_host} (written {host})"
    else:
        _require_host(host)
    plain = " (not encrypted)" if parts.scheme == "http" and host not in LOOPBACK_NAMES else ""
    return f"{host}{f':{port}' if port is not None else ''}{plain}"


def _require_host(host: str) -> None:
    """Raise UrlError for a host that browsers would refuse, or read as another one."""
    is_name = _NAME.fullmatch(host) is not None and _NUMBER.fullmatch(host.rstrip(".").rpartition(".")[2]) is None
    if is_name:
        return
    try:
        ipaddress.ip_address(host)
    except ValueError as error:
        raise UrlError("its URL's host is neither a valid name nor a valid address") from error
