"""Who may speak to a server: bearer token, Host and Origin, checked on headers alone, before a body is read.

The token is the server's own, which makes its sender the local person, or one of a user. The token file is 0600 and
made when it is missing. Sans-I/O but for that file. Deliberately not here: the table of users
(:mod:`isthmus.a2a.server.users`) and what each of them may see.
"""

import hmac
import ipaddress
import logging
import os
import re
import secrets
import stat
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from isthmus.a2a.server.users import Caps, Expired, TokenEntry, UserTable
from isthmus.errors import IsthmusError

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
TOKEN_VARIABLE = "ISTHMUS_A2A_TOKEN"  # noqa: S105 - the name of a variable, not a token
"""The environment variable that holds a client's token."""

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+(%[0-9A-Za-z._~-]+)?\]|[0-9A-Za-z._-]+)(:[0-9]{1,5})?")

NO_CAPS = Caps()
NOBODY = UserTable()

log = logging.getLogger(__name__)


TOKEN_FILE = "serve-token"  # noqa: S105 - the name of a file
"""The token of the local person in a data folder."""


class TokenFileError(IsthmusError):
    """The token file cannot be used."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is not served: an HTTP status with its text, and headers to send along."""

    status: int
    message: str
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RequestHead:
    """Head of a request: ``path`` is below the mount, ``headers`` are found in any case.

    ``scope`` is the ASGI scope, where middleware puts what it found out (``scope["user"]``, ``scope["session"]``).
    """

    method: str
    path: str
    headers: Mapping[str, str]
    scope: Mapping[str, Any]


Authenticate: TypeAlias = Callable[[RequestHead], Awaitable[str | None]]
"""Returns the name of the user that a request is from, empty for the server's owner; None refuses it with 401."""


@dataclass(frozen=True, slots=True)
class Principal:
    """Who sends a request: a user, or the local person, who has no name, no ``token_id`` and no caps.

    A user whom the program around the server has authenticated has no ``token_id`` either.

    ``tier`` is the ``user_tier`` of the token, if it has one of its own.
    """

    name: str = ""
    token_id: str = ""
    caps: Caps = NO_CAPS
    tier: str | None = None


LOCAL_PERSON = Principal()


@dataclass(frozen=True, slots=True)
class Gate:
    """Decides on request headers. ``hosts`` are names, besides the loopback ones, that the server is reached by.

    ``public_origin`` is that of the address behind which a proxy has the server, which may have another scheme.
    """

    token: str
    hosts: frozenset[str] = frozenset()
    public_origin: str | None = None

    def refuse_origin(self, host: str | None, origin: str | None, scheme: str = "http") -> Refusal | None:
        """Refuse foreign names (DNS rebinding) and pages of other origins (a browser)."""
        name = _host_name(host)
        if name is None or not self._knows(name):
            return Refusal(403, f"the Host {(host or '')[:200]!r} is not a name of this server", {})
        own = (f"{scheme}://{host}".lower(), self.public_origin)
        if origin is not None and origin.lower() not in own:
            return Refusal(403, f"requests of pages from {origin[:200]!r} are refused", {})
        return None

    def identify(self, authorization: str | None, users: UserTable = NOBODY, now: float = 0) -> Principal | Refusal:
        """Who sends a request with this bearer token, at Unix time ``now``; compared in constant time."""
        if authorization is None:
            return self._unauthorized("expected the header 'Authorization: Bearer TOKEN'")
        scheme, _, given = authorization.partition(" ")
        if scheme.lower() != "bearer":
            return self._unauthorized("expected the authorization scheme Bearer")
        given = given.strip()
        if hmac.compare_digest(given.encode(), self.token.encode()):
            return LOCAL_PERSON
        match users.find(given, now) if users.entries else None:
            case TokenEntry() as entry:
                return Principal(entry.name, entry.id, entry.caps, entry.tier)
            case Expired(entry):
                ended = datetime.fromtimestamp(entry.expires or now, UTC).isoformat(timespec="minutes")
                message = (
                    f"the token {entry.id} of {entry.name} expired at {ended}; ask the server's owner for a new one"
                )
                return self._unauthorized(message, 'Bearer error="invalid_token"')
            case None:
                message = "the token is not the one of this server"
                if users.entries:
                    message += ", nor of one of its users (or it was revoked)"
                return self._unauthorized(message, 'Bearer error="invalid_token"')

    def _unauthorized(self, message: str, challenge: str = "Bearer") -> Refusal:
        return Refusal(401, message, {"WWW-Authenticate": challenge})

    def _knows(self, name: str) -> bool:
        if name in LOOPBACK_NAMES or name in self.hosts:
            return True
        # Bound to every address: any of them may be meant, and a rebound name is never a number.
        return bool(self.hosts & {"0.0.0.0", "::"}) and _is_address(name)  # noqa: S104 - compared, not bound


def ensure_token_file(path: Path) -> str:
    """The token in a file; a missing file is made with a new token, readable by its owner alone.

    Raises:
        TokenFileError: the file is empty, or cannot be read or written.
    """
    if path.exists():
        return read_token_file(path)
    token = secrets.token_urlsafe(32)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # mkstemp makes the file 0600. A link never replaces what another process has made meanwhile.
        descriptor, temporary = tempfile.mkstemp(prefix=".token-", dir=path.parent)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(token + "\n")
            os.link(temporary, path)
        except FileExistsError:
            return read_token_file(path)
        finally:
            Path(temporary).unlink()
    except OSError as error:
        raise TokenFileError(f"the token file {path} cannot be made: {error.strerror}") from error
    return token


def read_token_file(path: Path) -> str:
    """The token in a file that exists. One that others can read is made its owner's alone, and that is said.

    Raises:
        TokenFileError: the file is empty, or cannot be read or closed to others.
    """
    try:
        token = path.read_text(encoding="utf-8").strip()
        if os.name == "posix" and (mode := stat.S_IMODE(path.stat().st_mode)) & 0o077:
            path.chmod(0o600)
            log.warning(
                "the token file %s could be read by others (mode %04o) and is yours alone now; "
                "delete it to get a new token if others may have read it",
                path,
                mode,
            )
    except (OSError, UnicodeDecodeError) as error:
        raise TokenFileError(f"the token file {path} cannot be read as yours alone: {error}") from error
    if not token or not token.isascii() or any(character.isspace() for character in token):
        raise TokenFileError(f"the token file {path} holds no token: expected one line of ASCII without spaces")
    return token


def client_token(file: Path | None, environment: Mapping[str, str]) -> str | None:
    """The token that a client sends: from the file, else from ISTHMUS_A2A_TOKEN, else none.

    Raises:
        TokenFileError: the file cannot be used.
    """
    if file is not None:
        return read_token_file(file)
    return environment.get(TOKEN_VARIABLE) or None


@lru_cache(maxsize=16)
def _host_name(host: str | None) -> str | None:
    # As it is: it becomes part of the URL in the card.
    if not host or _HOST.fullmatch(host) is None:
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
