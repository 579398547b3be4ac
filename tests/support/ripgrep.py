"""The real ripgrep, and a way to see that it did the work."""

import shutil
import sys
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

from isthmus.tools.search.search_engines import FileMatches, LineQuery, OwnEngine

RG = shutil.which("rg", path=str(Path(sys.executable).parent)) or shutil.which("rg") or ""
"""Path of ripgrep, a package of the dev group; tests that need it fail without it."""


class NoFallback(OwnEngine):
    """A fallback engine that fails, to show that ripgrep did the work."""

    async def search(self, query: LineQuery, files: Sequence[Path]) -> AsyncGenerator[FileMatches, None]:
        for _ in files:
            raise AssertionError("ripgrep left the search to the own engine")
        yield FileMatches(Path(), ())
