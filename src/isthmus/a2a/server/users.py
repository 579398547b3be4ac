"""Users of a server and their tokens: a table that is read, changed and written as a whole. Sans-I/O.

A token is shown once, when it is made, and kept as its SHA-256 alone: of 256 random bits there is nothing to guess.
It names its entry, so that a request costs one lookup and one comparison, in constant time. Deliberately not here: the
file (:mod:`isthmus.a2a.server.users_file`), and what a user may see (the engine).
"""

import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from isthmus.client import UserLimits
from isthmus.encoding import json_text
from isthmus.encoding.codec import from_json, to_json
from isthmus.encoding.json_text import JsonError
from isthmus.errors import DecodeError, IsthmusError

PREFIX = "isthmus_"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}")
_TOKEN = re.compile(rf"{PREFIX}([0-9a-f]{{8}})_[A-Za-z0-9_-]{{43}}")
_VERSION = 1


class UsersError(IsthmusError):
    """The table of users cannot be read or changed so; it is as it was."""


@dataclass(frozen=True, slots=True)
class Caps:
    """How much one user may have at once; None leaves it to the server. ``max_request`` is in bytes.

    ``max_tasks`` and ``max_running`` as in :class:`~isthmus.client.UserLimits`; ``max_open`` counts requests that are
    being answered, which a stream is until it ends.
    """

    max_tasks: int | None = None
    max_running: int | None = None
    max_open: int | None = None
    max_request: int | None = None

    def over(self, default: "Caps") -> "Caps":
        """Return these caps, and where there are none those of ``default``."""
        return Caps(
            default.max_tasks if self.max_tasks is None else self.max_tasks,
            default.max_running if self.max_running is None else self.max_running,
            default.max_open if self.max_open is None else self.max_open,
            default.max_request if self.max_request is None else self.max_request,
        )

    @property
    def limits(self) -> UserLimits:
        """Those that the engine holds."""
        return UserLimits(self.max_tasks, self.max_running)


@dataclass(frozen=True, slots=True)
class TokenEntry:
    """A token of a user. Times are Unix seconds; ``digest`` is the SHA-256 of the token, in hexadecimal.

    ``tier`` is the ``user_tier`` that events tell; None leaves it to the server.
    """

    id: str
    name: str
    digest: str
    created: float
    expires: float | None = None
    caps: Caps = field(default_factory=Caps)
    tier: str | None = None


@dataclass(frozen=True, slots=True)
class ExpiredToken:
    """The token was right, until it expired."""

    entry: TokenEntry


@dataclass(frozen=True, slots=True)
class UserTable:
    """All tokens by their ids."""

    entries: Mapping[str, TokenEntry] = field(default_factory=dict[str, TokenEntry])

    @classmethod
    def decode(cls, data: bytes) -> "UserTable":
        """Return the table in the bytes of its file.

        Raises:
            UsersError: they are no table that this version reads.
        """
        try:
            value: Any = json_text.decode(data)
            version: Any = value["version"]
            entries = [from_json(TokenEntry, item) for item in value["tokens"]]
        except (JsonError, ValueError, KeyError, TypeError, DecodeError) as error:
            raise UsersError(f"it holds no table of users: {error!s:.1000}") from error
        if version != _VERSION:
            raise UsersError(f"it is of version {version!r:.100}, this Isthmus reads {_VERSION}")
        return cls({entry.id: entry for entry in entries})

    def encode(self) -> bytes:
        """Return the bytes of the table's file."""
        tokens = [to_json(entry) for entry in self.entries.values()]
        return json.dumps({"version": _VERSION, "tokens": tokens}, indent=1).encode() + b"\n"

    def added(
        self,
        name: str,
        now: float,
        expires: float | None = None,
        caps: Caps | None = None,
        tier: str | None = None,
    ) -> "tuple[UserTable, TokenEntry, str]":
        """Return the table with a new token for a user, the entry, and the token itself, which is kept nowhere.

        Raises:
            UsersError: the name cannot be a user's.
        """
        if NAME.fullmatch(name) is None:
            raise UsersError(
                f"{name!r} cannot be the name of a user: expected 1 to 64 letters, digits or . _ @ + -, the first one a"
                " letter or digit"
            )
        token_id = secrets.token_hex(4)
        while token_id in self.entries:
            token_id = secrets.token_hex(4)
        token = f"{PREFIX}{token_id}_{secrets.token_urlsafe(32)}"
        entry = TokenEntry(token_id, name, _digest(token), now, expires, caps or Caps(), tier)
        return replace(self, entries={**self.entries, token_id: entry}), entry, token

    def revoked(self, name_or_id: str) -> "tuple[UserTable, tuple[TokenEntry, ...]]":
        """Return the table without the token of this id, or without all tokens of the user of this name; and those.

        Raises:
            UsersError: there is neither.
        """
        gone = tuple(entry for entry in self.entries.values() if name_or_id in (entry.id, entry.name))
        if not gone:
            known = ", ".join(sorted({entry.name for entry in self.entries.values()})) or "none"
            raise UsersError(f"{name_or_id!r} is neither the id of a token nor the name of a user. Users: {known}")
        return replace(self, entries={key: item for key, item in self.entries.items() if item not in gone}), gone

    def find(self, token: str, now: float) -> TokenEntry | ExpiredToken | None:
        """Whose token this is; None when it is nobody's."""
        found = _TOKEN.fullmatch(token)
        entry = self.entries.get(found[1]) if found is not None else None
        if entry is None or not hmac.compare_digest(_digest(token), entry.digest):
            return None
        return ExpiredToken(entry) if entry.expires is not None and entry.expires <= now else entry

    def is_valid(self, token_id: str, now: float) -> bool:
        """Return whether a token that was right before still is."""
        entry = self.entries.get(token_id)
        return entry is not None and (entry.expires is None or entry.expires > now)

    def has_user(self, name: str, now: float) -> bool:
        """Return whether somebody may come in by this name; the local user, who has none, always may."""
        return not name or any(
            entry.name == name and (entry.expires is None or entry.expires > now) for entry in self.entries.values()
        )


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
