"""Tells the devices of users of the questions that wait for them, once each, and how they ended.

A question is told when it begins to wait, or when the server starts and its device was not told. More than a few are
one summary. Devices that were told of a question learn of its end, so that no notification asks in vain.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from isthmus.a2a.server.users.users import TokenEntry
from isthmus.engine.followers.open_questions import OpenQuestions
from isthmus.errors import IsthmusError
from isthmus.web.push.answering import PushedAnswers
from isthmus.web.push.messages import SUMMARY_TOPIC, ended_text, question_text, summary_text, topic_of
from isthmus.web.push.notifications import Notifications, PushMessage
from isthmus.web.push.pushed_facts import PushedAct, PushedFacts, pushed_answers, pushed_facts, shown_title
from isthmus.web.push.sent_file import SentFile
from isthmus.web.push.sent_questions import (
    TOKEN_SECONDS,
    AnswerRecord,
    AnswerToken,
    SentQuestion,
    SentTable,
    new_token,
    token_digest,
)
from isthmus.web.push.task_facts import TaskFacts
from isthmus.web.push.waiting_questions import EndedQuestion, WaitingQuestion, WaitingQuestions

GATHER_SECONDS = 0.05
"""Time in seconds for which changes are gathered before devices are told of them."""
MOST_SINGLE = 3
"""Maximum number of questions of a user that have a notification each; more have one together."""

log = logging.getLogger(__name__)


@dataclass(slots=True)
class QuestionNotices:
    """The notifications about questions. ``agent`` is the name of who asks, ``home`` is written as ``~``."""

    notifications: Notifications
    answers: PushedAnswers
    tasks: TaskFacts
    agent: str
    home: str = field(default_factory=lambda: str(Path.home()))
    gather_seconds: float = GATHER_SECONDS
    _waiting: WaitingQuestions = field(default_factory=WaitingQuestions)

    @property
    def told(self) -> SentFile:
        """The file of the questions that devices were told of."""
        return self.answers.told

    async def run(self, questions: OpenQuestions) -> None:
        """Tell devices of questions, until cancelled."""
        news = asyncio.Event()
        news.set()  # what waits already, and what ended while no server ran
        following = asyncio.create_task(self._follow(questions, news), name="isthmus-open-questions")
        is_first = True
        try:
            while True:
                await news.wait()
                await asyncio.sleep(self.gather_seconds)
                news.clear()
                began, ended = self._waiting.take()
                await self._at_once(self._told_of(began))
                await self._at_once(partial(self._end, each) for each in ended)
                if is_first:
                    await self._at_once([self._end_missed])
                    is_first = False
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
            await self.notifications.aclose()

    async def _follow(self, questions: OpenQuestions, news: asyncio.Event) -> None:
        async with contextlib.aclosing(questions.changes()) as changes:
            async for change in changes:
                self._waiting.note(change)
                news.set()

    async def _at_once(self, steps: Iterable[Callable[[], Awaitable[None]]]) -> None:
        """Do steps; one that fails stops no other."""
        for step in steps:
            try:
                await step()
            except IsthmusError as error:
                log.warning("devices were not told of a question: %s", error)
            except Exception:  # nothing awaits this
                log.exception("devices were not told of a question because of a bug")

    def _told_of(self, began: Sequence[WaitingQuestion]) -> Sequence[Callable[[], Awaitable[None]]]:
        """Return the steps that tell of questions."""
        steps: list[Callable[[], Awaitable[None]]] = []
        for user in dict.fromkeys(question.user for question in began):
            own = [question for question in began if question.user == user]
            if self._waiting.count(user) > MOST_SINGLE:
                steps.append(partial(self._tell_together, user, own))
            else:
                steps += [partial(self._tell, question) for question in own]
        return steps

    async def _tell(self, question: WaitingQuestion) -> None:
        """Tell each device that was not told of it yet."""
        table = await asyncio.to_thread(self.told.read)
        told = _told(table, question)
        devices = [entry for entry in self.notifications.wanting(question.user) if entry.id not in told]
        if not devices:
            return
        facts = self._facts(question)
        tokens = await self._keep(question, table, devices, facts)
        about = {**await self._about(question), "waiting": self._waiting.count(question.user)}
        for entry in devices:
            answers = {act.value: token for device, act, token in tokens if device == entry.id}
            text = question_text(question.key, facts, about, answers, _language(entry))
            self._send(entry, text, question.key, "high", [question])

    async def _tell_together(self, user: str, questions: Sequence[WaitingQuestion]) -> None:
        """Tell each device once that many questions wait, if it was not told of one of these yet."""
        table = await asyncio.to_thread(self.told.read)
        for entry in self.notifications.wanting(user):
            new = [question for question in questions if entry.id not in _told(table, question)]
            if not new:
                continue
            for question in new:
                await self._keep(question, table, [entry], PushedFacts(""))
            text = summary_text(self._waiting.count(user), {"agent": self.agent}, _language(entry))
            self._send(entry, text, SUMMARY_TOPIC, "high", new)

    async def _keep(
        self, question: WaitingQuestion, table: SentTable, devices: Sequence[TokenEntry], facts: PushedFacts
    ) -> Sequence[tuple[str, PushedAct, str]]:
        """Store that devices are being told, with the tokens for them; return these by device and act.

        They are stored first: an answer may come before the push service has said that it took the message.
        """
        now, options = self.notifications.now(), pushed_answers(question.calls[0], facts)
        made = [
            (entry.id, act, option.id, new_token())
            for entry in devices
            if entry.push is not None and entry.push.answers and len(question.calls) == 1
            for act, option in options.items()
        ]
        tokens = tuple(
            AnswerToken(token_digest(token), device, act.value, option, now + TOKEN_SECONDS)
            for device, act, option, token in made
        )

        def change(table: SentTable) -> tuple[SentTable, None]:
            known = table.questions.get(question.key)
            if known is None or known.shown != question.shown or known.outcome is not None:
                known = SentQuestion(question.user, question.task_id, question.call_id, question.shown, now)
            others = [token for token in known.tokens if token.device not in {entry.id for entry in devices}]
            return table.with_question(replace(known, tokens=(*others, *tokens)), now), None

        await asyncio.to_thread(self.told.change, change)
        return [(device, act, token) for device, act, _, token in made]

    async def _end(self, ended: EndedQuestion) -> None:
        """Tell the devices that were told of a question how it ended, but not the one that answered it by that."""
        question = ended.question
        outcome = AnswerRecord(ended.by, self.notifications.now(), device=self.answers.answering.get(question.key, ""))
        await self._tell_end(question.key, question.shown, outcome, self._facts(question))

    async def _end_missed(self) -> None:
        """Tell of the ends of questions that ended while no server ran."""
        table, open_keys = await asyncio.to_thread(self.told.read), {each.key for each in self._waiting.all}
        for known in table.questions.values():
            if known.outcome is not None or known.key in open_keys:
                continue
            if not await self.tasks.waits(known.task_id, known.call_id):
                outcome = await self.tasks.outcome(known.task_id, known.call_id)
                outcome = outcome or AnswerRecord("", self.notifications.now())
                await self._tell_end(known.key, known.shown, outcome, PushedFacts(""))

    async def _tell_end(self, key: str, shown: str, outcome: AnswerRecord, facts: PushedFacts) -> None:
        """Store how a question ended, if that is not known yet, and tell the devices that were told of it."""

        def change(table: SentTable) -> tuple[SentTable, SentQuestion | None]:
            changed = table.with_outcome(key, shown, outcome)
            return changed, changed.find_question(key, shown)

        known = await asyncio.to_thread(self.told.change, change)
        if known is None or known.outcome is None:
            return
        for entry in self.notifications.wanting(known.user):
            if entry.id in known.told:
                self._send_end(entry, known, known.outcome, facts)

    def _send_end(self, entry: TokenEntry, known: SentQuestion, outcome: AnswerRecord, facts: PushedFacts) -> None:
        if entry.id == outcome.device:
            return  # it knows, because it answered
        here = {"here": True} if entry.device == outcome.by else {}
        about = {"agent": self.agent, "waiting": self._waiting.count(known.user), **here}
        self._send(entry, ended_text(known.key, facts, outcome, about, _language(entry)), known.key, "normal", [])

    async def _note_told(self, question: WaitingQuestion, entry: TokenEntry) -> SentQuestion | None:
        """Store that a device was told of a question; return the question as it is stored."""

        def change(table: SentTable) -> tuple[SentTable, SentQuestion | None]:
            changed = table.with_told(question.key, question.shown, entry.id)
            return changed, changed.find_question(question.key, question.shown)

        return await asyncio.to_thread(self.told.change, change)

    def _send(self, entry: TokenEntry, text: bytes, topic: str, urgency: str, asked: Sequence[WaitingQuestion]) -> None:
        """Send a message; without questions that it asks it is wanted in any case."""
        topic = topic if topic == SUMMARY_TOPIC else topic_of(topic)

        def is_wanted() -> bool:
            return not asked or any(self._waiting.waits(question) for question in asked)

        async def delivered(entry: TokenEntry) -> None:
            for question in asked:
                known = await self._note_told(question, entry)
                if known is not None and known.outcome is not None:
                    # It ended before it was known that this device was told.
                    self._send_end(entry, known, known.outcome, self._facts(question))

        self.notifications.send(entry, PushMessage(text, topic, urgency, is_wanted, delivered))

    async def _about(self, question: WaitingQuestion) -> Mapping[str, Any]:
        title = ""
        with contextlib.suppress(IsthmusError):  # the question can be told without it
            title = await self.tasks.title(question.task_id)
        return {"agent": self.agent, "session": shown_title(title), "asked": self.notifications.now()}

    def _facts(self, question: WaitingQuestion) -> PushedFacts:
        return pushed_facts(question.calls[0], question.workspace, self.home)


def _told(table: SentTable, question: WaitingQuestion) -> tuple[str, ...]:
    """Return the ids of the devices that were told of a question as it is asked now."""
    known = table.of_task(question.task_id, [call.tool_call_id for call in question.calls])
    return known.told if known is not None and known.shown == question.shown and known.outcome is None else ()


def _language(entry: TokenEntry) -> str:
    return "" if entry.push is None else entry.push.language
