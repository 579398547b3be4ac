"""Gate on the length of Python files: over 400 lines a file wants to be two, over 600 it fails.

A file is one noun; length is the cheapest sign that it became two. Only lines are counted: no complexity, no style
(that is ruff's), and nothing but Python.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

WARN_ABOVE = 400
"""Lines; longer files are named, and pass."""
FAIL_ABOVE = 600
"""Lines; longer files fail the gate."""
ROOMS = ("src", "tests", "bench", "scripts")
"""Folders of the checkout that are looked through. What npm installed below them is not ours."""


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
    """Every Python file of the checkout at `root` that is written by hand."""
    for room in ROOMS:
        for path in (root / room).rglob("*.py"):
            if "node_modules" not in path.relative_to(root).parts:
                yield path


def count_lines(path: Path) -> int:
    """Return the number of lines of the file, with a last one without a line break."""
    return len(path.read_bytes().splitlines())


def main(root: Path) -> int:
    """Print the files that are too long; the exit status is 1 when one of them fails the gate."""
    files = long_files(root)
    for file in files:
        if file.fails:
            print(f"error: {file.path} has {file.lines} lines; more than {FAIL_ABOVE} fail: split it by its nouns")
        else:
            print(f"warning: {file.path} has {file.lines} lines; over {WARN_ABOVE} a file wants to be two")
    return 1 if any(file.fails for file in files) else 0


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parent.parent))
