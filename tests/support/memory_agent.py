"""An AgentClient in memory, with scripted turns: an agent for servers under test, without the real engine.

It is a real, small implementation of the port: numbered events, replay, live subscribers, open questions, first
answer wins, cancel. A script gives each prompt's steps. It stores nothing on disk and runs no model and no tool.
"""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from isthmus.client import (
    CommandMessage,
    CommandScope,
    Delivery,
    Execution,
    HistoryMessage,
    InvalidRequest,
    PromptMessage,
    TaskList,
    TaskNotCancelable,
    TaskNotFound,
    TaskNotResumable,
    TaskQuery,
    TaskSnapshot,
    Turn,
    select_tasks,
)
from isthmus.development_tool import (
    AgentThought,
    CommandExecutionStatus,
    ConfirmationOption,
    ConfirmationRequest,
    ErrorDetails,
    FileDiff,
    SlashCommand,
    SlashCommandArgument,
    ToolCall,
    ToolCallConfirmation,
    ToolCallStatus,
    ToolOutput,
)
from isthmus.events import (
    AgentEvent,
    ConfirmationAccepted,
    Prompt,
    StateChange,
    TaskState,
    TextContent,
    Thought,
    ToolCallUpdate,
)

OPTIONS = (ConfirmationOption("proceed_once", "Allow once"), ConfirmationOption("cancel", "Reject"))


@dataclass(frozen=True, slots=True)
class Ask:
    """A step: these calls wait for a user; each runs once it is allowed."""

    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class Wait:
    """A step: wait until the test sets the event."""

    event: asyncio.Event


@dataclass(frozen=True, slots=True)
class Progress:
    """A step: an event that is sent but not stored."""

    event: AgentEvent


Step: TypeAlias = AgentEvent | Ask | Wait | Progress | Exception
Script: TypeAlias = Callable[[PromptMessage], Sequence[Step]]


def write_file_call(call_id: str = "call-1", path: str = "/workspace/a.txt") -> ToolCall:
    """Return a write_file call that waits for permission."""
    diff = FileDiff(path.rsplit("/", 1)[-1], path, "new\n", "old\n", "-old\n+new\n")
    return ToolCall(
        tool_call_id=call_id,
        status=ToolCallStatus.PENDING,
        tool_name="write_file",
        input_parameters={"file_path": path, "content": "new\n", "id": 9007199254740993},
        confirmation_request=ConfirmationRequest(OPTIONS, file_edit_details=diff),
    )


def conversation(message: PromptMessage) -> Sequence[Step]:
    """Return the script of Appendix A when the prompt contains "edit", else one that answers at once."""
    if "edit" in message.text:
        return (
            Thought(AgentThought("Plan", "Change the file.")),
            Ask((write_file_call(),)),
            TextContent("text-1", "I changed "),
            TextContent("text-1", "the file."),
        )
    return (TextContent("text-1", "You said: "), TextContent("text-1", message.text))


@dataclass(slots=True)
class MemoryTask:
    """A task: its events so far, and its remaining steps."""

    snapshot: TaskSnapshot
    events: list[Delivery] = field(default_factory=list[Delivery])
    steps: list[Step] = field(default_factory=list[Step])
    live: list[asyncio.Queue[Delivery]] = field(default_factory=list["asyncio.Queue[Delivery]"])
    answered: set[str] = field(default_factory=set[str])
    running: asyncio.Task[None] | None = None


