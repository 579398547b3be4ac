"""Tasks of the agent as tools of an MCP server: ``isthmus mcp serve`` offers them to its client.

A task that ``run_task`` begins is the call's: it ends when the client cancels the call, and stops when the client goes
away. One that ``start_task`` begins is nobody's call, and goes on. Both are in the journal, from which any client goes
on with them. What the agent asks is answered by a user alone, here as an elicitation: no tool answers it.
"""

import asyncio
import contextlib
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace

from isthmus.client import (
    InvalidRequest,
    PromptMessage,
    TaskNotCancelable,
    TaskNotFound,
    TaskSnapshot,
    Turn,
)
from isthmus.development_tool import ToolCall, ToolCallConfirmation
from isthmus.encoding.codec import JsonObject
from isthmus.engine import Engine
from isthmus.events import TaskState
from isthmus.fronts.conversations import find_session
from isthmus.fronts.task_stream import TaskStream
from isthmus.ide.mcp.mcp_peer import CallToolResult, ToolDefinition
from isthmus.ide.mcp.tool_content import ToolContent
from isthmus.programs.mcp.progress import ClientProgress, what_runs
from isthmus.programs.mcp.questions import ClientQuestions, NotChosen, refusal_of, shown
from isthmus.text.visible import visible
from isthmus.tools.port.arguments import CheckedArguments, check_arguments

MAXIMUM_QUESTIONS = 1_000
"""Maximum number of questions of one call."""
MAXIMUM_RUNNING = 20
"""Maximum number of tasks at work when one is started."""
WAIT_SECONDS = 30
"""Time in seconds that get_task waits unless its call says otherwise."""
MAXIMUM_WAIT_SECONDS = 50
"""Maximum time in seconds that get_task waits: below the 60 s after which most clients give a call up."""

_PROMPT = {"type": "string", "description": "What to do, in words.", "minLength": 1}
_SESSION = {"type": "string", "description": "A session to go on with; left out for a new one."}
_TASK = {"type": "string", "description": "The id of the task, from the result of start_task.", "minLength": 1}
_WORK = "It reads and edits files and runs commands; its user is asked before it changes something."
RUN_TASK = ToolDefinition(
    "run_task",
    f"Give a task in the folder of this server to a coding agent, and get its answer. {_WORK} The answer ends with the"
    " id of the session: pass it as session_id to go on with it. For work that may take longer than a minute use"
    " start_task.",
    {"type": "object", "properties": {"prompt": _PROMPT, "session_id": _SESSION}, "required": ["prompt"]},
)
START_TASK = ToolDefinition(
    "start_task",
    f"Start a task in the folder of this server: a coding agent works on it in the background. {_WORK} Returns at once"
    " with the id of the task; get_task tells how it gets on, and its answer. The task goes on if this client ends.",
    {"type": "object", "properties": {"prompt": _PROMPT, "session_id": _SESSION}, "required": ["prompt"]},
)
GET_TASK = ToolDefinition(
    "get_task",
    "Get the state of a task, its answer so far or at its end, what it is doing, and the question that it asks its"
    " user. Waits until the task ends or asks, for wait_seconds at most. A task whose process has ended goes on. Only"
    " the user answers a question; tell them about it if they were not asked.",
    {
        "type": "object",
        "properties": {
            "task_id": _TASK,
            "wait_seconds": {
                "type": "integer",
                "description": f"Maximum time to wait in seconds; {WAIT_SECONDS} if left out.",
                "minimum": 0,
                "maximum": MAXIMUM_WAIT_SECONDS,
            },
        },
        "required": ["task_id"],
    },
)
CANCEL_TASK = ToolDefinition(
    "cancel_task",
    "Stop a task and all that it runs, for good.",
    {"type": "object", "properties": {"task_id": _TASK}, "required": ["task_id"]},
)
TASK_TOOLS = (RUN_TASK, START_TASK, GET_TASK, CANCEL_TASK)


@dataclass(slots=True)
class ClientCall:
    """A call of a tool. ``is_abandoned``: the client went away, and did not cancel the call before."""

    progress: ClientProgress
    is_abandoned: bool = False


