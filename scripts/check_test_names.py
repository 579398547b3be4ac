"""Gate on the names of tests: shorter than 80 characters, and unique in their file.

A repeated name hides the first test of that name in the file, which then never runs.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from check_file_sizes import python_files

MAXIMUM_CHARACTERS = 79
"""Maximum length of a test's name: it is one sentence that a list of results shows on one line."""


def faults(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and a description of each test name in the Python file `text` that is too long or repeated."""
    for scope in ast.walk(ast.parse(text)):
        names: set[str] = set()
        for node in scope.body if isinstance(scope, ast.Module | ast.ClassDef) else ():
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or not node.name.startswith("test_"):
                continue
            if len(node.name) > MAXIMUM_CHARACTERS:
                yield node.lineno, f"{node.name} has {len(node.name)} characters; the maximum is {MAXIMUM_CHARACTERS}"
            if node.name in names:
                yield node.lineno, f"{node.name} is already in this file; choose another name"
            names.add(node.name)


def main(root: Path) -> int:
    """Print each fault; return 1 if there is one, otherwise 0."""
    places = [
        f"{path.relative_to(root)}:{line}: {fault}"
        for path in python_files(root)
        if path.name.startswith("test_")
        for line, fault in faults(path.read_text(encoding="utf-8"))
    ]
    for place in places:
        print(f"error: {place}")
    return 1 if places else 0


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parent.parent))
