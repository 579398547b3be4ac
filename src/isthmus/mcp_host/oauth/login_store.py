"""The user's stored logins to MCP servers, in the store that the settings select.

Not here: renewing a login, see :mod:`isthmus.mcp_host.oauth.stored_login`.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from isthmus.mcp_host.config.server_config import ServerConfig
from isthmus.mcp_host.connection.errors import OAuthError
from isthmus.mcp_host.oauth.keyring_store import keyring_or
from isthmus.mcp_host.oauth.store import StoredToken, TokenStore
from isthmus.mcp_host.oauth.token_file import FileTokenStore
from isthmus.runtime.threads import in_thread
from isthmus.settings import SettingsError, load_settings

STORE_SECONDS = 15.0
"""Maximum time in seconds for the store to answer."""
LOCK_FOLDER = "mcp-oauth-locks"

T = TypeVar("T")


class LoginStore:
    """The stored logins, read and written in a thread with a deadline."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._store: TokenStore | None = None

    async def find(self, config: ServerConfig, url: str) -> StoredToken | None:
        """Return the login to a server.

        Raises:
            OAuthError: the store does not answer.
        """
        return await self._do(lambda store: store.find(config.name, url))

    async def save(self, config: ServerConfig, token: StoredToken) -> str:
        """Store a login, and return its place for the user.

        Raises:
            OAuthError: it cannot be stored.
        """
        await self._do(lambda store: store.save(config.name, token))
        return await self._do(lambda store: store.place)

    async def delete(self, config: ServerConfig) -> None:
        """Delete a login.

        Raises:
            OAuthError: it cannot be deleted.
        """
        await self._do(lambda store: store.delete(config.name))

    async def _do(self, act: Callable[[TokenStore], T]) -> T:
        def run() -> T:
            if self._store is None:
                self._store = open_store(self.home)
            return act(self._store)

        try:
            return await in_thread(run, STORE_SECONDS)
        except TimeoutError as error:
            raise OAuthError(f"the store of logins did not answer within {STORE_SECONDS:g} s") from error
        except OSError as error:
            raise OAuthError(f"the store of logins cannot be used: {error.strerror or error}") from error


def open_store(home: Path) -> TokenStore:
    """Return the store of the user's logins that the setting ``isthmus.tokenStore`` selects. Blocking."""
    file = FileTokenStore.of(home)
    try:
        wanted = load_settings(home, home).token_store
    except SettingsError:
        return file  # users of the settings themselves report the error
    return keyring_or(file) if wanted == "keyring" else file


def renewal_lock(home: Path, server: str) -> Path:
    """Return the lock file for renewing the login to a server; create its folder."""
    folder = home / ".gemini" / LOCK_FOLDER
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder / f"{hashlib.sha256(server.encode()).hexdigest()[:16]}.lock"
