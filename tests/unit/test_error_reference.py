"""The document docs/reference/errors.md: every exit status, and every type of a failed call or task in the source."""

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from isthmus.models.base import ModelErrorKind

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/reference/errors.md").read_text(encoding="utf-8")
POSITIONS = {"ToolFailure": 1, "CommandError": 1, "ErrorDetails": 1, "StateChange": 2}
"""Position of the type among the arguments of these classes, from 0."""


def constants(texts: Iterable[str]) -> dict[str, str]:
    """Return the string constants of modules and classes by name; names of types are unique."""
    return {name: value for text in texts for name, value in re.findall(r'(?m)^\s*([A-Z_][A-Z0-9_]*) = "(.*?)"', text)}


def types_in_the_source() -> Iterator[str]:
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "src/isthmus").rglob("*.py")]
    named = constants(texts)
    for text in texts:
        if not any(f"{name}(" in text for name in POSITIONS):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in POSITIONS:
                position = POSITIONS[node.func.id]
                given = node.args[position] if len(node.args) > position else None
                if isinstance(given, ast.Constant):
                    yield str(given.value)
                elif isinstance(given, ast.Name) and given.id.isupper():
                    yield named[given.id]
    yield from (f"model_{kind}" for kind in ModelErrorKind)


@pytest.mark.slow
def test_every_type_of_an_error_is_documented() -> None:
    table = PAGE.partition("<!-- types -->")[2].partition("<!-- /types -->")[0]
    documented = [name for row in re.findall(r"(?m)^\| (`.*?) \|", table) for name in re.findall(r"`(\w+)`", row)]
    assert len(documented) == len(set(documented))
    assert set(types_in_the_source()) - set(documented) == set()
    source = " ".join(path.read_text(encoding="utf-8") for path in (ROOT / "src/isthmus").rglob("*.py"))
    assert [name for name in documented if f'"{name.removeprefix("model_")}"' not in source] == []


def test_every_exit_status_is_documented() -> None:
    table = PAGE.partition("## Exit statuses")[2].partition("\n\nThe ")[0]
    assert [int(found) for found in re.findall(r"(?m)^\| (\d+) \|", table)] == [0, 1, 42, 44, 45, 53, 56, 57, 58, 130]
