"""The text of a ``SKILL.md``: YAML front matter with a name and a description, and instructions below it. Pure.

The form is the one that Gemini CLI and Claude Code share (https://agentskills.io/specification). Fields that would give
a skill permissions, such as ``allowed-tools``, count for nothing here.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from isthmus.text.visible import single_line

MAXIMUM_FRONT_MATTER = 16_384
"""Maximum length of the front matter in characters."""
MAXIMUM_NAME = 64
"""Maximum length of a name in characters."""
MAXIMUM_DESCRIPTION = 1_024
"""Maximum length of a description in characters; the rest is cut."""
_FRONT_MATTER = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_NAME = re.compile(r"[\w][\w.-]*")


@dataclass(frozen=True, slots=True)
class InstalledSkill:
    """Instructions for one kind of work. ``folder`` (absolute) holds its ``SKILL.md`` and the files it refers to.

    ``is_offered``: the model may use it by itself; otherwise only the user names it.
    """

    name: str
    description: str
    instructions: str
    folder: Path
    is_of_project: bool = False
    is_offered: bool = True


def read_skill(text: str, folder: Path, *, is_of_project: bool = False) -> InstalledSkill:
    """Return the skill in the text of a ``SKILL.md`` in ``folder``.

    Raises:
        ValueError: the front matter is missing, is not YAML, or lacks something; the text says what.
    """
    found = _FRONT_MATTER.match(text[: MAXIMUM_FRONT_MATTER + 100])
    if found is None:
        raise ValueError(
            "expected front matter: a line ---, name: and description:, and another line ---, at the top of the file"
        )
    values = _mapping(found[1])
    name = _text(values, "name") or folder.name
    if _NAME.fullmatch(name) is None or len(name) > MAXIMUM_NAME:
        raise ValueError(
            f"name: expected at most {MAXIMUM_NAME} letters, digits, '.', '_' and '-', received {name[:100]!r}"
        )
    description = _text(values, "description")
    if not description:
        raise ValueError("description: expected a text that says when the skill is of use")
    instructions = text[found.end() :].strip()
    if not instructions:
        raise ValueError("expected instructions below the front matter")
    is_offered = values.get("disable-model-invocation") is not True
    return InstalledSkill(name, description[:MAXIMUM_DESCRIPTION], instructions, folder, is_of_project, is_offered)


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


def _text(values: dict[str, Any], key: str) -> str:
    value = values.get(key)
    if value is None:
        return ""
    if not isinstance(value, str | int | float):
        raise ValueError(f"{key}: expected a text, received {type(value).__name__}")
    return " ".join(single_line(str(value)).split())
