"""Admits WebSocket upgrades by token, Host and Origin, in that order (Claude IDE protocol, Authentication). No I/O.

Decides on the head of the request, before any message. The path is ignored, as by every real server. The texts about
the token are those of claudecode.nvim.
"""

import hmac
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from isthmus.ide.loopback import hosts

AUTHORIZATION = "x-claude-code-ide-authorization"


@dataclass(frozen=True, slots=True)
class UpgradeRefusal:
    """Refusal of an upgrade: the HTTP ``status`` and ``text`` to answer with."""

    status: int
    text: str


class UpgradeGate:
    """Checks upgrades against one token and one port."""

    def __init__(self, token: str, port: int) -> None:
        self._token = token.encode()
        self._hosts = hosts(port)

    def check(self, headers: Callable[[str], Sequence[str]]) -> UpgradeRefusal | None:
        """Return the refusal of a request, or None to admit it; ``headers`` looks up all values of a name."""
        tokens = headers(AUTHORIZATION)
        if not tokens:
            return UpgradeRefusal(
                401, f"Bad WebSocket upgrade request: Missing authentication header: {AUTHORIZATION}\n"
            )
        given = [token.encode("utf-8", "surrogateescape") for token in tokens]
        if len(given) > 1 or not hmac.compare_digest(given[0], self._token):
            return UpgradeRefusal(401, "Bad WebSocket upgrade request: Invalid authentication token\n")
        host = [value.lower() for value in headers("host")]
        if len(host) != 1 or host[0] not in self._hosts:
            return UpgradeRefusal(403, f"Invalid Host header; expected one of {', '.join(self._hosts)}\n")
        if headers("origin"):
            return UpgradeRefusal(403, "Request denied: expected no Origin header; web pages may not connect\n")
        return None
