"""Links to the workbench that let one browser in, and the address under which other devices reach a server."""

import ipaddress
import re
import socket
from urllib.parse import urlsplit

from isthmus.network.loopback import is_loopback
from isthmus.record import record
from isthmus.web.http.bundle import ROOT
from isthmus.web.pairing.qr_code import QrCode, TextTooLongError, qr_code

MAXIMUM_ORIGIN = 150
"""Maximum length of the address of a server in characters, so that a link fits into a QR code."""
HOW_TO_REACH = (
    "Other devices do not reach this address. To let a phone in: isthmus serve --ui with --host, --tls-cert and"
    " --tls-key, or behind a tunnel or proxy with --public-url https://..."
)
_ORIGIN = re.compile(r"https?://[\w.-]+(:\d{1,5})?|https?://\[[0-9a-fA-F:]+\](:\d{1,5})?", re.ASCII)


@record
class EntryLink:
    """A link with a code in its fragment. ``qr`` is None if other devices do not reach it, or if it is too long."""

    url: str
    qr: QrCode | None


def entry_link(base: str, code: str) -> EntryLink:
    """Return the link for a code to the page below a server's URL."""
    url = f"{base.rstrip('/')}{ROOT}#code={code}"
    return EntryLink(url, _drawn(url) if is_reachable(base) else None)


def is_reachable(url: str) -> bool:
    """Return whether a server's URL may lead to it from another device: its host is not this machine's loopback."""
    host = urlsplit(url).hostname or ""
    return bool(host) and not is_loopback(host) and host not in ("0.0.0.0", "::")  # noqa: S104 - compared, not bound


def is_origin(text: object) -> bool:
    """Return whether a value is an origin such as ``https://agent.example.org:8443``, short enough for a link."""
    return isinstance(text, str) and len(text) <= MAXIMUM_ORIGIN and _ORIGIN.fullmatch(text) is not None


def shown_url(url: str) -> str:
    """Return a server's URL with an address of this machine in place of the one that stands for all of them."""
    parts = urlsplit(url)
    try:
        if not ipaddress.ip_address(parts.hostname or "").is_unspecified:
            return url
    except ValueError:
        return url
    found = _own_address(socket.AF_INET6 if ":" in (parts.hostname or "") else socket.AF_INET)
    if found is None:
        return url
    return f"{parts.scheme}://{f'[{found}]' if ':' in found else found}:{parts.port}/"


def _own_address(family: socket.AddressFamily) -> str | None:
    """Return the address from which this machine reaches others. Nothing is sent: the socket is for datagrams."""
    there = "2001:db8::1" if family == socket.AF_INET6 else "192.0.2.1"  # addresses for examples
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((there, 9))
            return str(probe.getsockname()[0])
    except OSError:
        return None


def _drawn(url: str) -> QrCode | None:
    try:
        return qr_code(url)
    except TextTooLongError:
        return None
