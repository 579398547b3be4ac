"""Runs the segments of tasks in this process: takes and renews leases, and continues the tasks of ended processes.

Not here: the rights of users, see :mod:`isthmus.engine.users.user_tasks`, and the agent's own work, see
`isthmus.agent`.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from isthmus.agent.session.session import Session
from isthmus.agent.session.spending import Spending
from isthmus.client import NO_LIMITS, AllAtWork, Delivery, LimitReached, UserLimits
from isthmus.engine.followers.feed import TaskFeed
from isthmus.engine.followers.open_questions import OpenQuestions
from isthmus.engine.followers.subscriptions import FollowSources, deliveries
from isthmus.engine.followers.task_news import TaskNews
from isthmus.engine.port.agents import Agent, SuspendingAgent
from isthmus.engine.port.options import EngineOptions
from isthmus.engine.port.retention import Retention
from isthmus.engine.runs.broken_tasks import BrokenTasks
from isthmus.engine.runs.cancellation import Cancellation
from isthmus.engine.runs.child_monitor import ChildMonitor
from isthmus.engine.runs.dispatcher import Dispatcher, scope_of
from isthmus.engine.runs.lease_keeper import LeaseKeeper
from isthmus.engine.runs.notice_taker import NoticeTaker
from isthmus.engine.runs.progress_publisher import ProgressPublisher
from isthmus.engine.runs.segment import RunningSegment, SegmentPlace, measured_segment
from isthmus.engine.runs.sessions import Sessions
from isthmus.engine.runs.slots import Slots
from isthmus.engine.runs.suspended_call_monitor import SuspendedCallMonitor
from isthmus.engine.runs.take_over_rule import TakeOverRule
from isthmus.events import AgentEvent, ConfirmationAccepted, TaskState
from isthmus.journal.port.base import Journal, JournalError, JournalUnavailable, StaleLease
from isthmus.journal.port.lease_owner import new_owner
from isthmus.journal.port.replicas import Member
from isthmus.journal.port.task_rows import ClaimedTask, NewTask, QueuedTask, TaskRow
from isthmus.runtime.telemetry import TaskSegment

TakenT = TypeVar("TakenT", bound=ClaimedTask | None)

log = logging.getLogger(__name__)


class Runner:
    """The tasks that run in this process. ``questions`` holds the open questions of all users."""

    def __init__(self, agent: Agent, journal: Journal, options: EngineOptions) -> None:
        self.agent = agent
        self.journal = journal
        self.options = options
        self.questions = OpenQuestions()
        self.sessions = Sessions(journal)
        self.news = TaskNews()
        self.slots = Slots(options.placement.slots)
        self.spending = Spending()
        self._owner = new_owner()
        self._place = SegmentPlace(agent, journal, options.telemetry, self.spending)
        self._segments: dict[str, RunningSegment] = {}
        self._running: dict[str, asyncio.Task[None]] = {}
        self._broken = BrokenTasks(self._owner)
        self._upkeep: list[asyncio.Task[None]] = []
        self.retention = Retention(journal, options.delete_files, options.maximum_size)
        self.children = ChildMonitor(journal, partial(self.claim, events=()), self.cancel)
        take_idle = partial(self._take_idle, also_broken=True, is_unwanted=True)
        self.cancellation = Cancellation(journal, self._segments, self._running, take_idle)
        self._rule = TakeOverRule(journal, self._owner, options.placement.lease_seconds)
        self._leases = LeaseKeeper(journal, self._segments, self._running, options.placement.lease_seconds)
        self._progress = ProgressPublisher(journal.replicas, self._segments.get)
        self._dispatcher = Dispatcher(
            journal,
            self._owner,
            scope_of(options),
            self.slots,
            options.placement.lease_seconds,
            self._rule,
            begin=partial(self._start_segment, is_whole_session=False),
            resume_child=self._resume_child,
            renew=self._leases.renew_if_due,
        )
        self._suspended: SuspendedCallMonitor | None = None
        if isinstance(agent, SuspendingAgent):
            agent.suspended.process = self._owner
            take_up = partial(self._claim_here, events=())
            self._suspended = SuspendedCallMonitor(agent.suspended, journal, self._running.get, take_up)

    async def start(self) -> None:
        """Take over the tasks of ended processes, and keep leases from now on."""
        await self._rule.begin()
        if self.options.takes_over:
            for row in await self.journal.tasks(10_000, [state for state in TaskState if state.is_waiting]):
                if self.options.workspaces.allows(row.workspace) and not await self.children.look(row):
                    await self.go_on(row)
        place = self.options.placement
        member = Member(self._owner, place.labels, place.slots, place.lease_seconds)
        notices = NoticeTaker(self.news, self._segments, self._progress, self._leases, self._dispatcher)
        await self.journal.replicas.join(member, notices.take)
        if self.options.takes_over:
            self._dispatcher.sweep()
            await self._dispatcher.take()
        self._upkeep = [
            asyncio.create_task(self._dispatcher.run(), name="isthmus-dispatcher"),
            asyncio.create_task(self._look_after_leases(), name="isthmus-leases"),
            asyncio.create_task(self.retention.run(place.lease_seconds / 4), name="isthmus-journal-size"),
        ]

    @property
    def is_draining(self) -> bool:
        """Whether no more work is begun here."""
        return self._dispatcher.is_draining

    @property
    def running(self) -> int:
        """Number of tasks at work here."""
        return len(self._running)

    async def drain(self, seconds: float) -> None:
        """Begin no more work here, and wait at most ``seconds`` for the work under way to end or come to rest.

        New tasks and answers are still accepted: they wait in the queue for another process.
        """
        self._dispatcher.is_draining = True
        if running := [*self._running.values()]:
            await asyncio.wait(running, timeout=seconds)

    async def until_idle(self) -> None:
        """Wait until no task is at work here."""
        while work := [*self._running.values(), *self.children.work]:
            await asyncio.wait(work)

    async def aclose(self) -> None:
        """Interrupt the running tasks, which the next start takes over; waiting tasks keep waiting."""
        upkeep, self._upkeep = self._upkeep, []
        await self.children.stop()
        await self._progress.stop()
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

    def segment(self, task_id: str) -> RunningSegment | None:
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
    ) -> ClaimedTask | QueuedTask:
        """Create a task and run it, or let it wait for a slot. ``is_whole_session``: its session is new.

        With slots it also waits while its user has as many tasks at work as the limits allow; without, it is refused.

        Raises LimitReached.
        """
        if self.retention.is_full:
            await self.retention.hold_size()  # Tasks that have ended meanwhile make room.
        if self.retention.is_full:
            raise LimitReached(
                f"the journal is at its maximum size ({self.retention.maximum_size} bytes), and no ended task is left"
                " to remove: new tasks are not accepted, existing ones can continue. End some and delete them"
                " (isthmus tasks delete), or raise isthmus.journal.maxSize in the settings."
            )
        task = replace(task, label=self.options.placement.label_of(task.workspace))
        if task.parent or self._dispatcher.may_begin(task.label):
            write = self.journal.create(task, events, self._owner, self.options.placement.lease_seconds, limits)
            try:
                return await self._run_taken(task.task_id, write, task.parent, is_whole_session=is_whole_session)
            except AllAtWork:
                if self.slots.limit is None:
                    raise
        self.options.telemetry.queued(task.task_id)
        queued = await self.journal.queue.add(task, events, limits)
        self._dispatcher.queued()
        return queued

    async def claim(
        self, row: TaskRow, events: Sequence[AgentEvent], limits: UserLimits = NO_LIMITS
    ) -> ClaimedTask | QueuedTask | None:
        """Claim a task at rest and run it, or let it wait; None if another claim came first.

        It waits for a slot, or until fewer tasks of its user are at work. A call that waits for an answer in a process
        goes on at once, and so does the task of a subagent: they are part of work under way.

        Raises LimitReached.
        """
        held = self._suspended
        is_held_here = held is not None and held.holds(row.task_id)
        asker = "" if held is None or row.parent else await held.asker_elsewhere(row)
        if row.parent or is_held_here or asker:
            limits = replace(limits, max_running=None)
        if row.parent or is_held_here or (not asker and self._dispatcher.may_begin(row.label)):
            with contextlib.suppress(AllAtWork):
                return await self._claim_here(row, events, limits)
        self.options.telemetry.queued(row.task_id)
        if (queued := await self.journal.queue.resume(row, events, limits, asker)) is not None:
            self._note_answers(row, events)
            self._dispatcher.queued()
        return queued

    async def _claim_here(
        self, row: TaskRow, events: Sequence[AgentEvent], limits: UserLimits = NO_LIMITS
    ) -> ClaimedTask | None:
        """Claim a task at rest and run it here, whether or not a slot is free."""
        write = self.journal.claim(row, events, self._owner, self.options.placement.lease_seconds, limits)
        if (taken := await self._run_taken(row.task_id, write, row.parent)) is not None:
            self._note_answers(row, events)
        return taken

    def _note_answers(self, row: TaskRow, events: Sequence[AgentEvent]) -> None:
        """Close the questions that these events of a claim have answered, or all."""
        answers = [event for event in events if isinstance(event, ConfirmationAccepted)]
        for answer in answers:
            self.questions.closed(row.task_id, answer.confirmation.tool_call_id, answer.answered_by)
        if not answers:
            self.questions.closed(row.task_id)

    async def cancel(self, task_id: str) -> None:
        """Cancel a task wherever it runs, with its subagents' tasks. Return once that is recorded.

        Raises TaskNotCancelable and TaskNotFound.
        """
        await self.cancellation.cancel(task_id)
        await self.children.cancel_children(task_id)

    async def _take_idle(self, row: TaskRow, *, also_broken: bool, is_unwanted: bool = False) -> ClaimedTask | None:
        """Claim a task that waits, whose process has ended or that broke off here, and run it, also without a slot."""
        if row.state.is_waiting:
            return await self._claim_here(row, [])
        if row.owner is None or (also_broken and self._broken.has(row)) or self._rule.is_abandoned(row, is_unwanted):
            write = self.journal.take_over(row, self._owner, self.options.placement.lease_seconds)
            return await self._run_taken(row.task_id, write, row.parent)
        return None

    async def _run_taken(
        self, task_id: str, write: Awaitable[TakenT], parent: str, *, is_whole_session: bool = False
    ) -> TakenT:
        """Run the task that a write claims, even if the caller is cancelled before the write ends."""
        if not parent:
            self.slots.hold(task_id)
        future = asyncio.ensure_future(write)
        future.add_done_callback(partial(self._free_unless_taken, task_id))
        try:
            taken = await future  # a write is not undone when this is cancelled
        except asyncio.CancelledError:
            future.add_done_callback(partial(self._run_unasked, is_whole_session))
            raise
        if taken is not None:
            self._start_segment(taken, is_whole_session=is_whole_session)
        return taken

    def _free_unless_taken(self, task_id: str, future: "asyncio.Future[Any]") -> None:
        has_failed = future.cancelled() or future.exception() is not None or future.result() is None
        if has_failed and task_id not in self._segments:
            self._free(task_id)

    def _free(self, task_id: str) -> None:
        self.slots.release(task_id)
        self._dispatcher.freed()

    def _run_unasked(self, is_whole_session: bool, future: "asyncio.Future[Any]") -> None:
        if not future.cancelled() and future.exception() is None and future.result() is not None and self._upkeep:
            self._start_segment(future.result(), is_whole_session=is_whole_session)

    # --- running ---

    def _start_segment(self, taken: ClaimedTask, *, is_whole_session: bool) -> None:
        """Run a claimed task. A whole session has only the events that were added with the lease."""
        row = taken.row
        # The feed exists before anything is written, so that no subscriber misses the beginning.
        feed, session = TaskFeed(row.seq), Session(row.context_id, user=row.user)
        if is_whole_session:
            for delivery in taken.deliveries:
                session.apply(delivery.event, row.task_id, delivery.at)
        # A task to which a user's events were added was at rest: no text of it is torn.
        fold = (
            None if is_whole_session else partial(self.sessions.fold if taken.deliveries else self.sessions.resume, row)
        )
        why, end = self._rule.broken_off(taken), partial(self._end, row)
        segment = RunningSegment(self._place, feed, taken.lease, session, fold, end, why)
        self._broken.resumed(row.task_id)
        # Messages may have come while it waited for a slot, or for its former process.
        segment.has_inbox = not taken.deliveries
        self._segments[row.task_id] = segment
        if not row.parent:
            self.slots.hold(row.task_id)
        self.news.notify(row.task_id)
        self._running[row.task_id] = asyncio.create_task(
            self._run(segment, row, measured_segment(taken, self.journal.now())), name=f"isthmus-task-{row.task_id}"
        )
        self.children.changed(row)

    async def _run(self, segment: RunningSegment, row: TaskRow, measured: TaskSegment) -> None:
        try:
            with self.options.telemetry.measure(measured):
                end = await segment.run()
                measured.state, measured.reason = end.state, end.reason or ""
        except StaleLease as error:
            log.warning("%s", error)
            if self._suspended is not None:
                self._suspended.ended(row.task_id)
        except Exception as error:  # fails one task only; nothing awaits it
            log.exception("task %s cannot go on", row.task_id)
            self._broken.broke(row.task_id, error)
        finally:
            if self._segments.get(row.task_id) is segment:
                self._forget(row.task_id)
            segment.feed.close()

    def _end(self, row: TaskRow, segment: RunningSegment) -> None:
        session, task_id = segment.session, row.task_id
        self._forget(task_id)
        self._broken.ended(task_id)
        shown = self.children.own_questions(task_id, session.calls.waiting)
        self.questions.waiting(
            task_id, session.context_id, session.workspace, shown, user=row.user, settings=session.settings
        )
        self.children.changed(row, has_ended=not session.calls.waiting)
        if not session.calls.waiting and self._suspended is not None:
            self._suspended.ended(task_id)
        if not session.calls.waiting and self.options.on_task_end is not None:
            self.options.on_task_end(task_id)

    def _forget(self, task_id: str) -> None:
        self._segments.pop(task_id, None)
        self._running.pop(task_id, None)
        self._free(task_id)

    async def _look_after_leases(self) -> None:
        while True:
            await asyncio.sleep(self.options.placement.lease_seconds / 4)
            try:
                await self._leases.renew()
                await self._leases.cancel_asked()
                if self._segments:
                    self._rule.reached()
                if self._suspended is not None:
                    await self._suspended.look()
                for task_id in self._broken:
                    await self._resume_broken(task_id)
                self._dispatcher.sweep()
            except Exception as error:  # of any kind: without renewal the leases of all tasks are lost
                self._rule.failed(error)
                if not isinstance(error, JournalUnavailable):  # the journal has said so
                    log.exception("leases could not be renewed or checked")

    async def _resume_broken(self, task_id: str) -> None:
        if (row := await self.journal.task(task_id)) is None or not self._broken.has(row):
            self._broken.ended(task_id)
        elif self._broken.may_resume(task_id):
            await self.go_on(row, also_broken=True)

    async def _resume_child(self, row: TaskRow) -> None:
        if not await self.children.look(row):
            await self.go_on(row)

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
        if row.is_queued or not (row.parent or self._broken.has(row) or self._dispatcher.may_begin(row.label)):
            self._dispatcher.sweep()  # It starts when a slot is free.
        elif await self._take_idle(row, also_broken=also_broken) is not None:
            log.info("task %s continues after its work broke off", row.task_id)

    def _ask(self, row: TaskRow) -> None:
        """Show the questions of a task in editors."""
        shown = self.children.own_questions(row.task_id, row.pending)
        self.questions.waiting(row.task_id, row.context_id, row.workspace, shown, user=row.user)

    # --- following ---

    def deliver(self, task_id: str, after: int, end_from: int, *, to_end: bool = False) -> AsyncIterator[Delivery]:
        """Yield the deliveries of a task after event ``after``, up to ``end_from`` or, with ``to_end``, its end."""
        sources = FollowSources(self.journal, self.news, self._feed_of, self._broken.reason)
        return deliveries(sources, task_id, after, end_from, to_end=to_end)

    def _feed_of(self, task_id: str) -> TaskFeed | None:
        segment = self._segments.get(task_id)
        return segment.feed if segment is not None else None
