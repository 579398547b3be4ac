"""Asks a user one question at a time, which they may answer here or on any other surface.

Asking and watching run concurrently: an answer given elsewhere removes the prompt. A proposed file may be edited first,
which only changes the answer; no file is written here.
"""

import asyncio
import time
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from isthmus.client import Delivery, InvalidRequest
from isthmus.errors import IsthmusError
from isthmus.forms.asked_question import question_in
from isthmus.fronts.task_stream import FrontTimeouts, TaskStream
from isthmus.terminal.interactive.editing import edit_text
from isthmus.terminal.questions.form_filling import filling_of
from isthmus.terminal.questions.hunk_choice import hunk_lines, problem_with, with_chosen
from isthmus.terminal.questions.questions import AnswerChoice, CallQuestion, question_of
from isthmus.terminal.signals import Interrupted

if TYPE_CHECKING:
    from isthmus.terminal.interactive.interactive.attention import Attention
    from isthmus.terminal.prompt.prompting import Prompter
    from isthmus.terminal.screen.render import TaskRenderer
    from isthmus.terminal.screen.screen import Screen


TELL_LINES = ("What should the agent do instead, or why not? An empty line goes back.",)
TELL_PROMPT = "tell it: "
HUNKS_PROMPT = "hunks: "
SHELL_TOOL = "run_shell_command"
CATCH_UP_SECONDS = 5.0
"""Maximum time to receive the events that have already happened."""


T = TypeVar("T")


class QuestionOutcome(Enum):
    """Outcome of a question."""

    ANSWERED = "answered"
    """The user answered here; the events that follow come next."""
    GOES_ON = "goes on"
    """The question was answered elsewhere, or is to be asked again."""
    CANCEL = "cancel"
    """The user pressed Ctrl-C: the turn is to be cancelled."""
    LEAVE = "leave"
    """The user pressed Ctrl-D: they leave and the question stays open."""


