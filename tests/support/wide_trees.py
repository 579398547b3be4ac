"""Trees of many files that are not on the disk, listed by an index."""

from collections.abc import Callable
from pathlib import Path

from isthmus.tools.port.file_index import FileIndex
from isthmus.tools.port.folder_scan import FolderStamp, ScannedFolder
from isthmus.tools.port.workspace import Visibility

TOP = Path("/nowhere/tree")
_STAMP: FolderStamp = (1, 1)


def wide_index(*, folders: int, files: int, top: Path = TOP, before: Callable[[], object] = lambda: None) -> FileIndex:
    """Return an index of folders ``pkg000`` with files ``file_000.py`` each; `before` each of them is listed."""
    names = [f"file_{number:03}.py" for number in range(files)]

    def scan(path: str) -> ScannedFolder:
        before()
        if path == str(top):
            return ScannedFolder(_STAMP, [], [f"pkg{number:03}" for number in range(folders)])
        return ScannedFolder(_STAMP, names, [])

    return FileIndex(top, "", lambda: Visibility(None, None), scan=scan, stamp=lambda _: _STAMP)
