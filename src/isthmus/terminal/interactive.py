"""A conversation in the scrollback of a terminal: prompts, streamed turns, questions, until the user leaves.

The first answer to a question counts, from this terminal, an editor or another client. So every question is asked and
watched at the same time. ``turns`` shows one turn, ``render`` draws, and a ``Prompter`` reads from the user. Heavy
imports happen in ``run_interactive``.
"""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

from isthmus.client import AgentClient, CommandMessage, CommandScope, PromptMessage
from isthmus.conversations import SHORT_ID, find_session, list_sessions
from isthmus.encoding.codec import JsonObject
from isthmus.errors import IsthmusError
from isthmus.events import TaskState
from isthmus.task_stream import FrontTimeouts, TaskStream, opened
from isthmus.terminal.announcements import Announcement, Announcements, Notice, ShownInEditor
from isthmus.terminal.asking import TerminalQuestions
from isthmus.terminal.attention import Attention, CallsBy
from isthmus.terminal.command_list import CommandList
from isthmus.terminal.early_text import PAUSE_SECONDS
from isthmus.terminal.session_list import session_lines
from isthmus.terminal.session_mode import ConversationMode
from isthmus.terminal.signals import Interrupted, signal_handlers
from isthmus.terminal.status_line import StatusLine
from isthmus.terminal.turns import TurnEnd, Turns
from isthmus.text.units import show_count

if TYPE_CHECKING:
    from isthmus.terminal.prompting import Prompter
    from isthmus.terminal.render import TaskRenderer
    from isthmus.terminal.screen import Screen

RESUMED_MESSAGES = 6
"""Maximum number of messages that are shown again when a session is resumed."""
MAXIMUM_CHOICES = 20
"""Maximum number of sessions to choose from."""
PLAN_LINES = (
    "1  Carry it out; edits and commands are asked about",
    "2  Carry it out; only commands are asked about",
    "3  Keep planning, as your next message says",
    "Or type what the plan should do differently.",
)
CARRY_OUT = "I approve the plan. Carry it out."
RESUMED_LINES = 40
"""Maximum number of lines of each of them."""


@dataclass(frozen=True, slots=True)
class InteractiveOptions:
    """Options of a conversation.

    ``settings`` are the AgentSettings that are sent with the first message of a session. ``workspace`` (an absolute
    path) limits the sessions that are listed and that ``resume="latest"`` finds; None means all. ``resume`` may also
    be the id of a session. ``heading`` is printed first, dimmed. ``first_prompt`` is sent before the user is
    prompted. ``command`` is the command that started the program, for advice such as ``isthmus --resume ID``.
    ``awaited_servers`` returns the MCP servers that a turn waits for now. ``approval_mode`` is the mode that the
    program was started in, which a resumed session gets, too; None leaves it to the agent. ``model`` is the model of
    a new session, if known; ``calls_by`` the ways to call the user back. ``has_vi_keys``: the prompt is edited
    with the keys of vi. ``pause`` is the time in seconds without a key before a question accepts answers.
    ``announcements`` are shown as they come.
    """

    settings: JsonObject | None = None
    workspace: str | None = None
    resume: str | None = None
    first_prompt: str | None = None
    heading: Sequence[str] = ()
    history_file: Path | None = None
    answered_by: str = "terminal"
    command: str = "isthmus"
    awaited_servers: Callable[[], Sequence[str]] = tuple
    approval_mode: str | None = None
    model: str = ""
    calls_by: CallsBy = CallsBy.ALL
    has_vi_keys: bool = False
    pause: float = PAUSE_SECONDS
    announcements: Announcements = field(default_factory=Announcements)
    timeouts: FrontTimeouts = FrontTimeouts()


