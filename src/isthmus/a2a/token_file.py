"""The token of a server in a file, which is 0600 and made when it is missing; a client may have it in a variable."""

import logging
import os
import secrets
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path

from isthmus.errors import IsthmusError

TOKEN_FILE = "serve-token"  # noqa: S105 - the name of a file
"""Name of the file with the server's own token in a data folder."""
TOKEN_VARIABLE = "ISTHMUS_A2A_TOKEN"  # noqa: S105 - the name of a variable, not a token
"""The environment variable that holds a client's token."""

log = logging.getLogger(__name__)


class TokenFileError(IsthmusError):
    """The token file cannot be used."""


def ensure_token_file(path: Path) -> str:
    """Return the token in a file; a missing file is made with a new token, readable by its owner alone.

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
    """Return the token in a file that exists. One that others can read is made its owner's alone, and that is said.

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
    """Return the token that a client sends: from the file, else from ISTHMUS_A2A_TOKEN, else none.

    Raises:
        TokenFileError: the file cannot be used.
    """
    if file is not None:
        return read_token_file(file)
    return environment.get(TOKEN_VARIABLE) or None
