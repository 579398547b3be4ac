"""Texts that the user typed into reviews that ended without their decision, kept as files that only they can read.

Each text is a file in our data folder, named by time, agent and reviewed file. The number and total size of the files
are limited; the oldest are removed. Isthmus never reads them back: they are for the user.
"""

import logging
import os
import re
import time
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from isthmus.files.atomic import write_atomic
from isthmus.files.locations import make_private_directory
from isthmus.ide.reviews.review import DiffReview
from isthmus.record import record
from isthmus.text.visible import printable

KEPT_FOLDER = "kept"
"""Name of the folder of kept texts, in the data folder."""
MAXIMUM_FILES = 100
MAXIMUM_BYTES = 64 * 1024 * 1024
MAXIMUM_NAME_BYTES = 120
"""Maximum length of the reviewed file's name in the name of a kept file; file systems allow 255 bytes in total."""

_log = logging.getLogger(__name__)


@record
class KeptText:
    """A kept text. ``file_path`` is the reviewed file, ``kept_at`` the path of the text, ``title`` the agent."""

    file_path: str
    kept_at: str
    title: str

    def __str__(self) -> str:
        path, agent = printable(self.file_path), self.title or "an agent"
        return f"what you typed into the review of {path} ({agent}) is kept in {printable(self.kept_at)}"


class KeptTexts:
    """Folder of kept texts. The limits apply to the whole folder, which all companions share."""

    def __init__(self, folder: Path, *, maximum_files: int = MAXIMUM_FILES, maximum_bytes: int = MAXIMUM_BYTES) -> None:
        self._folder = folder
        self._maximum_files = maximum_files
        self._maximum_bytes = maximum_bytes

    def keep(self, review: DiffReview, text: str) -> KeptText:
        """Write a text as a 0600 file in UTF-8, and remove the oldest other files over the limits. Blocks.

        Raises:
            OSError: the file cannot be written.
        """
        make_private_directory(self._folder)
        stamp = time.strftime("%Y%m%d-%H%M%S")
        agent = re.sub(r"[^A-Za-z0-9]+", "-", review.title).strip("-")[:40] or "agent"
        path = self._folder / f"{stamp}-{uuid4().hex[:8]}-{agent}-{_file_name(review.file_path)}"
        write_atomic(path, text.encode("utf-8", "surrogatepass"), mode=0o600, through_links=False)
        self._remove_oldest(path)
        return KeptText(review.file_path, str(path), review.title)

    def paths(self) -> list[str]:
        """Return the paths of all kept texts, newest first."""
        return [str(path) for _, _, path in self._files()]

    def _files(self) -> list[tuple[float, int, Path]]:
        found: list[tuple[float, int, Path]] = []
        with suppress(FileNotFoundError):
            for entry in os.scandir(self._folder):
                if entry.name.startswith("."):
                    continue  # another companion is writing it
                with suppress(FileNotFoundError):  # removed by another companion
                    status = entry.stat(follow_symlinks=False)
                    found.append((status.st_mtime, status.st_size, Path(entry.path)))
        return sorted(found, reverse=True)

    def _remove_oldest(self, new: Path) -> None:
        count = size = 0
        removed = 0
        for _, bytes_in_file, path in self._files():
            count, size = count + 1, size + bytes_in_file
            if path != new and (count > self._maximum_files or size > self._maximum_bytes):
                with suppress(FileNotFoundError):
                    path.unlink()
                    removed += 1
        if removed:
            _log.warning(
                "%d of the oldest texts kept in %s were removed: at most %d files and %d bytes are kept",
                removed, self._folder, self._maximum_files, self._maximum_bytes,
            )  # fmt: skip


def _file_name(file_path: str) -> str:
    """Return the reviewed file's name; of a long name only the end, because the suffix shows its type."""
    name = os.path.basename(file_path)  # noqa: PTH119 - Path drops a final dot
    encoded = os.fsencode(name)
    return name if len(encoded) <= MAXIMUM_NAME_BYTES else encoded[-MAXIMUM_NAME_BYTES:].decode("utf-8", "ignore")