class TaskTools:
    """The tools for one client. ``settings`` apply to the session of each task; ``questions`` go to its user."""

    def __init__(self, engine: Engine, settings: JsonObject, questions: ClientQuestions) -> None:
        self._engine = engine
        self._settings = settings
        self._questions = questions
        self.client_name = "MCP client"
        """Name of the surface where the client's user answers."""
        self._told = set[str]()
        """Ids of the questions that get_task has told, and that the client's user was not asked or did not answer."""

    async def call(self, name: str, arguments: JsonObject, call: ClientCall) -> CallToolResult:
        """Call the tool ``name``.

        Raises:
            IsthmusError: the call was refused; the text says why, for the model.
        """
        tool = next(tool for tool in TASK_TOOLS if tool.name == name)
        given = check_arguments(name, tool.input_schema, arguments)
        match name:
            case RUN_TASK.name:
                return await self._run(given, call)
            case START_TASK.name:
                return await self._start(given, call)
            case GET_TASK.name:
                return await self._get(given, call)
            case _:
                return await self._cancelled(given)

    async def _run(self, given: CheckedArguments, call: ClientCall) -> CallToolResult:
        task_id, message = await self._message(given)
        try:
            turn = await self._engine.prompt(message)
            stream = TaskStream(self._engine, turn.snapshot, turn)
            async with call.progress.beating(lambda: what_runs(stream.view)):
                refused = await self._follow(stream, call)
        except BaseException:
            if call.is_abandoned:
                await self._engine.runner.cancellation.let_go(task_id)
            else:
                await self._cancel(task_id)
            raise
        view = stream.view
        is_done = view.state is TaskState.COMPLETED
        texts = [view.final_text if is_done else view.error or f"the task ended as {view.state.value}"]
        texts += [f"Refused, because no user could be asked: {what}" for what in refused]
        texts.append(f"Session: {stream.context_id}")
        return _result(texts, is_error=not is_done)

    async def _start(self, given: CheckedArguments, call: ClientCall) -> CallToolResult:
        task_id, message = await self._message(given)
        if self._engine.running >= MAXIMUM_RUNNING:
            raise InvalidRequest(
                f"{MAXIMUM_RUNNING} tasks are at work; wait for one of them with get_task, or stop one with cancel_task"
            )
        try:
            turn = await self._engine.prompt(message)
        except asyncio.CancelledError:
            if not call.is_abandoned:
                await self._cancel(task_id)
            raise
        what = "The task has begun, and goes on without this call. get_task tells how it gets on, and its answer."
        return _result((what, *_ids(turn)))

    async def _message(self, given: CheckedArguments) -> tuple[str, PromptMessage]:
        """Return the message of a new task, and the id of the task."""
        prompt, session_id, task_id = given.string("prompt"), given.string("session_id"), str(uuid.uuid4())
        if not prompt.strip():
            raise InvalidRequest("expected prompt as a text that says what to do")
        context_id = None
        if session_id:
            # Otherwise an unknown id would begin a new session.
            folder = str(self._settings["workspace_path"])
            context_id = (await find_session(self._engine, session_id, folder)).context_id
        return task_id, PromptMessage(prompt, context_id=context_id, settings=self._settings, new_task_id=task_id)

    async def _cancelled(self, given: CheckedArguments) -> CallToolResult:
        snapshot = await self._engine.cancel(given.string("task_id"))
        return _result((f"The task is {snapshot.state.value}.", *_ids(snapshot)))

    async def _cancel(self, task_id: str) -> None:
        with contextlib.suppress(TaskNotCancelable, TaskNotFound):
            await self._engine.cancel(task_id)

    # --- following the task of a call ---

    async def _follow(self, stream: TaskStream, call: ClientCall) -> list[str]:
        """Follow the task to its end, and have its questions answered; return those that could not be asked."""
        refused: list[str] = []
        for _ in range(MAXIMUM_QUESTIONS):
            async for delivery in stream.deliveries():
                await call.progress.event(delivery.event)
            if not stream.is_asking:
                return refused
            question = stream.view.questions[0].call
            answer = await self._asked(stream, question, call)
            if answer is None:
                continue
            if answer is NotChosen.NOT_ASKED:
                refused.append(visible(question.description or question.tool_name)[:200])
            refusal = answer if isinstance(answer, ToolCallConfirmation) else refusal_of(question)
            if refusal is None:
                break
            await self._give(stream, refusal)
        await self._cancel(stream.task_id)
        async for _ in stream.deliveries():
            pass
        return refused

    async def _asked(
        self, stream: TaskStream, question: ToolCall, call: ClientCall
    ) -> ToolCallConfirmation | NotChosen | None:
        """Have the client's user asked; return None if the question is answered elsewhere meanwhile."""
        if not self._questions.may_ask(question):
            return NotChosen.NOT_ASKED
        watch = asyncio.create_task(self._until_answered(stream, question, call))
        ask = asyncio.create_task(self._questions.answer(question))
        try:
            await asyncio.wait({watch, ask}, return_when=asyncio.FIRST_COMPLETED)
            if watch.done():
                watch.result()
                return None
            return ask.result()
        finally:
            for task in (watch, ask):
                task.cancel()
            await asyncio.gather(watch, ask, return_exceptions=True)

    async def _until_answered(self, stream: TaskStream, question: ToolCall, call: ClientCall) -> None:
        """Return when a question is not open any more."""
        async with contextlib.aclosing(stream.while_asked()) as deliveries:
            async for delivery in deliveries:
                await call.progress.event(delivery.event)
                if all(item.call.tool_call_id != question.tool_call_id for item in stream.view.questions):
                    return

    async def _give(self, stream: TaskStream, answer: ToolCallConfirmation) -> None:
        with contextlib.suppress(InvalidRequest):  # another one came first, and the task goes on by it
            await stream.answer(answer, answered_by=self.client_name)

    # --- looking at a task ---

    async def _get(self, given: CheckedArguments, call: ClientCall) -> CallToolResult:
        snapshot = await self._engine.get(given.string("task_id"), 0)
        # From its beginning, for the answer so far and the calls that run.
        stream = TaskStream(self._engine, replace(snapshot, seq=0, pending=()))
        async with call.progress.beating(lambda: what_runs(stream.view)):
            async for _ in stream.missed():
                pass
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(given.integer("wait_seconds", WAIT_SECONDS)):
                    await self._wait(stream, call)
        return self._told_of(stream)

    async def _wait(self, stream: TaskStream, call: ClientCall) -> None:
        """Return when the task has ended, or asks what the client was not told before and its user does not answer."""
        for _ in range(MAXIMUM_QUESTIONS):
            async for delivery in stream.deliveries():
                await call.progress.event(delivery.event)
            if not stream.is_asking:
                return
            question = stream.view.questions[0].call
            if question.tool_call_id in self._told:
                await self._until_answered(stream, question, call)
                continue
            answer = await self._asked(stream, question, call)
            if isinstance(answer, NotChosen):
                self._told.add(question.tool_call_id)
                return
            if answer is not None:
                await self._give(stream, answer)

    def _told_of(self, stream: TaskStream) -> CallToolResult:
        view = stream.view
        texts = [text] if (text := view.final_text) else []
        is_failed = view.state.is_terminal and view.state is not TaskState.COMPLETED
        if is_failed:
            texts.append(view.error or f"the task ended as {view.state.value}")
        state = f"State: {view.state.value}"
        texts.append(state if view.state.is_terminal else f"{state} ({visible(what_runs(view))})")
        for item in view.questions if view.state.is_waiting else ():
            texts.append(
                "Question for the user, which no tool answers. It waits for their answer in the terminal (`isthmus"
                f" --resume {stream.context_id}`), in the workbench (`isthmus web`), or in this client if it can ask:"
                f"\n{shown(item.call)}"
            )
        return _result((*texts, *_ids(stream)), is_error=is_failed)


def _ids(of: TaskSnapshot | Turn | TaskStream) -> tuple[str, str]:
    return f"Task: {of.task_id}", f"Session: {of.context_id}"


def _result(texts: Sequence[str], *, is_error: bool = False) -> CallToolResult:
    content = ToolContent()
    for text in texts:
        content.add_text(text)
    return content.result(is_error=is_error)