async def run_interactive(agent: AgentClient, options: InteractiveOptions) -> int:
    """Hold a conversation on stdin and stdout until the user leaves, and return the exit code.

    The code is 0 if the user left, 1 if the session to resume does not exist, 128 + n after signal n. Tasks that wait
    for an answer keep waiting.
    """
    from isthmus.terminal.render import TaskRenderer
    from isthmus.terminal.screen import Screen

    screen = Screen(sys.stdout)
    prompter = _prompter(screen, options)
    renderer = TaskRenderer(screen, options.awaited_servers)
    attention = Attention(
        screen.control, os.environ, options.workspace or "", CallsBy.NONE if not screen.is_live else options.calls_by
    )
    asking = TerminalQuestions(screen, renderer, prompter, options.answered_by, options.timeouts, attention)
    turns = Turns(agent, screen, renderer, asking, options.timeouts, attention)
    commands = CommandList(agent)
    prompter.offer(commands.complete, commands.ask)
    renderer.typed = prompter.typed
    if prompter.reads_keys:
        renderer.cancel_key = "Esc"
    conversation = _Conversation(agent, options, screen, renderer, prompter, turns, commands)
    turns.on_next_mode = conversation.mode.next_soon
    main = asyncio.ensure_future(conversation.run())
    ended_by: list[int] = []

    def end(number: signal.Signals) -> None:
        ended_by.append(number)
        main.cancel()

    ends = {number: partial(end, number) for number in (signal.SIGTERM, signal.SIGHUP)}
    with signal_handlers({signal.SIGINT: conversation.interrupt, **ends}):
        attention.begin()
        options.announcements.begin(conversation.announce)
        try:
            with prompter.without_echo():
                return await main
        except asyncio.CancelledError:
            if not ended_by:
                main.cancel()
                raise
            return 128 + ended_by[0]
        finally:
            options.announcements.end()
            await commands.aclose()
            await conversation.mode.aclose()
            await conversation.status.aclose()
            with suppress(OSError, ValueError):
                attention.end()
                screen.cursor(is_shown=True)


def _prompter(screen: "Screen", options: InteractiveOptions) -> "Prompter":
    """Return the editable prompt if stdin and stdout are a real terminal, else one for plain lines."""
    is_typed = sys.stdin.isatty()
    if is_typed and screen.is_live and sys.platform != "win32":
        from isthmus.terminal.prompt_toolkit_input import PromptToolkitPrompter

        return PromptToolkitPrompter(
            screen.glyphs, options.history_file, options.pause, has_vi_keys=options.has_vi_keys
        )
    from isthmus.terminal.prompting import LinePrompter

    return LinePrompter(sys.stdin.fileno(), screen, echoes=is_typed, pause=options.pause)


class _Left(Exception):
    """The user left."""


