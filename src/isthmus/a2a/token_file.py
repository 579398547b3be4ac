"""The token of a server, in a file with mode 0600 that is created if missing; clients may also use a variable."""

import logging
import os
import secrets
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path

from isthmus.errors import IsthmusError

TOKEN_FILE = "serve-token"  # noqa: S105 - the name of a file
"""Name of the file with the owner's token in a data folder."""
TOKEN_VARIABLE = "ISTHMUS_A2A_TOKEN"  # noqa: S105 - the name of a variable, not a token
"""Name of the environment variable with a client's token."""

log = logging.getLogger(__name__)


class TokenFileError(IsthmusError):
    """The token file cannot be used."""


def ensure_token_file(path: Path) -> str:
    """Return the token in a file; create a missing file with a new token, readable only by its owner.

    Raises:
        TokenFileError: the file is empty, or cannot be read or written.
    """
    if path.exists():
        return read_token_file(path)
    token = secrets.token_urlsafe(32)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # mkstemp gives the file mode 0600. A link never replaces a file that another process has created meanwhile.
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
        raise TokenFileError(f"the token file {path} cannot be created: {error.strerror}") from error
    return token


def read_token_file(path: Path) -> str:
    """Return the token in an existing file. If others can read the file, change its mode and log a warning.

    Raises:
        TokenFileError: the file is empty, cannot be read, or its mode cannot be changed.
    """
    try:
        token = path.read_text(encoding="utf-8").strip()
        if os.name == "posix" and (mode := stat.S_IMODE(path.stat().st_mode)) & 0o077:
            path.chmod(0o600)
            log.warning(
                "the token file %s could be read by others (mode %04o); only you can read it now. "
                "If others may have read it, delete it to get a new token",
                path,
                mode,
            )
    except (OSError, UnicodeDecodeError) as error:
        raise TokenFileError(f"the token file {path} cannot be read or made private: {error}") from error
    if not token or not token.isascii() or any(character.isspace() for character in token):
        raise TokenFileError(f"the token file {path} does not hold a token: expected one line of ASCII without spaces")
    return token


def client_token(file: Path | None, environment: Mapping[str, str]) -> str | None:
    """Return the token that a client sends: from the file, otherwise from ISTHMUS_A2A_TOKEN, otherwise None.

    Raises:
        TokenFileError: the file cannot be used.
    """
    if file is not None:
        return read_token_file(file)
    return environment.get(TOKEN_VARIABLE) or None
