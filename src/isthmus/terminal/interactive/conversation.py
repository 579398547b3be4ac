"""A conversation in the scrollback of a terminal: prompts, streamed turns, questions, until the user leaves.

The first answer to a question counts, from this terminal, an editor or another client. So every question is asked and
watched at the same time. ``turns`` shows one turn, ``render`` draws, and a ``Prompter`` reads from the user.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, assert_never

from isthmus.client import AgentClient, CommandMessage, CommandScope, PromptMessage
from isthmus.encoding.codec import JsonObject
from isthmus.errors import IsthmusError
from isthmus.events import MessagePart, TaskState
from isthmus.fronts.conversations import find_session
from isthmus.fronts.session_names import SHORT_ID
from isthmus.fronts.task_stream import TaskStream, opened
from isthmus.terminal.interactive.announcements import Announcement, Notice, ShownInEditor
from isthmus.terminal.interactive.command_list import CommandList, is_command
from isthmus.terminal.interactive.interactive_options import InteractiveOptions
from isthmus.terminal.interactive.own_commands import NAMES, OwnCommands
from isthmus.terminal.interactive.past_sessions import PastSessions
from isthmus.terminal.interactive.plan_menu import CARRY_OUT, PLAN_CHOICES, PLAN_LINES, PLAN_MODES
from isthmus.terminal.interactive.rewind_menu import RewindMenu
from isthmus.terminal.interactive.status_line import StatusLine
from isthmus.terminal.interactive.turn_cost import TurnCosts
from isthmus.terminal.interactive.turns import TurnEnd, Turns
from isthmus.terminal.interactive.value_list import ValueList
from isthmus.terminal.prompt.session_mode import ConversationMode
from isthmus.terminal.signals import Interrupted

if TYPE_CHECKING:
    from isthmus.terminal.prompt.prompting import Prompter, TypedPrompt
    from isthmus.terminal.screen.render import TaskRenderer
    from isthmus.terminal.screen.screen import Screen

SESSION_PROMPT = "session (a number, or Enter for none): "
PROMPT_INDENT = 3
"""Cells that a line above a prompt leaves free: two before it, and the last one of the terminal."""


class _Left(Exception):
    """The user left."""


@dataclass(slots=True)
class TerminalConversation:
    """A conversation with an agent; ``options`` say how it begins."""

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
    past: PastSessions = field(init=False)
    mode: ConversationMode = field(init=False)
    own: OwnCommands = field(init=False)
    status: StatusLine = field(init=False)
    costs: TurnCosts = field(default_factory=TurnCosts)
    rewinding: RewindMenu = field(init=False)

    def __post_init__(self) -> None:
        self.past = PastSessions(self.agent, self.screen, self.renderer, self.options.workspace)
        self.mode = ConversationMode(self.agent, self._scope, self._say, started_in=self.options.approval_mode)
        self.own = OwnCommands(self.options, self.screen, self.renderer, self.prompter, self._ask_line, self._show_ide)
        self.rewinding = RewindMenu(self.commands, self.screen, self._ask_line)
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
                typed = await self._read()
                await self._handle(typed.text, typed.images)
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

    async def _read(self) -> "TypedPrompt":
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

    async def _handle(self, typed: str, images: Sequence[MessagePart] = ()) -> None:
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
                self.commands.load(self._scope())
                self.screen.clear()
            case "/mode":
                self.renderer.quiet(*self.mode.lines())
            case _ if text.startswith("/mode "):
                await self.mode.choose(text.split(maxsplit=1)[1])
            case "/resume":
                lines, context_ids = await self.past.choices()
                if lines:
                    await self._resume_number(await self._ask_line(lines, SESSION_PROMPT, len(lines)), context_ids)
            case _ if text.startswith("/resume "):
                await self._resume(text.split(maxsplit=1)[1])
            case "/rewind":
                if (line := await self.rewinding.line()) is not None:
                    await self._handle_command(line)
            case "/copy":
                await self.past.copy_answer(self.last_task)
            case "/plan" if not self._has_command("plan"):
                await self.mode.choose("plan")
            case _ if text.startswith("/plan ") and not self._has_command("plan"):
                await self._plan(text.split(maxsplit=1)[1], images)
            case "/sessions":
                await self.past.show_list()
            case _ if (name := text.split()[0][1:]) in NAMES and text[0] == "/" and not self._has_command(name):
                await self.own.run(text)
            case _ if text.startswith("/"):
                await self._handle_command(text, images)
            case _:
                await self._send(text, images)

    async def _handle_command(self, text: str, images: Sequence[MessagePart] = ()) -> None:
        """Run a command of the agent, or send the text as a prompt if it begins with a path."""
        await self.commands.ready()
        line = self.commands.read(text)
        if (line is None and is_command(text)) or (line is not None and line.command is None):
            # The command may be newer than the list: MCP servers have commands, too.
            self.commands.load(self._scope())
            await self.commands.ready()
            line = self.commands.read(text)
        if line is not None and line.command is not None and (values := await self.commands.values(text, line)):
            chosen = await self._choose_value(values)
            line = self.commands.read(chosen) if chosen is not None else None
            if chosen is None or line is None:
                return
            text = chosen
        if line is not None and line.command is not None:
            if images:
                self.renderer.quiet("Images are sent with messages, not with commands: this one gets its text alone.")
            await self._execute(CommandMessage(line.path, line.args, self._scope()), text)
        elif line is not None or is_command(text):
            name = "/" + " ".join(line.path) if line is not None else text.split()[0]
            likely = self.commands.likely(name)
            advice = f"Did you mean {' or '.join(likely)}?" if likely else "/help lists all commands."
            self.renderer.quiet(f"Unknown command {name}. {advice}")
        else:
            await self._send(text, images)

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

    async def _show_ide(self) -> None:
        """Show the editor that the agent uses in this session, if it can tell."""
        await self.commands.ready()
        if self._has_command("ide"):
            await self._handle_command("/ide")

    def _scope(self) -> CommandScope:
        return CommandScope(None, self.context_id, self._settings())

    def _settings(self) -> JsonObject | None:
        """Return the AgentSettings of the next message: a new session's, and the mode that was chosen."""
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

    async def _send(self, text: str, images: Sequence[MessagePart] = ()) -> None:
        message = PromptMessage(
            text,
            task_id=self.task_to_continue,
            context_id=self.context_id,
            settings=self._settings(),
            parts=(MessagePart(text=text), *images) if images else (),
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

    async def _plan(self, text: str, images: Sequence[MessagePart]) -> None:
        """Let the agent make a plan, and have it carried out once the user has approved it."""
        before = self.mode.name
        if before != "plan" and not await self.mode.choose("plan"):
            return
        await self._send(text, images)
        while self.mode.name == "plan" and not self.prompter.typed.has_next and not self.is_unfinished:
            answer = (await self._ask_line(PLAN_LINES, "plan: ", PLAN_CHOICES)).strip()
            if answer in PLAN_MODES:
                if await self.mode.choose(PLAN_MODES[answer]):
                    self.renderer.prompt(CARRY_OUT)
                    await self._send(CARRY_OUT)
                return
            if not answer or answer == str(PLAN_CHOICES):
                return
            self.renderer.prompt(answer)
            await self._send(answer)

    async def _ask_line(self, lines: Sequence[str], prompt: str, choices: int, *, is_at_once: bool = True) -> str:
        """Return a line that the user types, or the number of one of the first ``choices`` lines; empty for none."""
        try:
            return await self.prompter.read_line(lines, prompt, choices, is_at_once=is_at_once)
        except EOFError:
            raise _Left from None
        except Interrupted:
            return ""
        finally:
            self.screen.forget_position()

    async def _choose_value(self, values: ValueList) -> str | None:
        """Let the user choose the value of a command's argument; return the line to run, None for none."""
        rows = self.screen.height
        lines = [self.screen.fitted(line, PROMPT_INDENT) for line in values.lines(rows)]
        typed = await self._ask_line(lines, values.prompt, values.shown(rows), is_at_once=values.has_plain_names)
        return values.line_of(typed, rows)

    async def _resume_number(self, typed: str, context_ids: Sequence[str]) -> None:
        answer = typed.strip()
        if answer.isdecimal() and 1 <= int(answer) <= len(context_ids):
            await self._resume(context_ids[int(answer) - 1])
        elif answer:
            self.renderer.quiet(f"There is no session {answer} in the list.")

    async def _resume(self, wanted: str) -> bool:
        """Show the end of the session, and continue with its waiting and running tasks."""
        try:
            session = await find_session(self.agent, wanted, self.options.workspace)
            self.context_id, self.last_task = session.context_id, session.tasks[-1].task_id
            self.task_to_continue = None
            self.commands.load(self._scope())
            self.mode.chosen = self.mode.name  # the session may have been left in another one
            await self.past.show_end(session)
            for task in session.unfinished:
                stream = await opened(self.agent, task.task_id, self.options.timeouts)
                await self.past.show_begun(stream)
                await self._turn(stream, shown_prompt=None)
        except IsthmusError as error:
            self.renderer.error(str(error))
            return False
        return True

    async def _turn(self, stream: TaskStream, *, shown_prompt: str | None) -> None:
        """Show a task until it ends, and put its questions to the user."""
        self.last_task = stream.task_id
        end = await self.turns.show(stream, shown_prompt=shown_prompt, resume_command=self._resume_command())
        self.status.add_usage(stream.view.models.items())
        if line := self.costs.line(stream.view.models, self.screen.glyphs.dot):
            self.renderer.quiet(line)
        self.prompter.typed.draft = self.prompter.typed.draft or stream.view.rewound_text
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
