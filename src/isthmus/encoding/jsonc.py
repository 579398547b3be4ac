"""JSON with comments and trailing commas, read with errors that name line and column.

Comments and trailing commas are blanked out, not removed, so that positions match the file. Not here: editing such
files, see `isthmus.encoding.jsonc_edit`.
"""

import json
import re
from typing import Any

from isthmus.encoding.codec import MAXIMUM_DEPTH, is_deeper
from isthmus.errors import IsthmusError

# No backtracking: a comment without an end extends to the end of the text, and is not blanked out. Possessive groups
# match wrongly before Python 3.11.5, so what follows each group here always matches.
_STRING = r'(?P<kept>"[^"\\\n]*+(?:\\.[^"\\\n]*+)*"?)'
_COMMENT = re.compile(rf"{_STRING}|//[^\n]*+|/\*[^*]*+(?:\*(?!/)[^*]*+)*(?:\*/|(?P<endless>\Z))", re.DOTALL)
_TRAILING_COMMA = re.compile(rf"{_STRING}|,(?=\s*+[}}\]])", re.DOTALL)


class JsoncError(IsthmusError):
    """Text that is not JSON. ``line`` and ``column`` are 1-based."""

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(f"line {line}, column {column}: {message}")
        self.line = line
        self.column = column


def parse(text: str) -> Any:
    """Return the value of a JSONC text.

    Raises:
        JsoncError: the text is not JSON even without its comments and trailing commas.
    """
    try:
        without_comments = _COMMENT.sub(_blank, text.removeprefix("\ufeff"))
        value: object = json.loads(_TRAILING_COMMA.sub(_blank, without_comments))
    except json.JSONDecodeError as error:
        raise JsoncError(error.msg, error.lineno, error.colno) from error
    except ValueError as error:  # Python limits the number of digits
        raise JsoncError("a number has too many digits", 1, 1) from error
    except (RecursionError, MemoryError) as error:
        raise JsoncError(f"it is nested more than {MAXIMUM_DEPTH} deep", 1, 1) from error
    if text.count("[") + text.count("{") > MAXIMUM_DEPTH and is_deeper(value):
        raise JsoncError(f"it is nested more than {MAXIMUM_DEPTH} deep", 1, 1)
    return value


def _blank(found: re.Match[str]) -> str:
    if found.lastgroup is not None:
        return found[0]
    return re.sub(r"[^\n]", " ", found[0])
