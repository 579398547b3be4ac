"""A run without a user: one prompt in, the answer on stdout, an exit code that tells how it ended.

It never waits for an answer: a question (which only an agent elsewhere asks, one in this process refuses by itself)
is answered with a refusal, and stderr names what would allow it. Formats are in ``headless_output``. Neither rich
nor prompt_toolkit is imported on this path.
"""

import asyncio
import os
import select
import signal
from dataclasses import dataclass, field
from enum import IntEnum
from functools import partial
from typing import TextIO

from isthmus.client import (
    AgentClient,
    CommandMessage,
    CommandScope,
    InvalidRequest,
    PromptMessage,
    TaskError,
    TaskNotCancelable,
    TaskNotFound,
    Turn,
)
from isthmus.development_tool import ToolCall
from isthmus.encoding.codec import JsonObject
from isthmus.errors import IsthmusError
from isthmus.events import TaskState
from isthmus.slash_commands.tree import read_line
from isthmus.task_view import TaskView
from isthmus.terminal.headless_output import (
    HeadlessOutput,
    JsonOutput,
    OutputStream,
    RunError,
    ServerLine,
    StreamJsonOutput,
    TextOutput,
)
from isthmus.terminal.questions import refusal
from isthmus.terminal.sanitize import visible_line
from isthmus.terminal.sessions import find_session
from isthmus.terminal.signals import signal_handlers
from isthmus.terminal.streaming import TaskStream, TerminalTimeouts

OUTPUT_FORMATS = ("text", "json", "stream-json")
MAX_REFUSALS = 100
"""Questions that one run refuses before it stops the task."""
STDIN_SECONDS = 0.5
"""How long a pipe on stdin may stay silent when there is a prompt already."""
STDIN_LIMIT = 8 * 1024 * 1024
"""Bytes taken from stdin."""


class ExitCode(IntEnum):
    """How a headless run ended; the codes are Gemini CLI's, but for that of a required MCP server that is missing."""

    COMPLETED = 0
    ERROR = 1
    BAD_INPUT = 42
    REQUIRED_SERVER = 45
    TURN_LIMIT = 53
    CANCELLED = 130


@dataclass(frozen=True, slots=True)
class HeadlessOptions:
    """A headless run.

    ``settings`` are the AgentSettings of a new session. ``resume`` is ``latest`` or a session's id; ``workspace`` (an
    absolute path) is where ``latest`` looks. ``model`` is shown in the ``init`` line when the agent does not tell it.
    ``servers`` are the MCP servers as they stand at the beginning. ``permission_hint`` says what would allow a refused
    call.
    """

    prompt: str
    output_format: str = "text"
    settings: JsonObject | None = None
    resume: str | None = None
    workspace: str | None = None
    model: str = ""
    servers: tuple[ServerLine, ...] = ()
    permission_hint: str = "answer it from an interactive session, or start the agent with --approval-mode"
    timeouts: TerminalTimeouts = TerminalTimeouts()


async def run_headless(
    agent: AgentClient, options: HeadlessOptions, stdout: TextIO | None, stderr: TextIO | None
) -> int:
    """Run one prompt to its end and return the exit code. SIGINT and SIGTERM cancel the task first."""
    out, notices = OutputStream(stdout), OutputStream(stderr)
    match options.output_format:
        case "text":
            output: HeadlessOutput = TextOutput(out, notices)
        case "json":
            output = JsonOutput(out, notices, options.servers)
        case "stream-json":
            output = StreamJsonOutput(out, notices, options.model, options.servers)
        case unknown:
            expected = ", ".join(OUTPUT_FORMATS)
            notices.write(f"isthmus: unknown output format {visible_line(unknown)!r}; expected one of {expected}\n")
            return ExitCode.BAD_INPUT
    run = _Run(agent, options, output, out)
    with signal_handlers({number: partial(run.interrupt, number) for number in (signal.SIGINT, signal.SIGTERM)}):
        error = await run.to_the_end()
    if not out.is_broken:
        output.finished(run.view, error)
    return ExitCode.COMPLETED if error is None else error.code


