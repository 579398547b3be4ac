"""The request ``/ui/api/history``: a search over all tasks that a user began, which A2A has not.

One request looks at a limited number of tasks and says how many; the page asks again until enough is found.
"""

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import parse_qs

from isthmus.a2a.server.application import BodyOf
from isthmus.a2a.server.http.http_request import HttpRequest
from isthmus.a2a.server.users.auth import Principal, Refusal
from isthmus.client import TaskPlace
from isthmus.errors import IsthmusError, Unavailable
from isthmus.events import TaskState
from isthmus.journal.port.base import Journal, TaskSearch
from isthmus.journal.port.task_rows import TaskRow
from isthmus.text.visible import with_ellipsis

MAXIMUM_WORDS: Final = 200
"""Maximum number of characters that are searched for."""
MAXIMUM_ID: Final = 200
"""Maximum length of a task's id in a place."""
EXCERPT_CHARACTERS: Final = 160
BEFORE_CHARACTERS: Final = 40
"""Number of characters of a prompt before the first word that was found in it."""
STATES: Final[Mapping[str, tuple[TaskState, ...]]] = {
    "": (),
    "waiting": (TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED),
    "working": (TaskState.SUBMITTED, TaskState.WORKING),
    "done": (TaskState.COMPLETED,),
    "failed": (TaskState.FAILED, TaskState.REJECTED, TaskState.CANCELED),
}
"""States of tasks by the names that requests use."""


class HistorySearch:
    """Search in a journal; ``roots`` returns the folders whose tasks are shown, none for all of them."""

    def __init__(self, journal: Journal, roots: Callable[[], Sequence[str]] = tuple) -> None:
        self._journal = journal
        self._roots = roots

    async def respond(self, principal: Principal, request: HttpRequest, body_of: BodyOf) -> dict[str, Any] | Refusal:
        """Answer a request with ``words``, ``state`` and ``after`` in its query, each of which may be missing.

        Raises:
            Unavailable: the journal cannot be reached at the moment.
        """
        query = parse_qs(request.scope.get("query_string", b"").decode("ascii", "replace"), keep_blank_values=True)
        words, state, after = (query.get(name, [""])[0] for name in ("words", "state", "after"))
        place = place_of(after)
        if state not in STATES or len(words) > MAXIMUM_WORDS or (after and place is None):
            return Refusal(
                400,
                f"expected words of at most {MAXIMUM_WORDS} characters, state as one of "
                f"{', '.join(filter(None, STATES))}, and after as it was in the last answer",
                {},
            )
        search = TaskSearch(tuple(words.split()), STATES[state], place)
        try:
            result = await self._journal.search(search, principal.name, self._roots())
        except Unavailable:
            raise
        except IsthmusError as error:
            return Refusal(503, str(error), {})
        return {
            "tasks": [_shown(row, prompt, search.words) for row, prompt in result.found],
            "searched": result.searched,
            "total": result.total,
            "next": "" if result.next is None else f"{result.next.updated_at!r}_{result.next.task_id}",
        }


def place_of(text: str) -> TaskPlace | None:
    """Return the place that an answer named as ``next``; None if it is not one."""
    updated, _, task_id = text.partition("_")
    with contextlib.suppress(ValueError):
        if 0 < len(task_id) <= MAXIMUM_ID and math.isfinite(number := float(updated)):
            return TaskPlace(number, task_id)
    return None


def excerpt(prompt: str, title: str, words: Sequence[str]) -> str:
    """Return what surrounds the first word in a prompt that is not in its title; empty if the title has all words."""
    shown, text = title.casefold(), " ".join(prompt.split())
    folded = text.casefold()
    places = [at for word in words if word.casefold() not in shown and (at := folded.find(word.casefold())) >= 0]
    if not places:
        return ""
    start = text.rfind(" ", 0, max(0, min(places) - BEFORE_CHARACTERS)) + 1
    return ("\N{HORIZONTAL ELLIPSIS}" if start else "") + with_ellipsis(text[start:], EXCERPT_CHARACTERS)


def _shown(row: TaskRow, prompt: str, words: Sequence[str]) -> dict[str, Any]:
    return {
        "id": row.task_id,
        "contextId": row.context_id,
        "title": row.title,
        "workspace": row.workspace,
        "state": row.state,
        "changed": row.updated_at,
        "prompt": excerpt(prompt, row.title, words),
    }
