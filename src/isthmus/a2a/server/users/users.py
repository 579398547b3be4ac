"""Users of a server and their tokens: a table that is read, changed and written as a whole. Sans-I/O.

A token is shown once, when it is created, and only its SHA-256 is stored: 256 random bits cannot be guessed. It
contains the id of its entry, so that a request costs one lookup and one comparison, in constant time. The file is in
:mod:`isthmus.a2a.server.users.users_file`.
"""

import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import field, fields, replace
from typing import Any

from isthmus.client import UserLimits
from isthmus.encoding import json_text
from isthmus.encoding.codec import from_json, to_json
from isthmus.encoding.json_text import JsonError
from isthmus.errors import DecodeError, IsthmusError
from isthmus.journal.port.day_limits import DayLimits
from isthmus.record import record
from isthmus.text.money import from_dollars

PREFIX = "isthmus_"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}")
_TOKEN = re.compile(rf"{PREFIX}([0-9a-f]{{8}})_[A-Za-z0-9_-]{{43}}")
_VERSION = 1


class UsersError(IsthmusError):
    """The table of users cannot be read or changed as requested; it was not changed."""


@record
class Caps:
    """Limits of one user; None leaves a limit to the server. ``max_request`` is in bytes.

    ``max_tasks`` and ``max_running`` are as in :class:`~isthmus.client.UserLimits`; ``max_open`` limits open requests,
    where a stream counts until it ends. ``max_tokens_a_day`` limits the model tokens of a day by UTC, and
    ``max_usd_a_day`` what these cost in US dollars, for which every model that is used needs a known price.
    """

    max_tasks: int | None = None
    max_running: int | None = None
    max_open: int | None = None
    max_request: int | None = None
    max_requests_a_minute: int | None = None
    max_tokens_a_day: int | None = None
    max_usd_a_day: float | None = None

    def over(self, default: "Caps") -> "Caps":
        """Return these limits, completed by the limits of ``default``."""
        own = {name: value for name in _CAPS if (value := getattr(self, name)) is not None}
        return replace(default, **own)

    @property
    def day(self) -> DayLimits:
        """Limits of a day."""
        cost = None if self.max_usd_a_day is None else from_dollars(self.max_usd_a_day)
        return DayLimits(self.max_tokens_a_day, cost)

    @property
    def limits(self) -> UserLimits:
        """Limits that the engine enforces."""
        return UserLimits(self.max_tasks, self.max_running)


_CAPS = tuple(each.name for each in fields(Caps))


@record
class BrowserPush:
    """A browser's subscription to notifications: the URL of its push service, and its keys in base64url.

    ``language`` is the tag of the language of its texts, empty if the browser did not tell it. ``answers`` is whether
    its notifications may have buttons that answer.
    """

    endpoint: str
    p256dh: str
    auth: str
    language: str = ""
    answers: bool = False


@record
class TokenEntry:
    """A token of a user. Times are Unix seconds; ``digest`` is the SHA-256 of the token, in hexadecimal.

    ``tier`` is the ``user_tier`` in events; None leaves it to the server. ``device`` is the name of the browser that
    was paired, empty for a token that was made for a program. The local user, who has no name, has only devices.
    """

    id: str
    name: str
    digest: str
    created: float
    expires: float | None = None
    caps: Caps = field(default_factory=Caps)
    tier: str | None = None
    device: str = ""
    push: BrowserPush | None = None
    """The subscription to which notifications of a device are sent; None if it wants none."""
    paired_by: str = ""
    """Id of the token whose holder let a device in; empty if the server's owner did, at its machine."""
    used: float | None = None
    """Time at which a device last loaded the page, to the hour; None before that."""

    def is_expired(self, now: float) -> bool:
        """Return whether the token is not valid any more at Unix time ``now``."""
        return self.expires is not None and self.expires <= now


@record
class ExpiredToken:
    """A valid token that has expired."""

    entry: TokenEntry


