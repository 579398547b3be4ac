"""JSON with comments and trailing commas, read with errors that name line and column.

What is not JSON is blanked out, never removed, so that every position stays what the person sees in the file.
Deliberately not here: editing such files in place.
"""

import json
import re
from typing import Any

from isthmus.errors import IsthmusError

_TOKEN = re.compile(
    r"""
      (?P<string>"(?:[^"\\\n]|\\.)*"?)
    | (?P<line_comment>//[^\n]*)
    | (?P<block_comment>/\*.*?\*/)
    | (?P<trailing_comma>,(?=(?:\s|//[^\n]*(?:\n|$)|/\*(?:(?!\*/).)*\*/)*[}\]]))
    """,
    re.VERBOSE | re.DOTALL,
)


class JsoncError(IsthmusError):
    """The text is not JSON. ``line`` and ``column`` count from 1."""

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(f"line {line}, column {column}: {message}")
        self.line = line
        self.column = column


def parse(text: str) -> Any:
    """The value of a JSONC text.

    Raises:
        JsoncError: it is not JSON, even without its comments and trailing commas.
    """
    try:
        return json.loads(_TOKEN.sub(_blank, text.removeprefix("\ufeff")))
    except json.JSONDecodeError as error:
        raise JsoncError(error.msg, error.lineno, error.colno) from error
    except ValueError as error:  # Python bounds the digits that it reads
        raise JsoncError("a number has too many digits", 1, 1) from error
    except RecursionError as error:
        raise JsoncError("it is nested too deeply", 1, 1) from error


def _blank(found: re.Match[str]) -> str:
    if found.lastgroup == "string":
        return found[0]
    return re.sub(r"[^\n]", " ", found[0])
