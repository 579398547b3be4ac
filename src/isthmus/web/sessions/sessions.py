"""The requests ``/ui/api/sessions``: the tasks of a user as sessions, which A2A has not; also names and the archive.

One request for the list looks at a limited number of tasks; the page asks again until enough is found.
"""

import asyncio
import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import parse_qs

from isthmus.a2a.server.application import BodyOf
from isthmus.a2a.server.http.http_request import HttpRequest
from isthmus.a2a.server.users.auth import Principal, Refusal
from isthmus.client import LimitReached
from isthmus.encoding.json_text import JsonError, decode
from isthmus.errors import IsthmusError, Unavailable
from isthmus.journal.port.base import Journal
from isthmus.journal.port.sessions import (
    DRAFT_CHARACTERS,
    TITLE_CHARACTERS,
    QueuedMessage,
    SessionPlace,
    SessionQuery,
    SessionRow,
    SessionState,
)
from isthmus.journal.port.task_rows import TaskRow
from isthmus.text.visible import visible_line, with_ellipsis
from isthmus.web.http.refusals import RefusalCode, refusal
from isthmus.web.sessions.message_queue import BadMessageError, MessageQueue, edited, shown, written_from
from isthmus.worktrees.checked_out import branch_of

MAXIMUM_WORDS: Final = 200
"""Maximum number of characters that are searched for."""
MAXIMUM_ID: Final = 1000
"""Maximum length of a context's id in a place."""
MAXIMUM_BODY: Final = 24_000_000
"""Maximum size of a request in bytes."""
MAXIMUM_MESSAGE_ID: Final = 100
"""Maximum length of a message's id."""
EXCERPT_CHARACTERS: Final = 160
BEFORE_CHARACTERS: Final = 40
"""Number of characters of a prompt before the first word that was found in it."""
_SENT: Final = "this message does not wait any more: it was sent, or removed"
_UNKNOWN: Final = "you have no such session; list the sessions"
_EXPECTED: Final = (
    f'expected {{"do": "rename", "title": TEXT}} with at most {TITLE_CHARACTERS} characters, or another change that'
    " docs/reference/workbench.md names"
)


