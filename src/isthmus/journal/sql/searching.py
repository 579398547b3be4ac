"""Search for words in the titles, workspaces and first prompts of tasks: its SQL, and which rows match. No I/O.

Rows are matched here and not in SQL, which knows no case beyond ASCII. A step of a search looks at a limited number of
rows, and at the beginning of each prompt alone.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, Final

from isthmus.client import TaskQuery
from isthmus.journal.port.base import SEARCHED_CHARACTERS, TaskSearch
from isthmus.journal.sql.rows import COLUMNS, SqlDialect, task_conditions

FIRST_PROMPT: Final = (
    f"(SELECT substr(body, 1, {SEARCHED_CHARACTERS}) FROM events"
    " WHERE task = tasks.key AND seq = 1 AND type = 'Prompt')"
)
"""Column with the beginning of a task's first prompt as JSON."""
_NAMES: Final = COLUMNS.split(", ")
TITLE: Final = _NAMES.index("title")
WORKSPACE: Final = _NAMES.index("workspace")
# A value in the JSON of an event has no quote before its end, so that this is found only as the name of a member.
_TEXT: Final = re.compile(r'"text":"((?:[^"\\]+|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*)')


def search_conditions(
    search: TaskSearch, user: str, roots: Sequence[str], dialect: SqlDialect
) -> tuple[str, tuple[Any, ...]]:
    """Return the SQL condition for the rows that a search looks at, and its values: those that a user began."""
    fits, values = task_conditions(TaskQuery(), user, roots, dialect)
    fits += " AND parent = ''"
    if search.states:
        fits += f" AND {dialect.unindexed}state IN ({', '.join('?' * len(search.states))})"
    return fits, (*values, *search.states)


class TaskMatcher:
    """The words of a search."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = [word.casefold() for word in words]
        self._escaped = [word for word in self._words if '"' in word or "\\" in word or not word.isprintable()]

    def prompt_of(self, title: str, workspace: str, body: str | None) -> str | None:
        """Return the beginning of the first prompt of a task that has all words, empty if its title and workspace do.

        Return None if it has not all words. ``body`` is the beginning of the prompt's event as JSON; None if the task
        began with none.
        """
        shown = f"{title}\n{workspace}".casefold()
        missing = [word for word in self._words if word not in shown]
        if not missing:
            return ""
        if body is None:
            return None
        folded = body.casefold()  # most prompts are passed over by this; it takes a hundredth of the time of the rest
        if not all(word in folded for word in missing if word not in self._escaped):
            return None
        prompt = _text(body)
        folded = prompt.casefold()
        return prompt if all(word in folded for word in missing) else None


def _text(body: str) -> str:
    """Return the text of a prompt's event, as far as the beginning of its JSON goes."""
    found = _TEXT.search(body)
    return "" if found is None else json.loads(f'"{found[1]}"', strict=False)


class WordMatcher:
    """The words of a search over sessions."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = [word.casefold() for word in words]

    def fits(self, shown: str) -> bool:
        """Return whether all words are in what is shown of a session."""
        folded = shown.casefold()
        return all(word in folded for word in self._words)

    def found_in(self, shown: str, bodies: Sequence[str]) -> str | None:
        """Return the first prompt with a word that is not in ``shown``, empty if all are; None if a word is nowhere.

        ``bodies`` are the beginnings of the prompts' events as JSON.
        """
        folded = shown.casefold()
        missing = [word for word in self._words if word not in folded]
        if not missing:
            return ""
        first: str | None = None
        for body in bodies:
            plain = (
                body.casefold()
            )  # most prompts are passed over by this; it takes a hundredth of the time of the rest
            if not any(word in plain or _is_escaped(word) for word in missing):
                continue
            prompt = _text(body)
            folded = prompt.casefold()
            left = [word for word in missing if word not in folded]
            if len(left) < len(missing):
                first = prompt if first is None else first
            if not left:
                return first
            missing = left
        return None


def _is_escaped(word: str) -> bool:
    """Return whether a word is written differently in JSON."""
    return '"' in word or "\\" in word or not word.isprintable()
