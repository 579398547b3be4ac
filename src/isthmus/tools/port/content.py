"""Reads files for tools: regular files only, up to a limit, with errors that a model can act on."""

import errno
import os
import stat
from pathlib import Path

from isthmus.files.nofollow import open_file
from isthmus.text.text_file import BinaryContentError, TextFile, decode_text
from isthmus.tools.port.failure import ToolFailure

LINK_CAME = "link_in_path"
MAXIMUM_FILE_BYTES = 20 * 1024 * 1024
"""Maximum size of files that are read or edited, as in Gemini CLI."""

_NOT_TEXT = {
    "an image": (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".ico", ".tif", ".tiff", ".heic", ".avif"),
    "audio": (".mp3", ".wav", ".ogg", ".flac", ".aac", ".aiff", ".m4a", ".opus"),
    "video": (".mp4", ".mov", ".mkv", ".avi", ".webm"),
    "a PDF document": (".pdf",),
    "an archive": (".zip", ".gz", ".tgz", ".bz2", ".xz", ".zst", ".7z", ".rar", ".tar", ".jar", ".whl"),
    "compiled code": (".pyc", ".so", ".o", ".a", ".dll", ".dylib", ".exe", ".class", ".wasm"),
    "a font": (".woff", ".woff2", ".ttf", ".otf", ".eot"),
    "a database": (".sqlite", ".db"),
}
BINARY_SUFFIXES = {suffix: kind for kind, suffixes in _NOT_TEXT.items() for suffix in suffixes}
"""Suffixes of binary files, and the kind of their content."""


def read_bytes(path: Path, shown: str) -> bytes:
    """Return the content of the regular file at the resolved path `path`, which the model calls `shown`.

    Raises:
        ToolFailure: ``file_not_found``, ``target_is_directory``, ``permission_denied``, ``file_too_large`` or
            ``read_content_failure``.
    """
    try:
        # Not blocking: opening a named pipe would wait for a writer.
        descriptor = open_file(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        raise _failure(error, shown) from error
    try:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise ToolFailure(f"{shown} is a folder; use list_directory to list it", "target_is_directory")
        if not stat.S_ISREG(status.st_mode):
            raise ToolFailure(f"{shown} is not a regular file (a device, pipe or socket)", "read_content_failure")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            # One byte more than allowed: the file may grow while it is read.
            data = b"" if status.st_size > MAXIMUM_FILE_BYTES else file.read(MAXIMUM_FILE_BYTES + 1)
    except OSError as error:
        raise _failure(error, shown) from error
    finally:
        os.close(descriptor)
    if max(status.st_size, len(data)) > MAXIMUM_FILE_BYTES:
        message = (
            f"{shown} has {max(status.st_size, len(data))} bytes, more than the maximum of {MAXIMUM_FILE_BYTES}; "
            "use grep_search, or run_shell_command with head, tail or sed, for a part of it"
        )
        raise ToolFailure(message, "file_too_large")
    return data


def text_of(data: bytes, path: Path, shown: str) -> TextFile:
    """Return the text in `data`, the content of `path`.

    Raises:
        ToolFailure: ``binary_file``.
    """
    try:
        return decode_text(data)
    except BinaryContentError as error:
        kind = BINARY_SUFFIXES.get(path.suffix.lower(), "a binary file")
        raise ToolFailure(f"{shown} is {kind} of {len(data)} bytes, not text: {error}", "binary_file") from error


def _failure(error: OSError, shown: str) -> ToolFailure:
    match error.errno:
        case errno.ENOENT | errno.ENOTDIR:
            return ToolFailure(f"{shown} does not exist", "file_not_found")
        case errno.EACCES | errno.EPERM:
            return ToolFailure(f"no permission to read {shown}", "permission_denied")
        case errno.ELOOP:
            return ToolFailure(f"{shown} was not read: a symbolic link appeared in its path meanwhile", LINK_CAME)
        case _:
            return ToolFailure(f"cannot read {shown}: {error.strerror or error}", "read_content_failure")


def is_file(path: Path) -> bool:
    """Return whether a file exists; False for impossible names too, for which pathlib raises."""
    try:
        return path.is_file()
    except OSError:
        return False


def is_folder(path: Path) -> bool:
    """Return whether a folder exists; False for impossible names too, for which pathlib raises."""
    try:
        return path.is_dir()
    except OSError:
        return False