class SessionsApi:
    """The sessions of a journal; ``roots`` returns the folders whose sessions are shown, none for all of them.

    ``agent`` is the name of the agent that works in them. Without a ``queue`` no messages can wait.
    """

    def __init__(
        self,
        journal: Journal,
        agent: str,
        roots: Callable[[], Sequence[str]] = tuple,
        queue: MessageQueue | None = None,
    ) -> None:
        self._queue = queue
        self._sessions = journal.sessions
        self._agent = agent
        self._roots = roots

    async def respond(
        self, name: str, principal: Principal, request: HttpRequest, body_of: BodyOf
    ) -> dict[str, Any] | Refusal:
        """Answer a request for ``sessions``, or ``sessions/`` and the id of a context.

        Raises:
            Unavailable: the journal cannot be reached at the moment.
        """
        _, _, context_id = name.partition("/")
        try:
            match request.method, context_id:
                case "GET", "":
                    return await self._list(principal.name, request)
                case "GET", _:
                    return await self._one(principal.name, context_id)
                case "POST", str() if context_id:
                    return await self._change(principal.name, context_id, await body_of(request, MAXIMUM_BODY))
                case _:
                    return refusal(
                        RefusalCode.WRONG_METHOD, "expected GET, or POST for one session", {"Allow": "GET, POST"}
                    )
        except Unavailable:
            raise
        except IsthmusError as error:
            return refusal(RefusalCode.UNAVAILABLE, str(error))

    async def _list(self, user: str, request: HttpRequest) -> dict[str, Any] | Refusal:
        query = parse_qs(request.scope.get("query_string", b"").decode("ascii", "replace"), keep_blank_values=True)
        words, state, archived, after = (query.get(name, [""])[0] for name in ("words", "state", "archived", "after"))
        place = place_of(after)
        is_known = state in ("", *SessionState) and archived in ("", "1")
        if not is_known or len(words) > MAXIMUM_WORDS or (after and place is None):
            return refusal(
                RefusalCode.BAD_REQUEST,
                f"expected words of at most {MAXIMUM_WORDS} characters, state as one of {', '.join(SessionState)},"
                " archived as 1, and after as it was in the last answer",
            )
        asked = SessionQuery(tuple(words.split()), SessionState(state) if state else None, archived == "1", place)
        result = await self._sessions.list(asked, user, self._roots())
        return {
            "sessions": [
                {**self._shown(row), "prompt": excerpt(prompt, row.title, asked.words)} for row, prompt in result.found
            ],
            "searched": result.searched,
            "next": "" if result.next is None else f"{result.next.updated_at!r}_{result.next.context_id}",
        }

    async def _one(self, user: str, context_id: str) -> dict[str, Any] | Refusal:
        row = await self._sessions.session(context_id, user, self._roots())
        if row is None:
            return refusal(RefusalCode.NO_SUCH_SESSION, _UNKNOWN)
        queued = await self._sessions.queue(context_id, user)
        return {
            **self._shown(row),
            "branch": await asyncio.to_thread(branch_of, Path(row.workspace)) if row.workspace else "",
            "tasks": [_turn(task) for task in row.tasks],
            "draft": row.note.draft,
            "queued": [shown(message) for message in queued],
        }

    async def _change(self, user: str, context_id: str, body: bytes | Refusal) -> dict[str, Any] | Refusal:
        if isinstance(body, Refusal):
            return body
        given = _object(body)
        if await self._sessions.session(context_id, user, self._roots()) is None:
            return refusal(RefusalCode.NO_SUCH_SESSION, _UNKNOWN)
        match given:
            case {"do": "rename", "title": str(title)} if len(title) <= TITLE_CHARACTERS:
                is_there = await self._sessions.rename(context_id, user, visible_line(title.strip()))
            case {"do": "draft", "text": str(text)} if len(text) <= DRAFT_CHARACTERS:
                is_there = await self._sessions.draft(context_id, user, text)
            case {"do": "archive"}:
                is_there = await self._sessions.archive(context_id, user, is_archived=True)
            case {"do": "restore"}:
                is_there = await self._sessions.archive(context_id, user, is_archived=False)
            case {"do": "queue" | "edit" | "remove" | "first" | "send" as what, "id": str(message_id)} if (
                self._queue is not None and 0 < len(message_id) <= MAXIMUM_MESSAGE_ID
            ):
                problem = await self._change_queue(self._queue, user, context_id, what, message_id, given)
                return problem or await self._one(user, context_id)
            case _:
                return refusal(RefusalCode.BAD_REQUEST, _EXPECTED)
        return await self._one(user, context_id) if is_there else refusal(RefusalCode.NO_SUCH_SESSION, _UNKNOWN)

    async def _change_queue(
        self,
        queue: MessageQueue,
        user: str,
        context_id: str,
        what: str,
        message_id: str,
        given: Mapping[str, Any],
    ) -> Refusal | None:
        try:
            match what:
                case "queue":
                    message = QueuedMessage(message_id, written_from(given).body)
                    await self._sessions.put(context_id, user, message)
                    queue.wake()  # the turn may have ended meanwhile
                case "edit":
                    waiting = await self._sessions.queue(context_id, user)
                    found = next((one for one in waiting if one.id == message_id), None)
                    if found is None:
                        return refusal(RefusalCode.MESSAGE_GONE, _SENT)
                    body = edited(found, given).body
                    await self._sessions.put(context_id, user, QueuedMessage(message_id, body))
                    queue.wake()
                case "remove":
                    await self._sessions.drop(context_id, user, message_id)
                case "first":
                    await self._sessions.move_first(context_id, user, message_id)
                case _:
                    if problem := await queue.send(context_id, user, message_id):
                        return refusal(RefusalCode.MESSAGE_NOT_SENT, problem)
        except (BadMessageError, LimitReached) as error:
            return refusal(RefusalCode.MESSAGE_NOT_KEPT, str(error))
        return None

    def _shown(self, row: SessionRow) -> dict[str, Any]:
        newest = row.tasks[-1]
        return {
            "contextId": row.context_id,
            "title": row.title,
            "given": row.given_title,
            "workspace": row.workspace,
            "agent": self._agent,
            "state": row.state,
            "turns": len(row.tasks),
            "began": row.tasks[0].created_at,
            "changed": row.updated_at,
            "questions": row.questions,
            "archived": row.note.archived_at is not None,
            "task": newest.task_id,
            "turnState": newest.state,
        }


def place_of(text: str) -> SessionPlace | None:
    """Return the place that an answer named as ``next``; None if it is not one."""
    updated, _, context_id = text.partition("_")
    with contextlib.suppress(ValueError):
        if 0 < len(context_id) <= MAXIMUM_ID and math.isfinite(number := float(updated)):
            return SessionPlace(number, context_id)
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


def _turn(task: TaskRow) -> dict[str, Any]:
    return {
        "id": task.task_id,
        "title": task.title,
        "state": task.state,
        "began": task.created_at,
        "changed": task.updated_at,
        "questions": len(task.pending),
    }


def _object(body: bytes) -> Mapping[str, Any]:
    try:
        value: object = decode(body)
    except JsonError:
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
