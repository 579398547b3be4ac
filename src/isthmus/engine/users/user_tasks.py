"""One user's tasks: an AgentClient in this process that creates tasks for the user and reaches no others.

Not here: identifying users, see `isthmus.a2a.server.users.users`, and running tasks, see
:mod:`isthmus.engine.runs.runner`.
"""

import asyncio
import contextlib
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial

from typing_extensions import override

from isthmus.agent.session.session import Session
from isthmus.client import (
    NO_LIMITS,
    AgentClient,
    AnswersWithWords,
    CommandMessage,
    CommandScope,
    Execution,
    HistoryMessage,
    InvalidRequest,
    LineCompleter,
    LongFollower,
    PromptMessage,
    SessionStatusProvider,
    TaskList,
    TaskNotCancelable,
    TaskNotFound,
    TaskNotResumable,
    TaskQuery,
    TaskSnapshot,
    Turn,
    UserLimits,
)
from isthmus.development_tool import (
    SlashCommand,
    ToolCall,
    ToolCallConfirmation,
)
from isthmus.encoding.codec import JsonObject, well_formed
from isthmus.engine.followers.snapshots import HISTORY_MESSAGES, Snapshots
from isthmus.engine.port.workspaces import KEY, NO_FOLDER, WorkspaceRule
from isthmus.engine.requests.asking import artifacts_of, check_answers, check_shown, history_of, title_of
from isthmus.engine.requests.attachments import check_sizes, size_of
from isthmus.engine.requests.repeated_messages import (
    begun_before,
    digest_of,
    place_of_answers,
    place_of_prompt,
    snapshot_at,
)
from isthmus.engine.runs.runner import Runner
from isthmus.engine.users.task_access import TaskAccess
from isthmus.engine.users.user_commands import UserCommands
from isthmus.events import AgentEvent, ConfirmationAccepted, Prompt, TaskState
from isthmus.journal.port.base import RepeatedMessage, StaleLease
from isthmus.journal.port.task_rows import NewTask, TaskRow
from isthmus.runtime.large_work import off_loop
from isthmus.session_status import SessionStatus
from isthmus.slash_commands.tree import Completion

HISTORY_LIMIT = 1000
"""Maximum number of messages in a snapshot."""
CANCEL_SECONDS = 20.0  # the maximum time for a task to stop
ATTEMPTS = 100
"""Maximum number of tries when a task keeps changing between reading it and the step that depends on it."""