@dataclass(slots=True)
class TerminalQuestions:
    """Asks through ``prompter``; ``answered_by`` is the name of this surface. ``is_editing``: an editor is open.

    ``shown_in`` maps the id of a call to the name of the editor that shows its question.
    """

    screen: "Screen"
    renderer: "TaskRenderer"
    prompter: "Prompter"
    answered_by: str
    timeouts: FrontTimeouts
    attention: "Attention"
    is_editing: bool = False
    shown_in: dict[str, str] = field(default_factory=dict[str, str])
    asked: str | None = None
    own_command: str | None = None
    """The shell command that the user has typed: typing it is the answer to the question about it."""

    def shown_in_editor(self, tool_call_id: str, editor: str) -> None:
        """Record, and show if it is being asked, that an editor shows the question of a call too."""
        self.shown_in[tool_call_id] = editor
        if tool_call_id == self.asked and not self.is_editing:
            self.prompter.above(partial(self.renderer.shown_in, editor))

    async def ask(self, stream: TaskStream) -> QuestionOutcome:
        """Ask about the first pending call, and watch for an answer given elsewhere."""
        question = question_of(stream.view.questions[0].call)
        self.renderer.end()
        if self._is_own(question):
            return await self._answer(stream, question, question.choices[0], is_shown=False)
        self.renderer.question(question)
        self.attention.asked()
        self.asked = question.call.tool_call_id
        if (editor := self.shown_in.get(self.asked)) is not None:
            self.renderer.shown_in(editor)
        seen: list[Delivery] = []
        watch = asyncio.ensure_future(self._watch(stream, question.call.tool_call_id, seen))
        choice: AnswerChoice | None = None
        told: str | None = None
        is_cancelled = is_leaving = False
        try:
            choice = await self._unless_answered(self.prompter.read_choice(question), watch)
            while choice is not None and choice.option_id is None:
                if choice.is_telling:
                    told = await self._unless_answered(self.prompter.read_line(TELL_LINES, TELL_PROMPT), watch)
                    if told is None or told.strip():
                        break
                    choice = await self._unless_answered(self.prompter.read_choice(question), watch)
                    continue
                question = await self._change(choice, question, watch)
                if choice.is_filling_in and (filled := question.filled_choice) is not None:
                    choice = filled
                    break
                choice = await self._unless_answered(self.prompter.read_choice(question), watch)
        except Interrupted:
            is_cancelled = True
        except EOFError:
            is_leaving = True
        finally:
            self.shown_in.pop(question.call.tool_call_id, None)
            self.asked = None
            self.attention.answered()
            await stop_all(watch)
        if not watch.cancelled():
            watch.result()  # an exception in the watching task must not count as an answer
        self._show(seen)
        if is_cancelled:
            return QuestionOutcome.CANCEL
        if is_leaving:
            return QuestionOutcome.LEAVE
        if told is not None and told.strip():
            return await self._tell(stream, question, told.strip())
        if choice is not None and choice.option_id is not None:
            return await self._answer(stream, question, choice)
        await self.catch_up(stream)
        return QuestionOutcome.GOES_ON

    async def _unless_answered(self, read: Coroutine[Any, Any, T], watch: "asyncio.Task[None]") -> T | None:
        """Return what the user typed here; None if the question was answered elsewhere or the task has ended."""
        ask = asyncio.ensure_future(read)
        try:
            await asyncio.wait({ask, watch}, return_when=asyncio.FIRST_COMPLETED)
            return ask.result() if ask.done() else None
        finally:
            await stop_all(ask)

    def _is_own(self, question: CallQuestion) -> bool:
        """Return whether a question is about the command that the user has just typed, and can be allowed once."""
        call, choices = question.call, question.choices
        is_same = self.own_command is not None and call.input_parameters.get("command") == self.own_command
        return is_same and call.tool_name == SHELL_TOOL and bool(choices) and choices[0].option_id == "proceed_once"

    async def _tell(self, stream: TaskStream, question: CallQuestion, words: str) -> QuestionOutcome:
        """Reject the call, and send the reason or the order of the user's."""
        text = f"I rejected the call of {question.call.tool_name}. {words}"
        try:
            await stream.tell(text)
        except IsthmusError as error:
            self.renderer.error(str(error))
            return QuestionOutcome.GOES_ON
        self.renderer.chosen(f"Reject: {words}", is_refusal=True)
        self.renderer.shown_prompt(text)
        return QuestionOutcome.ANSWERED

    async def _answer(
        self, stream: TaskStream, question: CallQuestion, choice: AnswerChoice, *, is_shown: bool = True
    ) -> QuestionOutcome:
        confirmation = question.confirmation(choice)
        self.renderer.answered_here(confirmation.tool_call_id)
        try:
            await stream.answer(confirmation, self.answered_by)
        except InvalidRequest as error:
            self.renderer.answered_elsewhere(confirmation.tool_call_id)
            await self.catch_up(stream)
            if stream.is_asking and question.call in [view.call for view in stream.view.questions]:
                self.renderer.error(str(error))
            return QuestionOutcome.GOES_ON
        except IsthmusError as error:
            # The agent cannot be reached: as far as is known here the question is still open, so it is asked again.
            self.renderer.answered_elsewhere(confirmation.tool_call_id)
            self.renderer.error(str(error))
            return QuestionOutcome.GOES_ON
        is_edited = confirmation.file_details is not None and question_in(question.call) is None
        edits = ", with your edits" if is_edited else ""
        if is_shown:
            self.renderer.chosen(choice.name + edits, is_refusal=choice.is_refusal)
        return QuestionOutcome.ANSWERED

    async def catch_up(self, stream: TaskStream) -> None:
        """Show what happened on other surfaces until now, if the agent answers in time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(CATCH_UP_SECONDS):
                async for delivery in stream.missed():
                    self.renderer.event(delivery.event, time.monotonic())
        self.renderer.end()

    async def _watch(self, stream: TaskStream, tool_call_id: str, seen: list[Delivery]) -> None:
        """Collect the events that happen meanwhile, until the question is no longer open."""
        while True:
            try:
                async for delivery in stream.while_asked():
                    seen.append(delivery)
                    if all(view.call.tool_call_id != tool_call_id for view in stream.view.questions):
                        return
                return
            except IsthmusError:
                # The user can still answer here; the agent decides whether the answer counts once it is reachable.
                await asyncio.sleep(self.timeouts.return_seconds)

    def _show(self, seen: list[Delivery]) -> None:
        for delivery in seen:
            self.renderer.event(delivery.event, time.monotonic())
        if seen:
            self.renderer.end()

    async def _change(self, choice: AnswerChoice, question: CallQuestion, watch: "asyncio.Task[None]") -> CallQuestion:
        if choice.is_edit:
            return await self._edit(question, watch)
        return await (self._choose_hunks if choice.is_choosing_hunks else self._fill_in)(question, watch)

    async def _choose_hunks(self, question: CallQuestion, watch: "asyncio.Task[None]") -> CallQuestion:
        """Return the question with some hunks of the proposal; unchanged after an empty line."""
        request = question.call.confirmation_request
        diff = request.file_edit_details if request is not None else None  # as proposed, whatever was chosen before
        if diff is None:
            return question
        lines = hunk_lines(diff)
        while True:
            typed = await self._unless_answered(self.prompter.read_line(lines, HUNKS_PROMPT), watch)
            if typed is None or not typed.strip():
                return question
            problem = problem_with(diff, typed)
            if problem is None:
                break
            lines = (problem,)
        self.screen.forget_position()
        return self._changed(question, with_chosen(diff, typed))

    async def _edit(self, question: CallQuestion, watch: "asyncio.Task[None]") -> CallQuestion:
        """Return the question with the user's own version of the proposed file."""
        diff = question.file_diff
        if diff is None:
            return question
        try:
            self.is_editing = True
            with self.prompter.with_echo():
                edited = await edit_text(diff.new_content, diff.file_name)
        except IsthmusError as error:
            self.renderer.error(str(error))
            return question
        finally:
            self.is_editing = False
            self.screen.forget_position()
        if edited == diff.new_content:
            self.renderer.quiet("Nothing was changed.")
            return question
        if watch.done():
            return question
        return self._changed(question, edited)

    async def _fill_in(self, question: CallQuestion, watch: "asyncio.Task[None]") -> CallQuestion:
        """Return the question with the values of its form, asked one after another; unchanged after Ctrl-C."""
        diff = question.file_diff
        filling = filling_of(question.call, diff.new_content) if diff is not None else None
        if filling is None:
            return question
        try:
            while filling.field is not None:
                typed = await self._unless_answered(self.prompter.read_line(filling.lines, filling.prompt), watch)
                if typed is None:
                    return question
                filling = filling.with_line(typed)
        except Interrupted:
            self.renderer.quiet("Nothing was changed.")
            return question
        finally:
            self.screen.forget_position()
        return self._changed(question, filling.document())

    def _changed(self, question: CallQuestion, edited: str) -> CallQuestion:
        changed = question_of(question.call, edited)
        if changed.filled_choice is not None:
            return changed  # the answer is shown when it is sent
        self.renderer.question(changed)
        return changed


async def stop_all(*tasks: asyncio.Future[Any]) -> None:
    """Cancel the tasks that still run, and wait until they have ended."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
