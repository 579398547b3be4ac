"""Gate on the length of Python files: a file of more than 400 lines should be split, one of more than 600 fails.

A file is one noun; length is the cheapest sign that it became two. Only lines of Python files are counted; style and
complexity are left to ruff.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

WARN_ABOVE = 400
"""Number of lines above which files are named, but pass."""
FAIL_ABOVE = 600
"""Number of lines above which files fail the gate."""
ROOMS = ("src", "tests", "bench", "scripts")
"""Folders of the checkout that are searched, except for the npm packages below them."""


@dataclass(frozen=True, slots=True)
class LongFile:
    """A Python file of more than `WARN_ABOVE` lines; `path` is relative to the checkout."""

    path: Path
    lines: int

    @property
    def fails(self) -> bool:
        """Whether the gate fails because of this file."""
        return self.lines > FAIL_ABOVE


def long_files(root: Path) -> list[LongFile]:
    """Return the files below `root` that are too long, the longest first."""
    found = [LongFile(path.relative_to(root), count_lines(path)) for path in python_files(root)]
    return sorted((file for file in found if file.lines > WARN_ABOVE), key=lambda file: (-file.lines, file.path))


def python_files(root: Path) -> Iterator[Path]:
    """Yield every hand-written Python file of the checkout at `root`."""
    for room in ROOMS:
        for path in (root / room).rglob("*.py"):
            if "node_modules" not in path.relative_to(root).parts:
                yield path


def count_lines(path: Path) -> int:
    """Return the number of lines of a file, including a last line without a line break."""
    return len(path.read_bytes().splitlines())


def main(root: Path) -> int:
    """Print the files that are too long; return 1 if one of them fails the gate, otherwise 0."""
    files = long_files(root)
    for file in files:
        if file.fails:
            print(f"error: {file.path} has {file.lines} lines; the maximum is {FAIL_ABOVE}: split it by its nouns")
        else:
            print(f"warning: {file.path} has {file.lines} lines; above {WARN_ABOVE} a file should be split")
    return 1 if any(file.fails for file in files) else 0


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parent.parent))
