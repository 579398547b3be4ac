"""Requests of pages and service workers about notifications: checked and answered."""

import logging
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from starlette.responses import Response
from starlette.types import Scope

from isthmus.a2a.push.targets import URL_CHARACTERS
from isthmus.a2a.server.logs.access_log import AnswerNote, note_of
from isthmus.a2a.server.users.auth import Refusal
from isthmus.a2a.server.users.users import BrowserPush, TokenEntry
from isthmus.listeners.connection_slot import token_shown
from isthmus.web.http.refusals import RefusalCode, refusal, refused
from isthmus.web.push.answering import AnswerTokenError, PushedAnswers, QuestionGoneError
from isthmus.web.push.notifications import NoNotificationsError, Notifications
from isthmus.web.push.sent_questions import AnswerRecord

LANGUAGES: Final = ("en", "zh-Hans", "zh-Hant")
"""Tags of the languages of notifications."""
MAXIMUM_TOKEN: Final = 200
"""Maximum length of a token of a notification in characters."""
_ONLY_DEVICES: Final = "only a paired browser gets notifications"

PushReply: TypeAlias = dict[str, Any] | Refusal | Response
log = logging.getLogger(__name__)


async def push_state(notifications: Notifications | None, entry: TokenEntry | None) -> PushReply:
    """Return whether the server can notify, and what it sends to a device."""
    if entry is None or not entry.device or notifications is None:
        return {"key": None, "reason": _ONLY_DEVICES, "endpoint": None, "answers": False}
    push = entry.push
    try:
        key = await notifications.public_key()
    except NoNotificationsError as error:
        log.warning("%s", error)
        return {"key": None, "reason": str(error), "endpoint": None, "answers": False}
    endpoint = None if push is None else push.endpoint
    return {"key": key, "reason": None, "endpoint": endpoint, "answers": push is not None and push.answers}


async def subscribe(
    notifications: Notifications | None, entry: TokenEntry | None, given: Mapping[str, Any]
) -> PushReply:
    """Store a subscription of a device.

    Raises:
        UsersError: it cannot be stored.
    """
    if entry is None or not entry.device or notifications is None:
        return refusal(RefusalCode.PAIRED_ONLY, _ONLY_DEVICES)
    values = [given.get(name) for name in ("endpoint", "p256dh", "auth")]
    texts = [value for value in values if isinstance(value, str) and 0 < len(value) <= URL_CHARACTERS]
    language, answers = given.get("language", ""), given.get("answers", entry.push is not None and entry.push.answers)
    if len(texts) != len(values) or language not in ("", *LANGUAGES) or not isinstance(answers, bool):
        return refusal(
            RefusalCode.BAD_REQUEST,
            f"expected endpoint, p256dh and auth, all texts, perhaps language ({', '.join(LANGUAGES)}) and answers",
        )
    try:
        await notifications.subscribe(entry.id, BrowserPush(texts[0], texts[1], texts[2], language, answers))
    except NoNotificationsError as error:
        return refusal(RefusalCode.NO_NOTIFICATIONS, str(error))
    return {"endpoint": texts[0], "answers": answers}


async def let_answer(notifications: Notifications | None, token_id: str, given: Mapping[str, Any]) -> PushReply:
    """Set whether notifications of a device have buttons that answer.

    Raises:
        UsersError: it cannot be stored.
    """
    answers = given.get("answers")
    if not isinstance(answers, bool):
        return refusal(RefusalCode.BAD_REQUEST, "expected answers as true or false")
    if notifications is None or not await notifications.let_answer(token_id, answers=answers):
        return refusal(RefusalCode.NOTIFICATIONS_OFF, "this device gets no notifications; switch them on first")
    return {"answers": answers}


async def answer_pushed(answers: PushedAnswers | None, scope: Scope, given: Mapping[str, Any]) -> PushReply:
    """Answer a question by the token of a notification, the only credential that is looked at.

    Raises:
        Unavailable: the journal cannot be reached at the moment.
    """
    token = given.get("token")
    if not isinstance(token, str) or not 0 < len(token) <= MAXIMUM_TOKEN:
        return refusal(RefusalCode.BAD_REQUEST, "expected token as text")
    if answers is None:
        return refusal(RefusalCode.UNAVAILABLE, "the agent does not run yet; try again")
    note = note_of(scope)
    try:
        taken = await answers.answer(token)
    except AnswerTokenError as error:
        note.reason = str(error)
        return refusal(RefusalCode.NOTIFICATION_SPENT, str(error))
    except QuestionGoneError as error:
        outcome = None if error.outcome is None else _shown(error.outcome, is_own=error.is_own)
        return refused(refusal(RefusalCode.QUESTION_GONE, str(error)), {"changed": outcome is None, "outcome": outcome})
    token_shown(scope)
    question = taken.question
    note.user, note.auth, note.token_id, note.task_id = taken.user, "notification", taken.token.device, question.task_id
    note.answers = (AnswerNote(question.call_id, "", taken.token.option),)
    return {"outcome": _shown(taken.outcome, is_own=True)}


def _shown(outcome: AnswerRecord, *, is_own: bool) -> dict[str, Any]:
    return {"by": outcome.by, "at": outcome.at, "act": outcome.act or None, "own": is_own}
