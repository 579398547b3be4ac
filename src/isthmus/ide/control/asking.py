"""Asks the user a question in the editor, if it supports that, and in the user's terminals at the same time.

The first answer wins and closes the question everywhere. Terminals use ``isthmus ide questions`` and ``isthmus ide
answer``, which call :meth:`CompanionQuestions.answer`. The state of the questions is in :mod:`questions`.
"""

import asyncio
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Protocol, runtime_checkable

from isthmus.ide.control.questions import Answered, ClientQuestion, QuestionTable, TimedOut
from isthmus.ide.editor import Capability, Consent, Editor, EditorError
from isthmus.ide.reviews.outcomes import Outcomes
from isthmus.runtime.running_tasks import RunningTasks
from isthmus.text.visible import visible, without_control_characters


@runtime_checkable
class ConsentTaker(Protocol):
    """An editor that can ask for permission for a whole session."""

    async def consent(self, title: str, text: str) -> Consent:
        """Ask as :meth:`isthmus.ide.editor.Editor.confirm` does, and also offer a yes for the session."""
        ...


class CompanionQuestions:
    """Questions of one companion to its user. ``changed`` is called after each change of them and their outcomes."""

    def __init__(
        self, editor: Editor, clock: Callable[[], float] = time.monotonic, changed: Callable[[], None] = lambda: None
    ) -> None:
        self._editor = editor
        self._clock = clock
        # Random, not counted: after a restart, an answer to an older question must not match a new one.
        self._table = QuestionTable(lambda: secrets.token_hex(2), changed)
        self._ended: dict[str, asyncio.Future[ClientQuestion]] = {}
        self._changed = asyncio.Condition()
        self._tasks = RunningTasks()
        self._allowed: dict[tuple[str, str], str] = {}
        self._over: dict[str, Callable[[], bool]] = {}
        self.outcomes = Outcomes(changed=changed)
        """Ends of the newest questions, and who ended them."""
        self.listed: set[str] = set()
        """Ids of the open questions whose whole text a command of the user returned."""
        self._is_stopped = False

    @property
    def open_questions(self) -> tuple[ClientQuestion, ...]:
        """Unanswered questions, oldest first."""
        return self._table.all()

    @property
    def allowed(self) -> tuple[str, ...]:
        """Titles of the questions that the user allowed for a session."""
        return tuple(self._allowed.values())

    def forget(self, client_id: str) -> None:
        """Withdraw the permissions of a client for its session, because it has disconnected."""
        for key in [key for key in self._allowed if key[0] == client_id]:
            del self._allowed[key]

    async def ask(self, client: str, title: str, text: str, client_id: str = "", about: str = "") -> bool:
        """Ask in the editor and in terminals; return whether the user said yes. No answer within 10 minutes is a no.

        Cancelling withdraws the question. A yes for the session applies to every later question of ``client_id`` with
        the same ``about`` (such as the path of a notebook) until :meth:`forget`; if ``about`` is empty, it applies
        once.

        Raises:
            TooManyQuestionsError: too many questions are waiting; this one was not asked.
        """
        if self._is_stopped:
            return False
        if (client_id, about) in self._allowed:
            return True
        question = self._table.ask(client, _one_line(title), text, self._clock(), time.time())
        ended = await self._until_ended(question)
        if ended.state == Answered(Consent.SESSION) and about:
            self._allowed[client_id, about] = question.title
        return ended.is_allowed

    async def ask_permission(
        self, client: str, title: str, text: str, is_over: Callable[[], bool], seconds: float
    ) -> ClientQuestion:
        """Ask for one step of an agent that asks in its own terminal at the same time; return the question as it ended.

        Only :class:`Answered` is an answer of the user: after ``seconds``, or when the companion ends, the question is
        left to the terminal. Cancelling withdraws it, because it was answered there; an answer that comes before that
        does not count if ``is_over`` returns true.

        Raises:
            TooManyQuestionsError: too many questions are waiting; this one was not asked.
        """
        now, title = self._clock(), _one_line(title)
        question = self._table.ask(client, title, text, now, time.time(), is_permission=True, patience=seconds)
        if self._is_stopped:
            return self._table.cancel(question.id) or question
        self._over[question.id] = is_over
        return await self._until_ended(question)

    async def _until_ended(self, question: ClientQuestion) -> ClientQuestion:
        """Ask on every surface, and return the question as it ended. Cancelling withdraws it."""
        ended = self._ended[question.id] = asyncio.get_running_loop().create_future()
        in_editor = self._tasks.start(self._ask_in_editor(question))
        try:
            await self._announce()
            async with asyncio.timeout(max(question.deadline - self._clock(), 0)):
                return await ended
        except TimeoutError:
            self._table.expire(self._clock())
            return ended.result() if ended.done() and not ended.cancelled() else replace(question, state=TimedOut())
        finally:
            self._table.cancel(question.id)
            client = question.client
            self.outcomes.note(question.id, question.title, client, "closed", client)  # unless it was answered
            del self._ended[question.id]
            self._over.pop(question.id, None)
            self.listed.discard(question.id)
            in_editor.cancel()  # not awaited: an editor that closes it slowly must not delay the answer

    def answer(self, question_id: str, consent: Consent, *, by: str = "", reason: str = "") -> ClientQuestion | None:
        """Answer on behalf of the user; return None if the question does not exist or has ended.

        ``by`` is the place where the user answered, for those who look elsewhere. ``reason`` has the user's words to
        the agent about a no.
        """
        is_over = self._over.get(question_id)
        if is_over is not None and is_over():
            if (over := self._settle(self._table.cancel(question_id))) is not None:
                self.outcomes.note(question_id, over.title, over.client, "closed", over.client)
            return None
        answered = self._table.answer(question_id, consent, reason)
        if answered is not None:
            self.outcomes.note(question_id, answered.title, answered.client, consent.value, by)
        return self._settle(answered)

    def stop(self) -> None:
        """Answer all current and later questions with no, because the companion ends."""
        self._is_stopped = True
        for question in self._table.all():
            self._settle(self._table.cancel(question.id))

    async def wait(self, timeout: float) -> tuple[ClientQuestion, ...]:
        """Wait at most ``timeout`` seconds for an open question; return the open questions."""
        async with self._changed:
            try:
                async with asyncio.timeout(timeout):
                    await self._changed.wait_for(lambda: len(self._table) > 0)
            except TimeoutError:
                pass
        return self._table.all()

    async def _ask_in_editor(self, question: ClientQuestion) -> None:
        """Ask in the editor; if the editor cannot ask, show how to answer in a terminal."""
        try:
            if Capability.CONFIRM not in self._editor.unavailable:
                consent = await self._consent(question)
                self.answer(question.id, consent, by=self._editor.identity.display_name)
                return
        except EditorError:
            pass  # a busy editor is not an answer: the user still has the terminal
        with suppress(EditorError):
            await self._editor.show_message(f"{question.title}: isthmus ide answer {question.id} yes|no")

    async def _consent(self, question: ClientQuestion) -> Consent:
        # The user must see the real text: editors obey characters that reorder it.
        title, text = question.title, visible(question.text)
        if isinstance(self._editor, ConsentTaker) and not question.is_permission:
            return await self._editor.consent(title, text)
        return Consent.of(yes=await self._editor.confirm(title, text))

    def _settle(self, question: ClientQuestion | None) -> ClientQuestion | None:
        if question is not None and not (ended := self._ended[question.id]).done():
            ended.set_result(question)
        return question

    async def _announce(self) -> None:
        async with self._changed:
            self._changed.notify_all()


def _one_line(title: str) -> str:
    """Return a title in one line that shows what it hides: clients choose their names."""
    return visible(" ".join(without_control_characters(title).split()))
