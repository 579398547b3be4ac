"""``file:`` URIs of absolute paths: percent-encoded as in LSP, and the inexact forms that real programs send.

Paths are strings as in the rest of the port: a name that is not UTF-8 contains surrogates (``os.fsdecode``).
"""

import os
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote_to_bytes

MAXIMUM_PATH_BYTES = 4096
"""Maximum length of a path in bytes, terminator included, as on Linux; other systems allow less."""
_SCHEME = "file://"


@lru_cache(maxsize=1024)
def file_uri(path: str) -> str:
    """Return the URI of an absolute path, percent-encoded.

    Raises:
        ValueError: the path is not absolute.
    """
    return Path(path).as_uri()


def path_of_uri(uri: str) -> str | None:
    """Return the absolute path of a ``file:`` URI; None for any other text.

    Also accepts what real programs send: URIs without percent-encoding (claudecode.nvim), and the host ``localhost``.
    ``#`` and ``?`` are part of the name, because no program sends fragments or queries of files.
    """
    if uri[: len(_SCHEME)].lower() != _SCHEME:
        return None
    path = uri[len(_SCHEME) :].removeprefix("localhost")
    if not path.startswith("/"):
        return None
    if not is_file_name(path):
        return None
    decoded = os.fsdecode(unquote_to_bytes(path.encode("utf-8", "surrogateescape")))
    return None if "\0" in decoded else decoded


def is_file_name(path: str) -> bool:
    """Return whether a path is possible on disk: JSON can contain surrogates, NUL and lengths that no path can have."""
    try:
        encoded = os.fsencode(path)
    except UnicodeEncodeError:
        return False
    return b"\0" not in encoded and len(encoded) < MAXIMUM_PATH_BYTES
