"""Items of a project's files that count only in a folder that the user trusts: programs, folders, variables, settings.

Pure. Each item has a digest of its content, so that one that is new or changed is not covered by an earlier consent
(:mod:`isthmus.settings.trust.agreements`). Not here: finding them, see :mod:`isthmus.settings.trust.forms` for settings
files and :mod:`isthmus.settings.trust.reading` for the others, and the texts that a user is shown.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import field
from enum import StrEnum

from isthmus.encoding.json_shapes import as_list, as_object
from isthmus.record import record


class ItemKind(StrEnum):
    """Kind of an item; its value is the word for it in lists that a user is shown."""

    SERVER = "MCP server"
    """Program that is started, or URL that is connected to."""
    HOOK = "hook"
    """Program that runs at an event."""
    COMMAND = "slash command"
    """Custom command that runs the shell."""
    FOLDER = "further folder"
    """Folder outside the project in which the agent works."""
    VARIABLE = "variable"
    """Variable of a ``.env`` file."""
    SETTING = "setting"
    SKILL = "skill"
    SUBAGENT = "subagent"


@record
class ProjectItem:
    """An entry of a project's file: ``file`` is its path in the project, with ``/``; ``value`` is the parsed entry."""

    kind: ItemKind
    file: str
    name: str
    value: object = field(repr=False)

    @property
    def digest(self) -> str:
        """SHA-256 of all of the item, in hexadecimal digits."""
        content = json.dumps([self.kind.value, self.file, self.name, self.value], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()


def hook_command(item: ProjectItem) -> str:
    """Return the command line of a hook; empty if it has none."""
    handler = as_object(as_object(item.value).get("hook"))
    words = [handler.get("command"), *as_list(handler.get("args"))]
    return " ".join(word for word in words if isinstance(word, str))


def distinct(items: Iterable[ProjectItem]) -> Iterator[ProjectItem]:
    """Yield the items, each once."""
    seen: set[str] = set()
    for item in items:
        if item.digest not in seen:
            seen.add(item.digest)
            yield item
