"""Checks of token, Host and Origin, the parts of every server's gate. No I/O.

Other users' programs do not have the token. Pages in the user's browser are recognised by their Origin, or by their
Host if their own name resolves to this machine (DNS rebinding). A server checks the head of a request before it reads
the body, and refuses it as its protocol requires.
"""

import hmac
from collections.abc import Callable, Collection, Sequence
from enum import Enum, auto
from typing import Literal


class Fault(Enum):
    """Reason to refuse a request."""

    NO_TOKEN = auto()
    WRONG_TOKEN = auto()
    HOST = auto()
    """The Host is not a name of the server, or is not sent exactly once."""
    ORIGIN = auto()
    """The request comes from a web page that is not the server's own."""


def same_secret(given: str, secret: str) -> bool:
    """Return whether two texts are equal, in a time that does not depend on where they differ."""
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), secret.encode("utf-8", "surrogatepass"))


def bearer_token(authorization: str) -> str | None:
    """Return the token in an Authorization header; None if its scheme is not Bearer."""
    scheme, _, token = authorization.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def find_fault(
    tokens: Sequence[str], secret: str, hosts: Sequence[str], origins: Sequence[str], is_own_host: Callable[[str], bool]
) -> Fault | None:
    """Return the first fault of a request by token, Host and Origin; None if it may be served.

    Each header is given with all its values. A request without an Origin is allowed: only browsers send one.
    """
    if not tokens:
        return Fault.NO_TOKEN
    if len(tokens) > 1 or not same_secret(tokens[0], secret):
        return Fault.WRONG_TOKEN
    return find_foreign(hosts, origins, is_own_host)


def find_foreign(
    hosts: Sequence[str],
    origins: Sequence[str],
    is_own_host: Callable[[str], bool],
    own_origins: Collection[str] = (),
) -> Literal[Fault.HOST, Fault.ORIGIN] | None:
    """Return the fault of a request that comes from a foreign web page, or None.

    ``is_own_host`` gets the Host header in lowercase; ``own_origins`` are in lowercase.
    """
    if len(hosts) != 1 or not is_own_host(hosts[0].lower()):
        return Fault.HOST
    return Fault.ORIGIN if any(origin.lower() not in own_origins for origin in origins) else None
