"""Admits WebSocket upgrades by token, Host and Origin, in that order (Claude IDE protocol, Authentication). No I/O.

Only the head of the request is checked, before any message. The path is ignored, as in all real servers. The texts
about the token are claudecode.nvim's.
"""

from collections.abc import Callable, Sequence

from isthmus.listeners.gate import Fault, find_fault
from isthmus.network.loopback import host_headers
from isthmus.record import record

AUTHORIZATION = "x-claude-code-ide-authorization"


@record
class UpgradeRefusal:
    """Refusal of an upgrade, with the HTTP ``status`` and ``text`` of the response."""

    status: int
    text: str


class UpgradeGate:
    """Check of upgrades against one token and one port."""

    def __init__(self, token: str, port: int) -> None:
        self._token = token
        self._hosts = host_headers(port)

    def check(self, headers: Callable[[str], Sequence[str]]) -> UpgradeRefusal | None:
        """Return the refusal of a request, or None to admit it; ``headers`` returns all values of a header."""
        tokens = headers(AUTHORIZATION)
        match find_fault(tokens, self._token, headers("host"), headers("origin"), self._hosts.__contains__):
            case None:
                return None
            case Fault.NO_TOKEN:
                text = f"Bad WebSocket upgrade request: Missing authentication header: {AUTHORIZATION}\n"
                return UpgradeRefusal(401, text)
            case Fault.WRONG_TOKEN:
                return UpgradeRefusal(401, "Bad WebSocket upgrade request: Invalid authentication token\n")
            case Fault.HOST:
                return UpgradeRefusal(403, f"Invalid Host header; expected one of {', '.join(self._hosts)}\n")
            case Fault.ORIGIN:
                return UpgradeRefusal(403, "Request denied: expected no Origin header; web pages may not connect\n")
