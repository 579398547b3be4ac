"""Draws the events of a task in the scrollback.

``TaskRenderer`` receives every event, after the view includes it, and regular ticks, and decides which get a line.
Running calls are in the live lines; finished ones are printed once. It neither asks nor waits: see ``interactive``.
"""

from collections.abc import Callable, Sequence
from typing import assert_never

from rich.text import Text

from isthmus.client import MISSED_EVENTS
from isthmus.development_tool import ConfirmationOption, ExecuteDetails, ToolCall, ToolCallStatus
from isthmus.events import (
    AgentEvent,
    AgentMessage,
    ArtifactUpdate,
    Command,
    ConfirmationAccepted,
    Prompt,
    RetryNotice,
    StateChange,
    TaskState,
    TextContent,
    Thought,
    ToolCallUpdate,
)
from isthmus.internal_events import REQUEST_EVENTS, InternalEvent, ThoughtProgress
from isthmus.task_view import CallView, TaskView, text_of_parts
from isthmus.terminal.headless.headless_output import retry_text
from isthmus.terminal.questions.questions import CallQuestion, is_refusal
from isthmus.terminal.questions.typed_ahead import TypedAhead
from isthmus.terminal.screen.blocks import (
    INDENT,
    RESULT_DIFF_LINES,
    TAIL_LINES,
    call_lines,
    describe,
    diff_block,
    error_lines,
    head_lines,
    is_command,
    question_block,
    seconds,
    tail_lines,
    typed_lines,
)
from isthmus.terminal.screen.screen import Screen
from isthmus.terminal.screen.todos import todo_lines
from isthmus.text.units import show_count
from isthmus.text.visible import visible, visible_line
from isthmus.todo_list import Todo, todos_of

QUIET_SECONDS = 0.4
"""Time without events after which a waiting line is shown."""
PAST_DIFF_LINES = 12
"""Maximum number of lines of a change that are shown again when a session is resumed."""
OWN_OUTPUT_LINES = 1_000
"""Maximum number of lines of a command that the user runs themselves."""
PAUSE_SECONDS = 1.5
"""Time without events after which a waiting line is shown within an unfinished text."""
SHELL_TOOL = "run_shell_command"
READING_TOOLS = frozenset({"glob", "grep_search", "list_directory", "read_file", "read_many_files"})
"""Tools whose output is not shown, because it is the user's own files; of other tools the beginning is shown."""
SAYING_COMMANDS = {"save_memory": ("memory",), "restore": ("restore", "rewind", "undo")}
"""Slash commands that say themselves what a call of a tool gave, by the tool."""
RUNNING_SHOWN = 3
"""Maximum number of running calls that are shown; the others are counted."""


