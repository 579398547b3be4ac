"""Shows turns on the screen: the events of a task until it ends or a user is asked, questions, Ctrl-C.

``render`` decides what to draw; ``asking`` handles questions; ``interactive`` reads the user's input between turns.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from isthmus.client import AgentClient, TaskNotCancelable
from isthmus.errors import IsthmusError
from isthmus.events import TaskState
from isthmus.fronts.task_stream import FrontTimeouts, TaskStream
from isthmus.questions import ELICITATION, SAMPLING
from isthmus.terminal.interactive.asking import QuestionOutcome, TerminalQuestions, stop_all
from isthmus.terminal.questions.typed_ahead import WorkKey

if TYPE_CHECKING:
    from isthmus.terminal.interactive.attention import Attention
    from isthmus.terminal.screen.render import TaskRenderer
    from isthmus.terminal.screen.screen import Screen

T = TypeVar("T")

TICK_SECONDS = 0.1
"""Delay between redraws of the live lines."""


class TurnEnd(Enum):
    """End of a turn for the user."""

    OVER = "over"
    ASKED_IN_WORDS = "asked in words"
    """The agent waits for an answer in words."""
    LEFT = "left"
    """The user left; a question stays open."""


@dataclass(slots=True)
class Turns:
    """Shows one turn after another. ``resume_command`` is shown for a turn whose end is not seen here.

    ``on_next_mode`` is called for the key of the next approval mode.
    """

    agent: AgentClient
    screen: "Screen"
    renderer: "TaskRenderer"
    asking: TerminalQuestions
    timeouts: FrontTimeouts
    attention: "Attention"
    on_next_mode: Callable[[], None] = lambda: None
    resume_command: str = ""
    interrupted: asyncio.Event = field(default_factory=asyncio.Event)
    is_working: bool = False
    _sending: "set[asyncio.Future[None]]" = field(default_factory=set["asyncio.Future[None]"])

    def interrupt(self) -> bool:
        """Stop the running turn on Ctrl-C; return False if none is running and the user is typing."""
        if self.is_working:
            self.interrupted.set()
        return self.is_working or self.asking.is_editing

    async def unless_interrupted(self, request: Coroutine[Any, Any, T]) -> T | None:
        """Return the agent's response; None if the user pressed Ctrl-C first."""
        self.interrupted.clear()
        self.is_working = True
        start = asyncio.ensure_future(request)
        stop = asyncio.ensure_future(self.interrupted.wait())
        try:
            await asyncio.wait({start, stop}, return_when=asyncio.FIRST_COMPLETED)
            return start.result() if start.done() else None
        finally:
            self.is_working = False
            await stop_all(start, stop)

    async def show(self, stream: TaskStream, *, shown_prompt: str | None, resume_command: str) -> TurnEnd:
        """Show a task until it ends, and put its questions to the user. ``resume_command`` comes back to it later."""
        self.resume_command = resume_command
        self.renderer.begin(stream.view, time.monotonic(), shown_prompt)
        try:
            if not stream.is_asking:
                await self._work(stream)
            while stream.is_asking or await self._goes_on(stream):
                if not stream.is_asking:
                    await self._work(stream)
                    continue
                match await self.asking.ask(stream):
                    case QuestionOutcome.ANSWERED:
                        await self._work(stream)
                    case QuestionOutcome.GOES_ON:
                        if not stream.is_asking and not stream.view.state.is_terminal:
                            await self._work(stream)
                    case QuestionOutcome.CANCEL:
                        await self._cancel_asked(stream)
                        break
                    case QuestionOutcome.LEAVE:
                        self.renderer.quiet(self._left_open(stream))
                        return TurnEnd.LEFT
        except IsthmusError as error:
            self.renderer.end()
            self.renderer.error(str(error))
            if not stream.view.state.is_terminal:
                self.renderer.quiet(f"To come back to it: {resume_command}")
        is_asked = stream.view.state is TaskState.INPUT_REQUIRED and not stream.view.questions
        return TurnEnd.ASKED_IN_WORDS if is_asked else TurnEnd.OVER

    async def _goes_on(self, stream: TaskStream) -> bool:
        """Return whether a message for the work under way came after its end, so that there is more of it."""
        if self._sending:
            await asyncio.wait(self._sending)
        return stream.is_behind()

    def _left_open(self, stream: TaskStream) -> str:
        if stream.view.questions and stream.view.questions[0].call.tool_name in (ELICITATION, SAMPLING):
            # An MCP server asked, which may end with this program.
            return f"{self.resume_command} asks the question again if the server still waits for it."
        return f"The question stays open: {self.resume_command} asks it again."

    async def _work(self, stream: TaskStream) -> None:
        """Show events until the work ends or a user is asked; Ctrl-C cancels the task."""
        self.interrupted.clear()
        self.is_working = True
        began = time.monotonic()
        self.screen.cursor(is_shown=False)
        show = asyncio.ensure_future(self._show_work(stream))
        tick = asyncio.ensure_future(self._tick())
        stop = asyncio.ensure_future(self.interrupted.wait())
        try:
            with self.asking.prompter.while_working(partial(self._pressed, stream)):
                await asyncio.wait({show, stop, tick}, return_when=asyncio.FIRST_COMPLETED)
                if tick.done():
                    tick.result()  # raises: the ticks end only by a bug
                if not show.done():
                    await self._cancel(stream, show)
            if show.done():
                show.result()
                if not stream.view.state.ends_stream:
                    self.renderer.end()
                    self.renderer.error(f"The connection to the task was lost; see it with {self.resume_command}")
        finally:
            self.is_working = False
            await stop_all(show, tick, stop)
            self.renderer.end()
            self.screen.cursor(is_shown=True)
        if stream.view.state.ends_stream and not stream.is_asking and stream.view.state is not TaskState.CANCELED:
            self.attention.ended(time.monotonic() - began)

    def _pressed(self, stream: TaskStream, keys: Sequence[WorkKey]) -> None:
        """Show what has been typed, and do what the keys mean."""
        if WorkKey.STEER in keys and (text := self.asking.prompter.typed.take_steering()):
            sending = asyncio.ensure_future(self._steer(stream, text))
            self._sending.add(sending)
            sending.add_done_callback(self._sending.discard)
        if WorkKey.INTERRUPT in keys:
            self.interrupted.set()
        if WorkKey.NEXT_MODE in keys:
            self.on_next_mode()
        self.renderer.tick(time.monotonic())

    async def _steer(self, stream: TaskStream, text: str) -> None:
        """Send a message to the work under way; if that is refused, it waits for the end of the turn."""
        try:
            await stream.steer(text)
        except IsthmusError:
            self.asking.prompter.typed.came_back(text)

    async def _show_work(self, stream: TaskStream) -> None:
        async for delivery in stream.deliveries():
            self.renderer.event(delivery.event, time.monotonic())

    async def _tick(self) -> None:
        while True:
            self.renderer.tick(time.monotonic())
            await asyncio.sleep(TICK_SECONDS)

    async def _cancel(self, stream: TaskStream, show: "asyncio.Task[None]") -> None:
        """Cancel the task and wait for its last events, or for another Ctrl-C."""
        self.renderer.note("cancelling")
        self.interrupted.clear()
        cancel = asyncio.ensure_future(self.agent.cancel(stream.task_id))
        stop = asyncio.ensure_future(self.interrupted.wait())
        seconds = self.timeouts.cancel_seconds
        try:
            for step in (cancel, show):
                await asyncio.wait({step, stop}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if cancel.done():
                with suppress(TaskNotCancelable):
                    cancel.result()
            if not show.done():
                self._not_confirmed()
        finally:
            self.renderer.note("")
            await stop_all(cancel, stop)

    async def _cancel_asked(self, stream: TaskStream) -> None:
        """Cancel the task after Ctrl-C at a question."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self.timeouts.cancel_seconds):
                with suppress(TaskNotCancelable):
                    await self.agent.cancel(stream.task_id)
                await self.asking.catch_up(stream)
        if not stream.view.state.is_terminal:
            self._not_confirmed()

    def _not_confirmed(self) -> None:
        self.renderer.end()
        self.renderer.error(f"The agent did not confirm that it stopped; see it with {self.resume_command}")
