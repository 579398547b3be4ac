"""The engine: an AgentClient in process, over the journal.

It makes tasks, takes answers by compare-and-set, runs segments while somebody works, and lets any number of
subscribers follow. A task that waits for a person is only rows: no thread, no asyncio task, no lease. Deliberately not
here: what the agent does, and any wire.
"""

import asyncio
import contextlib
import logging
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from isthmus.agent.session import Session
from isthmus.client import (
    Delivery,
    HistoryMessage,
    InvalidRequest,
    PromptMessage,
    TaskNotCancelable,
    TaskNotFound,
    TaskNotResumable,
    TaskSnapshot,
    Turn,
)
from isthmus.codec import well_formed
from isthmus.engine.asking import check_answers, history_of, title_of
from isthmus.engine.feed import TaskFeed
from isthmus.engine.following import OTHERS_POLL_SECONDS, deliveries
from isthmus.engine.owner import is_gone, new_owner
from isthmus.engine.questions import QuestionBoard
from isthmus.engine.segment import Agent, Segment
from isthmus.engine.workspaces import WorkspaceRule
from isthmus.errors import IsthmusError
from isthmus.events import (
    AgentEvent,
    ConfirmationAccepted,
    Prompt,
    StateChange,
    TaskState,
    ToolCall,
    ToolCallConfirmation,
)
from isthmus.journal.base import Journal, JournalError, NewTask, StaleLease, Taken, TaskRow

