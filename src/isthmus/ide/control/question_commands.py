"""Commands of the control channel about questions: listing them, and answering one as the user."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from isthmus.encoding.codec import JsonObject
from isthmus.ide.companion import Companion
from isthmus.ide.control.commands import TERMINAL, ControlCommandError, end_of, question_to_json, requested_wait
from isthmus.ide.control.questions import ClientQuestion
from isthmus.ide.editor import Consent

MAXIMUM_REASON: Final = 20_000
"""Maximum number of characters of the user's words about a rejection."""


async def questions(companion: Companion, request: JsonObject) -> JsonObject:
    """Return the unanswered questions; with ``wait``, wait at most that many seconds for one."""
    asking, wait = companion.asking, requested_wait(request)
    found = asking.open_questions if wait is None else await asking.wait(wait)
    asking.listed.update(question.id for question in found)
    return {"questions": [question_to_json(question) for question in found]}


async def answer(companion: Companion, request: JsonObject) -> JsonObject:
    """Answer a question with ``yes`` true or false; with ``session``, a yes lasts until the agent disconnects.

    A yes counts after :func:`questions` returned the question. A no to a permission may have a ``reason``.
    """
    question_id, yes, is_lasting = request.get("id"), request.get("yes"), request.get("session", False)
    if not isinstance(question_id, str) or not isinstance(yes, bool) or not isinstance(is_lasting, bool):
        raise ControlCommandError("expected id as text, yes as true or false, and session, if given, as true or false")
    asking, reason = companion.asking, reason_in(request)
    question = next((found for found in asking.open_questions if found.id == question_id), None)
    if question is not None:
        require_answerable(question, is_lasting=is_lasting, reason="" if yes else reason)
        if yes and question_id not in asking.listed:
            asking.listed.add(question_id)
            raise ControlCommandError(
                f"question {question_id} was not shown here yet, so nothing is decided; read it, then answer again:\n"
                f"{question.title}\n{question.text}"
            )
    consent = Consent.SESSION if yes and is_lasting else Consent.of(yes=yes)
    answered = asking.answer(question_id, consent, by=TERMINAL, reason="" if yes else reason)
    if answered is None:
        raise ControlCommandError(_no_question(companion, question_id))
    return {"id": question_id, "title": answered.title, "yes": yes}


QUESTION_COMMANDS: Mapping[str, Callable[[Companion, JsonObject], Awaitable[JsonObject]]] = {
    "questions": questions,
    "answer": answer,
}


def reason_in(request: JsonObject) -> str:
    """Return the user's words about a no in a command; empty without any.

    Raises:
        ControlCommandError: expected text of at most 20,000 characters.
    """
    reason = request.get("reason") or ""
    if not isinstance(reason, str) or len(reason) > MAXIMUM_REASON:
        raise ControlCommandError(f"expected reason as text of at most {MAXIMUM_REASON} characters")
    return reason


def require_answerable(question: ClientQuestion, *, is_lasting: bool, reason: str) -> None:
    """Refuse what an answer to this question cannot have.

    Raises:
        ControlCommandError: a permission for one step cannot last, or the agent gets no words.
    """
    if is_lasting and question.is_permission:
        raise ControlCommandError("expected yes or no: this is a question about one step; nothing is decided")
    if reason and not question.is_permission:
        raise ControlCommandError(
            f"{question.client} gets no reason for the answer to this question; nothing is decided"
        )


def _no_question(companion: Companion, question_id: str) -> str:
    """Return why a question cannot be answered."""
    waiting = ", ".join(question.id for question in companion.asking.open_questions) or "none"
    outcome = companion.asking.outcomes.get(question_id)
    how = ""
    if outcome is not None:
        how = (
            f"; it was {end_of(outcome)}"
            if outcome.decision == "closed"
            else f"; {outcome.by} answered {outcome.decision}"
        )
    return f"no question {question_id} waits for an answer{how}; waiting questions: {waiting}"
