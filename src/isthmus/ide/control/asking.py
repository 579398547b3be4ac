"""Asks the user a question in the editor, if it supports that, and in the user's terminals at the same time.

The first answer wins and closes the question everywhere. Terminals use ``isthmus ide questions`` and ``isthmus ide
answer``, which call :meth:`CompanionQuestions.answer`. The state of the questions is in :mod:`questions`.
"""

import asyncio
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol, runtime_checkable

from isthmus.ide.control.questions import Answered, ClientQuestion, QuestionTable
from isthmus.ide.editor import Capability, Consent, Editor, EditorError
from isthmus.ide.reviews.outcomes import Outcomes
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
        self._tasks: set[asyncio.Task[None]] = set()
        self._allowed: dict[tuple[str, str], str] = {}
        self.outcomes = Outcomes(changed=changed)
        """Ends of the newest questions, and who ended them."""
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
        one_line = visible(" ".join(without_control_characters(title).split()))  # clients choose their names
        if (client_id, about) in self._allowed:
            return True
        question = self._table.ask(client, one_line, text, self._clock(), time.time())
        ended = self._ended[question.id] = asyncio.get_running_loop().create_future()
        in_editor = asyncio.create_task(self._ask_in_editor(question))
        self._tasks.add(in_editor)
        in_editor.add_done_callback(self._tasks.discard)
        try:
            await self._announce()
            async with asyncio.timeout(max(question.deadline - self._clock(), 0)):
                answered = await ended
                if answered.state == Answered(Consent.SESSION) and about:
                    self._allowed[client_id, about] = one_line
                return answered.is_allowed
        except TimeoutError:
            self._table.expire(self._clock())
            return False
        finally:
            self._table.cancel(question.id)
            self.outcomes.note(question.id, question.title, client, "closed", client)  # unless it was answered
            del self._ended[question.id]
            in_editor.cancel()  # not awaited: an editor that closes it slowly must not delay the answer

    def answer(self, question_id: str, consent: Consent, *, by: str = "") -> ClientQuestion | None:
        """Answer on behalf of the user; return None if the question does not exist or has ended.

        ``by`` is the place where the user answered, for those who look elsewhere.
        """
        answered = self._table.answer(question_id, consent)
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
                # The user must see the real text: editors obey characters that reorder it.
                consent = await self._consent(question.title, visible(question.text))
                self.answer(question.id, consent, by=self._editor.identity.display_name)
                return
        except EditorError:
            pass  # a busy editor is not an answer: the user still has the terminal
        with suppress(EditorError):
            await self._editor.show_message(f"{question.title}: isthmus ide answer {question.id} yes|no")

    async def _consent(self, title: str, text: str) -> Consent:
        if isinstance(self._editor, ConsentTaker):
            return await self._editor.consent(title, text)
        return Consent.of(yes=await self._editor.confirm(title, text))

    def _settle(self, question: ClientQuestion | None) -> ClientQuestion | None:
        if question is not None and not (ended := self._ended[question.id]).done():
            ended.set_result(question)
        return question

    async def _announce(self) -> None:
        async with self._changed:
            self._changed.notify_all()
