"""Commands of the control channel for pages that show all reviews and questions of a companion, and answer them.

Other than the commands that a user types, they name a review by its id, state what the user saw, and say who answers.
If the file or the text to accept has changed since, or it has ended, nothing is decided and the answer says so.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from typing import Any, Final

from isthmus.encoding.codec import JsonObject
from isthmus.ide.companion import Companion
from isthmus.ide.control.commands import ControlCommandError
from isthmus.ide.control.page_files import FILE_COMMANDS, shown_files
from isthmus.ide.control.question_commands import reason_in, require_answerable
from isthmus.ide.control.written_commands import WRITTEN_PAGE_COMMANDS, WRITTEN_PAGE_PERMISSIONS
from isthmus.ide.editor import Consent
from isthmus.ide.reviews.file_before import file_before
from isthmus.ide.reviews.outcomes import Outcome
from isthmus.ide.reviews.reviewed_file import seen_state, typed_in_browser
from isthmus.ide.workspace.workspace_files import FileStamp
from isthmus.text.visible import visible_line

MAXIMUM_WAIT_SECONDS: Final = 60.0
"""Maximum time in seconds for which a command waits for a change."""
MAXIMUM_NAME: Final = 60
"""Maximum number of characters of the name of who answers."""


async def waiting(companion: Companion, request: JsonObject) -> JsonObject:
    """Return the open reviews without their texts, the open questions, and the newest ones that have ended.

    ``files`` are the files that are open in the page; null if it shows none because the editor does. ``written`` are
    the numbers of files and turns that agents wrote and the user has not looked at, which agents, and since when.
    """
    queue, asking = companion.queue, companion.asking
    pids = {client.id: client.pid for client in companion.clients}
    ended = sorted((*queue.outcomes.all, *asking.outcomes.all), key=lambda outcome: outcome.at)
    return {
        "editor": companion.editor.identity.display_name,
        "folders": list(await companion.workspace_folders()),
        "agents": [client.title for client in companion.clients],
        "reviews": [
            {
                "id": review.id,
                "file": review.file_path,
                "agent": review.title,
                "owner": hashlib.sha256(review.owner.encode()).hexdigest()[:16],
                "pid": pids.get(review.owner),
                "opened": review.opened,
                "shown": queue.is_visible(review),
                "new": FileStamp.of(review.target) is None,
            }
            for review in companion.reviews.all()
        ],
        "questions": [
            {
                "id": question.id,
                "agent": question.client,
                "title": question.title,
                "text": question.text,
                "opened": question.asked,
                "permission": question.is_permission,
            }
            for question in asking.open_questions
        ],
        "ended": [asdict(outcome) for outcome in ended],
        "files": await shown_files(companion),
        "written": companion.written.summary(),
    }


async def changes(companion: Companion, request: JsonObject) -> JsonObject:
    """Wait until something of :func:`waiting` may have changed since the count ``after``; return the new ``count``.

    It waits at most ``wait`` seconds, up to a minute.
    """
    after, wait = request.get("after"), request.get("wait")
    if not isinstance(after, int) or not isinstance(wait, (int, float)):
        raise ControlCommandError("expected after and wait as numbers")
    return {"count": await companion.changes.wait(after, min(max(wait, 0.0), MAXIMUM_WAIT_SECONDS))}


async def review(companion: Companion, request: JsonObject) -> JsonObject:
    """Return the texts of an open review: ``old`` on disk (null without a text) and ``new``, with their ``state``.

    ``before`` describes a file that is not text, as :attr:`FileBefore.other`.
    """
    review_id = _text(request, "id")
    found = companion.reviews.get(review_id)
    if found is None:
        return _late(companion.queue.outcomes.get(review_id))
    before = await asyncio.to_thread(file_before, found.file_path)
    new = companion.queue.texts.typed.get(review_id, found.proposed)
    return {
        "id": review_id,
        "file": found.file_path,
        "agent": found.title,
        "old": before.text,
        "before": before.other,
        "new": new,
        "state": seen_state(before.digest, new),
        "reasons": companion.queue.owners.takes_reasons(found),
    }


async def decide(companion: Companion, request: JsonObject) -> JsonObject:
    """Accept or reject a review on behalf of the user.

    An acceptance has the ``state`` of what the user saw, and the text as they changed it in ``content``. The answer has
    the ``outcome``, with ``late`` if it ended elsewhere before; or ``changed`` if they saw something else. A rejection
    may have a ``reason`` for an agent whose protocol carries one; otherwise it is refused, and nothing is decided.
    """
    review_id, decision, by = _text(request, "id"), request.get("decision"), _name(request)
    content, reason = request.get("content"), reason_in(request)
    if decision not in ("accept", "reject") or not (content is None or isinstance(content, str)):
        raise ControlCommandError("expected decision as accept or reject, and content, if given, as text")
    found, outcomes = companion.reviews.get(review_id), companion.queue.outcomes
    if found is None:
        return _late(outcomes.get(review_id))
    if decision == "reject":
        if reason and not companion.queue.owners.takes_reasons(found):
            raise ControlCommandError(f"{found.title} takes no reason in its protocol; nothing is decided")
        decided = await companion.answers.reject(review_id, by=by, reason=reason)
    else:
        before = await asyncio.to_thread(file_before, found.file_path)
        shown = companion.queue.texts.typed.get(review_id, found.proposed)
        if _text(request, "state") != seen_state(before.digest, shown):
            return {"changed": True}
        decided = await companion.answers.accept(review_id, typed_in_browser(shown, content), by=by, has_seen_file=True)
    return _late(outcomes.get(review_id)) if decided is None else {"outcome": _outcome(outcomes.get(review_id))}


async def reply(companion: Companion, request: JsonObject) -> JsonObject:
    """Answer a question with ``answer`` yes, session or no; the result is as of :func:`decide`.

    A no to a permission may have a ``reason`` for the agent.
    """
    question_id, asking = _text(request, "id"), companion.asking
    consent = next((each for each in Consent if each.value == request.get("answer")), None)
    if consent is None:
        raise ControlCommandError("expected answer as yes, session or no")
    reason = "" if consent.is_yes else reason_in(request)
    question = next((found for found in asking.open_questions if found.id == question_id), None)
    if question is not None:
        require_answerable(question, is_lasting=consent is Consent.SESSION, reason=reason)
    answered = asking.answer(question_id, consent, by=_name(request), reason=reason)
    outcome = asking.outcomes.get(question_id)
    return _late(outcome) if answered is None else {"outcome": _outcome(outcome)}


PAGE_COMMANDS: Mapping[str, Callable[[Companion, JsonObject], Awaitable[JsonObject]]] = {
    "waiting": waiting,
    "changes": changes,
    "review": review,
    "decide": decide,
    "reply": reply,
    **FILE_COMMANDS,
    **WRITTEN_PAGE_COMMANDS,
}
PAGE_PERMISSIONS = frozenset({"decide", "reply"}) | WRITTEN_PAGE_PERMISSIONS
"""Commands of a page that give a permission on the user's behalf."""


def _late(outcome: Outcome | None) -> JsonObject:
    return {"late": True, "outcome": _outcome(outcome)}


def _outcome(outcome: Outcome | None) -> dict[str, Any] | None:
    return None if outcome is None else asdict(outcome)


def _text(request: JsonObject, name: str) -> str:
    value = request.get(name)
    if not isinstance(value, str):
        raise ControlCommandError(f"expected {name} as text")
    return value


def _name(request: JsonObject) -> str:
    """Return the name of who answers, in one line."""
    return visible_line(_text(request, "by"))[:MAXIMUM_NAME].strip() or "a browser"