class UserTasks(AgentClient, AnswersWithWords, LongFollower, LineCompleter, SessionStatusProvider):
    """The tasks of one user; implements :class:`isthmus.client.AgentClient`.

    ``workspaces``, when given, replaces the engine's own rule. ``brings_programs``: its client may bring MCP servers
    that are commands. Closing it has no effect on the engine.
    """

    def __init__(
        self,
        runner: Runner,
        user: str = "",
        limits: UserLimits | None = None,
        workspaces: WorkspaceRule | None = None,
        *,
        brings_programs: bool = False,
    ) -> None:
        self._runner = runner
        self._journal = runner.journal
        self._user = user
        self._limits = limits or NO_LIMITS
        self._workspaces = workspaces or runner.options.workspaces
        self._access = TaskAccess(
            runner.journal, user, self._workspaces, runner.options.check_settings, brings_programs=brings_programs
        )
        self._snapshots = Snapshots(runner.journal, runner.options.model_name)
        self._commands = UserCommands(runner, self._access, self._limits, self._snapshots)

    # --- AgentClient ---

    @override
    async def prompt(self, message: PromptMessage) -> Turn:
        size = size_of(message.text, message.parts)
        message = await off_loop(size, well_formed, message)
        if not message.text.strip():
            raise InvalidRequest("the message has no text; expected a prompt in a text part")
        if message.task_id is not None:
            return await self._continue(message.task_id, message)
        if message.new_task_id is not None and await self._journal.task(message.new_task_id) is not None:
            return await self._continue(message.new_task_id, message)  # another message created it first
        context_id = message.context_id or str(uuid.uuid4())
        known = await self._journal.workspace_of(context_id, self._user) if message.context_id else None
        workspace = self._workspaces.choose(message.settings, known, required=message.requires_settings)
        await self._access.check_settings(message.settings, workspace)
        settings = {**(message.settings or {}), "workspace_path": workspace}
        task_id = message.new_task_id or str(uuid.uuid4())
        digest = await off_loop(size, digest_of, message) if message.message_id else ""
        task = NewTask(task_id, context_id, workspace, title_of(message.text), self._user, message.message_id, digest)
        if (
            message.parts
            and (again := await begun_before(self._journal, self._user, message.message_id, digest)) is not None
        ):
            return await self._first_snapshot(again)  # before its files are stored again
        prompt = await self._prompt_of(task_id, context_id, message, settings)
        is_new_session = message.context_id is None
        try:
            taken = await self._runner.create(task, [prompt], self._limits, is_whole_session=is_new_session)
        except RepeatedMessage as repeated:
            return await self._first_snapshot(repeated.task_id)
        return self._turn(taken.row, taken.row.seq, is_new=True, history=history_of(taken.deliveries))

    @override
    async def answer(
        self,
        task_id: str,
        confirmations: Sequence[ToolCallConfirmation],
        *,
        answered_by: str,
        context_id: str | None = None,
        message_id: str = "",
    ) -> Turn:
        return await self._answer(task_id, context_id, confirmations, answered_by, message_id)

    async def answer_shown(
        self,
        task_id: str,
        confirmation: ToolCallConfirmation,
        is_shown: Callable[[ToolCall], bool],
        *,
        answered_by: str,
        message_id: str,
    ) -> Turn:
        """Answer a question if ``is_shown`` returns true for its call, as it waits when the answer is stored.

        Raises:
            ChangedQuestion: it returns false.
        """
        return await self._answer(task_id, None, [confirmation], answered_by, message_id, is_shown)

    @override
    async def answer_with(
        self, task_id: str, confirmations: Sequence[ToolCallConfirmation], message: PromptMessage, *, answered_by: str
    ) -> Turn:
        size = size_of(message.text, message.parts)
        message = await off_loop(size, well_formed, replace(message, is_steering=True))
        row = await self._access.row(task_id, message.context_id)
        beside = await self._prompt_of(task_id, row.context_id, message, None)
        return await self._answer(
            task_id, message.context_id, confirmations, answered_by, message.message_id, beside=beside
        )

    async def _answer(
        self,
        task_id: str,
        context_id: str | None,
        confirmations: Sequence[ToolCallConfirmation],
        answered_by: str,
        message_id: str,
        is_shown: Callable[[ToolCall], bool] | None = None,
        beside: Prompt | None = None,
    ) -> Turn:
        confirmations = [well_formed(confirmation) for confirmation in confirmations]

        async def check(row: TaskRow) -> int | None:
            pending = await self._pending(row)
            try:
                check_answers(row, pending, confirmations)
            except InvalidRequest:
                if (place := await place_of_answers(self._journal, row, confirmations, message_id)) is None:
                    raise
                return place
            if is_shown is not None:
                check_shown(pending, confirmations, is_shown)
            return None

        events = [ConfirmationAccepted(confirmation, answered_by, message_id) for confirmation in confirmations]
        events[-1:] = [replace(last, beside=beside) for last in events[-1:]]
        return await self._add(task_id, context_id, events, check)

    @override
    async def follow(self, task_id: str, after: int | None = None) -> Turn:
        return await self._follow(task_id, after)

    @override
    async def follow_to_end(self, task_id: str, after: int | None = None) -> Turn:
        return await self._follow(task_id, after, to_end=True)

    async def _follow(self, task_id: str, after: int | None, *, to_end: bool = False) -> Turn:
        await self._runner.go_on(await self._access.row(task_id))
        snapshot = await self.get(task_id)
        if after is not None and not 0 <= after <= snapshot.seq:
            raise InvalidRequest(f"event {after} of task {task_id} does not exist; it has events 1 to {snapshot.seq}")
        start = snapshot.seq if after is None else after
        snapshot = replace(snapshot, model=await self._snapshots.model_at(task_id, start))
        return Turn(snapshot, self._runner.deliver(task_id, start, snapshot.seq, to_end=to_end))

    @override
    async def cancel(self, task_id: str) -> TaskSnapshot:
        try:
            async with asyncio.timeout(CANCEL_SECONDS):
                row = await self._access.row(task_id)
                await self._runner.cancel(task_id)
        except TimeoutError as error:
            raise TaskNotCancelable(f"task {task_id} did not stop within {CANCEL_SECONDS:g} s; try again") from error
        try:
            return await self.get(task_id)
        except TaskNotFound:  # deleted at once, because the journal is full
            return self._snapshots.of(replace(row, state=TaskState.CANCELED, pending=()))

    @override
    async def get(self, task_id: str, history_length: int | None = None) -> TaskSnapshot:
        row = await self._access.row(task_id)
        limit = HISTORY_MESSAGES if history_length is None else min(max(0, history_length), HISTORY_LIMIT)
        snapshot = self._snapshots.of(row, await self._snapshots.history(task_id, limit))
        snapshot = replace(snapshot, artifacts=artifacts_of(await self._journal.artifacts(task_id)))
        if row.state is TaskState.WORKING and (segment := self._runner.segment(task_id)) is not None:
            # While one call runs, the others are still waiting.
            return replace(snapshot, pending=segment.session.calls.waiting)
        return snapshot

    @override
    async def tasks(self, limit: int = 100) -> Sequence[TaskSnapshot]:
        rows = await self._journal.tasks(limit, user=self._user)
        return [self._snapshots.of(row) for row in rows if self._workspaces.allows(row.workspace)]

    @override
    async def list_tasks(self, query: TaskQuery) -> TaskList:
        rows, total = await self._journal.list_tasks(query, self._user, self._workspaces.resolved_roots)
        return TaskList([self._snapshots.of(row) for row in rows], total)

    @override
    async def commands(self, scope: CommandScope) -> Sequence[SlashCommand]:
        return await self._commands.commands(scope)

    @override
    async def complete(self, scope: CommandScope, line: str) -> Sequence[Completion]:
        return await self._commands.complete(scope, line)

    @override
    async def session_status(self, scope: CommandScope) -> SessionStatus:
        return await self._commands.session_status(scope)

    @override
    async def execute(self, command: CommandMessage) -> Execution:
        return await self._commands.execute(command)

    @override
    async def aclose(self) -> None: ...

    # --- continuing ---

    async def _continue(self, task_id: str, message: PromptMessage) -> Turn:
        async def check(row: TaskRow) -> int | None:
            # A message without an id cannot be recognised as a repetition.
            place = await place_of_prompt(self._journal, row, prompt) if message.message_id else None
            if place is not None:
                return place
            if row.state is TaskState.COMPLETED and not message.may_continue_completed:
                raise TaskNotResumable(f"task {task_id} is completed; start a new one in context {row.context_id}")
            if row.state in (TaskState.FAILED, TaskState.CANCELED, TaskState.REJECTED):
                raise TaskNotResumable(f"task {task_id} is {row.state}; start a new one in context {row.context_id}")
            if message.settings is not None:
                self._workspaces.choose(message.settings, row.workspace, required=False)
            return None

        row = await self._access.row(task_id, message.context_id)
        if row.workspace == NO_FOLDER:
            raise TaskNotResumable(
                f"task {task_id} was a command without a folder: send the message without its id, in context"
                f" {row.context_id}, with {KEY}"
            )
        await self._access.check_settings(message.settings, row.workspace)
        settings = None if message.settings is None else {**message.settings, "workspace_path": row.workspace}
        prompt = await self._prompt_of(task_id, row.context_id, message, settings)
        return await self._add(task_id, message.context_id, [prompt], check)

    async def _add(
        self,
        task_id: str,
        context_id: str | None,
        events: Sequence[AgentEvent],
        check: Callable[[TaskRow], Awaitable[int | None]],
    ) -> Turn:
        """Add a user's events to a task if it is still in the state in which ``check`` accepted them.

        ``check`` returns the place of events that were taken before; then nothing is added.
        """
        for _ in range(ATTEMPTS):
            row = await self._access.row(task_id, context_id)
            self._workspaces.require_inside(row.workspace)
            if (place := await check(row)) is not None:
                return await self._went_on(row, place)
            if row.state.ends_stream:
                if (taken := await self._runner.claim(row, events, self._limits)) is not None:
                    return await self._next_turn(taken.row)
                continue
            await self._runner.go_on(row)
            with contextlib.suppress(StaleLease, RepeatedMessage):
                await self._journal.post(row, events)
                self._runner.posted(task_id)
                # The end of the work under way must not look like the end of the message just sent.
                return await self._next_turn(row)
        raise InvalidRequest(f"task {task_id} keeps changing; look at it and try again")

    async def _pending(self, row: TaskRow) -> Sequence[ToolCall]:
        """Return the calls that are waiting for a user and have no answer in the inbox."""
        if row.state.ends_stream:
            return row.pending
        # The inbox first: an answer leaves it when it becomes an event.
        answers = await self._journal.waiting(row.task_id, ConfirmationAccepted)
        answered = {event.confirmation.tool_call_id for event in answers}
        session = await self._runner.sessions.fold(row, Session(row.context_id))
        return [call for call in session.calls.waiting if call.tool_call_id not in answered]

    # --- repeated messages and files ---

    async def _prompt_of(
        self, task_id: str, context_id: str, message: PromptMessage, settings: JsonObject | None
    ) -> Prompt:
        """Return the event of a message. Agents that read files receive its parts other than text as files.

        Raises:
            ContentNotSupported: the agent cannot read a part, or it is too large.
        """
        check_sizes(message.parts)
        parts, media = message.parts, ()
        if parts and (keep := self._runner.options.keep_files) is not None:
            model = partial(self._runner.sessions.model_of, context_id, self._user, settings)
            parts, media = (), await keep(task_id, parts, model)
        message_id = message.message_id or str(uuid.uuid4())
        return Prompt(
            message_id,
            message.text,
            settings,
            parts,
            media,
            message.metadata,
            message.is_steering,
            message.extension,
        )

    async def _first_snapshot(self, task_id: str) -> Turn:
        """Return the turn that the client received when its message began the task."""
        row, first = await self._access.row(task_id), await self._journal.events(task_id, 0, 1)
        turn = self._turn(row, 1, is_new=True, history=history_of(first))
        return replace(turn, snapshot=snapshot_at(turn.snapshot, TaskState.SUBMITTED, 1, row.created_at))

    async def _went_on(self, row: TaskRow, place: int) -> Turn:
        """Return the turn of a message that is event ``place`` of a task, or has waited in the inbox since then."""
        turn, model = self._turn(row, place), await self._snapshots.model_at(row.task_id, place)
        snapshot = snapshot_at(turn.snapshot, TaskState.WORKING, place, row.updated_at)
        return replace(turn, snapshot=replace(snapshot, model=model))

    # --- showing ---

    def _turn(
        self, row: TaskRow, after: int, *, is_new: bool = False, history: tuple[HistoryMessage, ...] = ()
    ) -> Turn:
        return Turn(self._snapshots.of(row, history), self._runner.deliver(row.task_id, after, after + 1), is_new)

    async def _next_turn(self, row: TaskRow) -> Turn:
        """Return the current turn of a task that began earlier."""
        turn = self._turn(row, row.seq)
        return replace(
            turn, snapshot=replace(turn.snapshot, model=await self._snapshots.model_at(row.task_id, row.seq))
        )
