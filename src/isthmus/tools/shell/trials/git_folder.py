"""The view of a repository from a copy: its history, but no settings with addresses, logins or programs."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from isthmus.files.atomic import read_regular
from isthmus.files.private_files import is_private
from isthmus.sandbox.mounts import WorkspaceCopy
from isthmus.sandbox.overlay import MERGED
from isthmus.tools.shell.trials.copying import FolderCopy

MAXIMUM_BYTES = 1024 * 1024
"""Maximum size in bytes of a repository's settings that are read."""
_CLOSED = (".git/credentials", ".git/config.worktree", ".git/modules", ".git/hooks")
_SECTION = re.compile(r"\s*\[\s*(?:core|extensions)\s*\]\s*", re.IGNORECASE)
_ENTRY = re.compile(
    r"\s*(?:repositoryformatversion|filemode|bare|ignorecase|precomposeunicode|symlinks|autocrlf|eol|objectformat"
    r"|refstorage)\s*=\s*\w+\s*",
    re.IGNORECASE,
)


def seen_copy(copy: FolderCopy, place: Path, around: tuple[str, ...] = ()) -> WorkspaceCopy:
    """Return what a program sees in place of the workspace; `place` is a folder for what stands in. Blocks.

    ``around`` are the words that mount an overlay.

    Raises:
        OSError: the repository's settings cannot be read, or what stands in for them cannot be written.
    """
    stand_ins: list[tuple[str, Path | None]] = [(path, None) for path in (*copy.hidden, *_secrets_of_packages(copy))]
    if not copy.is_overlay:
        del stand_ins[: len(copy.hidden)]
    if ".git" in copy.mounted and (copy.root / ".git" / "config").exists():
        settings = place / "git-config"
        text = read_regular(copy.root / ".git" / "config", MAXIMUM_BYTES).decode("utf-8", "replace")
        settings.write_text("\n".join(plain_settings(text)) + "\n", encoding="utf-8")
        stand_ins += [(".git/config", settings), *((name, None) for name in _CLOSED)]
    folder = place / MERGED if copy.is_overlay else copy.place
    return WorkspaceCopy(folder, tuple(copy.mounted), tuple(stand_ins), around)


def _secrets_of_packages(copy: FolderCopy) -> Iterator[str]:
    """Yield the files with secrets that somebody has put beside packages; those in packages were published."""
    for folder in copy.mounted:
        if folder != ".git":
            names = os.listdir(copy.root / folder)  # noqa: PTH208 - names alone
            yield from (f"{folder}/{name}" for name in names if is_private((f"/{folder}/{name}",)))


def plain_settings(text: str) -> Iterator[str]:
    """Yield the lines of a repository's settings that say how it is stored. Pure."""
    is_kept = False
    for line in text.split("\n"):
        if line.lstrip().startswith("["):
            is_kept = _SECTION.fullmatch(line) is not None
            if is_kept:
                yield line
        elif is_kept and _ENTRY.fullmatch(line):
            yield line
