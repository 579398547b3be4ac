"""TOML of custom commands, checked before it is parsed.

Python's parser recurses for each level of nesting, and its time grows with the square of the number of names in one
key. The file may come with an untrusted project, and it is read at each start.
"""

import re
import tomllib
from typing import Any

MAXIMUM_DEPTH = 100
"""Maximum nesting of arrays and tables, and maximum number of names in one key."""

# Without backtracking: an unterminated string extends to the end of its line or of the file.
_TOKEN = re.compile(
    r'''
      """[^"\\]*+(?:(?:\\.|"(?!""))[^"\\]*+)*(?:"{3,5})?
    | \'\'\'[^\']*+(?:\'(?!\'\')[^\']*+)*(?:\'{3,5})?
    | "[^"\\\n]*+(?:\\.[^"\\\n]*+)*"?
    | \'[^\'\n]*+\'?
    | \#[^\n]*+
    | (?P<mark>[\n.,=\[\]{}])
    ''',
    re.VERBOSE | re.DOTALL,
)


def read_toml(text: str) -> dict[str, Any]:
    """Return the values of a TOML text.

    Raises:
        ValueError: it is not TOML, or is nested too deeply.
    """
    depth = names = 0
    for found in _TOKEN.finditer(text):
        match found["mark"]:
            case "[" | "{":
                depth += 1
            case "]" | "}":
                depth -= 1
            case ".":
                names += 1
            case "\n" | "," | "=":
                names = 0
            case _:
                continue
        if depth > MAXIMUM_DEPTH or names > MAXIMUM_DEPTH:
            line = text.count("\n", 0, found.start()) + 1
            raise ValueError(f"line {line}: it is nested more than {MAXIMUM_DEPTH} deep")
    try:
        return tomllib.loads(text)
    except (RecursionError, MemoryError) as error:
        raise ValueError(f"it is nested more than {MAXIMUM_DEPTH} deep") from error
