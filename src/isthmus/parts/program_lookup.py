"""Finds programs in the folders of PATH; looks through a folder again when it has changed.

Looking for two dozen programs in ten folders takes a millisecond, which each new conversation would pay.
"""

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from isthmus.files.stamps import Stamps, stamp_of
from isthmus.record import record

TRUSTED_SECONDS = 60.0
"""Time in seconds after which a folder is looked through again in any case: some file systems do not date folders."""


@record
class _Folder:
    """A folder of PATH with the names that are in it; ``seen`` is the monotonic time in seconds."""

    names: frozenset[str]
    stamps: Stamps
    seen: float

    def is_current(self) -> bool:
        return time.monotonic() - self.seen < TRUSTED_SECONDS and self.stamps.are_current()


class ProgramLookup:
    """Lookup of some programs in the folders of PATH, an environment variable of ``environment``."""

    def __init__(self, names: Sequence[str], environment: Mapping[str, str]) -> None:
        self._names = tuple(names)
        path = environment.get("PATH", os.environ.get("PATH", os.defpath))
        self._path = tuple(dict.fromkeys(Path(part or os.curdir) for part in path.split(os.pathsep))) if path else ()
        self._folders: dict[Path, _Folder] = {}

    def found(self) -> Mapping[str, str]:
        """Return the paths of the programs that can be run now, by their names in the given order. Blocking."""
        folders = [(folder, self._folder(folder).names) for folder in self._path]
        found: dict[str, str] = {}
        for name in self._names:
            for folder, names in folders:
                # Whether it can be run is not a matter of the folder: a link may lead to another one.
                if name in names and _is_program(path := os.path.join(folder, name)):  # noqa: PTH118 - pathlib is slow
                    found[name] = path
                    break
        return found

    def _folder(self, path: Path) -> _Folder:
        folder = self._folders.get(path)
        if folder is None or not folder.is_current():
            at, seen, stamp = time.time_ns(), time.monotonic(), stamp_of(path)
            names = frozenset(name for name in self._names if os.path.lexists(path / name))
            folder = self._folders[path] = _Folder(names, Stamps(((path, stamp),), at), seen)
        return folder


def _is_program(path: str) -> bool:
    return os.access(path, os.X_OK) and os.path.isfile(path)  # noqa: PTH113 - as above
