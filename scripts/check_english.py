"""Gate on the English of docstrings, comments and messages: rejects patterns that a reader must read twice.

A docstring opens with a verb or a noun phrase that is complete in an editor's hover. Other documents are called by
their names. Only words are checked; whether a sentence is clear is up to a reader.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

from check_file_sizes import python_files

FRAGMENTS = frozenset(
    "Also And As At But By For From How If In Into It Its None Not Nothing Of On Only Or See So That Their Theirs They"  # noqa: SIM905
    " Those To Under What When Where Which Who Whose Why With Without".split()
)
"""First words of docstrings that are fragments, or that depend on the line above them."""
PATTERNS = {
    re.compile(r"(?<!here )\b(is|are|was|were) no\b(?! (longer|more)\b)"): 'write "is not a"',
    re.compile(r"\bspec [1-5]\b|\bDESIGN\b"): "call the document or the protocol by its name",
    re.compile(r"\bfor ever\b"): 'write "forever", or say until when',
}
"""Patterns that docstrings, comments and messages must not contain, with the advice for each."""


DOCSTRING_PATTERNS = {
    re.compile(r"\b(that|those)\s+of\b"): "name the thing again, or use the possessive",
    re.compile(r"\bwhoever\b", re.IGNORECASE): "name the person or the program",
    re.compile(r"\bsuch\s+an?\b", re.IGNORECASE): "say which one is meant",
}
"""Patterns that docstrings must not contain, with the advice for each: they send the reader back a line."""
OLDER = (
    "src/isthmus/agent/",
    "src/isthmus/journal/",
    "src/isthmus/settings/",
)
"""Paths whose docstrings are older than `DOCSTRING_PATTERNS`, which are not looked for there yet."""
PENDING = ("tests/",)
"""Paths that are not checked yet: they are older than this gate."""


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each docstring, including those below a constant or a field."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        previous: ast.stmt | None = None
        for statement in node.body:
            is_below = previous is None or isinstance(previous, ast.Assign | ast.AnnAssign)
            if is_below and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                text = statement.value.value
                if isinstance(text, str):
                    yield statement.lineno, text
            previous = statement


def faults(text: str, *, is_older: bool = False) -> Iterator[tuple[int, str]]:
    """Yield the line and a description of each fault in the Python file `text`.

    `is_older`: it is older than `DOCSTRING_PATTERNS`, and not checked for these.
    """
    for line, docstring in docstrings(ast.parse(text)):
        word = re.match(r"\W*(\w*)", docstring.strip())
        if word is not None and word[1] in FRAGMENTS:
            yield line, f"a docstring opens with {word[1]!r}; open it with a verb or a noun phrase that stands alone"
        for pattern, advice in () if is_older else DOCSTRING_PATTERNS.items():
            for match in pattern.finditer(docstring):
                yield line + docstring.count("\n", 0, match.start()), f"{' '.join(match[0].split())!r}: {advice}"
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if tokenize.tok_name[token.type] in ("STRING", "COMMENT", "FSTRING_MIDDLE"):
            for pattern, advice in PATTERNS.items():
                for match in pattern.finditer(token.string):
                    line = token.start[0] + token.string.count("\n", 0, match.start())
                    yield line, f"{match[0]!r}: {advice}"


def main(root: Path, parts: list[str]) -> int:
    """Print each fault below the paths `parts`, or in every Python file; return 1 if there is one, otherwise 0."""
    found = False
    for path in python_files(root):
        name = str(path.relative_to(root))
        if name == "scripts/check_english.py" or (name.startswith(PENDING) and not parts):
            continue
        if parts and not name.startswith(tuple(parts)):
            continue
        for line, fault in sorted(faults(path.read_text(encoding="utf-8"), is_older=name.startswith(OLDER))):
            found = True
            print(f"error: {name}:{line}: {fault}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parent.parent, sys.argv[1:]))
