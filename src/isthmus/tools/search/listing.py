"""The files that a search looks at: an index of the workspace that is kept, or one of a folder for one call.

Not here: the index, see :mod:`isthmus.tools.port.file_index`.
"""

import asyncio
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from isthmus.record import record
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.file_index import FileIndex, IndexedFolder
from isthmus.tools.port.workspace import Workspace

DEADLINE_SECONDS = 30.0
"""Maximum time for finding the files of a call."""


@record
class FileListing:
    """The files below `start`, a folder of an index; `shown_prefix` is what their paths begin with for the user.

    `knows_large`: the large ones among them are known.
    """

    index: FileIndex
    start: str
    shown_prefix: str
    is_whole: bool
    knows_large: bool = False

    @property
    def place(self) -> Path:
        """The folder that was searched."""
        return self.index.folder / self.start

    def folders(self) -> Iterator[tuple[str, str, IndexedFolder]]:
        """Yield each folder: the beginning of its files' paths, relative to the start and for the user."""
        skipped = len(self.start) + 1 if self.start else 0
        for key, folder in self.index.folders(self.start):
            relative = f"{key[skipped:]}/" if key != self.start else ""
            yield relative, self.shown_prefix + relative, folder

    def paths(self) -> Iterator[str]:
        """Yield the paths of the files, relative to the start, sorted by the names in them."""
        skipped = len(self.start) + 1 if self.start else 0
        return (path[skipped:] for path in self.index.paths(self.start))

    @property
    def note(self) -> str:
        """Note for the model if the listing is not whole; otherwise empty."""
        if self.is_whole:
            return ""
        return (
            f"[Only {self.index.count} files were listed in time, or as many as are kept: there may be more. "
            "Name a folder with dir_path.]\n"
        )


async def with_sizes(listing: FileListing, seconds: float) -> FileListing:
    """Return a listing whose large files are known, if so many seconds suffice; the next call goes on from there."""
    if listing.knows_large or not listing.is_whole:
        return listing
    stopped = threading.Event()
    ends = time.monotonic() + seconds

    def should_stop() -> bool:
        return stopped.is_set() or time.monotonic() > ends

    try:
        knows_large = await asyncio.to_thread(listing.index.find_large, listing.start, should_stop)
    finally:
        stopped.set()
    return replace(listing, knows_large=knows_large)


async def list_files(
    workspace: Workspace,
    folder: Path,
    *,
    git: bool = True,
    for_contents: bool = False,
    seconds: float = DEADLINE_SECONDS,
) -> FileListing:
    """Return the files below `folder`, a resolved path, as they are now; after `seconds` those found until then.

    The options are as of :meth:`Workspace.walk`.
    """
    shown = workspace.relative(folder)
    shown_prefix = "" if shown == "." else f"{shown}/"
    if git:
        kept = workspace.kept_index(folder)
        start = "" if folder == kept.index.folder else folder.relative_to(kept.index.folder).as_posix()
        if kept.index.is_listed or not start:
            try:
                async with asyncio.timeout(seconds):
                    await asyncio.shield(asyncio.wrap_future(kept.refreshed()))
                is_whole = not kept.index.has_ended_early
            except TimeoutError:
                is_whole = False
            if kept.index.at(start) is not None and (is_whole or not start):
                return FileListing(kept.index, start, shown_prefix, is_whole)
    index = workspace.index_below(folder, git=git, for_contents=for_contents)
    stopped = threading.Event()
    ends = time.monotonic() + seconds
    try:
        await asyncio.to_thread(index.refresh, lambda: stopped.is_set() or time.monotonic() > ends)
    finally:
        stopped.set()
    return FileListing(index, "", shown_prefix, index.is_listed and not index.has_ended_early)


def search_folder(workspace: Workspace, shown: str) -> Path:
    """Return the existing folder or file to search; "." is the workspace.

    Raises:
        ToolFailure: the path is closed or does not exist.
    """
    path = workspace.open_path(shown)
    if not path.exists():
        raise ToolFailure(f"{shown} does not exist", "file_not_found")
    return path
