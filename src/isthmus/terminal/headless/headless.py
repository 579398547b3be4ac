"""A run without a user: one prompt, the answer on stdout, and an exit code for the outcome.

It never waits for an answer: a question (which only a remote agent asks; one in this process refuses by itself) is
refused, and stderr says what would allow it. The formats are in ``headless_output``. Neither rich nor prompt_toolkit is
imported on this path.
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
from isthmus.events import MessagePart, TaskState
from isthmus.fronts.conversations import find_session
from isthmus.fronts.task_stream import FrontTimeouts, TaskStream
from isthmus.record import record
from isthmus.slash_commands.tree import read_line
from isthmus.task_view import TaskView
from isthmus.terminal.headless.answer_schema import AnswerSchema, UnfitAnswerError
from isthmus.terminal.headless.headless_output import (
    AnswerValue,
    HeadlessOutput,
    JsonOutput,
    OutputStream,
    RunError,
    ServerLine,
    StreamJsonOutput,
    TextOutput,
    lacks_permission,
)
from isthmus.terminal.questions.questions import refusal
from isthmus.terminal.signals import signal_handlers
from isthmus.text.units import show_count
from isthmus.text.visible import visible_line

OUTPUT_FORMATS = ("text", "json", "stream-json")
NAMED_CALLS = 3
"""Maximum number of refused calls that the message names."""
MAX_REFUSALS = 100
"""Maximum number of questions that a run refuses before it stops the task."""
MAXIMUM_ANSWERS = 3
"""Maximum number of answers that are asked for until one fits the schema."""
STDIN_SECONDS = 0.5
"""Maximum wait for the first byte of a pipe on stdin if there is a prompt already."""
STDIN_LIMIT = 8 * 1024 * 1024
"""Maximum number of bytes read from stdin."""


class ExitCode(IntEnum):
    """Exit code of a headless run.

    The codes are Gemini CLI's, except REQUIRED_SERVER, LOOP, REFUSED, UNFIT and BUDGET.
    """

    COMPLETED = 0
    ERROR = 1
    BAD_INPUT = 42
    REQUIRED_SERVER = 45
    TURN_LIMIT = 53
    LOOP = 56
    REFUSED = 57
    UNFIT = 58
    BUDGET = 59
    CANCELLED = 130


@record
class HeadlessOptions:
    """Options of a headless run.

    ``settings`` are the AgentSettings of a new session. ``resume`` is ``latest`` or a session's id; ``latest`` is
    limited to sessions of ``workspace`` (an absolute path). ``model`` is for the ``init`` line if the agent does not
    report its model. ``servers`` is the status of the MCP servers at the beginning. ``permission_hint`` says how to
    allow a refused call. ``schema`` is what the answer must fit. ``files`` belong to the prompt. ``context_id`` is the
    session to go on with, in place of ``resume``.
    """

    prompt: str
    output_format: str = "text"
    settings: JsonObject | None = None
    resume: str | None = None
    workspace: str | None = None
    model: str = ""
    servers: tuple[ServerLine, ...] = ()
    permission_hint: str = "answer it from an interactive session, or start the agent with --approval-mode"
    timeouts: FrontTimeouts = FrontTimeouts()
    schema: AnswerSchema | None = None
    files: tuple[MessagePart, ...] = ()
    context_id: str | None = None


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
    run = HeadlessRun(agent, options, output, out)
    with signal_handlers({number: partial(run.interrupt, number) for number in (signal.SIGINT, signal.SIGTERM)}):
        error = await run.to_the_end()
    if not out.is_broken:
        output.finished(run.view, error)
    if (loss := out.loss()) is not None:
        notices.write(loss)
        return ExitCode.ERROR if error is None else error.code
    return ExitCode.COMPLETED if error is None else error.code


@dataclass(slots=True)
class HeadlessRun:
    """One turn without a user; ``context_id`` is its session's, once it has begun."""

    agent: AgentClient
    options: HeadlessOptions
    output: HeadlessOutput
    out: OutputStream
    view: TaskView = field(default_factory=TaskView)
    task_id: str | None = None
    context_id: str | None = None
    interrupted: asyncio.Event = field(default_factory=asyncio.Event)
    given_up: asyncio.Event = field(default_factory=asyncio.Event)
    exit_code: int = ExitCode.CANCELLED
    refused: list[str] = field(default_factory=list[str])
    """Ids of the calls whose question was refused here."""

    def interrupt(self, number: int = signal.SIGINT) -> None:
        """Cancel the task, then end with the exit code of the signal; the second time end at once."""
        if self.interrupted.is_set():
            self.given_up.set()
        self.exit_code = 128 + number
        self.interrupted.set()

    async def to_the_end(self) -> RunError | None:
        """Run the prompt and return the error, or None if the task completed."""
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
        """Cancel the task on an interruption, and wait a limited time for its last events, for the statistics."""
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
        self.task_id, self.context_id = turn.task_id, turn.snapshot.context_id
        stream = TaskStream(self.agent, turn.snapshot, turn, self.options.timeouts)
        self.view = stream.view
        self.output.started(turn.snapshot, self.options.prompt)
        try:
            await self._follow(stream)
            unfit = await self._fit(stream)
        except IsthmusError as error:
            return RunError(type(error).__name__, str(error), ExitCode.ERROR)
        return unfit or self._error_of_state()

    async def _fit(self, stream: TaskStream) -> RunError | None:
        """Have the answer written until it fits the schema; return the error if it never does."""
        schema = self.options.schema
        for left in range(MAXIMUM_ANSWERS - 1, -1, -1):
            if schema is None or self.view.state is not TaskState.COMPLETED:
                return None
            try:
                self.output.answer = AnswerValue(schema.value_of(self.view.final_text))
            except UnfitAnswerError as problem:
                if not left:
                    message = f"the answer does not fit the schema, after {MAXIMUM_ANSWERS} tries: {problem}"
                    return RunError("UnfitAnswer", message, ExitCode.UNFIT)
                self.output.warning(f"the answer does not fit the schema, and is asked for again: {problem}")
                await stream.tell(f"{problem}. Write the answer again. {schema.instruction}")
                await self._follow(stream)
            else:
                return None
        return None

    async def _start(self) -> Turn:
        context_id = self.options.context_id
        if self.options.resume is not None:
            context_id = (await find_session(self.agent, self.options.resume, self.options.workspace)).context_id
        settings = self.options.settings
        scope = CommandScope(context_id=context_id, settings=settings)
        if (command := await self._command(scope)) is not None:
            execution = await self.agent.execute(command)
            if execution.turn is None:
                raise InvalidRequest(execution.message or "the command was not started")
            return execution.turn
        schema = self.options.schema
        prompt = self.options.prompt if schema is None else f"{self.options.prompt}\n\n{schema.instruction}"
        files = self.options.files
        parts = (MessagePart(text=prompt), *files) if files else ()
        return await self.agent.prompt(PromptMessage(prompt, context_id=context_id, settings=settings, parts=parts))

    async def _command(self, scope: CommandScope) -> CommandMessage | None:
        """Return the slash command in the prompt; None for other prompts, even if they begin with a path."""
        if self.options.files or not self.options.prompt.lstrip().startswith("/"):
            return None
        try:
            tree = await self.agent.commands(scope)
        except TaskError:
            return None  # the agent has no commands
        line = read_line(self.options.prompt, tree)
        return CommandMessage(line.path, line.args, scope) if line is not None else None

    async def _follow(self, stream: TaskStream) -> None:
        while True:
            async for delivery in stream.deliveries():
                self.output.event(delivery, self.view)
                if self.out.is_broken and not self.interrupted.is_set():
                    # The reader of the pipe has gone: as for other programs, the work ends here.
                    self.interrupt()
            questions = self.view.questions
            if self.view.state is not TaskState.INPUT_REQUIRED or not questions:
                return
            call = questions[0].call
            answer = refusal(call)
            self.refused.append(call.tool_call_id)
            if answer is None or len(self.refused) > MAX_REFUSALS:
                self.output.warning(f"stopped: {_describe(call)} waits for a user; {self.options.permission_hint}")
                await self.agent.cancel(stream.task_id)
                continue
            self.output.warning(f"refused: {_describe(call)} needs permission; {self.options.permission_hint}")
            await stream.answer(answer, answered_by="headless")

    async def _cancel(self) -> None:
        if self.task_id is None:
            return
        try:
            await self.agent.cancel(self.task_id)
        except TaskNotCancelable:
            pass  # the task has just ended by itself
        except IsthmusError as error:
            self.output.warning(f"the task could not be cancelled: {error}")

    def _error_of_state(self) -> RunError | None:
        view = self.view
        if view.reason == "turn_limit":
            message = view.error or "the turn limit was reached before the task completed"
            return RunError("FatalTurnLimitedError", message, ExitCode.TURN_LIMIT)
        if view.reason == "loop":
            return RunError("LoopDetectedError", view.error or "the model repeated itself", ExitCode.LOOP)
        if view.reason == "budget":
            return RunError("BudgetUsedUp", view.error or "the work has cost as much as it may", ExitCode.BUDGET)
        match view.state:
            case TaskState.COMPLETED:
                return self._error_of_refusals()
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
                message = view.error or "the agent waits for a login elsewhere; log in, then continue with --resume"
                return RunError("AuthRequired", message, ExitCode.ERROR)
            case TaskState.INPUT_REQUIRED:
                message = "the task waits for input, which cannot be given here; continue it with --resume"
                return RunError("InputRequired", message, ExitCode.ERROR)
            case TaskState.SUBMITTED | TaskState.WORKING:
                message = "the stream ended before the task did; see its progress with --resume"
                return RunError("StreamEnded", message, ExitCode.ERROR)

    def _error_of_refusals(self) -> RunError | None:
        """Return the error of a task that is completed as far as it was permitted; None if nothing was refused."""
        calls = [item.call for item in self.view.calls.values()]
        refused = [call for call in calls if call.tool_call_id in self.refused or lacks_permission(call)]
        if not refused:
            return None
        named = ", ".join(_describe(call) for call in refused[:NAMED_CALLS])
        more = f" and {len(refused) - NAMED_CALLS} more" if len(refused) > NAMED_CALLS else ""
        message = (
            f"{show_count(len(refused), 'call')} of the agent needed a permission that nobody could give here, and did"
            f" not run: {named}{more}. {self.options.permission_hint.capitalize()}."
        )
        return RunError("PermissionRequired", message, ExitCode.REFUSED, tuple(refused))


def _bad_input(message: str) -> RunError:
    return RunError("FatalInputError", message, ExitCode.BAD_INPUT)


def _describe(call: ToolCall) -> str:
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
    """Return the prompt after the text from stdin, in this order as in Gemini CLI.

    A terminal is not read. If there is a prompt, a pipe without data for ``seconds`` is ignored (some programs start
    others with an open pipe that nobody writes to). At most ``limit`` bytes are read. A notice reports both cases.
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
            notices.write(f"isthmus: no data came from the pipe on stdin within {seconds:g} s; continuing without it\n")
            return prompt
        piped = _read(descriptor, notices, limit).decode("utf-8", "replace")
    return "\n\n".join(part for part in (piped.rstrip("\n"), prompt) if part.strip())


def _read(descriptor: int, notices: OutputStream, limit: int) -> bytes:
    data = bytearray()
    while len(data) <= limit:
        try:
            part = os.read(descriptor, 65536)
        except OSError:
            break  # a closed or unreadable stdin counts as empty
        if not part:
            break
        data += part
    if len(data) > limit:
        notices.write(f"isthmus: only the first {limit} bytes of stdin are used\n")
    return bytes(data[:limit])
