"""Answers by the buttons of notifications: a token answers one question, as it was shown, from one device, once.

The token is the whole credential: the service worker of a page has no other. It is worth nothing any more when its
device was removed or switched answers off, when it is too old, and when the question was answered or asks for something
else.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from isthmus.a2a.server.users.users import TokenEntry
from isthmus.client import AgentClient, ChangedQuestion, InvalidRequest, ShownAnswerer, TaskNotFound
from isthmus.development_tool import ToolCallConfirmation
from isthmus.errors import IsthmusError
from isthmus.record import record
from isthmus.web.pairing.devices import Devices
from isthmus.web.push.pushed_facts import question_digest
from isthmus.web.push.sent_file import SentFile
from isthmus.web.push.sent_questions import AnswerRecord, AnswerToken, SentQuestion
from isthmus.web.push.task_facts import TaskFacts

AgentOf: TypeAlias = Callable[[str], AgentClient]


class AnswerTokenError(IsthmusError):
    """Raised when a token answers nothing; the text says why, as far as its holder may know."""


class QuestionGoneError(IsthmusError):
    """Raised when a question does not wait any more as it was shown.

    ``outcome`` is how it ended, None if it asks for something else now; ``is_own``: the token's device answered it.
    """

    def __init__(self, message: str, outcome: AnswerRecord | None, *, is_own: bool = False) -> None:
        super().__init__(message)
        self.outcome = outcome
        self.is_own = is_own


@record
class PushedAnswer:
    """An answer that was taken: the question, the token, and how the question ended."""

    question: SentQuestion
    token: AnswerToken
    outcome: AnswerRecord
    user: str


@dataclass(slots=True)
class PushedAnswers:
    """The answers to the questions of one server; ``agent_of`` returns the agent as a user sees it."""

    told: SentFile
    users: Devices
    tasks: TaskFacts
    agent_of: AgentOf
    now: Callable[[], float] = time.time
    answering: dict[str, str] = field(default_factory=dict[str, str])
    """Ids of the devices whose answers are being stored, by the keys of the questions."""

    async def answer(self, token: str) -> PushedAnswer:
        """Answer a question by a token.

        Raises:
            AnswerTokenError: the token answers nothing.
            QuestionGoneError: the question does not wait any more as it was shown.
            Unavailable: the journal cannot be reached at the moment.
            IsthmusError: the answer cannot be stored.
        """
        question, known, entry = await asyncio.to_thread(self._find, token)
        if question.outcome is not None:
            raise _gone(question.outcome, known.device)
        self.answering[question.key] = known.device
        try:
            await self._store(question, known, entry)
            outcome = AnswerRecord(entry.device, self.now(), known.act, known.device)
            await self._note(question, outcome)
        finally:
            self.answering.pop(question.key, None)
        return PushedAnswer(question, known, outcome, entry.name)

    def _find(self, token: str) -> tuple[SentQuestion, AnswerToken, TokenEntry]:
        """Return what a token answers, if its device may still answer. Blocks."""
        found = self.told.read().find(token)
        if found is None:
            raise AnswerTokenError("this notification answers nothing any more; open the question")
        question, known = found
        now = self.now()
        if known.expires <= now:
            raise AnswerTokenError("this notification is too old to be answered; open the question")
        entry = self.users.table().entries.get(known.device)
        if entry is None or not entry.device or entry.is_expired(now) or entry.name != question.user:
            raise AnswerTokenError("this device was removed; pair it again")
        if entry.push is None or not entry.push.answers:
            raise AnswerTokenError("answers in notifications are off for this device; open the question")
        return question, known, entry

    async def _store(self, question: SentQuestion, known: AnswerToken, entry: TokenEntry) -> None:
        agent = self.agent_of(question.user)
        if not isinstance(agent, ShownAnswerer):
            raise AnswerTokenError("this agent takes no answers from notifications; open the question")
        try:
            await agent.answer_shown(
                question.task_id,
                ToolCallConfirmation(question.call_id, known.option),
                lambda call: question_digest(call) == question.shown,
                answered_by=entry.device,
                message_id=f"notification-{known.digest[:32]}",
            )
        except ChangedQuestion as error:
            raise QuestionGoneError(str(error), None) from error
        except (InvalidRequest, TaskNotFound) as error:
            outcome = await self.tasks.outcome(question.task_id, question.call_id) or AnswerRecord("", self.now())
            await self._note(question, outcome)
            raise _gone(outcome, known.device) from error

    async def _note(self, question: SentQuestion, outcome: AnswerRecord) -> None:
        await asyncio.to_thread(
            self.told.change, lambda table: (table.with_outcome(question.key, question.shown, outcome), None)
        )


def _gone(outcome: AnswerRecord, device: str) -> QuestionGoneError:
    by = outcome.by or "nobody, because the task went on without an answer"
    return QuestionGoneError(
        f"this question was answered before, by {by}", outcome, is_own=bool(device) and outcome.device == device
    )
