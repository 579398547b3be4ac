"""The names and addresses under which this machine reaches itself."""

import ipaddress

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "::1")
"""Hosts of a URL that always mean this machine."""


def is_loopback(host: str) -> bool:
    """Return whether a host, as in a URL but without brackets, is this machine by its name or number."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
