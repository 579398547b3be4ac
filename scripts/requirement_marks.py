"""The requirement ids that tests carry, read from their source.

A test states the requirements that it shows with `@pytest.mark.requirement("A2A-017")`: on the function, on its class,
as `pytestmark` of the module, or as the mark of one `pytest.param`. The files are parsed and not imported, so that the
result does not depend on the tests that ran, on the machine, or on working imports. The ledger checks that ids exist.
"""

import ast
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

MAX_IDS = 4
"""Maximum number of ids of one test (one case of a parametrized test); a test with more shows nothing in particular."""
WITHOUT_EFFECT = ("skip", "xfail")
"""Marks under which a test shows nothing; `skipif` depends on the platform and is allowed."""


@dataclass(frozen=True, slots=True)
class MarkedTest:
    """A test with its ids, including the ids of its class, its module and its cases."""

    path: Path
    """Path relative to the checkout."""
    name: str
    """Name as pytest writes it after the path: `test_x`, or `TestY::test_x`."""
    ids: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.path.as_posix()}::{self.name}"


@dataclass(slots=True)
class Marks:
    """Result of `read_marks`: tests with ids, and faults of the marks."""

    tests: list[MarkedTest] = field(default_factory=list[MarkedTest])
    problems: list[str] = field(default_factory=list[str])


def read_marks(root: Path) -> Marks:
    """Return the marks of every `test_*.py` in `tests/` of the checkout at `root`, in the order of paths and lines."""
    marks = Marks()
    for path in _test_files(root / "tests"):
        relative = path.relative_to(root)
        source = path.read_bytes()
        if b"requirement" not in source:
            continue  # It has no marks, and parsing it takes long.
        try:
            module = ast.parse(source)
        except SyntaxError as error:
            marks.problems.append(f"{relative.as_posix()}:{error.lineno}: not Python: {error.msg}")
        else:
            _ModuleReader(relative, marks).read(module)
    return marks


def _test_files(folder: Path) -> list[Path]:
    """Return the test modules below a folder, without searching the thousands of files of npm packages."""
    found: list[Path] = []
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name != "node_modules"]
        found += [Path(place, name) for name in files if name.startswith("test_") and name.endswith(".py")]
    return sorted(found)


class _ModuleReader:
    """Reader of one module. Each mark is taken at its first place, so that none is counted twice or lost."""

    def __init__(self, path: Path, marks: Marks) -> None:
        self._path = path
        self._marks = marks
        self._taken: set[ast.AST] = set()

    def read(self, module: ast.Module) -> None:
        self._read_body(module.body, (), "")
        self._read_loose(module)

    def _read_body(self, body: list[ast.stmt], inherited: tuple[str, ...], prefix: str) -> None:
        inherited += self._ids(_pytestmark(body))
        for statement in body:
            match statement:
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    self._read_function(statement, inherited, prefix)
                case ast.ClassDef():
                    ids = inherited + self._ids(statement.decorator_list)
                    self._read_body(statement.body, ids, f"{prefix}{statement.name}::")
                case _:
                    pass

    def _read_function(
        self, function: ast.FunctionDef | ast.AsyncFunctionDef, inherited: tuple[str, ...], prefix: str
    ) -> None:
        # The cases first: the remaining marks of the decorators then belong to every case.
        cases = [self._ids([case]) for case in _cases(function.decorator_list)]
        own = inherited + self._ids(function.decorator_list)
        ids = tuple(dict.fromkeys((*own, *(name for case in cases for name in case))))
        if not ids:
            return
        if not function.name.startswith("test"):
            if own != inherited or any(cases):
                self._problem(function, f"{function.name} carries requirement ids and is not a test")
            return
        most = max((len({*own, *case}) for case in cases), default=len(set(own)))
        if most > MAX_IDS:
            self._problem(function, f"{prefix}{function.name} carries {most} requirement ids; {MAX_IDS} are the most")
        without_effect = [name for name in WITHOUT_EFFECT if _has_mark(function.decorator_list, name)]
        if without_effect:
            self._problem(function, f"{prefix}{function.name} is marked {without_effect[0]}: it shows no requirement")
            return
        self._marks.tests.append(MarkedTest(self._path, f"{prefix}{function.name}", ids))

    def _read_loose(self, module: ast.Module) -> None:
        """Collect marks in data of tests (a list of `pytest.param`), and report marks in an unreadable form."""
        for statement in module.body:
            for node in ast.walk(statement):
                if node in self._taken or not _is_requirement(node):
                    continue
                call = next((n for n in ast.walk(statement) if isinstance(n, ast.Call) and n.func is node), None)
                if call is None or not isinstance(statement, ast.Assign | ast.AnnAssign):
                    self._problem(node, 'a requirement mark is written as a call, pytest.mark.requirement("A2A-017"), '
                                        "on a test, its class, its module or a pytest.param")  # fmt: skip
                    continue
                ids = self._ids([call])
                if len(ids) > MAX_IDS:
                    self._problem(call, f"a case carries {len(ids)} requirement ids; {MAX_IDS} are the most")
                self._marks.tests.append(MarkedTest(self._path, _target(statement), ids))

    def _ids(self, expressions: list[ast.expr]) -> tuple[str, ...]:
        """Return the ids of all requirement marks in `expressions` that have not been taken yet."""
        found: list[str] = []
        for call in _requirement_calls(expressions):
            if call.func in self._taken:
                continue
            self._taken.add(call.func)
            for argument in call.args:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    found.append(argument.value)
                else:
                    self._problem(call, "requirement ids are literal strings, so that a search finds them")
            if not call.args or call.keywords:
                self._problem(call, "a requirement mark takes ids, at least one, and nothing else")
        return tuple(found)

    def _problem(self, node: ast.expr | ast.stmt | ast.AST, text: str) -> None:
        self._marks.problems.append(f"{self._path.as_posix()}:{getattr(node, 'lineno', 0)}: {text}")


def _requirement_calls(expressions: list[ast.expr]) -> Iterator[ast.Call]:
    for expression in expressions:
        for node in ast.walk(expression):
            if isinstance(node, ast.Call) and _is_requirement(node.func):
                yield node


def _is_requirement(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "requirement" and _is_mark(node.value)


def _is_mark(node: ast.expr) -> bool:
    return ast.unparse(node) in ("pytest.mark", "mark")


def _has_mark(decorators: list[ast.expr], name: str) -> bool:
    """Return whether the test itself has the mark `name`, not only one of its cases."""
    bare = [decorator.func if isinstance(decorator, ast.Call) else decorator for decorator in decorators]
    return any(isinstance(node, ast.Attribute) and node.attr == name and _is_mark(node.value) for node in bare)


def _cases(decorators: list[ast.expr]) -> Iterator[ast.Call]:
    for decorator in decorators:
        for node in ast.walk(decorator):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("pytest.param", "param"):
                yield node


def _pytestmark(body: list[ast.stmt]) -> list[ast.expr]:
    return [
        statement.value
        for statement in body
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        and statement.value is not None
        and _target(statement) == "pytestmark"
    ]


def _target(statement: ast.Assign | ast.AnnAssign) -> str:
    return ast.unparse(statement.targets[0] if isinstance(statement, ast.Assign) else statement.target)
