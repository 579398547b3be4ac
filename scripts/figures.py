"""Figures of the program's structure, each with its limit: ``figures.py`` prints them, the places of each with -v.

They say where a reader has to hold too much in mind at once. A figure above its limit is not an error of the gate.
"""

import ast
import inspect
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import mutants
import trips
from check_english import docstrings
from check_file_sizes import python_files

FILES_IN_A_FOLDER = 20
LINES_OF_A_FUNCTION = 60
PARAMETERS = 10
WORDS_OF_A_SENTENCE = 30
Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(tree: ast.Module) -> Iterator[Function]:
    """Yield all functions and methods of a module."""
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def long_functions(path: Path, tree: ast.Module) -> Iterator[str]:
    """Yield the functions with more than `LINES_OF_A_FUNCTION` lines."""
    for node in functions(tree):
        lines = (node.end_lineno or node.lineno) - node.lineno + 1
        if lines > LINES_OF_A_FUNCTION:
            yield f"{path}:{node.lineno} {node.name} ({lines} lines)"


def many_parameters(path: Path, tree: ast.Module) -> Iterator[str]:
    """Yield the functions with more than `PARAMETERS` parameters."""
    for node in functions(tree):
        count = len([*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs])
        if count > PARAMETERS:
            yield f"{path}:{node.lineno} {node.name} ({count} parameters)"


def relays(path: Path, tree: ast.Module) -> Iterator[str]:
    """Yield the async methods that only await the method of the same name of another object, given the same.

    Methods with ``@override`` are left out: the base class or the port asks for them.
    """
    for node in functions(tree):
        body = node.body[1:] if ast.get_docstring(node) is not None else node.body
        is_override = any(isinstance(each, ast.Name) and each.id == "override" for each in node.decorator_list)
        if len(body) != 1 or not isinstance(node, ast.AsyncFunctionDef) or is_override:
            continue
        value = body[0].value if isinstance(body[0], ast.Return | ast.Expr) else None
        call = value.value if isinstance(value, ast.Await) else None
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == node.name:
            taken = [*node.args.args, node.args.vararg, *node.args.kwonlyargs, node.args.kwarg]
            given = [each.arg for each in taken if each is not None and each.arg != "self"]
            passed = [ast.unparse(each).lstrip("*") for each in [*call.args, *(each.value for each in call.keywords)]]
            if passed == given:
                yield f"{path}:{node.lineno} {node.name}"


def prose(text: str) -> Iterator[str]:
    """Yield the paragraphs and list items of a docstring, without its blocks that are not sentences.

    Such blocks are examples (after a line with click's mark for them, or indented) and tables (between lines of ``=``).
    """
    for block in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        is_example = block.startswith("\b") or all(line.startswith("    ") for line in block.splitlines())
        if not is_example and re.search(r"^=+( +=+)*$", block, re.MULTILINE) is None:
            yield from re.split(r"\n\s*[-|]|\n\s*\w+:\s*\n", block)


def long_sentences(path: Path, tree: ast.Module) -> Iterator[str]:
    """Yield the sentences of docstrings with more than `WORDS_OF_A_SENTENCE` words."""
    for line, text in docstrings(tree):
        for paragraph in prose(text):
            for sentence in re.split(r"(?<=[.!?;:])\s", paragraph):
                if len(words := sentence.split()) > WORDS_OF_A_SENTENCE:
                    yield f"{path}:{line} {len(words)} words: {' '.join(words[:8])} ..."


def strings_set(path: Path, tree: ast.Module) -> Iterator[str]:
    """Yield the replacements of attributes whose whole dotted name is a string: ``setattr("module.name", ...)``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "setattr":
            first = node.args[0] if node.args else None
            if isinstance(first, ast.JoinedStr) or (isinstance(first, ast.Constant) and isinstance(first.value, str)):
                yield f"{path}:{node.lineno} {ast.unparse(first)}"


def all_of(root: str, find: Callable[[Path, ast.Module], Iterator[str]]) -> list[str]:
    """Return what a function finds in all modules below a folder."""
    files = [path for path in python_files(Path()) if path.is_relative_to(root)]
    return [found for path in files for found in find(path, ast.parse(path.read_text("utf-8")))]


def full_folders() -> list[str]:
    """Return the folders of the program with more than `FILES_IN_A_FOLDER` modules directly in them."""
    counts = Counter(
        path.parent for path in python_files(Path()) if path.is_relative_to("src") and path.name != "__init__.py"
    )
    return [f"{folder} ({count} files)" for folder, count in counts.most_common() if count > FILES_IN_A_FOLDER]


def doubled_docstrings(*, in_tests: bool) -> list[str]:
    """Return the docstrings that stand twice in a module: of the tests, or of the program and its scripts.

    Shorter ones are left out: a test may declare several tools that "Do it."
    """
    found: list[str] = []
    least = 15 if in_tests else 60
    for path in python_files(Path()):
        if path.is_relative_to("tests") is in_tests:
            counts = Counter(text for _, text in docstrings(ast.parse(path.read_text("utf-8"))) if len(text) > least)
            found += [f"{path} {text[:60]!r}" for text, count in counts.items() if count > 1]
    return found


def figures_of_trips() -> list[tuple[str, list[str], int]]:
    """Return the visits and the climbs of each trip through the program."""
    return [
        figure
        for trip in trips.all_trips()
        for figure in (
            (f"visits: {trip.name}", [*trip.visits], trips.VISITS),
            (f"climbs: {trip.name}", [*trip.climbs], trips.CLIMBS),
        )
    ]


def figure_of_mutants() -> tuple[str, list[str], int]:
    """Return the listed mutants that no test has noticed, of those that ``make mutants`` has tried as they are now."""
    verdicts = mutants.kept_verdicts(mutants.ROOT)
    living = [f"{name}: {verdict}" for name, verdict in verdicts.items() if verdict != mutants.Verdict.NOTICED.value]
    count = len(mutants.read_mutants(mutants.ROOT))
    return f"listed mutants that live ({len(verdicts)} of {count} were tried by make mutants)", living, 0


def main(arguments: list[str]) -> int:
    """Print the figures."""
    figures = (
        (f"folders with over {FILES_IN_A_FOLDER} files", full_folders(), 3),
        (f"functions over {LINES_OF_A_FUNCTION} lines", all_of("src", long_functions), 5),
        (f"functions over {PARAMETERS} parameters", all_of("src", many_parameters), 5),
        ("async relays", all_of("src", relays), 5),
        (f"docstring sentences over {WORDS_OF_A_SENTENCE} words", all_of("src", long_sentences), 10),
        ("setattr by a string in tests", all_of("tests", strings_set), 10),
        ("docstrings that stand twice", doubled_docstrings(in_tests=False), 0),
        ("docstrings that stand twice in tests", doubled_docstrings(in_tests=True), 0),
        figure_of_mutants(),
        *figures_of_trips(),
    )
    for name, places, limit in figures:
        print(f"{len(places):4}  {name} (at most {limit})")
        if "-v" in arguments:
            print("".join(f"        {place}\n" for place in places), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
