"""A conversation in the scrollback of a terminal: prompts, streamed turns, questions, until the person leaves.

Whoever answers a question first has answered it: this terminal, an editor, another client. So every question is
asked and watched at the same time. Drawing is in ``render``, reading from the person in a ``Prompter``; heavy imports
happen in ``run_interactive``.
"""

import asyncio
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from isthmus.client import AgentClient, PromptMessage, TaskNotCancelable, Turn
from isthmus.errors import IsthmusError
from isthmus.events import JsonObject, TaskState
from isthmus.terminal.asking import Asking, Outcome, stop_all
from isthmus.terminal.interruption import Interrupted
from isthmus.terminal.sessions import SHORT_ID, find_session, list_sessions, session_lines
from isthmus.terminal.signals import signal_handlers
from isthmus.terminal.streaming import TaskStream

if TYPE_CHECKING:
    from isthmus.terminal.prompting import Prompter
    from isthmus.terminal.render import TaskRenderer
    from isthmus.terminal.screen import Screen

TICK_SECONDS = 0.1
"""How often what is live is redrawn."""
CANCEL_SECONDS = 10.0
"""How long a cancelled task may take to end."""
RESUMED_MESSAGES = 6
"""Messages that are shown again when a session is resumed."""
RESUMED_LINES = 40
"""Lines of one such message."""

HELP = (
    ("/help", "this list"),
    ("/clear", "a new session, on an empty screen"),
    ("/sessions", "the sessions of this folder; resume one with --resume ID"),
    ("/quit", "leave; also exit, Ctrl-D, or Ctrl-C twice"),
    ("Alt-Enter", "another line; also Enter after a backslash"),
    ("Ctrl-C", "cancels the turn that is running"),
)


@dataclass(frozen=True, slots=True)
class InteractiveOptions:
    """A conversation.

    ``settings`` are the AgentSettings that go with the first message of a session. ``workspace`` (an absolute path)
    is whose sessions are listed, and where ``resume="latest"`` looks; None means all. ``resume`` may also be the id of
    a session. ``heading`` is printed first, quietly. ``first_prompt`` is sent without being asked for. ``command`` is
    how the person started the program, for advice such as ``isthmus --resume ID``.
    """

    settings: JsonObject | None = None
    workspace: str | None = None
    resume: str | None = None
    first_prompt: str | None = None
    heading: Sequence[str] = ()
    history_file: Path | None = None
    answered_by: str = "terminal"
    command: str = "isthmus"


async def run_interactive(agent: AgentClient, options: InteractiveOptions) -> int:
    """Talk until the person leaves, on stdin and stdout; returns the exit code.

    0 when the person left, 1 when the session to resume is not there, 128 + n after signal n. Tasks that wait for an
    answer go on waiting.
    """
    from isthmus.terminal.render import TaskRenderer
    from isthmus.terminal.screen import Screen

    screen = Screen(sys.stdout)
    prompter = _prompter(screen, options.history_file)
    renderer = TaskRenderer(screen)
    asking = Asking(screen, renderer, prompter, options.answered_by)
    conversation = _Conversation(agent, options, screen, renderer, prompter, asking)
    main = asyncio.ensure_future(conversation.run())
    ended_by: list[int] = []

    def end(number: signal.Signals) -> None:
        ended_by.append(number)
        main.cancel()

    ends = {number: partial(end, number) for number in (signal.SIGTERM, signal.SIGHUP)}
    with signal_handlers({signal.SIGINT: conversation.interrupt, **ends}):
        try:
            return await main
        except asyncio.CancelledError:
            if not ended_by:
                main.cancel()
                raise
            return 128 + ended_by[0]
        finally:
            with suppress(OSError, ValueError):
                screen.cursor(is_shown=True)


def _prompter(screen: "Screen", history_file: Path | None) -> "Prompter":
    """The editable prompt where stdin and stdout are a real terminal, else plain lines."""
    is_typed = sys.stdin.isatty()
    if is_typed and screen.is_live and sys.platform != "win32":
        from isthmus.terminal.prompt_toolkit_input import PromptToolkitPrompter

        return PromptToolkitPrompter(screen.glyphs, history_file)
    from isthmus.terminal.prompting import LinePrompter

    return LinePrompter(sys.stdin.fileno(), screen, echoes=is_typed)


class _Left(Exception):
    """The person left."""


