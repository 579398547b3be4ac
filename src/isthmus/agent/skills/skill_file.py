"""The text of a ``SKILL.md``: YAML front matter with a name and a description, and instructions below it. Pure.

The form is the one that Gemini CLI and Claude Code share (https://agentskills.io/specification). Fields that would give
a skill permissions, such as ``allowed-tools``, count for nothing here.
"""

import re
from pathlib import Path

from isthmus.record import record
from isthmus.text.front_matter import split_front_matter, text_of

MAXIMUM_NAME = 64
"""Maximum length of a name in characters."""
MAXIMUM_DESCRIPTION = 1_024
"""Maximum length of a description in characters; the rest is cut."""
_NAME = re.compile(r"[\w][\w.-]*")


@record
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
    values, body = split_front_matter(text)
    name = text_of(values, "name") or folder.name
    if _NAME.fullmatch(name) is None or len(name) > MAXIMUM_NAME:
        raise ValueError(
            f"name: expected at most {MAXIMUM_NAME} letters, digits, '.', '_' and '-', received {name[:100]!r}"
        )
    description = text_of(values, "description")
    if not description:
        raise ValueError("description: expected a text that says when the skill is of use")
    instructions = body.strip()
    if not instructions:
        raise ValueError("expected instructions below the front matter")
    is_offered = values.get("disable-model-invocation") is not True
    return InstalledSkill(name, description[:MAXIMUM_DESCRIPTION], instructions, folder, is_of_project, is_offered)
