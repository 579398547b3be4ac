"""Gate on strings that are joined to a docstring: ``"..."`` next to a string in triple quotes becomes part of it.

A constant that lost the line break before the docstring under it holds that docstring. Linters allow strings to be
joined over several lines, which is how long messages are written; here a part in triple quotes is not allowed.
"""

import io
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

from check_file_sizes import python_files

_BETWEEN = frozenset({tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT})
"""Tokens that may stand between the parts of one string."""


def joined_lines(text: str) -> Iterator[int]:
    """Yield the line of each string that is joined to one before it, where one of the two has triple quotes."""
    previous: str | None = None
    depth = 0  # From Python 3.12 on an f-string is several tokens.
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        kind = tokenize.tok_name[token.type]
        begins = kind in ("STRING", "FSTRING_START") and depth == 0
        depth += {"FSTRING_START": 1, "FSTRING_END": -1}.get(kind, 0)
        if begins:
            if previous is not None and (_is_triple(previous) or _is_triple(token.string)):
                yield token.start[0]
            previous = token.string
        elif depth == 0 and kind != "FSTRING_END" and token.type not in _BETWEEN:
            previous = None


def _is_triple(literal: str) -> bool:
    return literal.lstrip("rbfuRBFU").startswith(('"""', "'''"))


def main(root: Path) -> int:
    """Print each place; the exit status is 1 when there is one."""
    places = [
        f"{path.relative_to(root)}:{line}"
        for path in python_files(root)
        for line in joined_lines(path.read_text(encoding="utf-8"))
    ]
    for place in places:
        print(
            f"error: {place}: a string in triple quotes is joined to the one before it; part them, or use one of them"
        )
    return 1 if places else 0


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parent.parent))