@dataclass(slots=True)
class _Conversation:
    agent: AgentClient
    options: InteractiveOptions
    screen: "Screen"
    renderer: "TaskRenderer"
    prompter: "Prompter"
    asking: "Asking"
    context_id: str | None = None
    task_to_continue: str | None = None
    interrupted: asyncio.Event = field(default_factory=asyncio.Event)
    is_working: bool = False
    is_advised: bool = False

    async def run(self) -> int:
        """The whole conversation."""
        if self.options.heading:
            self.renderer.quiet(*self.options.heading)
        try:
            if self.options.resume is not None and not await self._resume(self.options.resume):
                return 1
            if self.options.first_prompt:
                self.renderer.prompt(self.options.first_prompt)
                await self._send(self.options.first_prompt)
            while True:
                await self._take(await self._read())
        except _Left:
            if self.context_id is not None and not self.is_advised:
                self.renderer.quiet(f"{self._resume_command()} comes back to this session.")
            return 0

    def interrupt(self) -> None:
        """SIGINT: cancels the turn that runs, or what is being typed."""
        if self.is_working:
            self.interrupted.set()
        elif not self.asking.is_editing:
            self.prompter.interrupt()

    # --- Between turns ----------------------------------------------------------------------------------------------

    async def _read(self) -> str:
        is_second = False
        while True:
            self.screen.separate()
            self._blank_line()
            try:
                return await self.prompter.read_prompt()
            except EOFError:
                raise _Left from None
            except Interrupted:
                if is_second:
                    raise _Left from None
                is_second = True
                self.screen.forget_position()
                self.renderer.quiet("Ctrl-C again leaves; so does Ctrl-D.")
            finally:
                self.screen.forget_position()

    def _blank_line(self) -> None:
        self.screen.block("blank", [])

    async def _take(self, typed: str) -> None:
        text = typed.strip()
        match text:
            case "":
                pass
            case "/quit" | "/exit" | "exit" | "quit":
                raise _Left
            case "/help" | "/?":
                widest = max(len(name) for name, _ in HELP)
                self.renderer.quiet(*(f"{name:<{widest}}  {what}" for name, what in HELP))
            case "/clear":
                self.context_id = self.task_to_continue = None
                self.screen.clear()
            case "/sessions" | "/tasks":
                await self._list()
            case _ if _is_command(text):
                self.renderer.quiet(f"{text.split()[0]} is no command here; /help lists them.")
            case _:
                await self._send(text)

    async def _send(self, text: str) -> None:
        settings = self.options.settings if self.context_id is None else None
        message = PromptMessage(text, task_id=self.task_to_continue, context_id=self.context_id, settings=settings)
        with self.prompter.at_work():
            try:
                turn = await self._started(message)
            except IsthmusError as error:
                self.renderer.error(str(error))
                return
            if turn is None:
                self.renderer.quiet("Not sent.")
                return
            self.task_to_continue = None
            self.context_id = turn.context_id
            await self._turn(TaskStream(self.agent, turn.snapshot, turn), shown_prompt=text)

    async def _started(self, message: PromptMessage) -> Turn | None:
        """The turn that the message starts; None when Ctrl-C came first."""
        self.interrupted.clear()
        self.is_working = True
        start = asyncio.ensure_future(self.agent.prompt(message))
        stop = asyncio.ensure_future(self.interrupted.wait())
        try:
            await asyncio.wait({start, stop}, return_when=asyncio.FIRST_COMPLETED)
            return start.result() if start.done() else None
        finally:
            self.is_working = False
            await stop_all(start, stop)

    async def _list(self) -> None:
        try:
            sessions = await list_sessions(self.agent, self.options.workspace)
        except IsthmusError as error:
            self.renderer.error(str(error))
            return
        self.renderer.quiet(*(session_lines(sessions, time.time(), self.screen.width) or ["No sessions yet."]))

    async def _resume(self, wanted: str) -> bool:
        """Show the end of the session, and go on with what waits or runs in it."""
        try:
            session = await find_session(self.agent, wanted, self.options.workspace)
            self.context_id = session.context_id
            messages = [
                message
                for task in session.tasks[-RESUMED_MESSAGES:]
                for message in (await self.agent.get(task.task_id, RESUMED_MESSAGES)).history
            ]
            for message in messages[-RESUMED_MESSAGES:]:
                self._show_message(message.role, message.text)
            for task in session.unfinished:
                snapshot = await self.agent.get(task.task_id, 0)
                with self.prompter.at_work():
                    await self._turn(TaskStream(self.agent, snapshot), shown_prompt=None)
        except IsthmusError as error:
            self.renderer.error(str(error))
            return False
        return True

    def _show_message(self, role: str, text: str) -> None:
        lines = text.strip("\n").split("\n")
        hidden = len(lines) - RESUMED_LINES
        shown = "\n".join(lines[-RESUMED_LINES:])
        if not shown.strip():
            return
        if hidden > 0:
            self.renderer.quiet(f"{self.screen.glyphs.ellipsis} {hidden} lines above")
        if role == "user":
            self.renderer.prompt(shown)
            return
        self.screen.separate()
        self.screen.write(shown)
        self.screen.end_text()

    # --- A turn -----------------------------------------------------------------------------------------------------

    async def _turn(self, stream: TaskStream, *, shown_prompt: str | None) -> None:
        """Show a task until it ends, asking what it asks."""
        self.renderer.begin(stream.view, time.monotonic(), shown_prompt)
        try:
            if not stream.is_asking:
                await self._work(stream)
            while stream.is_asking:
                match await self.asking.ask(stream):
                    case Outcome.ANSWERED:
                        await self._work(stream)
                    case Outcome.GOES_ON:
                        if not stream.is_asking and not stream.view.state.is_terminal:
                            await self._work(stream)
                    case Outcome.CANCEL:
                        await self._cancel_asked(stream)
                        break
                    case Outcome.LEAVE:
                        self.renderer.quiet(f"The question stays open: {self._resume_command()} asks it again.")
                        self.is_advised = True
                        raise _Left
        except IsthmusError as error:
            self.renderer.end()
            self.renderer.error(str(error))
        if stream.view.state is TaskState.INPUT_REQUIRED and not stream.view.questions:
            # The agent asks in words; the next prompt is the answer.
            self.task_to_continue = stream.task_id

    async def _work(self, stream: TaskStream) -> None:
        """Show events until the work ends or a person is asked; Ctrl-C cancels the task."""
        self.interrupted.clear()
        self.is_working = True
        self.screen.cursor(is_shown=False)
        show = asyncio.ensure_future(self._show_work(stream))
        tick = asyncio.ensure_future(self._tick())
        stop = asyncio.ensure_future(self.interrupted.wait())
        try:
            await asyncio.wait({show, stop, tick}, return_when=asyncio.FIRST_COMPLETED)
            if tick.done():
                tick.result()  # it ends only by a bug
            if not show.done():
                await self._cancel(stream, show)
            if show.done():
                show.result()
                if not stream.view.state.ends_stream:
                    self.renderer.end()
                    self.renderer.error(f"The connection to the task was lost; see it with {self._resume_command()}")
        finally:
            self.is_working = False
            await stop_all(show, tick, stop)
            self.renderer.end()
            self.screen.cursor(is_shown=True)

    async def _show_work(self, stream: TaskStream) -> None:
        async for delivery in stream.deliveries():
            self.renderer.event(delivery.event, time.monotonic())

    async def _tick(self) -> None:
        while True:
            self.renderer.tick(time.monotonic())
            await asyncio.sleep(TICK_SECONDS)

    async def _cancel(self, stream: TaskStream, show: "asyncio.Task[None]") -> None:
        """Cancel the task and wait for its last events; another Ctrl-C does not wait."""
        self.renderer.note("cancelling")
        self.interrupted.clear()
        cancel = asyncio.ensure_future(self.agent.cancel(stream.task_id))
        stop = asyncio.ensure_future(self.interrupted.wait())
        try:
            for step in (cancel, show):
                await asyncio.wait({step, stop}, timeout=CANCEL_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if cancel.done():
                with suppress(TaskNotCancelable):
                    cancel.result()
            if not show.done():
                self._not_confirmed()
        finally:
            self.renderer.note("")
            await stop_all(cancel, stop)

    async def _cancel_asked(self, stream: TaskStream) -> None:
        """Ctrl-C at a question cancels the task as well."""
        with suppress(TimeoutError):
            async with asyncio.timeout(CANCEL_SECONDS):
                with suppress(TaskNotCancelable):
                    await self.agent.cancel(stream.task_id)
                await self.asking.catch_up(stream)
        if not stream.view.state.is_terminal:
            self._not_confirmed()

    # --- Words ------------------------------------------------------------------------------------------------------

    def _not_confirmed(self) -> None:
        self.renderer.end()
        self.renderer.error(f"The agent did not confirm that it stopped; see it with {self._resume_command()}")

    def _resume_command(self) -> str:
        return f"{self.options.command} --resume {(self.context_id or 'latest')[:SHORT_ID]}"


def _is_command(text: str) -> bool:
    """``/word`` and nothing that could be a path."""
    word = text.split()[0]
    return word.startswith("/") and word[1:].replace("-", "").isalpha()
