"""The cache of the last listings of servers, in files that survive a restart of the agent.

There is one file for each pair of a server's configuration and a workspace. Its name is a keyed hash of both, so that
the cache contains no value of a configuration; a listing that repeats a secret is not stored. An unreadable file counts
as missing, and a file that cannot be written is not an error. Blocking; call it in a thread. Not here: the use of a
cached listing, see :mod:`isthmus.mcp_host.catalogue.known_catalogue`.
"""

import contextlib
import errno
import hashlib
import hmac
import json
import logging
import os
import secrets
from dataclasses import asdict
from pathlib import Path

from isthmus.encoding.codec import from_json, to_json
from isthmus.errors import IsthmusError
from isthmus.files.atomic import FileChangedError, forget_abandoned, read_regular, write_atomic, write_if_unchanged
from isthmus.files.locations import cache_directory, make_private_directory
from isthmus.mcp_host.catalogue.listing import Listing
from isthmus.mcp_host.config.secrets import Secrets
from isthmus.mcp_host.config.server_config import ServerConfig
from isthmus.mcp_host.connection.transport_probe import TransportChoice
from isthmus.record import record

FORM = 1
"""Version of the file format; files of another version are ignored."""
MAXIMUM_BYTES = 4 * 1024 * 1024
"""Maximum size in bytes of one file; a larger listing is not cached but requested at each start."""
MAXIMUM_FILES = 200
"""Maximum number of files; the least recently used ones are deleted."""
_KEY = "key"
_KEY_BYTES = 32
_LOG = logging.getLogger("isthmus.mcp")


@record
class Manifest:
    """The listing of a server, and ``way``, the transport by which it was reached; fields have the names of the file.

    ``is_held``: the server could not be used the last time, so its tools are not offered before it is connected, but
    their names stay reserved. ``waited_seconds``: how long a turn waited for it in vain then; None if it failed by
    itself. ``usual_seconds``: how long its starts take at most, as a power of two; 0 if it was never connected.
    """

    listing: Listing
    way: TransportChoice
    is_held: bool = False
    waited_seconds: float | None = None
    usual_seconds: float = 0.0


@record
class _File:
    form: int
    manifest: Manifest


def users_manifests() -> Path:
    """Return the folder of the user's manifests."""
    return cache_directory() / "mcp"


class Manifests:
    """The manifests in a folder, which is created with the first one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load(self, config: ServerConfig, workspace: Path) -> Manifest | None:
        """Return the manifest of a server; None if it does not exist or cannot be read."""
        try:
            path = self._path(self._key(), config, workspace)
            file = from_json(_File, json.loads(read_regular(path, MAXIMUM_BYTES)))
            os.utime(path)
        except (OSError, ValueError, RecursionError, IsthmusError):
            return None
        return file.manifest if file.form == FORM else None

    def store(self, config: ServerConfig, workspace: Path, manifest: Manifest) -> None:
        """Store the manifest of a server, replacing the previous one."""
        try:
            text = json.dumps(to_json(_File(FORM, manifest)))
            make_private_directory(self._folder)
            path = self._path(self._key(), config, workspace)
            if len(text) > MAXIMUM_BYTES or Secrets(config).hidden(text) != text:
                _LOG.info("MCP server %s: its listing is not cached: too large, or it contains a secret", config.name)
                path.unlink(missing_ok=True)
                return
            write_atomic(path, text.encode(), mode=0o600, through_links=False)
            self._delete_oldest()
        except (OSError, ValueError, RecursionError) as error:
            _LOG.info("MCP server %s: its listing could not be cached: %s", config.name, error)

    def _path(self, key: bytes, config: ServerConfig, workspace: Path) -> Path:
        identity = (config.name, str(workspace), asdict(config.endpoint), asdict(config.oauth), config.auth_provider)
        digest = hmac.new(key, json.dumps(identity, sort_keys=True, default=str).encode(), hashlib.sha256)
        return self._folder / f"{digest.hexdigest()}.json"

    def _key(self) -> bytes:
        """Return the key of the hashes; create it if it does not exist.

        Raises:
            OSError: it does not exist and cannot be written.
        """
        path = self._folder / _KEY
        try:
            key = read_regular(path, _KEY_BYTES)
            if len(key) == _KEY_BYTES:
                return key
        except FileNotFoundError:
            return self._create_key()
        except OSError as error:
            if error.errno != errno.EFBIG:
                raise
        key = secrets.token_bytes(_KEY_BYTES)
        write_atomic(path, key, mode=0o600, through_links=False)
        return key

    def _create_key(self) -> bytes:
        make_private_directory(self._folder)
        path, key = self._folder.resolve() / _KEY, secrets.token_bytes(_KEY_BYTES)
        try:
            write_if_unchanged(path, key, None, mode=0o600, through_links=False)
        except FileChangedError:
            return read_regular(path, _KEY_BYTES)  # another process of the agent was first: use its key
        return key

    def _delete_oldest(self) -> None:
        forget_abandoned(self._folder)
        files = list(self._folder.glob("*.json"))
        if len(files) <= MAXIMUM_FILES:
            return
        times: list[tuple[float, Path]] = []
        for file in files:
            with contextlib.suppress(FileNotFoundError):  # another process of the agent may delete it too
                times.append((file.stat().st_mtime, file))
        for _, file in sorted(times)[: len(times) - MAXIMUM_FILES]:
            file.unlink(missing_ok=True)
