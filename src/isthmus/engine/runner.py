"""Runs the segments of tasks in this process: takes and renews leases, and continues the tasks of ended processes.

Not here: the rights of users, see :mod:`isthmus.engine.user_tasks`, and the agent's own work, see `isthmus.agent`.
"""

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from isthmus.agent.approval.session_policy import check_agent_settings
from isthmus.agent.session import Session
from isthmus.client import NO_LIMITS, Delivery, LimitReached, TaskNotCancelable, TaskNotFound, UserLimits
from isthmus.encoding.codec import JsonObject
from isthmus.engine.child_monitor import ChildMonitor
from isthmus.engine.feed import TaskFeed
from isthmus.engine.open_questions import OpenQuestions
from isthmus.engine.retention import MAXIMUM_SIZE, DeleteFiles, Retention
from isthmus.engine.subscriptions import OTHERS_POLL_SECONDS, WorkNotifier, deliveries
from isthmus.engine.suspended_call_monitor import SuspendedCallMonitor
from isthmus.engine.task_run import Agent, SuspendingAgent, TaskRun
from isthmus.engine.torn_text import torn_text
from isthmus.engine.workspaces import WorkspaceRule
from isthmus.errors import IsthmusError
from isthmus.events import AgentEvent, ConfirmationAccepted, MessagePart, StateChange, TaskState
from isthmus.journal.base import Journal, JournalError, StaleLease
from isthmus.journal.lease_owner import is_gone, new_owner
from isthmus.journal.task_rows import ClaimedTask, NewTask, TaskRow
from isthmus.media import Media
from isthmus.record import record

BREAKS = 3
"""Maximum number of times that a task whose write failed is resumed at once."""

TakenT = TypeVar("TakenT", bound=ClaimedTask | None)

log = logging.getLogger(__name__)

CheckSettings: TypeAlias = Callable[[JsonObject, Path, bool], Awaitable[object]]
"""Function that raises an InvalidRequest for AgentSettings in a folder that the agent does not take.

The last argument is whether this client may bring MCP servers that are commands.
"""


async def _check_form(settings: JsonObject, folder: Path, brings_programs: bool) -> None:
    check_agent_settings(settings)


KeepFiles: TypeAlias = Callable[
    [str, Sequence[MessagePart], Callable[[], Awaitable[str | None]]], Awaitable[tuple[Media, ...]]
]


@record
class EngineOptions:
    """Options of an engine.

    Agents may work only in the folders that ``workspaces`` allows, and only tasks there are seen. ``model_name``
    returns the agent's own model, which is shown with events. With ``takes_over`` the tasks that an ended process left
    working are continued by themselves, and open questions are shown in editors; otherwise only the tasks that a client
    asks for. When the journal takes more than ``maximum_size`` bytes, ended tasks are removed, the oldest first, and
    their files by ``delete_files``. ``check_settings`` raises an InvalidRequest that names the key if the agent does
    not accept these AgentSettings, as received, in a folder; then no task is created. ``keep_files`` stores the parts
    of a message other than text as files of the task, for agents that read files; it may call the function it is given
    for the name of the message's model, None for the agent's own. ``on_task_end`` is called with the id of each task
    whose work has ended here, successfully or not. ``brings_programs``: the client of the engine itself may bring MCP
    servers that are commands; clients of other views of it may not.
    """

    workspaces: WorkspaceRule = field(default_factory=WorkspaceRule)
    model_name: Callable[[], str] = str
    lease_seconds: float = 20.0
    takes_over: bool = True
    maximum_size: int | None = MAXIMUM_SIZE
    delete_files: DeleteFiles | None = None
    check_settings: CheckSettings = _check_form
    brings_programs: bool = False
    on_task_end: Callable[[str], None] | None = None
    keep_files: KeepFiles | None = None