@dataclass(slots=True)
class _Run:
    agent: AgentClient
    options: HeadlessOptions
    output: HeadlessOutput
    out: OutputStream
    view: TaskView = field(default_factory=TaskView)
    task_id: str | None = None
    interrupted: asyncio.Event = field(default_factory=asyncio.Event)
    given_up: asyncio.Event = field(default_factory=asyncio.Event)
    exit_code: int = ExitCode.CANCELLED

    def interrupt(self, number: int = signal.SIGINT) -> None:
        """Cancel the task, then end with the exit code of the signal; the second time end at once."""
        if self.interrupted.is_set():
            self.given_up.set()
        self.exit_code = 128 + number
        self.interrupted.set()

    async def to_the_end(self) -> RunError | None:
        """None when the task completed."""
        work = asyncio.ensure_future(self._work())
        stop = asyncio.ensure_future(self._stop_when_interrupted(work))
        try:
            await asyncio.wait({work, stop}, return_when=asyncio.FIRST_COMPLETED)
            if work.done() and (not self.interrupted.is_set() or self.view.state is TaskState.COMPLETED):
                return work.result()
            return RunError("FatalCancellationError", "Operation cancelled.", self.exit_code)
        finally:
            for task in (work, stop):
                task.cancel()
            await asyncio.gather(work, stop, return_exceptions=True)

    async def _stop_when_interrupted(self, work: "asyncio.Task[RunError | None]") -> None:
        """Ends when the task's own last events are in, for the statistics, or the time for that is over."""
        await self.interrupted.wait()
        given_up = asyncio.ensure_future(self.given_up.wait())
        cancel = asyncio.ensure_future(self._cancel())
        seconds = self.options.timeouts.cancel_seconds
        try:
            await asyncio.wait({cancel, given_up}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if self.task_id is not None:
                await asyncio.wait({work, given_up}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            given_up.cancel()
            cancel.cancel()

    async def _work(self) -> RunError | None:
        if not self.options.prompt.strip():
            return _bad_input("the prompt is empty; give one with -p TEXT, or on stdin")
        try:
            turn = await self._start()
        except (InvalidRequest, TaskNotFound) as error:
            return _bad_input(str(error))
        except IsthmusError as error:
            return RunError(type(error).__name__, str(error), ExitCode.ERROR)
        self.task_id = turn.task_id
        stream = TaskStream(self.agent, turn.snapshot, turn, self.options.timeouts)
        self.view = stream.view
        self.output.started(turn.snapshot, self.options.prompt)
        try:
            await self._follow(stream)
        except IsthmusError as error:
            return RunError(type(error).__name__, str(error), ExitCode.ERROR)
        return self._error_of_state()

    async def _start(self) -> Turn:
        context_id = None
        if self.options.resume is not None:
            context_id = (await find_session(self.agent, self.options.resume, self.options.workspace)).context_id
        settings = self.options.settings
        scope = CommandScope(context_id=context_id, settings=settings)
        if (command := await self._command(scope)) is not None:
            execution = await self.agent.execute(command)
            if execution.turn is None:
                raise InvalidRequest(execution.message or "the command was not started")
            return execution.turn
        return await self.agent.prompt(PromptMessage(self.options.prompt, context_id=context_id, settings=settings))

    async def _command(self, scope: CommandScope) -> CommandMessage | None:
        """Return the slash command that the prompt is; None for a prompt, also one that begins with a path."""
        if not self.options.prompt.lstrip().startswith("/"):
            return None
        try:
            tree = await self.agent.commands(scope)
        except TaskError:
            return None  # an agent without commands
        line = read_line(self.options.prompt, tree)
        return CommandMessage(line.path, line.args, scope) if line is not None else None

    async def _follow(self, stream: TaskStream) -> None:
        refused = 0
        while True:
            async for delivery in stream.deliveries():
                self.output.event(delivery, self.view)
                if self.out.is_broken and not self.interrupted.is_set():
                    # Nobody reads what comes: as for any program in a pipe, the work ends here.
                    self.interrupt()
            questions = self.view.questions
            if self.view.state is not TaskState.INPUT_REQUIRED or not questions:
                return
            call = questions[0].call
            answer = refusal(call)
            refused += 1
            if answer is None or refused > MAX_REFUSALS:
                self.output.warning(f"stopped: {_called(call)} waits for a user; {self.options.permission_hint}")
                await self.agent.cancel(stream.task_id)
                continue
            self.output.warning(f"refused: {_called(call)} needs permission; {self.options.permission_hint}")
            await stream.answer(answer, answered_by="headless")

    async def _cancel(self) -> None:
        if self.task_id is None:
            return
        try:
            await self.agent.cancel(self.task_id)
        except TaskNotCancelable:
            pass  # it has just ended by itself
        except IsthmusError as error:
            self.output.warning(f"the task could not be cancelled: {error}")

    def _error_of_state(self) -> RunError | None:
        view = self.view
        if view.reason == "turn_limit":
            message = view.error or "the turn limit was reached before the task completed"
            return RunError("FatalTurnLimitedError", message, ExitCode.TURN_LIMIT)
        match view.state:
            case TaskState.COMPLETED:
                return None
            case TaskState.CANCELED:
                message = view.error or "the task was cancelled"
                return RunError("FatalCancellationError", message, ExitCode.CANCELLED)
            case TaskState.FAILED if view.reason == "mcp_required":
                message = view.error or "a required MCP server is not connected"
                return RunError("RequiredServerMissing", message, ExitCode.REQUIRED_SERVER)
            case TaskState.FAILED:
                return RunError(view.reason or "TaskFailed", view.error or "the task failed", ExitCode.ERROR)
            case TaskState.REJECTED:
                message = view.error or "the agent rejected the task"
                return RunError(view.reason or "TaskRejected", message, ExitCode.ERROR)
            case TaskState.AUTH_REQUIRED:
                message = view.error or "the agent waits for a login that is done elsewhere; continue with --resume"
                return RunError("AuthRequired", message, ExitCode.ERROR)
            case TaskState.INPUT_REQUIRED:
                message = "the task waits for input that no one can give here; continue it with --resume"
                return RunError("InputRequired", message, ExitCode.ERROR)
            case TaskState.SUBMITTED | TaskState.WORKING:
                message = "the stream ended before the task did; see how it goes on with --resume"
                return RunError("StreamEnded", message, ExitCode.ERROR)


def _bad_input(message: str) -> RunError:
    return RunError("FatalInputError", message, ExitCode.BAD_INPUT)


def _called(call: ToolCall) -> str:
    what = (call.description or "").partition("\n")[0]
    return f"{call.tool_name} ({what})" if what else call.tool_name


def prompt_with_stdin(
    prompt: str,
    stdin: TextIO | None,
    stderr: TextIO | None = None,
    *,
    seconds: float = STDIN_SECONDS,
    limit: int = STDIN_LIMIT,
) -> str:
    """Return the prompt together with what was piped in, which comes first, as in Gemini CLI.

    A terminal is not read. With a prompt, a pipe that stays silent for so many seconds is left alone (some programs
    start others with an open pipe that nobody writes to); at most ``limit`` bytes are taken. Both are said.
    """
    if stdin is None or stdin.closed or stdin.isatty():
        return prompt
    notices = OutputStream(stderr)
    try:
        descriptor = stdin.fileno()
    except (OSError, ValueError):
        piped = stdin.read(limit)
    else:
        if prompt.strip() and not select.select([descriptor], [], [], seconds)[0]:
            notices.write(f"isthmus: nothing came from the pipe on stdin within {seconds:g} s; going on\n")
            return prompt
        piped = _read(descriptor, notices, limit).decode("utf-8", "replace")
    return "\n\n".join(part for part in (piped.rstrip("\n"), prompt) if part.strip())


def _read(descriptor: int, notices: OutputStream, limit: int) -> bytes:
    taken = bytearray()
    while len(taken) <= limit:
        try:
            part = os.read(descriptor, 65536)
        except OSError:
            break  # a closed or unreadable stdin has nothing to say
        if not part:
            break
        taken += part
    if len(taken) > limit:
        notices.write(f"isthmus: only the first {limit} bytes of stdin are used\n")
    return bytes(taken[:limit])