@record
class UserTable:
    """Table of all tokens by their ids."""

    entries: Mapping[str, TokenEntry] = field(default_factory=dict[str, TokenEntry])

    @classmethod
    def decode(cls, data: bytes) -> "UserTable":
        """Return the table in the bytes of its file.

        Raises:
            UsersError: they are not a table that this version of Isthmus can read.
        """
        try:
            value: Any = json_text.decode(data)
            version: Any = value["version"]
            entries = [from_json(TokenEntry, item) for item in value["tokens"]]
        except (JsonError, ValueError, KeyError, TypeError, DecodeError) as error:
            raise UsersError(f"it does not contain a table of users: {error!s:.1000}") from error
        if version != _VERSION:
            raise UsersError(f"it has version {version!r:.100}, but this Isthmus reads version {_VERSION}")
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
        """Return the table with a new token for a user, the entry, and the token itself, which is not stored anywhere.

        Raises:
            UsersError: the name is invalid.
        """
        if NAME.fullmatch(name) is None:
            raise UsersError(
                f"{name!r} is not a valid user name: expected 1 to 64 letters, digits or . _ @ + -, beginning with a"
                " letter or digit"
            )
        token_id, token = self._new_token()
        entry = TokenEntry(token_id, name, _digest(token), now, expires, caps or Caps(), tier)
        return replace(self, entries={**self.entries, token_id: entry}), entry, token

    def with_device(
        self, name: str, device: str, now: float, expires: float, paired_by: str = ""
    ) -> "tuple[UserTable, TokenEntry, str]":
        """Return the table with a device of a user, the entry, and its token, which is not stored anywhere.

        The device has the limits and the tier of the user's newest other token. ``name`` is empty for the local user.
        ``paired_by`` is the id of the token whose holder let it in.

        Raises:
            UsersError: there is no such token any more.
        """
        if paired_by and paired_by not in self.entries:
            raise UsersError("the device that made the code was removed; make a new one")
        others = [entry for entry in self.entries.values() if entry.name == name and not entry.device]
        like = max(others, key=lambda entry: entry.created, default=TokenEntry("", name, "", 0))
        token_id, token = self._new_token()
        entry = TokenEntry(
            token_id, name, _digest(token), now, expires, like.caps, like.tier, device, paired_by=paired_by
        )
        return replace(self, entries={**self.entries, token_id: entry}), entry, token

    def with_push(self, token_id: str, push: BrowserPush | None) -> "UserTable":
        """Return the table with the subscription of a device changed; the same table if there is no such device."""
        entry = self.entries.get(token_id)
        if entry is None or not entry.device:
            return self
        return replace(self, entries={**self.entries, token_id: replace(entry, push=push)})

    def with_use(self, token_id: str, now: float) -> "UserTable":
        """Return the table with the time at which a device was last used; the same table if there is no such device."""
        entry = self.entries.get(token_id)
        if entry is None or not entry.device:
            return self
        return replace(self, entries={**self.entries, token_id: replace(entry, used=now)})

    def paired_by(self, token_id: str) -> tuple[TokenEntry, ...]:
        """Return the devices that the holder of a token let in, and those that these let in."""
        found = {token_id}
        entries: list[TokenEntry] = []
        for entry in sorted(self.entries.values(), key=lambda entry: entry.created):
            if entry.paired_by in found and entry.id not in found:
                found.add(entry.id)
                entries.append(entry)
        return tuple(entries)

    def limits_of_day(self, name: str, now: float, default: Caps) -> DayLimits:
        """Return the limits of a user's day: for each, the highest by any valid token."""
        found = [entry.caps for entry in self.entries.values() if entry.name == name and not entry.is_expired(now)]
        limits = [caps.over(default).day for caps in found or [default]]
        return DayLimits(_highest(each.tokens for each in limits), _highest(each.cost for each in limits))

    def of_owner(self) -> "UserTable":
        """Return the table with the devices of the local user alone."""
        return replace(self, entries={key: entry for key, entry in self.entries.items() if not entry.name})

    def _new_token(self) -> tuple[str, str]:
        token_id = secrets.token_hex(4)
        while token_id in self.entries:
            token_id = secrets.token_hex(4)
        return token_id, f"{PREFIX}{token_id}_{secrets.token_urlsafe(32)}"

    def revoked(self, name_or_id: str) -> "tuple[UserTable, tuple[TokenEntry, ...]]":
        """Return the table without the token with this id, or without all tokens of this user, and the removed entries.

        What the holder of a removed token let in is removed, too.

        Raises:
            UsersError: there is no such token or user.
        """
        gone = tuple(entry for entry in self.entries.values() if name_or_id in (entry.id, entry.name))
        if not gone:
            known = ", ".join(sorted({entry.name for entry in self.entries.values()})) or "none"
            raise UsersError(f"{name_or_id!r} is neither a token's id nor a user's name. Users: {known}")
        gone = tuple(dict.fromkeys((*gone, *(each for entry in gone for each in self.paired_by(entry.id)))))
        return replace(self, entries={key: item for key, item in self.entries.items() if item not in gone}), gone

    def find(self, token: str, now: float) -> TokenEntry | ExpiredToken | None:
        """Return the entry of a token, expired or not; None for an unknown token."""
        found = _TOKEN.fullmatch(token)
        entry = self.entries.get(found[1]) if found is not None else None
        if entry is None or not hmac.compare_digest(_digest(token), entry.digest):
            return None
        return ExpiredToken(entry) if entry.is_expired(now) else entry

    def is_valid(self, token_id: str, now: float) -> bool:
        """Return whether a token that was accepted before is still valid."""
        entry = self.entries.get(token_id)
        return entry is not None and not entry.is_expired(now)

    def has_user(self, name: str, now: float) -> bool:
        """Return whether a user of this name has a valid token; the local user, who has no name, needs none."""
        return not name or any(entry.name == name and not entry.is_expired(now) for entry in self.entries.values())


def _highest(maxima: Iterable[int | None]) -> int | None:
    found = tuple(maxima)
    return None if None in found else max(each for each in found if each is not None)


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