HISTORY_MESSAGES = 50
"""Messages of a snapshot when the asker names no number."""
HISTORY_LIMIT = 1000
"""Messages of a snapshot at the most."""
CANCEL_SECONDS = 20.0
ATTEMPTS = 100
"""How often a task may change between the look at it and the step that depends on it."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """``workspaces`` says where agents may work, and whose tasks are seen; ``model_name`` is shown with events.

    With ``takes_over`` whatever an ended process left working goes on here by itself, and questions that wait are
    shown in editors; without, only what is asked for.
    """

    workspaces: WorkspaceRule = field(default_factory=WorkspaceRule)
    model_name: Callable[[], str] = str
    lease_seconds: float = 20.0
    takes_over: bool = True


class Engine:
    """Runs an agent's tasks in this process. Implements :class:`isthmus.client.AgentClient`."""

    def __init__(self, agent: Agent, journal: Journal, options: EngineOptions | None = None) -> None:
        self._agent = agent
        self._journal = journal
        self._options = options or EngineOptions()
        self._owner = new_owner()
        self._segments: dict[str, Segment] = {}
        self._running: dict[str, asyncio.Task[None]] = {}
        self._broken: dict[str, str] = {}
        """Tasks of ours whose segment broke off, and why; they are taken up again when their lease has run out."""
        self._upkeep: asyncio.Task[None] | None = None
        self.questions = QuestionBoard()

    async def start(self) -> None:
        """Take over what is to be taken over, and look after leases from now on."""
        if self._options.takes_over:
            for row in await self._rows(TaskState.INPUT_REQUIRED):
                self.questions.waiting(row.task_id, row.context_id, row.workspace, row.pending)
        await self._sweep()
        self._upkeep = asyncio.create_task(self._look_after_leases(), name="isthmus-leases")

    # --- AgentClient ---

    async def prompt(self, message: PromptMessage) -> Turn:
        """See :meth:`isthmus.client.AgentClient.prompt`."""
        message = well_formed(message)
        if not message.text.strip():
            raise InvalidRequest("the message has no text; expected a prompt in a text part")
        if message.task_id is not None:
            return await self._continue(message.task_id, message)
        context_id = message.context_id or str(uuid.uuid4())
        known = await self._journal.workspace_of(context_id) if message.context_id else None
        workspace = self._options.workspaces.choose(message.settings, known, required=message.requires_settings)
        settings = {**(message.settings or {}), "workspace_path": workspace}
        task = NewTask(str(uuid.uuid4()), context_id, workspace, title_of(message.text))
        prompt = Prompt(message.message_id or str(uuid.uuid4()), message.text, settings)
        taken = await self._journal.create(task, [prompt], self._owner, self._options.lease_seconds)
        turn = self._turn(taken.row, taken.row.seq, is_new=True, history=(history_of(taken.deliveries)))
        self._start_segment(taken, is_whole_session=message.context_id is None)
        return turn

    async def answer(
        self,
        task_id: str,
        confirmations: Sequence[ToolCallConfirmation],
        *,
        answered_by: str,
        context_id: str | None = None,
    ) -> Turn:
        """See :meth:`isthmus.client.AgentClient.answer`."""
        confirmations = [well_formed(confirmation) for confirmation in confirmations]

        async def check(row: TaskRow) -> None:
            check_answers(row, await self._pending(row), confirmations)

        events = [ConfirmationAccepted(confirmation, answered_by) for confirmation in confirmations]
        return await self._add(task_id, context_id, events, check)

    async def follow(self, task_id: str, after: int | None = None) -> Turn:
        """See :meth:`isthmus.client.AgentClient.follow`."""
        await self._go_on(await self._row(task_id))
        snapshot = await self.get(task_id)
        if after is not None and not 0 <= after <= snapshot.seq:
            raise InvalidRequest(f"event {after} of task {task_id} does not exist; it has events 1 to {snapshot.seq}")
        start = snapshot.seq if after is None else after
        return Turn(snapshot, self._deliver(task_id, start, snapshot.seq))

    async def cancel(self, task_id: str) -> TaskSnapshot:
        """See :meth:`isthmus.client.AgentClient.cancel`."""
        try:
            async with asyncio.timeout(CANCEL_SECONDS):
                await self._cancel(task_id)
        except TimeoutError as error:
            raise TaskNotCancelable(f"task {task_id} did not stop within {CANCEL_SECONDS:g} s; try again") from error
        return await self.get(task_id)

    async def get(self, task_id: str, history_length: int | None = None) -> TaskSnapshot:
        """See :meth:`isthmus.client.AgentClient.get`."""
        row = await self._row(task_id)
        limit = HISTORY_MESSAGES if history_length is None else min(max(0, history_length), HISTORY_LIMIT)
        snapshot = self._snapshot(row, await self._history(task_id, limit))
        if row.state is TaskState.WORKING and (segment := self._segments.get(task_id)) is not None:
            # While one call runs, the others go on waiting.
            return replace(snapshot, pending=segment.session.waiting)
        return snapshot

    async def tasks(self, limit: int = 100) -> Sequence[TaskSnapshot]:
        """See :meth:`isthmus.client.AgentClient.tasks`."""
        rows = await self._journal.tasks(limit)
        return [self._snapshot(row) for row in rows if self._options.workspaces.allows(row.workspace)]

    async def aclose(self) -> None:
        """Stop here: what runs is interrupted and is taken over at the next start; what waits, waits."""
        leases = [segment.lease for segment in self._segments.values()]
        tasks = [*self._running.values(), *([self._upkeep] if self._upkeep else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        try:
            await self._journal.release(leases)
        except JournalError:
            log.exception("what runs is taken over when its lease has run out")
        finally:
            await self._journal.aclose()

    # --- continuing ---

    async def _continue(self, task_id: str, message: PromptMessage) -> Turn:
        async def check(row: TaskRow) -> None:
            if row.state is TaskState.COMPLETED and not message.may_continue_completed:
                raise TaskNotResumable(f"task {task_id} is completed; start a new one in context {row.context_id}")
            if row.state in (TaskState.FAILED, TaskState.CANCELED):
                raise TaskNotResumable(f"task {task_id} has {row.state}; start a new one in context {row.context_id}")
            if message.settings is not None:
                self._options.workspaces.choose(message.settings, row.workspace, required=False)

        prompt = Prompt(message.message_id or str(uuid.uuid4()), message.text)
        return await self._add(task_id, message.context_id, [prompt], check)

    async def _add(
        self,
        task_id: str,
        context_id: str | None,
        events: Sequence[AgentEvent],
        check: Callable[[TaskRow], Awaitable[None]],
    ) -> Turn:
        """Add a person's events to a task that ``check`` finds fit for them, and no other than that one."""
        for _ in range(ATTEMPTS):
            row = await self._row(task_id, context_id)
            await check(row)
            if row.state.ends_stream:
                if (taken := await self._claim(row, events)) is not None:
                    turn = self._turn(taken.row, taken.row.seq)
                    self._start_segment(taken)
                    return turn
                continue
            await self._go_on(row)
            with contextlib.suppress(StaleLease):
                await self._journal.post(row, events)
                # The work under way must not look like the end of what was just sent.
                return self._turn(row, row.seq)
        raise InvalidRequest(f"task {task_id} changes all the time; look at it and try again")

    async def _claim(self, row: TaskRow, events: Sequence[AgentEvent]) -> Taken | None:
        taken = await self._journal.claim(row, events, self._owner, self._options.lease_seconds)
        if taken is not None:
            answered = [event.confirmation.tool_call_id for event in events if isinstance(event, ConfirmationAccepted)]
            self.questions.closed(row.task_id, answered or None)
        return taken

    async def _pending(self, row: TaskRow) -> Sequence[ToolCall]:
        """The calls that wait for a person, without those whose answers are on their way."""
        if row.state.ends_stream:
            return row.pending
        # In this order: an answer leaves the inbox when it is among the events.
        inbox = await self._journal.inbox(row.task_id)
        answered = {event.confirmation.tool_call_id for event in inbox if isinstance(event, ConfirmationAccepted)}
        session = await self._fold(row.task_id, Session(row.context_id))
        return [call for call in session.waiting if call.tool_call_id not in answered]

    async def _cancel(self, task_id: str) -> None:
        is_asked = False
        while (row := await self._row(task_id)).state is not TaskState.CANCELED or not is_asked:
            is_asked = True
            if row.state.is_terminal:
                raise TaskNotCancelable(f"task {task_id} is {row.state}; only one that works or waits can be cancelled")
            if (running := self._running.get(task_id)) is not None:
                self._segments[task_id].cancel()
                await asyncio.wait([running])
            elif (taken := await self._take_idle(row)) is not None:
                self._start_segment(taken).cancel()
            else:
                # Another process runs it, and looks into the inbox when its segment ends or its lease is renewed.
                stop = StateChange(TaskState.CANCELED)
                with contextlib.suppress(StaleLease):
                    if stop not in await self._journal.inbox(task_id):
                        await self._journal.post(row, [stop])
                await asyncio.sleep(OTHERS_POLL_SECONDS)

    async def _take_idle(self, row: TaskRow) -> Taken | None:
        """Take a task that waits, or whose process has ended."""
        if row.state is TaskState.INPUT_REQUIRED:
            return await self._claim(row, [])
        if row.owner is None or row.lease_until < self._journal.now() or is_gone(row.owner):
            return await self._journal.take_over(row, self._owner, self._options.lease_seconds)
        return None

    # --- running ---

    def _start_segment(self, taken: Taken, *, is_whole_session: bool = False) -> Segment:
        """Run what was taken. A whole session has no other events than those that were added with the lease."""
        row = taken.row
        # The feed is there before anything is written, so that nobody who follows misses the beginning.
        feed = TaskFeed(row.seq)
        session = Session(row.context_id)
        if is_whole_session:
            for delivery in taken.deliveries:
                session.apply(delivery.event, row.task_id)
        fold = None if is_whole_session else partial(self._fold, row.task_id)
        segment = Segment(self._agent, self._journal, feed, taken.lease, session, fold, self._end)
        self._broken.pop(row.task_id, None)
        self._segments[row.task_id] = segment
        self._running[row.task_id] = asyncio.create_task(self._run(segment, row), name=f"isthmus-task-{row.task_id}")
        return segment

    async def _run(self, segment: Segment, row: TaskRow) -> None:
        try:
            await segment.run()
        except StaleLease as error:
            log.warning("%s", error)
        except Exception as error:
            log.exception("task %s cannot go on", row.task_id)
            self._broken[row.task_id] = str(error) if isinstance(error, IsthmusError) else "internal error, see the log"
        finally:
            if self._segments.get(row.task_id) is segment:
                self._forget(row.task_id)
            segment.feed.close()

    def _end(self, segment: Segment) -> None:
        session = segment.session
        self._forget(segment.lease.task_id)
        self.questions.waiting(segment.lease.task_id, session.context_id, session.workspace, session.waiting)

    def _forget(self, task_id: str) -> None:
        self._segments.pop(task_id, None)
        self._running.pop(task_id, None)

    async def _fold(self, task_id: str, session: Session) -> Session:
        """The conversation as a task of it goes on: what was said in other tasks comes first."""
        kept = await self._journal.session(session.context_id)
        for of_task, delivery in sorted(kept, key=lambda item: item[0] == task_id):
            session.apply(delivery.event, of_task)
        return session

    async def _look_after_leases(self) -> None:
        seconds = self._options.lease_seconds
        while True:
            await asyncio.sleep(seconds / 4)
            try:
                lost = await self._journal.renew([item.lease for item in self._segments.values()], seconds)
                for lease in lost:
                    if (running := self._running.get(lease.task_id)) is not None:
                        running.cancel()
                for task_id in await self._journal.cancelled([item.lease for item in self._segments.values()]):
                    if (segment := self._segments.get(task_id)) is not None:
                        segment.cancel()
                await self._sweep()
            except Exception:
                log.exception("leases could not be looked after")

    async def _sweep(self) -> None:
        if self._options.takes_over:
            for row in await self._rows(TaskState.SUBMITTED, TaskState.WORKING):
                await self._go_on(row)

    async def _go_on(self, row: TaskRow) -> None:
        """Go on with a task whose process has ended; show a question that waits to editors."""
        if row.state is TaskState.INPUT_REQUIRED:
            self.questions.waiting(row.task_id, row.context_id, row.workspace, row.pending)
            return
        if row.state.is_terminal or row.task_id in self._segments:
            return
        if (taken := await self._take_idle(row)) is not None:
            log.info("task %s goes on after its process ended", row.task_id)
            self._start_segment(taken)

    async def _rows(self, *states: TaskState) -> Sequence[TaskRow]:
        rows = await self._journal.tasks(10_000, states)
        return [row for row in rows if self._options.workspaces.allows(row.workspace)]

    # --- following ---

    def _turn(
        self, row: TaskRow, after: int, *, is_new: bool = False, history: tuple[HistoryMessage, ...] = ()
    ) -> Turn:
        return Turn(self._snapshot(row, history), self._deliver(row.task_id, after, after + 1), is_new)

    def _deliver(self, task_id: str, after: int, end_from: int) -> AsyncIterator[Delivery]:
        return deliveries(self._journal, self._feed_of, self._why_broken, task_id, after, end_from)

    def _feed_of(self, task_id: str) -> TaskFeed | None:
        segment = self._segments.get(task_id)
        return segment.feed if segment is not None else None

    def _why_broken(self, row: TaskRow) -> str | None:
        return self._broken.get(row.task_id) if row.owner == self._owner else None

    async def _history(self, task_id: str, limit: int) -> tuple[HistoryMessage, ...]:
        """The last messages; read backwards, since what the model said may be calls alone, and no message then."""
        messages: tuple[HistoryMessage, ...] = ()
        rows, before = limit, None
        while len(messages) < limit:
            found = await self._journal.messages(task_id, rows, before)
            messages = (*history_of(found), *messages)
            if len(found) < rows:
                break
            rows, before = HISTORY_MESSAGES, found[0].seq
        return messages[-limit:] if limit else ()

    async def _row(self, task_id: str, context_id: str | None = None) -> TaskRow:
        row = await self._journal.task(task_id)
        if row is None or not self._options.workspaces.allows(row.workspace):
            raise TaskNotFound(f"there is no task {task_id[:100]}")
        if context_id is not None and context_id != row.context_id:
            raise InvalidRequest(f"task {task_id} belongs to another contextId than {context_id}")
        return row

    def _snapshot(self, row: TaskRow, history: tuple[HistoryMessage, ...] = ()) -> TaskSnapshot:
        return TaskSnapshot(
            row.task_id,
            row.context_id,
            row.state,
            row.seq,
            row.workspace,
            row.created_at,
            row.updated_at,
            title=row.title,
            model=self._options.model_name(),
            error=row.error,
            reason=row.reason,
            pending=row.pending,
            history=history,
        )
