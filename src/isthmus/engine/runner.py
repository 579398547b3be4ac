"""Runs the segments of tasks in this process: takes leases, renews them, and goes on with what ended processes left.

Deliberately not here: who may ask for what (:mod:`isthmus.engine.user_tasks`), what the agent does, and any wire.
"""

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from isthmus.agent.approval.session_policy import check_agent_settings
from isthmus.agent.session import Session
from isthmus.client import Delivery, LimitReached, TaskNotCancelable, TaskNotFound, UserLimits
from isthmus.encoding.codec import JsonObject
from isthmus.engine.feed import TaskFeed
from isthmus.engine.lease_owner import is_gone, new_owner
from isthmus.engine.open_questions import OpenQuestions
from isthmus.engine.retention import MAXIMUM_SIZE, DeleteFiles, Retention
from isthmus.engine.subscriptions import OTHERS_POLL_SECONDS, WorkNotifier, deliveries
from isthmus.engine.suspended_call_monitor import SuspendedCallMonitor
from isthmus.engine.task_run import Agent, SuspendingAgent, TaskRun
from isthmus.engine.torn_text import torn_text
from isthmus.engine.workspaces import WorkspaceRule
from isthmus.errors import IsthmusError
from isthmus.events import AgentEvent, ConfirmationAccepted, MessagePart, StateChange, TaskState
from isthmus.journal.base import NO_LIMITS, ClaimedTask, Journal, JournalError, NewTask, StaleLease, TaskRow
from isthmus.media import Media

BREAKS = 3
"""Number of times that a task whose write failed is taken up again at once."""

TakenT = TypeVar("TakenT", bound=ClaimedTask | None)

log = logging.getLogger(__name__)

CheckSettings: TypeAlias = Callable[[JsonObject, Path], Awaitable[object]]


async def _check_form(settings: JsonObject, folder: Path) -> None:
    check_agent_settings(settings)


KeepFiles: TypeAlias = Callable[
    [str, Sequence[MessagePart], Callable[[], Awaitable[str | None]]], Awaitable[tuple[Media, ...]]
]


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """``workspaces`` says where agents may work, and whose tasks are seen; ``model_name`` is shown with events.

    With ``takes_over`` whatever an ended process left working goes on here by itself, and questions that wait are
    shown in editors; without, only what is asked for. When the journal takes more than ``maximum_size`` bytes, ended
    tasks are removed, the oldest first, with what ``delete_files`` removes. ``check_settings`` refuses AgentSettings,
    as received, that the agent does not take in a folder, by an InvalidRequest that names the key; no task is made.
    ``keep_files`` stores the parts of a message other than text as files of the task, for agents that read those; it
    may ask for the name of the model that the message goes to, None for the agent's own. ``on_task_end`` gets the id
    of each task whose work has ended here, well or not.
    """

    workspaces: WorkspaceRule = field(default_factory=WorkspaceRule)
    model_name: Callable[[], str] = str
    lease_seconds: float = 20.0
    takes_over: bool = True
    maximum_size: int | None = MAXIMUM_SIZE
    delete_files: DeleteFiles | None = None
    check_settings: CheckSettings = _check_form
    on_task_end: Callable[[str], None] | None = None
    keep_files: KeepFiles | None = None