@dataclass(slots=True)
class _Conversation:
    agent: AgentClient
    options: InteractiveOptions
    screen: "Screen"
    renderer: "TaskRenderer"
    prompter: "Prompter"
    turns: Turns
    commands: CommandList
    context_id: str | None = None
    task_to_continue: str | None = None
    is_advised: bool = False
    is_prompting: bool = False
    is_unfinished: bool = False
    last_task: str | None = None
    notices: list[str] = field(default_factory=list[str])
    mode: ConversationMode = field(init=False)
    status: StatusLine = field(init=False)

    def __post_init__(self) -> None:
        self.mode = ConversationMode(self.agent, self._scope, self._say, started_in=self.options.approval_mode)
        self.status = StatusLine(
            self.agent,
            self._scope,
            lambda: self.mode.name,
            self.screen.glyphs.dot,
            self.options.workspace,
            self.options.model,
            changed=self.prompter.redraw,
        )
        self.prompter.show_status(self.status.text)

    async def run(self) -> int:
        """Hold the conversation and return the exit code."""
        if self.options.heading:
            self.renderer.quiet(*self.options.heading)
        self.commands.load(self._scope())
        try:
            if self.options.resume is not None and not await self._resume(self.options.resume):
                return 1
            await self.mode.find()
            if self.options.first_prompt:
                self.renderer.prompt(self.options.first_prompt)
                await self._handle(self.options.first_prompt)
            while True:
                await self._handle(await self._read())
        except _Left:
            if self.context_id is not None and not self.is_advised:
                self.renderer.quiet(f"To come back to this session: {self._resume_command()}")
            return 0

    def interrupt(self) -> None:
        """Cancel the running turn, or what is being typed, on SIGINT."""
        if not self.turns.interrupt():
            self.prompter.interrupt()

    def announce(self, announcement: Announcement) -> None:
        """Show an announcement, now or as soon as it does not interrupt the user."""
        match announcement:
            case Notice(text):
                self.notices.append(text)
                self._show_notices()
            case ShownInEditor(tool_call_id, editor):
                self.status.editor = editor
                self.turns.asking.shown_in_editor(tool_call_id, editor)
            case _:
                assert_never(announcement)

    def _show_notices(self) -> None:
        if not self.notices or self.turns.asking.is_editing or self.prompter.above(self._print_notices):
            return
        if not self.screen.is_in_text:
            self._print_notices()

    def _print_notices(self) -> None:
        texts, self.notices = self.notices, []
        if self.is_prompting:
            self.screen.join("notice")  # there is an empty line above the prompt already
        for text in texts:
            self.renderer.notice(text)
        if self.is_prompting and texts:
            self.screen.separate()
            self._blank_line()

    # --- Between turns ----------------------------------------------------------------------------------------------

    async def _read(self) -> str:
        is_second = False
        self.status.refresh_soon()
        self.screen.end_text()
        self._show_notices()
        while True:
            self.screen.separate()
            self._blank_line()
            self.is_prompting = True
            try:
                return await self.prompter.read_prompt(self.mode)
            except EOFError:
                raise _Left from None
            except Interrupted:
                if is_second:
                    raise _Left from None
                is_second = True
                self.screen.forget_position()
                self.renderer.quiet("Press Ctrl-C again, or Ctrl-D, to leave.")
            finally:
                self.is_prompting = False
                self.screen.forget_position()

    def _blank_line(self) -> None:
        self.screen.block("blank", [])

    async def _handle(self, typed: str) -> None:
        text = typed.strip()
        match text:
            case "":
                pass
            case "/quit" | "/exit" | "exit" | "quit":
                raise _Left
            case "/help" | "/?":
                # Loaded again: the commands of MCP servers come and go with the servers.
                self.commands.load(self._scope())
                await self.commands.ready()
                self.renderer.quiet(*self.commands.help_lines())
            case "!":
                self.mode.is_shell = not self.mode.is_shell
            case _ if text.startswith("!"):
                await self._run_shell(text[1:].strip())
            case _ if self.mode.is_shell and not text.startswith("/"):
                await self._run_shell(text)
            case "/clear":
                self.context_id = self.task_to_continue = None
                self.screen.clear()
            case "/mode":
                self.renderer.quiet(*self.mode.lines())
            case _ if text.startswith("/mode "):
                await self.mode.choose(text.split(maxsplit=1)[1])
            case "/resume":
                await self._choose_session()
            case _ if text.startswith("/resume "):
                await self._resume(text.split(maxsplit=1)[1])
            case "/copy":
                await self._copy()
            case "/plan" if not self._has_command("plan"):
                await self.mode.choose("plan")
            case _ if text.startswith("/plan ") and not self._has_command("plan"):
                await self._plan(text.split(maxsplit=1)[1])
            case "/sessions":
                await self._list_sessions()
            case _ if text.startswith("/"):
                await self._handle_command(text)
            case _:
                await self._send(text)

    async def _handle_command(self, text: str) -> None:
        """Run a command of the agent, or send the text as a prompt if it begins with a path."""
        await self.commands.ready()
        line = self.commands.read(text)
        if (line is None and _is_command(text)) or (line is not None and line.command is None):
            # The command may be newer than the list: MCP servers have commands, too.
            self.commands.load(self._scope())
            await self.commands.ready()
            line = self.commands.read(text)
        if line is not None and line.command is not None:
            await self._execute(CommandMessage(line.path, line.args, self._scope()), text)
        elif line is not None or _is_command(text):
            name = "/" + " ".join(line.path) if line is not None else text.split()[0]
            likely = self.commands.likely(name)
            advice = f"Did you mean {' or '.join(likely)}?" if likely else "/help lists all commands."
            self.renderer.quiet(f"Unknown command {name}. {advice}")
        else:
            await self._send(text)

    async def _run_shell(self, command: str) -> None:
        """Run a command that the user typed, in the agent's workspace; having typed it is the permission."""
        settings = self._settings()
        if self.mode.name == "plan":
            # The mode is for the agent. The next message states it again.
            settings, self.mode.chosen = {**(settings or {}), "approval_mode": "default"}, "plan"
        scope = CommandScope(None, self.context_id, settings)
        self.turns.asking.own_command, self.renderer.shows_whole_output = command, True
        try:
            await self._execute(CommandMessage(("shell",), command, scope), f"!{command}")
        finally:
            self.turns.asking.own_command, self.renderer.shows_whole_output = None, False

    def _has_command(self, name: str) -> bool:
        """Return whether the agent has a command of this name: a custom one, or a prompt of an MCP server."""
        return any(command.name == name for command in self.commands.tree)

    def _scope(self) -> CommandScope:
        return CommandScope(None, self.context_id, self._settings())

    def _settings(self) -> JsonObject | None:
        """Return the AgentSettings of the next message: those of a new session, and the mode that was chosen."""
        begun = self.options.settings if self.context_id is None else None
        return {**(begun or {}), **self.mode.settings} or None

    def _say(self, text: str) -> None:
        """Show information above the prompt, or between the lines of a turn."""
        if not self.prompter.above(lambda: self.renderer.quiet(text)):
            self.renderer.quiet(text)

    async def _execute(self, command: CommandMessage, typed: str) -> None:
        try:
            execution = await self.turns.unless_interrupted(self.agent.execute(command))
        except IsthmusError as error:
            self.renderer.error(str(error))
            return
        if execution is None:
            self.renderer.quiet("Not run.")
            return
        turn = execution.turn
        if turn is None:
            self.renderer.error(execution.message or f"{typed} was not started.")
            return
        if execution.message:
            self.renderer.quiet(execution.message)
        self.context_id = self.context_id or turn.context_id or None
        await self._turn(TaskStream(self.agent, turn.snapshot, turn, self.options.timeouts), shown_prompt=typed)
        # The command may have changed the list of commands.
        self.commands.load(self._scope())

    async def _send(self, text: str) -> None:
        message = PromptMessage(
            text, task_id=self.task_to_continue, context_id=self.context_id, settings=self._settings()
        )
        try:
            turn = await self.turns.unless_interrupted(self.agent.prompt(message))
        except IsthmusError as error:
            self.renderer.error(str(error))
            return
        if turn is None:
            self.renderer.quiet("Not sent.")
            return
        self.task_to_continue = None
        self.context_id = turn.context_id or self.context_id
        await self._turn(TaskStream(self.agent, turn.snapshot, turn, self.options.timeouts), shown_prompt=text)
        self.commands.load(self._scope())

    async def _plan(self, text: str) -> None:
        """Let the agent make a plan, and have it carried out once the user has approved it."""
        before = self.mode.name
        if before != "plan" and not await self.mode.choose("plan"):
            return
        await self._send(text)
        while self.mode.name == "plan" and self.prompter.typed.next_is_none and not self.is_unfinished:
            answer = (await self._ask_line(PLAN_LINES, "plan: ")).strip()
            if answer in ("1", "2"):
                if await self.mode.choose("default" if answer == "1" else "auto_edit"):
                    self.renderer.prompt(CARRY_OUT)
                    await self._send(CARRY_OUT)
                return
            if not answer or answer == "3":
                return
            self.renderer.prompt(answer)
            await self._send(answer)

    async def _ask_line(self, lines: Sequence[str], prompt: str) -> str:
        """Return a line that the user types; empty if they cancel."""
        try:
            return await self.prompter.read_line(lines, prompt)
        except EOFError:
            raise _Left from None
        except Interrupted:
            return ""
        finally:
            self.screen.forget_position()

    async def _choose_session(self) -> None:
        """Let the user choose an earlier session, and go on with it."""
        try:
            sessions = (await list_sessions(self.agent, self.options.workspace))[:MAXIMUM_CHOICES]
        except IsthmusError as error:
            self.renderer.error(str(error))
            return
        if not sessions:
            self.renderer.quiet("No sessions yet.")
            return
        rows = session_lines(sessions, time.time(), self.screen.width - 4)
        lines = [f"{number:>2}  {row}" for number, row in enumerate(rows, 1)]
        answer = (await self._ask_line(lines, "session (a number, or Enter for none): ")).strip()
        if answer.isdecimal() and 1 <= int(answer) <= len(sessions):
            await self._resume(sessions[int(answer) - 1].context_id)
        elif answer:
            self.renderer.quiet(f"There is no session {answer} in the list.")

    async def _copy(self) -> None:
        """Put the agent's last message into the clipboard of the terminal."""
        try:
            task = None if self.last_task is None else await self.agent.get(self.last_task, RESUMED_MESSAGES)
        except IsthmusError as error:
            self.renderer.error(str(error))
            return
        text = next(
            (message.text for message in reversed(task.history if task is not None else ()) if message.role == "agent"),
            "",
        )
        if not text:
            self.renderer.quiet("There is no message of the agent to copy yet.")
            return
        self.screen.copy(text)
        self.renderer.quiet(
            f"Copied {show_count(len(text), 'character')}, if your terminal lets programs copy (OSC 52)."
        )

    async def _list_sessions(self) -> None:
        try:
            sessions = await list_sessions(self.agent, self.options.workspace)
        except IsthmusError as error:
            self.renderer.error(str(error))
            return
        self.renderer.quiet(*(session_lines(sessions, time.time(), self.screen.width) or ["No sessions yet."]))

    async def _resume(self, wanted: str) -> bool:
        """Show the end of the session, and continue with its waiting and running tasks."""
        try:
            session = await find_session(self.agent, wanted, self.options.workspace)
            self.context_id, self.last_task = session.context_id, session.tasks[-1].task_id
            self.task_to_continue = None
            self.mode.chosen = self.mode.name  # the session may have been left in another one
            messages = [
                message
                for task in session.tasks[-RESUMED_MESSAGES:]
                for message in (await self.agent.get(task.task_id, RESUMED_MESSAGES)).history
            ]
            for message in messages[-RESUMED_MESSAGES:]:
                self._show_message(message.role, message.text)
            for task in session.unfinished:
                stream = await opened(self.agent, task.task_id, self.options.timeouts)
                await self._turn(stream, shown_prompt=None)
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
            self.renderer.quiet(f"{self.screen.glyphs.ellipsis} {show_count(hidden, 'line')} above")
        if role == "user":
            self.renderer.prompt(shown)
            return
        self.screen.separate()
        self.screen.write(shown)
        self.screen.end_text()

    async def _turn(self, stream: TaskStream, *, shown_prompt: str | None) -> None:
        """Show a task until it ends, and put its questions to the user."""
        self.last_task = stream.task_id
        end = await self.turns.show(stream, shown_prompt=shown_prompt, resume_command=self._resume_command())
        self.status.add_usage(stream.view.models.items())
        self.is_unfinished = stream.view.state is not TaskState.COMPLETED
        if self.is_unfinished:
            self.prompter.typed.unqueue()
        if end is TurnEnd.LEFT:
            self.is_advised = True
            raise _Left
        if end is TurnEnd.ASKED_IN_WORDS:
            # The next prompt will be the answer.
            self.task_to_continue = stream.task_id

    def _resume_command(self) -> str:
        return f"{self.options.command} --resume {(self.context_id or 'latest')[:SHORT_ID]}"


def _is_command(text: str) -> bool:
    """Return whether a text begins with ``/word`` rather than with a path."""
    word = text.split()[0]
    return word.startswith("/") and word[1:].replace("-", "").isalpha()
