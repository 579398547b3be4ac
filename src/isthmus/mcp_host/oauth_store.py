"""The tokens of MCP servers in ``~/.gemini/mcp-oauth-tokens.json``, in the form that Gemini CLI has there.

A list of entries, one a server. Entries and fields of others are kept as they are; what we need besides (the client's
registration, the metadata of the authorization server) stands under the key ``isthmus`` of an entry. The file is
written whole, atomically, for its owner alone, under a lock that other processes of ours respect.
"""

import contextlib
import json
import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from isthmus.files import exclusive, write_atomic


@dataclass(frozen=True, slots=True)
class StoredToken:
    """What is kept of a login. ``expires_at`` is in seconds since 1970; None: it is not known to end."""

    access_token: str
    refresh_token: str | None = None
    expires_at: float | None = None
    scope: str | None = None
    client_id: str | None = None
    token_url: str | None = None
    server_url: str | None = None
    client: Mapping[str, Any] | None = None
    metadata: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class TokenStore:
    """The file with the tokens; it need not exist."""

    path: Path
    _lock_name: str = field(default="mcp-oauth-tokens.lock")

    @classmethod
    def of(cls, home: Path) -> "TokenStore":
        """The store of the person whose home folder is `home`."""
        return cls(home / ".gemini" / "mcp-oauth-tokens.json")

    def find(self, server: str, server_url: str) -> StoredToken | None:
        """The token of a server; None when there is none, or it is for another URL."""
        for entry in self._entries():
            if entry.get("serverName") == server:
                found = _decode(entry)
                if found is None or (found.server_url is not None and found.server_url != server_url):
                    return None
                return found
        return None

    def save(self, server: str, token: StoredToken) -> None:
        """Keep the token of a server, in place of the one before.

        Raises:
            OSError: the file cannot be written.
        """
        with self._locked():
            entries = self._entries()
            index = next((at for at, entry in enumerate(entries) if entry.get("serverName") == server), len(entries))
            before = entries[index] if index < len(entries) else {}
            entries[index : index + 1] = [_encode(server, token, before)]
            self._write(entries)

    def delete(self, server: str) -> None:
        """Forget the token of a server.

        Raises:
            OSError: the file cannot be written.
        """
        with self._locked():
            entries = self._entries()
            kept = [entry for entry in entries if entry.get("serverName") != server]
            if len(kept) < len(entries):
                self._write(kept)

    def _entries(self) -> list[dict[str, Any]]:
        try:
            value: object = json.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return []
        entries = cast("list[object]", value) if isinstance(value, list) else []
        return [cast("dict[str, Any]", entry) for entry in entries if isinstance(entry, dict)]

    def _write(self, entries: list[dict[str, Any]]) -> None:
        write_atomic(self.path, json.dumps(entries, indent=2).encode(), mode=0o600, through_links=False)

    @contextlib.contextmanager
    def _locked(self) -> Generator[None]:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with exclusive(self.path.parent / self._lock_name):
            yield


def _decode(entry: Mapping[str, Any]) -> StoredToken | None:
    token: object = entry.get("token")
    if not isinstance(token, dict):
        return None
    values = cast("Mapping[str, Any]", token)
    access = values.get("accessToken")
    if not isinstance(access, str) or not access:
        return None
    expires = values.get("expiresAt")
    ours: object = entry.get("isthmus")
    own: Mapping[str, Any] = cast("Mapping[str, Any]", ours) if isinstance(ours, dict) else {}
    return StoredToken(
        access,
        _text(values.get("refreshToken")),
        float(expires) / 1000 if isinstance(expires, int | float) else None,
        _text(values.get("scope")),
        _text(entry.get("clientId")),
        _text(entry.get("tokenUrl")),
        _text(entry.get("mcpServerUrl")),
        own.get("client"),
        own.get("metadata"),
    )


def _encode(server: str, token: StoredToken, before: Mapping[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {"accessToken": token.access_token, "tokenType": "Bearer"}
    if token.refresh_token is not None:
        values["refreshToken"] = token.refresh_token
    if token.expires_at is not None:
        values["expiresAt"] = round(token.expires_at * 1000)
    if token.scope is not None:
        values["scope"] = token.scope
    entry = {**before, "serverName": server, "token": values, "updatedAt": round(time.time() * 1000)}
    named = (("clientId", token.client_id), ("tokenUrl", token.token_url), ("mcpServerUrl", token.server_url))
    for name, value in named:
        if value is not None:
            entry[name] = value
    entry["isthmus"] = {"client": token.client, "metadata": token.metadata}
    return entry


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