class Runner:
    """The tasks that run in this process. ``questions`` are those of all users."""

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
        """Tasks of ours whose segment broke off, and why. They are taken up again by the next look at the leases, or,
        when that has not helped, when their lease has run out."""
        self._breaks: Counter[str] = Counter()
        self._upkeep: list[asyncio.Task[None]] = []
        self.retention = Retention(journal, options.delete_files, options.maximum_size)
        self._suspended: SuspendedCallMonitor | None = None
        if isinstance(agent, SuspendingAgent):
            agent.suspended.process = self._owner
            take_up = partial(self.claim, events=())
            self._suspended = SuspendedCallMonitor(agent.suspended, journal, self._running.get, take_up)

    async def start(self) -> None:
        """Take over what is to be taken over, and look after leases from now on."""
        if self.options.takes_over:
            for row in await self._rows(*(state for state in TaskState if state.is_waiting)):
                await self.go_on(row)
        await self._sweep()
        self._upkeep = [
            asyncio.create_task(self._look_after_leases(), name="isthmus-leases"),
            asyncio.create_task(self._look_after_size(), name="isthmus-journal-size"),
        ]

    async def aclose(self) -> None:
        """Stop here: what runs is interrupted and is taken over at the next start; what waits, waits."""
        upkeep, self._upkeep = self._upkeep, []
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
            log.exception("what runs is taken over when its lease has run out")
        finally:
            await self.journal.aclose()

    def segment(self, task_id: str) -> TaskRun | None:
        """Return the run of a task in this process, or None."""
        return self._segments.get(task_id)

    # --- taking ---

    async def create(
        self, task: NewTask, event: AgentEvent, limits: UserLimits, *, is_whole_session: bool = False
    ) -> ClaimedTask:
        """Make a task and run it; ``is_whole_session``: its session is new. Raises LimitReached."""
        if self.retention.is_full:
            await self.retention.hold_size()  # What has ended meanwhile makes room.
        if self.retention.is_full:
            raise LimitReached(
                f"the journal is at its maximum size ({self.retention.maximum_size} bytes), and no task that has ended"
                " is left to remove: new tasks are not taken, those there are can go on. End some and delete them"
                " (isthmus tasks delete), or raise isthmus.journal.maxSize in the settings."
            )
        write = self.journal.create(task, [event], self._owner, self.options.lease_seconds, limits)
        return await self._run_taken(write, is_whole_session=is_whole_session)

    async def claim(
        self, row: TaskRow, events: Sequence[AgentEvent], limits: UserLimits = NO_LIMITS
    ) -> ClaimedTask | None:
        """Take a task at rest and run it; None when somebody was faster. Raises LimitReached."""
        write = self.journal.claim(row, events, self._owner, self.options.lease_seconds, limits)
        taken = await self._run_taken(write)
        if taken is not None:
            answered = [event.confirmation.tool_call_id for event in events if isinstance(event, ConfirmationAccepted)]
            self.questions.closed(row.task_id, answered or None)
        return taken

    async def cancel(self, task_id: str) -> None:
        """Stop a task wherever it runs; returns when that is recorded. Raises TaskNotCancelable."""
        is_asked = False
        while True:
            row = await self.journal.task(task_id)
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
                # It has not begun yet, and does not.
                self._segments[task_id].cancel()
            else:
                # Another process runs it, and looks into the inbox when its segment ends or its lease is renewed.
                stop = StateChange(TaskState.CANCELED)
                with contextlib.suppress(StaleLease):
                    if stop not in await self.journal.waiting(task_id, StateChange):
                        await self.journal.post(row, [stop])
                await asyncio.sleep(OTHERS_POLL_SECONDS)

    async def _take_idle(self, row: TaskRow, *, also_broken: bool) -> ClaimedTask | None:
        """Take a task that waits, or whose process has ended, or that broke off here, and run it."""
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
        """Run what a write takes for us, also when whoever asked for it does not wait to its end."""
        future = asyncio.ensure_future(write)
        try:
            taken = await future  # a write is not taken back, also when this is cancelled
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
        """Run what was taken. A whole session has no other events than those that were added with the lease."""
        row = taken.row
        # The feed is there before anything is written, so that nobody who follows misses the beginning.
        feed = TaskFeed(row.seq)
        session = Session(row.context_id, user=row.user)
        if is_whole_session:
            for delivery in taken.deliveries:
                session.apply(delivery.event, row.task_id, delivery.at)
        # What a user's events were added to was at rest.
        fold = None if is_whole_session else partial(self.fold if taken.deliveries else self._resume_session, row)
        segment = TaskRun(self.agent, self.journal, feed, taken.lease, session, fold, partial(self._end, row.user))
        self._broken.pop(row.task_id, None)
        self._segments[row.task_id] = segment
        self.begins.begun(row.task_id)
        self._running[row.task_id] = asyncio.create_task(self._run(segment, row), name=f"isthmus-task-{row.task_id}")

    async def _run(self, segment: TaskRun, row: TaskRow) -> None:
        try:
            await segment.run()
        except StaleLease as error:
            log.warning("%s", error)
            if self._suspended is not None:
                self._suspended.ended(row.task_id)
        except Exception as error:  # of one task, which nobody awaits
            log.exception("task %s cannot go on", row.task_id)
            self._broken[row.task_id] = str(error) if isinstance(error, IsthmusError) else "internal error, see the log"
            self._breaks[row.task_id] += 1
        finally:
            if self._segments.get(row.task_id) is segment:
                self._forget(row.task_id)
            segment.feed.close()

    def _end(self, user: str, segment: TaskRun) -> None:
        session = segment.session
        task_id = segment.lease.task_id
        self._forget(task_id)
        self._breaks.pop(task_id, None)
        self.questions.waiting(
            task_id, session.context_id, session.workspace, session.waiting, user=user, settings=session.settings
        )
        if not session.waiting and self._suspended is not None:
            self._suspended.ended(task_id)
        if not session.waiting and self.options.on_task_end is not None:
            self.options.on_task_end(task_id)

    def _forget(self, task_id: str) -> None:
        self._segments.pop(task_id, None)
        self._running.pop(task_id, None)

    async def fold(self, row: TaskRow, session: Session) -> Session:
        """Return the conversation as a task of it goes on: the messages of its other tasks come first."""
        kept = await self.journal.session(row.context_id, row.user)
        for of_task, delivery in sorted(kept, key=lambda item: item[0] == row.task_id):
            session.apply(delivery.event, of_task, delivery.at)
        return session

    async def _resume_session(self, row: TaskRow, session: Session) -> Session:
        session = await self.fold(row, session)
        session.torn_text = await torn_text(self.journal, row.task_id, row.seq)
        return session

    async def model_of(self, context_id: str, user: str, settings: JsonObject | None) -> str | None:
        """Return the model that a message with these settings goes to; None: the agent's own. Folds the session."""
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
            except Exception:  # whatever it is: leases that nobody renews are lost, of all tasks
                log.exception("leases could not be looked after")

    async def _look_after_size(self) -> None:
        while True:
            try:
                await self.retention.finish()
                await self.retention.hold_size()
            except Exception:  # looked after again, as above
                log.exception("the size of the journal could not be looked after")
            await asyncio.sleep(self.options.lease_seconds / 4)

    async def _sweep(self) -> None:
        if self.options.takes_over:
            for row in await self._rows(TaskState.SUBMITTED, TaskState.WORKING):
                await self.go_on(row, also_broken=self._breaks[row.task_id] <= BREAKS)

    async def go_on(self, row: TaskRow, *, also_broken: bool = False) -> None:
        """Go on with a task whose process has ended, its question too; show one that waits to editors."""
        if row.state.is_waiting:
            if self._suspended is not None and await self._suspended.is_lost(row):
                await self.claim(row, [])
            else:
                self._ask(row)
            return
        if row.state.is_terminal or row.task_id in self._segments:
            return
        if await self._take_idle(row, also_broken=also_broken) is not None:
            log.info("task %s goes on after its process ended or could not keep it", row.task_id)

    async def _rows(self, *states: TaskState) -> Sequence[TaskRow]:
        rows = await self.journal.tasks(10_000, states)
        return [row for row in rows if self.options.workspaces.allows(row.workspace)]

    def _ask(self, row: TaskRow) -> None:
        """Show the questions of a task to editors."""
        self.questions.waiting(row.task_id, row.context_id, row.workspace, row.pending, user=row.user)

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
