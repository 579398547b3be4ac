"""Authenticates requests by bearer token, Host and Origin before a body is read. Sans-I/O.

The token is either the owner's (:mod:`isthmus.a2a.token_file`), which makes its sender the local user, or one from the
table of users (:mod:`isthmus.a2a.server.users.users`), or it was issued elsewhere (:mod:`isthmus.a2a.oidc`).
"""

import ipaddress
import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from isthmus.a2a.server.users.users import Caps, ExpiredToken, TokenEntry, UserTable
from isthmus.listeners.gate import Fault, bearer_token, find_foreign, same_secret
from isthmus.network.loopback import LOOPBACK_NAMES
from isthmus.record import record

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+(%[0-9A-Za-z._~-]+)?\]|[0-9A-Za-z._-]+)(:[0-9]{1,5})?")

NO_CAPS = Caps()
NOBODY = UserTable()


@record
class Refusal:
    """Refusal of a request: an HTTP status with a text, and headers for the response."""

    status: int
    message: str
    headers: Mapping[str, str]
    code: str = ""
    """Reason for programs, where the status does not say it."""


@record
class RequestHead:
    """Head of a request. ``path`` is below the mount; names in ``headers`` are found in any case.

    ``scope`` is the ASGI scope, where middleware stores its results (``scope["user"]``, ``scope["session"]``).
    """

    method: str
    path: str
    headers: Mapping[str, str]
    scope: Mapping[str, Any]


Authenticate: TypeAlias = Callable[[RequestHead], Awaitable[str | None]]
"""Function that returns the name of a request's user, empty for the server's owner; None refuses it with 401."""


@record
class Principal:
    """The sender of a request: a user, or the local user, who has no name and no caps; a device has a ``token_id``.

    A user whom the program around the server has authenticated does not have a ``token_id`` either. ``tier`` is the
    ``user_tier`` of the token, if it has one. ``is_here``: see :data:`OWNER_HERE`. ``expires`` is the Unix time until
    which a token that was issued elsewhere is valid; None for all others.
    """

    name: str = ""
    token_id: str = ""
    caps: Caps = NO_CAPS
    tier: str | None = None
    is_here: bool = False
    expires: float | None = None

    @property
    def authentication(self) -> str:
        """Kind of the proof: ``jwt``, ``token`` (of the table of users), ``owner``, or ``program`` for any other."""
        if self.expires is not None:
            return "jwt"
        if self.token_id:
            return "token"
        return "program" if self.name else "owner"


IdentifyIssued: TypeAlias = Callable[[str], Awaitable["Principal | Refusal | None"]]
"""Function that identifies a bearer token that was issued elsewhere, or says why it is refused.

The principal has the time at which the token expires. None: the token does not have the form of such tokens.
"""


@record
class UserAccess:
    """The users whom a server lets in, besides those with its own token.

    ``users`` returns their table, and is called for each request. ``identify_issued`` identifies tokens of others.
    ``authenticate`` replaces all of these and the server's token.
    """

    users: Callable[[], UserTable] | None = None
    identify_issued: IdentifyIssued | None = None
    authenticate: Authenticate | None = None

    def table(self) -> UserTable:
        """Return the table of users; empty without one."""
        return self.users() if self.users is not None else NOBODY


NO_USERS = UserAccess()
"""Access for the server's own token alone."""
LOCAL_USER = Principal()
OWNER_HERE = Principal(is_here=True)
"""The local user in a program on the server's machine, see :mod:`isthmus.a2a.server.owner_here`."""


@record
class RequestGate:
    """Checks request headers. ``hosts`` are the names of the server, besides the loopback ones.

    ``public_origin`` is the origin of the server's address at a proxy, which may have another scheme.
    """

    token: str
    hosts: frozenset[str] = frozenset()
    public_origin: str | None = None

    def refuse_origin(self, host: str | None, origin: str | None, scheme: str = "http") -> Refusal | None:
        """Refuse unknown host names (DNS rebinding), and web pages of other origins."""
        own = [f"{scheme}://{host}".lower()] + ([self.public_origin] if self.public_origin else [])
        match find_foreign([host or ""], [] if origin is None else [origin], self._is_own_host, own):
            case None:
                return None
            case Fault.HOST:
                return Refusal(403, f"the Host {(host or '')[:200]!r} is not a name of this server", {})
            case Fault.ORIGIN:
                return Refusal(403, f"requests from web pages of {(origin or '')[:200]!r} are refused", {})

    def identify(self, authorization: str | None, users: UserTable = NOBODY, now: float = 0) -> Principal | Refusal:
        """Return the principal with this bearer token at Unix time ``now``; tokens are compared in constant time."""
        if authorization is None:
            return self._unauthorized("expected the header 'Authorization: Bearer TOKEN'")
        given = bearer_token(authorization)
        if given is None:
            return self._unauthorized("expected the authorization scheme Bearer")
        if same_secret(given, self.token):
            return LOCAL_USER
        match users.find(given, now) if users.entries else None:
            case TokenEntry() as entry:
                return Principal(entry.name, entry.id, entry.caps, entry.tier)
            case ExpiredToken(entry):
                ended = datetime.fromtimestamp(entry.expires or now, UTC).isoformat(timespec="minutes")
                if entry.device:
                    message = f"this device ({entry.device}) was paired until {ended}; pair it again"
                else:
                    message = (
                        f"the token {entry.id} of {entry.name} expired at {ended}; ask the server's owner for a new one"
                    )
                return self._unauthorized(message, 'Bearer error="invalid_token"')
            case None:
                message = "the token is not this server's token"
                if users.entries:
                    message += ", nor that of one of its users (it may have been revoked)"
                return self._unauthorized(message, 'Bearer error="invalid_token"')

    def _unauthorized(self, message: str, challenge: str = "Bearer") -> Refusal:
        return Refusal(401, message, {"WWW-Authenticate": challenge})

    def _is_own_host(self, host: str) -> bool:
        name = _host_name(host)
        if name is None:
            return False
        if name in LOOPBACK_NAMES or name in self.hosts:
            return True
        # Bound to every address, so the client may use any; names used in DNS rebinding are never numeric.
        return bool(self.hosts & {"0.0.0.0", "::"}) and _is_address(name)  # noqa: S104 - compared, not bound


@lru_cache(maxsize=16)
def _host_name(host: str) -> str | None:
    # The pattern is strict because the host becomes part of the URL in the card.
    if _HOST.fullmatch(host) is None:
        return None
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
