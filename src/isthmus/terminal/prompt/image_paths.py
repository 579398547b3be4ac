"""Paths of image files that the user pastes, or drags into the terminal."""

import errno
import os
import shlex
import stat
from pathlib import Path
from urllib.parse import unquote_to_bytes

from isthmus.files.atomic import read_regular
from isthmus.media import MAXIMUM_FILE_BYTES
from isthmus.terminal.prompt.pasted_images import PastedImage, PastedImageError, image_of, too_large

MAXIMUM_CHARACTERS = 12_288
"""Maximum length of a pasted text that can be a path: 4,096 bytes, each as three characters of a URL."""
_SUFFIXES = frozenset((".png", ".jpg", ".jpeg", ".gif", ".webp"))
_SCHEME = "file://"


def possible_paths(text: str) -> list[Path]:
    r"""Return the absolute paths that a pasted text can mean, likeliest first; empty if it is not one path.

    Terminals and file managers write a path as it is, in quotes (``'/tmp/a b.png'``), with backslashes
    (``/tmp/a\ b.png``) or as a URL (``file:///tmp/a%20b.png``). ``~/`` is the user's own folder.
    """
    typed = text.strip()
    if len(typed) > MAXIMUM_CHARACTERS or any(letter < " " or letter == "\x7f" for letter in typed):
        return []
    is_url = typed[: len(_SCHEME)].lower() == _SCHEME
    names = [_path_of_url(typed)] if is_url else [typed, *_unquoted(typed)]
    paths = [_path(name) for name in dict.fromkeys(names)]
    return [path for path in paths if path is not None]


def read_image(paths: list[Path]) -> PastedImage | None:
    """Return the image in the first of the paths that is a file; None if it is not an image. Blocking.

    Raises:
        PastedImageError: the file is too large to be read.
    """
    for path in paths:
        try:
            # Before it is opened: to open a device may have an effect.
            if stat.S_ISREG(path.stat().st_mode):
                return image_of(read_regular(path, MAXIMUM_FILE_BYTES))
        except OSError as error:
            if error.errno == errno.EFBIG and path.suffix.lower() in _SUFFIXES:
                size = f"{MAXIMUM_FILE_BYTES:,}"
                raise PastedImageError(too_large(f"The file has more than {size} bytes, and its path stays")) from error
        except ValueError:
            continue  # a name that no file can have
    return None


def _unquoted(typed: str) -> list[str]:
    """Return the only word of a text as a shell reads it; empty if it has another number of words."""
    try:
        words = shlex.split(typed)
    except ValueError:
        return []
    return words if len(words) == 1 else []


def _path_of_url(url: str) -> str:
    path = url[len(_SCHEME) :].removeprefix("localhost")
    return os.fsdecode(unquote_to_bytes(path.encode("utf-8", "surrogateescape")))


def _path(name: str) -> Path | None:
    # Others are words more often than paths; `@NAME` is for files of the workspace.
    return Path(name).expanduser() if name.startswith(("/", "~/")) else None
