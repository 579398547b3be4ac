"""Times of a clock are compared with other times of it, and never with a number: nobody knows where its zero is.

The monotonic clock of Linux and Windows begins when the machine starts. Where 0 stands for "long ago", nothing is long
ago on a machine that has been up for a minute.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("src", "plugins", "bench", "scripts", "examples", "tests")
CALLS = frozenset({"monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "_clock", "clock"})
"""Names of functions and methods that return the time of a clock, beside ``time`` of an event loop."""


def test_no_time_of_a_clock_begins_as_a_number() -> None:
    found: list[str] = []
    for room in ROOMS:
        for path in (ROOT / room).rglob("*.py"):
            if "node_modules" in path.parts:
                continue
            text = path.read_text("utf-8")
            if "time()" in text or any(f"{name}()" in text for name in CALLS):
                found += [f"{path.relative_to(ROOT)}:{line}" for line in numbers_for_times(ast.parse(text))]
    assert not found, f"None, -math.inf or the clock itself says 'never' or 'long ago': {found}"


@pytest.mark.parametrize(
    "text",
    [
        "class A:\n  def a(self):\n    self.at = 0.0\n  def b(self):\n    self.at = time.monotonic()",
        "class A:\n  at: float = 0\n  def b(self):\n    self.at = self._clock() + 5",
        "def a():\n  last = -PAUSE_SECONDS\n  now = time.monotonic()\n  last = now",
        "def a():\n  began, last = time.perf_counter(), 0\n  last = max(last, time.perf_counter())",
        "def a():\n  now = time.monotonic()\n  seen[1] = now\n  return now - self.seen.get(2, 0) > 3",
        "def a(loop):\n  until = 0\n  while loop.time() < until:\n    until = loop.time() + 1",
    ],
)
def test_a_number_in_place_of_a_time_is_found(text: str) -> None:
    assert list(numbers_for_times(ast.parse(text)))


@pytest.mark.parametrize(
    "text",
    [
        "def a():\n  began = time.monotonic()\n  took = 0.0\n  took += time.monotonic() - began",
        "def a():\n  took = 0\n  began = time.monotonic()\n  took = time.monotonic() - began",
        "class A:\n  at: float | None = None\n  def b(self):\n    self.at = time.monotonic()",
        "class A:\n  def b(self):\n    self.at = -math.inf\n    self.at = time.monotonic()",
    ],
)
def test_a_duration_or_no_time_at_all_is_none(text: str) -> None:
    assert not list(numbers_for_times(ast.parse(text)))


def numbers_for_times(tree: ast.AST) -> Iterator[int]:
    """Yield the lines at which a variable, field or table of times gets a number in place of a time.

    Variables are told apart by their names alone.
    """
    assigned = [pair for node in ast.walk(tree) for pair in _assigned(node)]
    times: set[str] = {name for name, value in assigned if _is_clock(value)}
    size = -1
    while size != len(times):
        size = len(times)
        times |= {name for name, value in assigned if _is_time(value, times)}
    yield from (value.lineno for name, value in assigned if name in times and _is_number(value))
    for node in ast.walk(tree):
        match node:
            case ast.Call(ast.Attribute(table, "get"), [_, default]) if _name(table) in times and _is_number(default):
                yield node.lineno
            case _:
                pass


def _assigned(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    match node:
        case ast.Assign(targets, value):
            for target in targets:
                pairs = [(target, value)]
                if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                    pairs = list(zip(target.elts, value.elts, strict=False))
                yield from ((_name(one), given) for one, given in pairs if _name(one))
        case ast.AnnAssign(target, _, ast.expr() as value) if _name(target):
            yield _name(target), value
        case _:
            pass


def _name(node: ast.expr) -> str:
    match node:
        case ast.Name(name) | ast.Attribute(_, name):
            return name
        case ast.Subscript(table):
            return _name(table)
        case _:
            return ""


def _is_clock(node: ast.expr) -> bool:
    match node:
        case ast.Call(ast.Name(name) | ast.Attribute(_, name), []) if name in CALLS:
            return True
        case ast.Call(ast.Attribute(ast.Name(owner) | ast.Attribute(_, owner), "time"), []):
            return owner in ("loop", "_loop")
        case ast.Call(ast.Attribute(ast.Call(ast.Attribute(_, "get_running_loop")), "time"), []):
            return True
        case _:
            return False


def _is_time(node: ast.expr, times: set[str]) -> bool:
    """Return whether a value is a time of a clock; the difference of two is none."""
    match node:
        case ast.Name(name) | ast.Attribute(_, name):
            return name in times
        case ast.BinOp(left, ast.Add(), right):
            return _is_time(left, times) or _is_time(right, times)
        case ast.BinOp(left, ast.Sub(), right):
            return _is_time(left, times) and not _is_time(right, times)
        case ast.IfExp(_, one, other):
            return _is_time(one, times) or _is_time(other, times)
        case ast.Call(ast.Name("max" | "min"), values):
            return any(_is_time(value, times) for value in values)
        case _:
            return _is_clock(node)


def _is_number(node: ast.expr) -> bool:
    match node:
        case ast.UnaryOp(ast.USub(), ast.Name(name)):
            return name.isupper()
        case ast.UnaryOp(_, value):
            return _is_number(value)
        case ast.Constant(int() | float() as value):
            return not isinstance(value, bool)
        case _:
            return False
