"""Gate on the names of tests: shorter than 80 characters, and one of a kind in their file.

A name that repeats in a file hides the test that had it first, which then never runs.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from check_file_sizes import python_files

MAXIMUM_CHARACTERS = 79
"""Maximum length of a test's name: it is one sentence that a list of results shows on one line."""


def faults(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the fault of each test name in the Python file `text` that is too long or occurs again."""
    for scope in ast.walk(ast.parse(text)):
        names: set[str] = set()
        for node in scope.body if isinstance(scope, ast.Module | ast.ClassDef) else ():
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or not node.name.startswith("test_"):
                continue
            if len(node.name) > MAXIMUM_CHARACTERS:
                yield node.lineno, f"{node.name} has {len(node.name)} characters; at most {MAXIMUM_CHARACTERS} pass"
            if node.name in names:
                yield node.lineno, f"{node.name} is in this file already; give it a name of its own"
            names.add(node.name)


def main(root: Path) -> int:
    """Print each fault; the exit status is 1 when there is one."""
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
