"""The YAML front matter of a Markdown file, such as a skill's or a subagent's. Pure."""

import re
from typing import Any, cast

from isthmus.text.visible import single_line

MAXIMUM_FRONT_MATTER = 16_384
"""Maximum length of the front matter in characters."""
_FRONT_MATTER = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)


def split_front_matter(text: str) -> tuple[dict[str, Any], str]:
    """Return the values of the front matter of a file, and the text below it.

    Raises:
        ValueError: the front matter is missing or is not a YAML mapping; the text says what.
    """
    found = _FRONT_MATTER.match(text[: MAXIMUM_FRONT_MATTER + 100])
    if found is None:
        raise ValueError(
            "expected front matter: a line ---, name: and description:, and another line ---, at the top of the file"
        )
    return _mapping(found[1]), text[found.end() :]


def _mapping(text: str) -> dict[str, Any]:
    import yaml

    try:
        values: Any = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 2}: " if error.problem_mark is not None else ""
        raise ValueError(f"{line}the front matter is not YAML: {error.problem or error.context}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ValueError(f"the front matter is not YAML: {single_line(str(error))}") from error
    if not isinstance(values, dict):
        raise ValueError("the front matter: expected name: and description:")
    return {str(key): value for key, value in cast("dict[Any, Any]", values).items()}


def text_of(values: dict[str, Any], key: str) -> str:
    """Return a text value in one line, empty if it is missing.

    Raises:
        ValueError: it is neither a text nor a number.
    """
    value = values.get(key)
    if value is None:
        return ""
    if not isinstance(value, str | int | float):
        raise ValueError(f"{key}: expected a text, received {type(value).__name__}")
    return " ".join(single_line(str(value)).split())
