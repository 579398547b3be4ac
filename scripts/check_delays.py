"""Gate on fixed delays in tests: a test waits for a fact, by the functions of ``tests/support/waiting.py``.

A delay is allowed where the time itself is the fact, in a program that a test plays, or between two looks at something.
A comment says so, in its line or in the one above it: ``# delay: no letters for half a second before an answer``.
``asyncio.sleep(0)`` needs none: it is a turn of the event loop, and takes no time. Programs that tests write as text
are not checked, except for Neovim's ``vim.wait``.
"""

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from check_file_sizes import python_files

MODULES = ("time", "asyncio", "anyio", "trio")
"""Modules whose ``sleep`` is a delay."""
METHODS = ("wait_for_timeout",)
"""Methods of any object that are delays: Playwright's."""
MINIMUM_WORDS = 3
"""Number of words that a reason has at least."""
_WORDS = ("sleep", "vim.wait", *METHODS)
_REASON = re.compile(r"#\s*delay:(?P<reason>.*)")
_EDITOR = re.compile(r"\s*vim\.wait\((\d+|\.\.\.)\)\s*")


def names_of_sleep(tree: ast.Module) -> Mapping[str, str]:
    """Return the names that mean a ``sleep`` in a module, each with what it stands for."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {
                f"{each.asname or each.name}.sleep": f"{each.name}.sleep" for each in node.names if each.name in MODULES
            }
        elif isinstance(node, ast.ImportFrom) and node.module in MODULES:
            names |= {each.asname or each.name: f"{node.module}.sleep" for each in node.names if each.name == "sleep"}
    return names


def delays(tree: ast.Module) -> Iterator[tuple[ast.expr, str]]:
    """Yield the delays of a module, each with its name."""
    names = names_of_sleep(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=func, args=[ast.Constant(value=0), *_]) if ast.unparse(func) in names:
                pass  # a turn of the event loop
            case ast.Call(func=func) if (name := names.get(ast.unparse(func))) is not None:
                yield node, name
            case ast.Call(func=ast.Attribute(attr=name)) if name in METHODS:
                yield node, name
            case ast.Constant(value=str() as text) if _EDITOR.fullmatch(text):
                yield node, text.strip()
            case _:
                pass


def faults(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and a description of each delay in the Python file `text` that has no reason."""
    lines = text.splitlines()
    for node, name in delays(ast.parse(text)):
        around = lines[max(node.lineno - 2, 0) : node.end_lineno]
        reasons = [found["reason"].split() for line in around if (found := _REASON.search(line)) is not None]
        if not reasons:
            yield (
                node.lineno,
                (
                    f"{name} waits for a fixed time; wait for a fact by eventually() of tests/support/waiting.py,"
                    " or say in a comment `# delay: ...` why the time itself matters"
                ),
            )
        elif all(len(reason) < MINIMUM_WORDS for reason in reasons):
            yield (
                node.lineno,
                f"the reason of {name} has less than {MINIMUM_WORDS} words; say why the time itself matters",
            )


def main(root: Path) -> int:
    """Print each fault; return 1 if there is one, otherwise 0."""
    places = [
        f"{path.relative_to(root)}:{line}: {fault}"
        for path in sorted(python_files(root))
        if path.is_relative_to(root / "tests")
        if any(word in (text := path.read_text(encoding="utf-8")) for word in _WORDS)
        for line, fault in sorted(faults(text))
    ]
    for place in places:
        print(f"error: {place}")
    return 1 if places else 0


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parent.parent))
