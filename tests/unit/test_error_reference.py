"""The document docs/reference/errors.md: every exit status, and every type of a failed call or task in the source."""

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from isthmus.a2a.protocol import jsonrpc
from isthmus.a2a.protocol.errors import ERRORS
from isthmus.models.port.base import ModelErrorKind
from isthmus.rpc.messages import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR

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
    found = [int(status) for status in re.findall(r"(?m)^\| (\d+) \|", table)]
    assert found == [0, 1, 42, 44, 45, 53, 56, 57, 58, 59, 130]


def test_every_code_of_a2a_is_documented_with_its_name_and_statuses() -> None:
    table = PAGE.partition("<!-- codes -->")[2].partition("<!-- /codes -->")[0]
    rows = re.findall(r"(?m)^\| (-\d+) \| `(\w+)` \| (\d+) \| (\d+) \| (?=\S)", table)
    documented = {int(code): (name, int(old), int(new)) for code, name, old, new in rows}
    assert len(documented) == len(rows)
    assert documented == {code: (names.v1_reason, names.v03_status, names.v1_status) for code, names in ERRORS.items()}


def test_every_code_in_the_source_of_a2a_is_an_error_of_the_table() -> None:
    own = {value for name, value in vars(jsonrpc).items() if name.isupper() and isinstance(value, int) and value < 0}
    shared = {PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR}
    assert set(ERRORS) == own | shared
    texts = (path.read_text(encoding="utf-8") for path in (ROOT / "src/isthmus/a2a").rglob("*.py"))
    assert {int(code) for text in texts for code in re.findall(r"(?m)^[A-Z_]+ = (-3\d{4})$", text)} == own
