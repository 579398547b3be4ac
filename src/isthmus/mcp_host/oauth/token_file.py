"""The logins to MCP servers in ``~/.gemini/mcp-oauth-tokens.json``, in Gemini CLI's format.

It is a list with one entry for each server. Entries and fields of other programs stay unchanged. The key ``isthmus`` of
an entry contains the data that only we need: our registration at the authorization server, and its endpoints. The file
is written as a whole, atomically, readable only for its owner, under a lock that all our processes respect.
"""

import contextlib
import json
import time
from collections.abc import Generator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, cast

from typing_extensions import override

from isthmus.files.atomic import exclusive, read_regular, write_atomic
from isthmus.mcp_host.oauth.messages import Endpoints, OAuthClient
from isthmus.mcp_host.oauth.store import Registration, StoredToken, TokenStore
from isthmus.record import record

MAXIMUM_BYTES = 16 * 1024 * 1024


@record
class FileTokenStore(TokenStore):
    """The logins in a file, which need not exist."""

    path: Path
    _lock_name: str = field(default="mcp-oauth-tokens.lock")

    @classmethod
    def of(cls, home: Path) -> "FileTokenStore":
        """Return the store of the user with the home folder `home`."""
        return cls(home / ".gemini" / "mcp-oauth-tokens.json")

    @property
    @override
    def place(self) -> str:
        return str(self.path)

    @override
    def find(self, server: str, server_url: str) -> StoredToken | None:
        found = next((entry for entry in self._entries() if entry.get("serverName") == server), None)
        token = None if found is None else decode(found)
        return token if token is not None and token.server_url in (None, server_url) else None

    @override
    def save(self, server: str, token: StoredToken) -> None:
        with self._locked():
            entries = self._entries()
            index = next((at for at, entry in enumerate(entries) if entry.get("serverName") == server), len(entries))
            before = entries[index] if index < len(entries) else {}
            entries[index : index + 1] = [encode(server, token, before)]
            self._write(entries)

    @override
    def delete(self, server: str) -> None:
        with self._locked():
            entries = self._entries()
            kept = [entry for entry in entries if entry.get("serverName") != server]
            if len(kept) < len(entries):
                self._write(kept)

    def _entries(self) -> list[dict[str, Any]]:
        try:
            value: object = json.loads(read_regular(self.path, MAXIMUM_BYTES))
        except (OSError, ValueError, RecursionError):
            return []
        entries = cast("list[object]", value) if isinstance(value, list) else []
        return [cast("dict[str, Any]", entry) for entry in entries if isinstance(entry, dict)]

    def _write(self, entries: list[dict[str, Any]]) -> None:
        self._set_aside()
        write_atomic(self.path, json.dumps(entries, indent=2).encode(), mode=0o600, through_links=False)

    def _set_aside(self) -> None:
        """Move away a file that is not a list of entries, so that it is not overwritten."""
        try:
            data = read_regular(self.path, MAXIMUM_BYTES)
            is_readable = isinstance(json.loads(data), list) if data.strip() else True
        except FileNotFoundError:
            return
        except (OSError, ValueError, RecursionError):
            is_readable = False
        if not is_readable:
            self.path.replace(self.path.with_suffix(".json.broken"))

    @contextlib.contextmanager
    def _locked(self) -> Generator[None]:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with exclusive(self.path.parent / self._lock_name):
            yield


# --- The form of an entry --------------------------------------------------------------------------------------------


def decode(entry: Mapping[str, Any]) -> StoredToken | None:
    """Return the login in an entry; None if the entry contains no login."""
    token, own = _object(entry.get("token")), _object(entry.get("isthmus"))
    access = token.get("accessToken")
    if not isinstance(access, str) or not access:
        return None
    expires, stored = _time(token.get("expiresAt")), _time(entry.get("updatedAt"))
    return StoredToken(
        access,
        _text(token.get("refreshToken")),
        expires,
        _text(token.get("scope")),
        _text(entry.get("mcpServerUrl")),
        _registration(own, _text(entry.get("clientId"))),
        _endpoints(own, _text(entry.get("tokenUrl"))),
        _text(own.get("resource")),
        _text(own.get("wantedScope")),
        None if expires is None or stored is None else expires - stored,
    )


def encode(server: str, token: StoredToken, before: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entry of a login, with the fields that other programs wrote to it before."""
    values: dict[str, Any] = {"accessToken": token.access_token, "tokenType": "Bearer"}
    if token.refresh_token is not None:
        values["refreshToken"] = token.refresh_token
    if token.expires_at is not None:
        values["expiresAt"] = round(token.expires_at * 1000)
    if token.scope is not None:
        values["scope"] = token.scope
    entry = {**before, "serverName": server, "token": values, "updatedAt": round(time.time() * 1000)}
    registration, endpoints = token.registration, token.endpoints
    named = (
        ("clientId", None if registration is None else registration.client.id),
        ("tokenUrl", None if endpoints is None else endpoints.token),
        ("mcpServerUrl", token.server_url),
    )
    for name, value in named:
        entry.pop(name, None)
        if value is not None:
            entry[name] = value
    own: dict[str, Any] = {"resource": token.resource, "wantedScope": token.wanted_scope}
    if registration is not None:
        client = registration.client
        own["client"] = {"secret": client.secret, "method": client.method}
        own |= {"issuer": registration.issuer, "redirectUri": registration.redirect_uri}
    if endpoints is not None:
        own |= {"authorizationUrl": endpoints.authorize, "revocationUrl": endpoints.revoke}
    entry["isthmus"] = {name: value for name, value in own.items() if value is not None}
    return entry


def _registration(own: Mapping[str, Any], client_id: str | None) -> Registration | None:
    if client_id is None:
        return None
    client = _object(own.get("client"))
    secret = _text(client.get("secret"))
    method = _text(client.get("method")) or ("client_secret_post" if secret else "none")
    return Registration(OAuthClient(client_id, secret, method), _text(own.get("issuer")), _text(own.get("redirectUri")))


def _endpoints(own: Mapping[str, Any], token_url: str | None) -> Endpoints | None:
    if token_url is None:
        return None
    return Endpoints(
        _text(own.get("authorizationUrl")) or "",
        token_url,
        issuer=_text(own.get("issuer")),
        revoke=_text(own.get("revocationUrl")),
    )


def _time(value: object) -> float | None:
    """Return a time of the file, which has milliseconds, in seconds."""
    return float(value) / 1000 if isinstance(value, int | float) and not isinstance(value, bool) else None


def _object(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