class Runner:
    """The tasks that run in this process. ``questions`` holds the open questions of all users."""

    def __init__(self, agent: Agent, journal: Journal, options: EngineOptions) -> None:
        self.agent = agent
        self.journal = journal
        self.options = options
        self.questions = OpenQuestions()
        self.begins = WorkNotifier()
        self._owner = new_owner()
        self._segments: dict[str, TaskRun] = {}
        self._running: dict[str, asyncio.Task[None]] = {}
        self._broken: dict[str, str] = {}
        """Tasks of this process whose segment broke off, with the reason. The next check of the leases resumes them;
        when that has failed :data:`BREAKS` times, they wait until their lease has expired."""
        self._breaks: Counter[str] = Counter()
        self._upkeep: list[asyncio.Task[None]] = []
        self.retention = Retention(journal, options.delete_files, options.maximum_size)
        self.children = ChildMonitor(journal, partial(self.claim, events=()), self.cancel)
        self._suspended: SuspendedCallMonitor | None = None
        if isinstance(agent, SuspendingAgent):
            agent.suspended.process = self._owner
            take_up = partial(self.claim, events=())
            self._suspended = SuspendedCallMonitor(agent.suspended, journal, self._running.get, take_up)

    async def start(self) -> None:
        """Take over the tasks of ended processes, and keep leases from now on."""
        if self.options.takes_over:
            for row in await self._rows(*(state for state in TaskState if state.is_waiting)):
                if not await self.children.look(row):
                    await self.go_on(row)
        await self._sweep()
        self._upkeep = [
            asyncio.create_task(self._look_after_leases(), name="isthmus-leases"),
            asyncio.create_task(self._look_after_size(), name="isthmus-journal-size"),
        ]

    async def aclose(self) -> None:
        """Interrupt the running tasks, which the next start takes over; waiting tasks keep waiting."""
        upkeep, self._upkeep = self._upkeep, []
        await self.children.stop()
        if self._suspended is not None:
            await self._suspended.stop()
        leases = [segment.lease for segment in self._segments.values()]
        tasks = [*self._running.values(), *upkeep]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._suspended is not None:
            await self._suspended.aclose()
        try:
            await self.journal.release(leases)
        except JournalError:
            log.exception(
                "leases could not be released; the running tasks are taken over when their leases have expired"
            )
        finally:
            await self.journal.aclose()

    def segment(self, task_id: str) -> TaskRun | None:
        """Return the run of a task in this process, or None."""
        return self._segments.get(task_id)

    def posted(self, task_id: str) -> None:
        """Note that events have come into the inbox of a task, for its run here."""
        if (segment := self._segments.get(task_id)) is not None:
            segment.has_inbox = True

    # --- taking ---

    async def create(
        self,
        task: NewTask,
        events: Sequence[AgentEvent],
        limits: UserLimits = NO_LIMITS,
        *,
        is_whole_session: bool = False,
    ) -> ClaimedTask:
        """Create a task and run it. ``is_whole_session``: its session is new. Raises LimitReached."""
        if self.retention.is_full:
            await self.retention.hold_size()  # Tasks that have ended meanwhile make room.
        if self.retention.is_full:
            raise LimitReached(
                f"the journal is at its maximum size ({self.retention.maximum_size} bytes), and no ended task is left"
                " to remove: new tasks are not accepted, existing ones can continue. End some and delete them"
                " (isthmus tasks delete), or raise isthmus.journal.maxSize in the settings."
            )
        write = self.journal.create(task, events, self._owner, self.options.lease_seconds, limits)
        return await self._run_taken(write, is_whole_session=is_whole_session)

    async def claim(
        self, row: TaskRow, events: Sequence[AgentEvent], limits: UserLimits = NO_LIMITS
    ) -> ClaimedTask | None:
        """Claim a task at rest and run it; None if another claim came first. Raises LimitReached."""
        write = self.journal.claim(row, events, self._owner, self.options.lease_seconds, limits)
        taken = await self._run_taken(write)
        if taken is not None:
            answers = [event for event in events if isinstance(event, ConfirmationAccepted)]
            for answer in answers:
                self.questions.closed(row.task_id, answer.confirmation.tool_call_id, answer.answered_by)
            if not answers:
                self.questions.closed(row.task_id)
        return taken

    async def cancel(self, task_id: str) -> None:
        """Cancel a task wherever it runs, with those of its subagents. Return once that is recorded.

        Raises TaskNotCancelable and TaskNotFound.
        """
        await self._cancel_one(task_id)
        await self.children.cancel_children(task_id)

    async def _cancel_one(self, task_id: str) -> None:
        is_asked = False
        while True:
            row = await self.journal.task(task_id)
            if row is None and is_asked:
                return  # it was cancelled, and then deleted because the journal is full
            if row is None:
                raise TaskNotFound(f"there is no task {task_id[:100]}")
            if row.state is TaskState.CANCELED and is_asked:
                return
            is_asked = True
            if row.state.is_terminal:
                raise TaskNotCancelable(f"task {task_id} is {row.state}; only one that works or waits can be cancelled")
            if (running := self._running.get(task_id)) is not None:
                self._segments[task_id].cancel()
                await asyncio.wait([running])
            elif await self._take_idle(row, also_broken=True) is not None:
                # The segment has not begun yet; cancelling keeps it from starting.
                self._segments[task_id].cancel()
            else:
                # Another process runs it and reads the inbox when its segment ends or its lease is renewed.
                stop = StateChange(TaskState.CANCELED)
                with contextlib.suppress(StaleLease):
                    if stop not in await self.journal.waiting(task_id, StateChange):
                        await self.journal.post(row, [stop])
                await asyncio.sleep(OTHERS_POLL_SECONDS)

    async def _take_idle(self, row: TaskRow, *, also_broken: bool) -> ClaimedTask | None:
        """Claim a task that waits, whose process has ended or that broke off here, and run it."""
        if row.state.is_waiting:
            return await self.claim(row, [])
        is_broken = row.owner == self._owner and row.task_id in self._broken
        if (
            (is_broken and also_broken)
            or row.owner is None
            or row.lease_until < self.journal.now()
            or is_gone(row.owner)
        ):
            return await self._run_taken(self.journal.take_over(row, self._owner, self.options.lease_seconds))
        return None

    async def _run_taken(self, write: Awaitable[TakenT], *, is_whole_session: bool = False) -> TakenT:
        """Run the task that a write claims, even if the caller is cancelled before the write ends."""
        future = asyncio.ensure_future(write)
        try:
            taken = await future  # a write is not undone when this is cancelled
        except asyncio.CancelledError:
            future.add_done_callback(partial(self._run_unasked, is_whole_session))
            raise
        if taken is not None:
            self._start_segment(taken, is_whole_session=is_whole_session)
        return taken

    def _run_unasked(self, is_whole_session: bool, future: "asyncio.Future[Any]") -> None:
        if not future.cancelled() and future.exception() is None and future.result() is not None and self._upkeep:
            self._start_segment(future.result(), is_whole_session=is_whole_session)

    # --- running ---

    def _start_segment(self, taken: ClaimedTask, *, is_whole_session: bool) -> None:
        """Run a claimed task. A whole session has only the events that were added with the lease."""
        row = taken.row
        # The feed exists before anything is written, so that no subscriber misses the beginning.
        feed = TaskFeed(row.seq)
        session = Session(row.context_id, user=row.user)
        if is_whole_session:
            for delivery in taken.deliveries:
                session.apply(delivery.event, row.task_id, delivery.at)
        # A task to which a user's events were added was at rest: no text of it is torn.
        fold = None if is_whole_session else partial(self.fold if taken.deliveries else self._resume_session, row)
        segment = TaskRun(self.agent, self.journal, feed, taken.lease, session, fold, partial(self._end, row))
        self._broken.pop(row.task_id, None)
        self._segments[row.task_id] = segment
        self.begins.begun(row.task_id)
        self._running[row.task_id] = asyncio.create_task(self._run(segment, row), name=f"isthmus-task-{row.task_id}")
        self.children.changed(row)

    async def _run(self, segment: TaskRun, row: TaskRow) -> None:
        try:
            await segment.run()
        except StaleLease as error:
            log.warning("%s", error)
            if self._suspended is not None:
                self._suspended.ended(row.task_id)
        except Exception as error:  # fails one task only; nothing awaits it
            log.exception("task %s cannot go on", row.task_id)
            self._broken[row.task_id] = str(error) if isinstance(error, IsthmusError) else "internal error, see the log"
            self._breaks[row.task_id] += 1
        finally:
            if self._segments.get(row.task_id) is segment:
                self._forget(row.task_id)
            segment.feed.close()

    def _end(self, row: TaskRow, segment: TaskRun) -> None:
        session, task_id = segment.session, row.task_id
        self._forget(task_id)
        self._breaks.pop(task_id, None)
        shown = self.children.own_questions(task_id, session.waiting)
        self.questions.waiting(
            task_id, session.context_id, session.workspace, shown, user=row.user, settings=session.settings
        )
        self.children.changed(row, has_ended=not session.waiting)
        if not session.waiting and self._suspended is not None:
            self._suspended.ended(task_id)
        if not session.waiting and self.options.on_task_end is not None:
            self.options.on_task_end(task_id)

    def _forget(self, task_id: str) -> None:
        self._segments.pop(task_id, None)
        self._running.pop(task_id, None)

    async def fold(self, row: TaskRow, session: Session) -> Session:
        """Return the conversation as this task continues it: the messages of the other tasks come first."""
        kept = await self.journal.session(row.context_id, row.user)
        for of_task, delivery in sorted(kept, key=lambda item: item[0] == row.task_id):
            session.apply(delivery.event, of_task, delivery.at)
        return session

    async def _resume_session(self, row: TaskRow, session: Session) -> Session:
        session = await self.fold(row, session)
        session.torn_text = await torn_text(self.journal, row.task_id, row.seq)
        return session

    async def model_of(self, context_id: str, user: str, settings: JsonObject | None) -> str | None:
        """Return the model of a message with these settings, None for the agent's own. Reads the whole session."""
        session = Session(context_id)
        for task_id, delivery in await self.journal.session(context_id, user):
            session.apply(delivery.event, task_id, delivery.at)
        named = (settings or {}).get("model", session.model)
        return named if isinstance(named, str) and named.strip() else None

    async def _look_after_leases(self) -> None:
        seconds = self.options.lease_seconds
        while True:
            await asyncio.sleep(seconds / 4)
            try:
                lost = await self.journal.renew([item.lease for item in self._segments.values()], seconds)
                for lease in lost:
                    if (running := self._running.get(lease.task_id)) is not None:
                        running.cancel()
                for task_id in await self.journal.cancelled([item.lease for item in self._segments.values()]):
                    if (segment := self._segments.get(task_id)) is not None:
                        segment.cancel()
                if self._suspended is not None:
                    await self._suspended.look()
                await self._sweep()
            except Exception:  # of any kind: without renewal the leases of all tasks are lost
                log.exception("leases could not be renewed or checked")

    async def _look_after_size(self) -> None:
        while True:
            try:
                await self.retention.finish()
                await self.retention.hold_size()
            except Exception:  # tried again, as above
                log.exception("the size of the journal could not be checked or reduced")
            await asyncio.sleep(self.options.lease_seconds / 4)

    async def _sweep(self) -> None:
        if self.options.takes_over:
            for row in await self._rows(TaskState.SUBMITTED, TaskState.WORKING):
                if not row.parent or not await self.children.look(row):
                    await self.go_on(row, also_broken=self._breaks[row.task_id] <= BREAKS)

    async def go_on(self, row: TaskRow, *, also_broken: bool = False) -> None:
        """Resume a task whose process has ended, also one whose question was lost; show open questions in editors."""
        if row.state.is_waiting:
            if self._suspended is not None and await self._suspended.is_lost(row):
                await self.claim(row, [])
            else:
                self._ask(row)
            return
        if row.state.is_terminal or row.task_id in self._segments:
            return
        if await self._take_idle(row, also_broken=also_broken) is not None:
            log.info("task %s continues after its process ended or could not record it", row.task_id)

    async def _rows(self, *states: TaskState) -> Sequence[TaskRow]:
        rows = await self.journal.tasks(10_000, states)
        return [row for row in rows if self.options.workspaces.allows(row.workspace)]

    def _ask(self, row: TaskRow) -> None:
        """Show the questions of a task in editors."""
        shown = self.children.own_questions(row.task_id, row.pending)
        self.questions.waiting(row.task_id, row.context_id, row.workspace, shown, user=row.user)

    # --- following ---

    def deliver(self, task_id: str, after: int, end_from: int, *, to_end: bool = False) -> AsyncIterator[Delivery]:
        """Yield the deliveries of a task after event ``after``, up to ``end_from`` or, with ``to_end``, its end."""
        begins = self.begins if to_end else None
        return deliveries(self.journal, self._feed_of, self._break_reason, task_id, after, end_from, begins)

    def _feed_of(self, task_id: str) -> TaskFeed | None:
        segment = self._segments.get(task_id)
        return segment.feed if segment is not None else None

    def _break_reason(self, row: TaskRow) -> str | None:
        return self._broken.get(row.task_id) if row.owner == self._owner else None