class TaskRenderer:
    """Draws one task after another. Times are in seconds of a monotonic clock.

    ``awaited_servers`` returns the MCP servers that a turn waits for now.
    """

    def __init__(self, screen: Screen, awaited_servers: Callable[[], Sequence[str]] = tuple) -> None:
        self._screen = screen
        self._todos: tuple[Todo, ...] = ()
        self._view = TaskView()
        self._text_id = ""
        self._seen: dict[str, str] = {}
        self._own_answers: set[str] = set()
        self._options: dict[tuple[str, str], ConfirmationOption] = {}
        self._programs: set[str] = set()
        self._printed: dict[str, str] = {}
        self._shown_prompt: str | None = None
        self._typed_command = ""
        """Name of the command that the user typed here, which the events need not repeat."""
        self._began: dict[str, float] = {}
        self._last_event = 0.0
        self._note = ""
        self._thinking = ""
        """Subject of the thought that is not over."""
        self._thinking_since = 0.0
        self._awaited_servers = awaited_servers
        self.typed = TypedAhead()
        """Text that the user types meanwhile."""
        self.cancel_key = "Ctrl-C"
        self.shows_whole_output = False
        """Whether the user runs a command themselves, whose output is what they want to see."""

    def begin(self, view: TaskView, now: float, shown_prompt: str | None) -> None:
        """Start to draw another task. ``shown_prompt`` is on the screen already, as the user typed it."""
        self._view, self._last_event, self._note, self._thinking = view, now, "", ""
        self._shown_prompt = shown_prompt
        typed = (shown_prompt or "").split(maxsplit=1)
        self._typed_command = typed[0].removeprefix("/") if typed and typed[0].startswith("/") else ""
        self._text_id = ""
        self._todos = view.todos
        for call in view.questions:
            self._remember(call.call)

    def shown_prompt(self, text: str) -> None:
        """Record that the next prompt with this text is on the screen already."""
        self._shown_prompt = text

    def note(self, text: str) -> None:
        """Show a text in the live line in place of "working"; an empty one ends that."""
        self._note = text

    def _doing(self) -> str:
        awaited = self._awaited_servers()
        if awaited:
            return f"waiting for MCP servers: {visible_line(', '.join(awaited))}"
        return "offline, goes on by itself" if self._view.is_offline else "working"

    def answered_here(self, tool_call_id: str) -> None:
        """Record that the answer to this call was given, and shown, in this terminal."""
        self._own_answers.add(tool_call_id)

    def answered_elsewhere(self, tool_call_id: str) -> None:
        """Revoke :meth:`answered_here`: the answer was not accepted."""
        self._own_answers.discard(tool_call_id)

    def event(self, event: AgentEvent, now: float) -> None:
        """Show an event that the view already includes."""
        if isinstance(event, ThoughtProgress):
            self._thinking_since = self._thinking_since if self._thinking else now
            self._thinking = visible_line(event.subject)
            self.tick(now)
            return
        self._last_event = now
        if isinstance(event, REQUEST_EVENTS):
            return  # They are written behind the first thought of their request, and say nothing of it.
        if not isinstance(event, Thought) or visible_line(event.thought.subject) == self._thinking:
            # The next thought may have begun before the last one is recorded.
            self._thinking = ""
        if isinstance(event, ToolCallUpdate) and event.is_ephemeral:
            # Only the latest counts: the next tick draws it.
            self._remember(event.tool_call)
            self._began.setdefault(event.tool_call.tool_call_id, now)
            return
        match event:
            case TextContent() | AgentMessage(was_streamed=False):
                if event.message_id != self._text_id or event.replaces is not None:
                    self._screen.end_text()
                    if event.replaces is not None and event.replaces == self._text_id:
                        notice = "The text above broke off and no longer counts; the answer starts again."
                        self._screen.block("work", [Text(f"! {notice}", "notice")])
                    self._screen.separate()
                    self._text_id = event.message_id
                self._screen.write(event.text)
            case ToolCallUpdate():
                self._call(event, now)
            case Thought():
                subject = event.thought.subject or event.thought.description
                line = Text(f"{self._screen.glyphs.thought} {visible_line(subject.strip())}", "thought")
                line.truncate(self._screen.width, overflow="ellipsis")
                self._screen.block("work", [line])
            case ConfirmationAccepted():
                self._answer(event)
            case RetryNotice():
                self._screen.block("work", [Text(f"! {visible_line(retry_text(event))}", "notice")])
            case StateChange():
                self._state(event)
            case Prompt():
                self.typed.arrived(event.text)
                if event.text != self._shown_prompt:
                    self.prompt(event.text)
                self._shown_prompt = None
            case ArtifactUpdate():
                self._artifact(event)
            case Command() | AgentMessage() | InternalEvent():
                pass
            case _:
                assert_never(event)
        self.tick(now)

    def tick(self, now: float) -> None:
        """Redraw the live lines as time passes."""
        if now - self._last_event > QUIET_SECONDS:
            self._screen.flush_text()
        is_writing = self._screen.is_mid_text and now - self._last_event < PAUSE_SECONDS
        typed = typed_lines(self.typed, self._screen.glyphs) if self._screen.is_live else []
        self._screen.live([*([] if is_writing else self._live_lines(now)), *typed])

    def end(self) -> None:
        """Remove the live lines and complete the text."""
        self._screen.end_text()
        self._screen.live([])
        self._began.clear()

    def prompt(self, text: str) -> None:
        """Show a user's message that was not typed here."""
        glyph = self._screen.glyphs.prompt
        lines = visible(text.strip("\n")).split("\n")
        self._screen.block(
            "prompt", [Text(f"{glyph if not n else ' '} {line}", "strong") for n, line in enumerate(lines)]
        )
        self._screen.separate()

    def question(self, question: CallQuestion) -> None:
        """Show the question that the user is about to be asked."""
        self._screen.separate()
        self._screen.block(
            "question", question_block(question, self._view.workspace, self._screen.width, self._screen.glyphs)
        )
        if (diff := question.file_diff) is not None:
            self._seen[question.call.tool_call_id] = diff.new_content

    def chosen(self, answer: str, *, is_refusal: bool, where: str = "") -> None:
        """Show the answer below its question; the events that follow it come without a gap."""
        line = Text(f"  {self._screen.glyphs.prompt} ", "quiet")
        line.append(visible_line(answer), "bad" if is_refusal else "good").append(where, "quiet")
        self._screen.block("question", [line])
        self._screen.join("work")

    def past_call(self, view: CallView) -> None:
        """Show a call of an earlier run of the program in few lines, with the beginning of its change."""
        glyphs, width = self._screen.glyphs, self._screen.width
        lines = call_lines(view, glyphs, width, was_asked=True)
        if view.call.status is ToolCallStatus.FAILED:
            lines += [Text(INDENT).append_text(line) for line in error_lines(view.call)[:1]]
        elif view.call.output is not None and view.call.output.diff is not None:
            lines += diff_block(view.call.output.diff, width, glyphs, PAST_DIFF_LINES)
        self._screen.block("work", lines)

    def left_out(self, what: str) -> None:
        """Say that calls of an earlier run are not shown."""
        self._screen.block("work", [Text(f"{self._screen.glyphs.ellipsis} {what} before", "quiet")])

    # --- Kinds of events --------------------------------------------------------------------------------------------

    def _artifact(self, update: ArtifactUpdate) -> None:
        text_id = f"artifact {update.artifact_id}"
        if text_id != self._text_id or not update.append:
            self._screen.end_text()
            self._screen.separate()
            self._text_id = text_id
            if update.name:
                self._screen.block("work", [Text(visible_line(update.name), "strong")])
                self._screen.separate()
        self._screen.write(text_of_parts(update.parts))

    def _call(self, update: ToolCallUpdate, now: float) -> None:
        call = update.tool_call
        self._remember(call)
        if call.status is ToolCallStatus.EXECUTING:
            self._began.setdefault(call.tool_call_id, now)
        if not call.status.is_final:
            return
        self._began.pop(call.tool_call_id, None)
        printed = self._printed.pop(call.tool_call_id, "")
        self._text_id = ""
        screen = self._screen
        view = self._view.calls.get(call.tool_call_id) or CallView(call)
        was_asked = any(call_id == call.tool_call_id for call_id, _ in self._options)
        lines = call_lines(view, screen.glyphs, screen.width, was_asked=was_asked)
        if call.status is ToolCallStatus.FAILED:
            lines += [Text(INDENT).append_text(line) for line in error_lines(call)]
        elif call.status is ToolCallStatus.SUCCEEDED and (todos := todos_of(call)) is not None:
            lines += todo_lines(todos, self._todos, screen.width, screen.glyphs)
            self._todos = todos
        elif call.output is not None and call.output.diff is not None:
            diff = call.output.diff
            if self._seen.get(call.tool_call_id) != diff.new_content:
                lines += diff_block(diff, screen.width, screen.glyphs, RESULT_DIFF_LINES)
        elif call.output is not None and call.output.text and call.tool_call_id in self._programs:
            room = OWN_OUTPUT_LINES if self.shows_whole_output else TAIL_LINES
            lines += tail_lines(call.output.text, screen.width, screen.glyphs, room)
        elif call.output is not None and call.output.text and self._shows_output(call):
            lines += head_lines(call.output.text, screen.width, screen.glyphs)
        elif call.status is ToolCallStatus.CANCELLED and printed:
            lines += tail_lines(printed, screen.width, screen.glyphs)
        screen.block("work", lines)

    def _shows_output(self, call: ToolCall) -> bool:
        """Return whether the output is shown: not if it is the user's own files, or if the command says it itself."""
        command = self._view.command.path[0] if self._view.command is not None else self._typed_command
        return call.tool_name not in READING_TOOLS and command not in SAYING_COMMANDS.get(call.tool_name, ())

    def _remember(self, call: ToolCall) -> None:
        """Remember what later events of the call do not repeat: its options, and whether it runs a program."""
        request = call.confirmation_request
        for option in request.options if request is not None else ():
            self._options[call.tool_call_id, option.id] = option
        runs = request is not None and isinstance(request.details, ExecuteDetails)
        if runs or call.live_content is not None or call.tool_name == SHELL_TOOL:
            self._programs.add(call.tool_call_id)
        if call.live_content is not None:
            self._printed[call.tool_call_id] = call.live_content

    def _answer(self, accepted: ConfirmationAccepted) -> None:
        confirmation = accepted.confirmation
        if confirmation.tool_call_id in self._own_answers:
            self._own_answers.discard(confirmation.tool_call_id)
            return
        chosen_id = confirmation.selected_option_id
        option = self._options.get((confirmation.tool_call_id, chosen_id)) or ConfirmationOption(chosen_id, chosen_id)
        chosen = option.name or option.id
        if confirmation.file_details is not None:
            chosen += ", with changes"
        who = visible_line(accepted.answered_by) or "another client"
        self.chosen(chosen, is_refusal=is_refusal(option), where=f"  answered in {who}")

    def _state(self, change: StateChange) -> None:
        if change.reason == MISSED_EVENTS:
            self._screen.end_text()
            notice = "The connection was lost; some events may be missing here."
            self._screen.block("work", [Text(f"! {notice}", "notice")])
        if not change.state.is_terminal:
            return
        self.end()
        self._screen.separate()
        error = visible((change.error or "").strip())
        match change.state:
            case TaskState.FAILED:
                message = error or "The task failed."
                if change.reason == "turn_limit":
                    message = f"{error or 'The turn limit is reached.'}\nSend another prompt to continue."
                self.error(message)
            case TaskState.REJECTED:
                self.error(error or "The agent rejected the task.")
            case TaskState.CANCELED:
                self._screen.block("state", [Text(f"{self._screen.glyphs.cancelled} cancelled", "notice")])
            case _:
                pass

    def error(self, message: str) -> None:
        """Show an error."""
        first, *rest = visible(message).split("\n")
        sign = f"{self._screen.glyphs.failed} "
        self._screen.block("error", [Text(sign + first, "bad"), *(Text(f"  {line}", "bad") for line in rest)])

    def quiet(self, *lines: str) -> None:
        """Show information, dimmed."""
        self._screen.separate()
        self._screen.block("quiet", [Text(visible_line(line), "quiet") for line in lines])

    def notice(self, text: str) -> None:
        """Show a warning from another component."""
        self._screen.block("notice", [Text(f"! {visible_line(text)}", "notice")])

    def shown_in(self, editor: str) -> None:
        """Show that the question which was just shown is also open in an editor."""
        line = Text(f"  Also open in {visible_line(editor)}; the first answer counts.", "quiet")
        self._screen.join("question")
        self._screen.block("question", [line])

    # --- Live lines -------------------------------------------------------------------------------------------------

    def _live_lines(self, now: float) -> list[Text]:
        screen = self._screen
        if not screen.is_live:
            return []
        spinner = screen.glyphs.spinner
        frame = spinner[int(now * 10) % len(spinner)]
        running = [(call_id, began) for call_id, began in self._began.items() if call_id in self._view.calls]
        lines: list[Text] = []
        for call_id, began in running[:RUNNING_SHOWN]:
            call = self._view.calls[call_id].call
            line = Text(f"{frame} ", "prompt").append(visible_line(call.tool_name), "tool")
            ending = f"  {seconds(now - began)}" if now - began >= 1 else ""
            hidden = (call.description or "").strip().count("\n") if is_command(call) else 0
            more = f" {screen.glyphs.ellipsis} {show_count(hidden, 'more line')}" if hidden else ""
            description = Text(f"  {describe(call)}{more}", "quiet")
            description.truncate(max(0, screen.width - line.cell_len - len(ending) - 1), overflow="ellipsis")
            lines.append(line.append_text(description).append(ending, "quiet"))
            if (live := self._view.live.get(call_id)) is not None:
                room = max(2, min(TAIL_LINES, (screen.console.height - 4) // len(running)))
                lines += tail_lines(live, screen.width, screen.glyphs, room)
        if len(running) > RUNNING_SHOWN:
            lines.append(Text(f"{INDENT}and {len(running) - RUNNING_SHOWN} more", "quiet"))
        if not running and (self._note or self._thinking or now - self._last_event > QUIET_SECONDS):
            thinking = self._thinking if not self._note else ""
            waited = now - (self._thinking_since if thinking else self._last_event)
            ending = f"  {seconds(waited)}" if waited >= 2 else ""
            ending += f" {screen.glyphs.dot} {self.cancel_key} cancels" if not self._note else ""
            line = Text(f"{frame} ", "prompt")
            doing = Text(thinking, "thought") if thinking else Text(self._note or self._doing(), "quiet")
            doing.truncate(max(0, screen.width - line.cell_len - len(ending) - 1), overflow="ellipsis")
            lines.append(line.append_text(doing).append(ending, "quiet"))
        return lines
