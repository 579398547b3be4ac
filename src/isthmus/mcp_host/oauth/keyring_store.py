"""The logins to MCP servers in the keyring of the platform: Secret Service, Keychain, or another installed keyring.

There is one secret per server, in the form of an entry of the file. A login in the file is moved to the keyring when it
is first read. Without a keyring, the file is used, and a warning is logged. A keyring may limit the size of a secret
(2560 bytes on Windows); a login that it refuses stays in the file. Blocking; call it in a thread.
"""

import json
import logging
from typing import Any, cast

from typing_extensions import override

from isthmus.mcp_host.oauth.store import StoredToken, TokenStore
from isthmus.mcp_host.oauth.token_file import FileTokenStore, decode, encode
from isthmus.record import record

SERVICE = "isthmus-mcp-oauth"
_LOG = logging.getLogger("isthmus.mcp")


@record
class KeyringTokenStore(TokenStore):
    """The store in a keyring; `file` has the logins from before, and those that the keyring refuses."""

    backend: Any
    file: FileTokenStore

    @property
    @override
    def place(self) -> str:
        return f"the keyring ({self.backend.name})"

    @override
    def find(self, server: str, server_url: str) -> StoredToken | None:
        found = self._entry(server)
        if found is None:
            in_file = self.file.find(server, server_url)
            if in_file is not None:
                self.save(server, in_file)
            return in_file
        token = decode(found)
        return token if token is not None and token.server_url in (None, server_url) else None

    @override
    def save(self, server: str, token: StoredToken) -> None:
        from keyring.errors import KeyringError

        text = json.dumps(encode(server, token, self._entry(server) or {}), separators=(",", ":"))
        try:
            self.backend.set_password(SERVICE, server, text)
        except (KeyringError, OSError) as error:
            _LOG.warning(
                "the keyring refuses the login to %s (%s); it is stored in %s", server, _name(error), self.file.path
            )
            self._forget(server)  # the keyring's login is older
            self.file.save(server, token)
        else:
            self.file.delete(server)

    @override
    def delete(self, server: str) -> None:
        self._forget(server)
        self.file.delete(server)

    def _forget(self, server: str) -> None:
        from keyring.errors import KeyringError, PasswordDeleteError

        try:
            self.backend.delete_password(SERVICE, server)
        except PasswordDeleteError:
            pass  # it was not there
        except KeyringError as error:
            raise OSError(f"the keyring did not delete the login: {_name(error)}") from error

    def _entry(self, server: str) -> dict[str, Any] | None:
        from keyring.errors import KeyringError

        try:
            value: object = json.loads(self.backend.get_password(SERVICE, server) or "null")
        except (KeyringError, OSError) as error:
            _LOG.warning("the keyring did not return the login to %s: %s", server, _name(error))
            return None
        except (ValueError, RecursionError):
            return None
        return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def keyring_or(file: FileTokenStore) -> TokenStore:
    """Return the store in the keyring; `file` if there is no keyring."""
    try:
        import keyring
        from keyring.backends.fail import Keyring as NoKeyring
    except ImportError:
        _LOG.warning("isthmus.tokenStore is keyring, and no keyring is installed: pip install 'isthmus[keyring]'")
        return file
    backend: Any = keyring.get_keyring()
    if isinstance(backend, NoKeyring) or not _has_backends(backend):
        _LOG.warning("isthmus.tokenStore is keyring, and there is none on this machine; logins are in %s", file.path)
        return file
    return KeyringTokenStore(backend, file)


def _has_backends(backend: Any) -> bool:
    """Return whether a keyring that chains others has any; true for other keyrings."""
    try:
        return bool(getattr(backend, "backends", True))
    except Exception:
        return False


def _name(error: BaseException) -> str:
    return type(error).__name__