class MemoryAgent:
    """Implements :class:`isthmus.client.AgentClient`."""

    def __init__(
        self,
        script: Script = conversation,
        *,
        default_workspace: str | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.script = script
        self.default_workspace = default_workspace
        self._clock = clock
        self._tasks: dict[str, MemoryTask] = {}
        self._workspaces: dict[str, str] = {}
        self.prompts: list[PromptMessage] = []
        self.followers = 0

    async def prompt(self, message: PromptMessage) -> Turn:
        """Start a task or continue one."""
        is_new = message.task_id is None
        task = self._create(message) if message.task_id is None else self._continued(message, message.task_id)
        self.prompts.append(message)
        start = task.snapshot.seq
        self._append(task, Prompt(message.message_id, message.text, settings=message.settings))
        said = HistoryMessage(message.message_id, "user", message.text)
        task.snapshot = replace(task.snapshot, history=(*task.snapshot.history, said))
        turn = self._turn(task, task.snapshot.seq if is_new else start, is_new=is_new)
        task.steps = list(self.script(message))
        self._run(task)
        return turn

    async def answer(
        self,
        task_id: str,
        confirmations: Sequence[ToolCallConfirmation],
        *,
        answered_by: str,
        context_id: str | None = None,
        message_id: str = "",
    ) -> Turn:
        """Answer questions; check all answers before one is applied."""
        task = self._find(task_id, context_id)
        waiting = {call.tool_call_id: call for call in task.snapshot.pending}
        for confirmation in confirmations:
            call = waiting.get(confirmation.tool_call_id)
            if call is None or call.confirmation_request is None:
                known = "already answered" if confirmation.tool_call_id in task.answered else "not waiting"
                raise InvalidRequest(f"tool_call_id: {confirmation.tool_call_id!r} is {known}")
            options = [option.id for option in call.confirmation_request.options]
            if confirmation.selected_option_id not in options:
                raise InvalidRequest(
                    f"selected_option_id: expected one of {', '.join(options)}, "
                    f"received {confirmation.selected_option_id!r}"
                )
        turn = self._turn(task, task.snapshot.seq)
        for confirmation in confirmations:
            task.answered.add(confirmation.tool_call_id)
            self._append(task, ConfirmationAccepted(confirmation, answered_by))
        self._append(task, StateChange(TaskState.WORKING))
        for confirmation in confirmations:
            for event in decided(waiting[confirmation.tool_call_id], confirmation):
                self._append(task, event)
        if task.snapshot.pending:
            self._append(task, StateChange(TaskState.INPUT_REQUIRED))
        else:
            self._run(task)
        return turn

    async def follow(self, task_id: str, after: int | None = None) -> Turn:
        """Return the events after a given one, or the new ones."""
        task = self._find(task_id)
        return self._turn(task, task.snapshot.seq if after is None else after)

    async def cancel(self, task_id: str) -> TaskSnapshot:
        """Stop the task."""
        task = self._find(task_id)
        if task.snapshot.state.is_terminal:
            raise TaskNotCancelable(f"task {task_id} has already ended: {task.snapshot.state}")
        if task.running is not None:
            task.running.cancel()
        for call in task.snapshot.pending:
            self._append(task, ToolCallUpdate(_without_question(call, ToolCallStatus.CANCELLED)))
        self._append(task, StateChange(TaskState.CANCELED))
        return task.snapshot

    async def get(self, task_id: str, history_length: int | None = None) -> TaskSnapshot:
        """Return the task's current state."""
        snapshot = self._find(task_id).snapshot
        if history_length is None:
            return snapshot
        return replace(
            snapshot, history=snapshot.history[len(snapshot.history) - history_length :] if history_length else ()
        )

    async def tasks(self, limit: int = 100) -> Sequence[TaskSnapshot]:
        """Return the tasks, most recently changed first."""
        found = sorted((task.snapshot for task in self._tasks.values()), key=lambda item: -item.updated_at)
        return [replace(snapshot, history=()) for snapshot in found[:limit]]

    async def list_tasks(self, query: TaskQuery) -> TaskList:
        """Return a page of tasks."""
        return select_tasks(await self.tasks(len(self._tasks)), query)

    async def commands(self, scope: CommandScope) -> Sequence[SlashCommand]:
        """Return one command, which takes arguments."""
        return (SlashCommand("say", "Say something", (SlashCommandArgument("text", "What to say", True),)),)

    async def execute(self, command: CommandMessage) -> Execution:
        """Run ``say`` as a task with the script of its text."""
        if command.path != ("say",):
            return Execution(CommandExecutionStatus.FAILED_TO_START, "There is no such command.")
        scope = command.scope
        turn = await self.prompt(PromptMessage(command.args, context_id=scope.context_id, settings=scope.settings))
        whole = await self.follow(turn.task_id, 0)
        return Execution(CommandExecutionStatus.STARTED, turn=replace(whole, is_new=True))

    async def aclose(self) -> None:
        """Stop everything."""
        running = [task.running for task in self._tasks.values() if task.running is not None]
        for item in running:
            item.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def _create(self, message: PromptMessage) -> MemoryTask:
        context_id = message.context_id or str(uuid.uuid4())
        workspace = (message.settings or {}).get("workspace_path") or self._workspaces.get(context_id)
        if workspace is None and not message.requires_settings:
            workspace = self.default_workspace
        if workspace is None:
            raise InvalidRequest("settings.workspace_path: expected AgentSettings with the session's first message")
        self._workspaces[context_id] = workspace
        now = self._clock()
        task_id = str(uuid.uuid4())
        snapshot = TaskSnapshot(
            task_id, context_id, TaskState.SUBMITTED, 0, workspace, now, now, title=message.text[:40], model="scripted"
        )
        task = self._tasks[task_id] = MemoryTask(snapshot)
        return task

    def _continued(self, message: PromptMessage, task_id: str) -> MemoryTask:
        task = self._find(task_id, message.context_id)
        if task.snapshot.state.is_terminal and not (
            task.snapshot.state is TaskState.COMPLETED and message.may_continue_completed
        ):
            raise TaskNotResumable(f"task {task_id} has ended and takes no further message: {task.snapshot.state}")
        return task

    def _find(self, task_id: str, context_id: str | None = None) -> MemoryTask:
        task = self._tasks.get(task_id)
        if task is None:
            raise TaskNotFound(f"there is no task {task_id}")
        if context_id is not None and context_id != task.snapshot.context_id:
            raise InvalidRequest(f"contextId: task {task_id} belongs to another session than {context_id!r}")
        return task

    def _run(self, task: MemoryTask) -> None:
        task.running = asyncio.create_task(self._work(task))

    async def _work(self, task: MemoryTask) -> None:
        if task.snapshot.state is not TaskState.WORKING:
            self._append(task, StateChange(TaskState.WORKING))
        while task.steps:
            match task.steps.pop(0):
                case Ask(calls):
                    for call in calls:
                        self._append(task, ToolCallUpdate(call))
                    self._append(task, StateChange(TaskState.INPUT_REQUIRED))
                    return
                case Wait(event):
                    await event.wait()
                case Progress(event):
                    self._publish(task, Delivery(None, self._clock(), event))
                case Exception() as error:
                    self._append(task, StateChange(TaskState.FAILED, str(error), "scripted"))
                    return
                case event:
                    self._append(task, event)
            await asyncio.sleep(0)
        self._append(task, StateChange(TaskState.COMPLETED))

    def _append(self, task: MemoryTask, event: AgentEvent) -> None:
        delivery = Delivery(task.snapshot.seq + 1, self._clock(), event)
        task.events.append(delivery)
        task.snapshot = _folded(task.snapshot, delivery)
        self._publish(task, delivery)

    def _publish(self, task: MemoryTask, delivery: Delivery) -> None:
        for queue in task.live:
            queue.put_nowait(delivery)

    def _turn(self, task: MemoryTask, after: int, *, is_new: bool = False) -> Turn:
        return Turn(task.snapshot, self._deliveries(task, after), is_new)

    async def _deliveries(self, task: MemoryTask, after: int) -> AsyncIterator[Delivery]:
        queue: asyncio.Queue[Delivery] = asyncio.Queue()
        for delivery in task.events[after:]:
            queue.put_nowait(delivery)
        task.live.append(queue)
        self.followers += 1
        try:
            while not (queue.empty() and task.snapshot.state.ends_stream):
                yield await queue.get()
        finally:
            task.live.remove(queue)
            self.followers -= 1


def _folded(snapshot: TaskSnapshot, delivery: Delivery) -> TaskSnapshot:
    snapshot = replace(snapshot, seq=delivery.seq or snapshot.seq, updated_at=delivery.at)
    match delivery.event:
        case Prompt():
            return replace(snapshot, state=TaskState.SUBMITTED)
        case StateChange(state, error, reason):
            return replace(snapshot, state=state, error=error, reason=reason)
        case ToolCallUpdate(call):
            others = tuple(item for item in snapshot.pending if item.tool_call_id != call.tool_call_id)
            return replace(snapshot, pending=(*others, call) if call.confirmation_request is not None else others)
        case TextContent(message_id, text):
            history = snapshot.history
            if history and history[-1].message_id == message_id and history[-1].role == "agent":
                history, text = history[:-1], history[-1].text + text
            return replace(snapshot, history=(*history, HistoryMessage(message_id, "agent", text)))
        case _:
            return snapshot


def decided(call: ToolCall, confirmation: ToolCallConfirmation) -> Sequence[AgentEvent]:
    """Return the events of a call after its answer; the tool ``failing`` fails."""
    if confirmation.selected_option_id == "cancel":
        return (ToolCallUpdate(_without_question(call, ToolCallStatus.CANCELLED)),)
    if call.tool_name == "failing":
        failed = replace(_without_question(call, ToolCallStatus.FAILED), error=ErrorDetails("no space", "disk", 28))
        return (ToolCallUpdate(_without_question(call, ToolCallStatus.EXECUTING)), ToolCallUpdate(failed))
    details = call.confirmation_request.file_edit_details if call.confirmation_request is not None else None
    modified = confirmation.file_details
    if details is None:
        output = ToolOutput(text="done")
    else:
        output = ToolOutput(diff=details if modified is None else replace(details, new_content=modified.new_content))
    executing = _without_question(call, ToolCallStatus.EXECUTING)
    return (
        ToolCallUpdate(executing),
        ToolCallUpdate(replace(executing, status=ToolCallStatus.SUCCEEDED, output=output)),
    )


def _without_question(call: ToolCall, status: ToolCallStatus) -> ToolCall:
    return replace(call, status=status, confirmation_request=None)
