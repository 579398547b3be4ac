"""One segment: runs the agent on a leased task until it asks or ends, and records its events.

The journal is written before anything is sent. Text is recorded in increments of a few words, progress not at all.
Events that must be on disk before the agent continues are awaited. Not here: events that wait to be written together,
see `gathered_events`; starting segments, see `runner`.
"""

import asyncio
import itertools
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial

from isthmus.agent.calls.events import cancelled_calls, failed_calls, given_up_calls
from isthmus.agent.hosted import AgentFailedError
from isthmus.agent.session.interruption import PROCESS_ENDED
from isthmus.agent.session.session import Session
from isthmus.agent.session.spending import Spending
from isthmus.agent.session.turn import AgentTurn
from isthmus.client import Delivery
from isthmus.development_tool import ToolCallStatus
from isthmus.engine.followers.feed import THINKING, TaskFeed
from isthmus.engine.port.agents import Agent
from isthmus.engine.runs.gathered_events import GatheredEvents
from isthmus.errors import IsthmusError
from isthmus.events import (
    AgentEvent,
    AgentMessage,
    ConfirmationAccepted,
    Prompt,
    StateChange,
    TaskState,
    TextContent,
    ToolCallUpdate,
)
from isthmus.internal_events import AgentRecord, ModelReply, ThoughtProgress
from isthmus.journal.port.base import Journal, JournalError, UnkeepableEvent
from isthmus.journal.port.task_rows import ClaimedTask, Lease
from isthmus.record import record
from isthmus.runtime.telemetry import NO_TELEMETRY, TaskSegment, Telemetry

TEXT_SECONDS = 0.03
"""Time in seconds during which text is gathered into one row."""
TEXT_CHARACTERS = 1024
"""Maximum number of characters gathered into one row."""
MESSAGE_CHARACTERS = 1024 * 1024
"""Maximum number of characters of one message; a longer text becomes several messages."""
UNAWAITED_ROWS = 256
"""Maximum number of rows on their way to the journal before the agent waits for them."""

log = logging.getLogger(__name__)


@record
class SegmentPlace:
    """The agent, the journal and the counts that all segments of an engine share."""

    agent: Agent
    journal: Journal
    telemetry: Telemetry = NO_TELEMETRY
    spending: Spending | None = None


def measured_segment(taken: ClaimedTask, now: float) -> TaskSegment:
    """Return the work on a claimed task that begins at ``now``, in Unix seconds of the journal's clock."""
    row = taken.row
    since = taken.deliveries[0].at if taken.deliveries else row.updated_at if taken.was_queued else None
    waited = None if since is None else max(0.0, now - since)
    return TaskSegment(row.task_id, row.context_id, row.user, row.parent, waited)


class RunningSegment:
    """A task while it is leased to this process.

    Args:
        place: What all segments of the engine share.
        feed: Takes the events, for subscribers here.
        lease: Lease of the task; nothing can be written without it.
        session: The session so far.
        fold: Function that reads the rest of the session; None: it is complete.
        on_end: Called with the segment once its end is on the disk, before the end is published.
        broken_off: Reason for the calls that the process before did not end.
    """

    def __init__(
        self,
        place: SegmentPlace,
        feed: TaskFeed,
        lease: Lease,
        session: Session,
        fold: Callable[[Session], Awaitable[Session]] | None,
        on_end: "Callable[[RunningSegment], None]",
        broken_off: str = PROCESS_ENDED,
    ) -> None:
        self.lease = lease
        self.session = session
        self.feed = feed
        self.has_inbox = False
        """Whether events may have come into the inbox since it was read."""
        self._place = place
        self._journal = place.journal
        self._fold = fold
        self._on_end = on_end
        self._broken_off = broken_off
        self._cancelled = False
        self._interruptible: asyncio.Task[object] | None = None
        self._failure: BaseException | None = None
        self._text: list[str] = []
        self._text_size = 0
        self._text_of = ""
        self._replaces: str | None = None
        """Text that the one being gathered replaces, until its first part is recorded."""
        self._timer: asyncio.TimerHandle | None = None
        self._streamed: list[str] = []
        """Streamed text of the message ``_text_of`` that is not in a whole message yet."""
        self._streamed_size = 0
        self._gathered = GatheredEvents()
        self._rows_under_way = 0

    async def run(self) -> StateChange:
        """Run to the end of the segment and return its last state.

        After :meth:`cancel` that is ``canceled``. If only its asyncio task is cancelled, the task stays as it is and
        can be taken over. Raises StaleLease if another process has the task.
        """
        while not self._cancelled:
            self._interruptible = asyncio.current_task()
            try:
                end = await self._advance()
            except asyncio.CancelledError:
                if not self._cancelled:
                    raise
                break
            finally:
                self._interruptible = None
            if self._cancelled:
                break  # An agent may return an end of its own when it is interrupted.
            if end.state is not TaskState.INPUT_REQUIRED and await self._take_beside():
                continue
            try:
                inbox = await self._finish([end])
            except UnkeepableEvent as error:
                end = _failure_of(error)
                inbox = await self._finish([end])
            if not inbox:
                return end
            if not await self._take(inbox):
                break
        return await self._end_cancelled()

    def cancel(self) -> None:
        """End in ``canceled``: interrupt the agent, or do not start it."""
        self._cancelled = True
        if self._interruptible is not None:
            self._interruptible.cancel()

    async def _fold_once(self) -> None:
        if self._fold is not None:
            self.session = await self._fold(Session(self.session.context_id, user=self.session.user))
            self._fold = None

    async def _advance(self) -> StateChange:
        """Run the agent, close everything that it left open, and return the last state of its turn."""
        try:
            await self._fold_once()
            turn = AgentTurn(
                *(self.session, self._keep_event, self._take_steering, self._place.telemetry, self._place.spending),
                self._broken_off,
            )
            end = turn.session.apply(await self._place.agent.advance(turn))
        except asyncio.CancelledError:
            # The turn is also cancelled when the journal refused an event.
            failure, task = self._failure, asyncio.current_task()
            if failure is None or (task is not None and task.cancelling()):
                raise
            if not isinstance(failure, UnkeepableEvent):
                raise failure from None
            _log_failure(self.lease.task_id, failure)
            self._failure = None
            end = _failure_of(failure)
        except JournalError:
            raise
        except Exception as error:  # of any kind: only this agent's task fails
            if not self._cancelled:
                _log_failure(self.lease.task_id, error)
            end = _failure_of(error)
            await self._record(*failed_calls(self.session, end.error or ""))
        finally:
            self._flush_text()
        await self._record(*given_up_calls(self.session))  # The agent need not close its calls itself.
        self._end_message()
        return end

    async def _record(self, *events: AgentEvent) -> None:
        """Apply and record the engine's own events, whether or not the task is cancelled."""
        await AgentTurn(self.session, self._keep).emit(*events)

    async def _keep_event(self, event: AgentEvent) -> None:
        """Record an event of the agent; if that is impossible, cancel the agent."""
        if self._cancelled:
            raise asyncio.CancelledError  # The agent ignored its interruption.
        try:
            await self._keep(event)
        except JournalError as error:
            self._failure = self._failure or error
            raise asyncio.CancelledError from error

    async def _keep(self, event: AgentEvent) -> None:
        if self._failure is not None:
            raise self._failure
        if isinstance(event, ThoughtProgress):
            self.feed.publish_progress(THINKING, Delivery(None, time.time(), event))
            return
        self.feed.end_thinking()
        if isinstance(event, TextContent):
            if event.message_id != self._text_of or event.replaces is not None:
                self._flush_text()
                if event.replaces is not None and event.replaces == self._text_of:
                    self._forget_streamed()
                self._end_message()
                self._replaces = event.replaces
            self._text_of = event.message_id
            self._text.append(event.text)
            self._text_size += len(event.text)
            if self._text_size >= TEXT_CHARACTERS:
                self._flush_text()
            elif self._timer is None:
                self._timer = asyncio.get_running_loop().call_later(TEXT_SECONDS, self._flush_text)
            return
        self._flush_text()
        if isinstance(event, (ModelReply, AgentMessage)) and event.message_id == self._text_of:
            self._forget_streamed()
        elif isinstance(event, (ModelReply, AgentMessage)) or _ends_text(event):
            self._end_message()
        if isinstance(event, AgentMessage) and not event.was_streamed:
            event = replace(event, replaces=self._take_replaced_text())
        if isinstance(event, ToolCallUpdate) and event.is_ephemeral:
            delivery = Delivery(None, time.time(), event)
            self.feed.publish_progress(event.tool_call.tool_call_id, delivery)
            return
        self._gather(event)
        if isinstance(event, ToolCallUpdate) and event.tool_call.status is ToolCallStatus.EXECUTING:
            await self._write(full_sync=True)
        elif isinstance(event, AgentRecord):
            # Another author's agent gets its prompt next, and the next owner of the task must not send it again.
            await self._write()
        elif isinstance(event, ModelReply) and self.session.calls.unsettled:
            # If a call ends the process, the next owner of the task must know that the model asked for the call.
            await self._write()
        elif self._rows_under_way + len(self._gathered) >= UNAWAITED_ROWS:
            await self._write()

    def _flush_text(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._text:
            text = "".join(self._text)
            self._text.clear()
            self._text_size = 0
            torn, replaces, self._replaces = self._take_replaced_text(), self._replaces, None
            self._gather(TextContent(self._text_of, text, replaces if replaces is not None else torn))
            self._streamed.append(text)
            self._streamed_size += len(text)
            if self._streamed_size >= MESSAGE_CHARACTERS:
                self._end_message()

    def _take_replaced_text(self) -> str | None:
        """Return the id of the torn text that the next text replaces; None from the second call on."""
        torn, self.session.torn_text = self.session.torn_text, None
        return torn

    def _end_message(self) -> None:
        """Record streamed text that is not in a message yet as a message, so that the task's history has it."""
        text = "".join(self._streamed)
        self._forget_streamed()
        if text.strip():
            self._gather(self.session.apply(AgentMessage(self._text_of, text, was_streamed=True)))

    def _forget_streamed(self) -> None:
        self._streamed.clear()
        self._streamed_size = 0

    def _gather(self, *events: AgentEvent) -> None:
        self._gathered.add(self._write_gathered, *events)

    def _write_gathered(self) -> None:
        try:
            self._write()
        except JournalError as error:
            self._failure = self._failure or error

    def _write(self, *, full_sync: bool = False) -> "asyncio.Future[Sequence[Delivery]]":
        events = self._gathered.take()
        future = asyncio.ensure_future(self._journal.append(self.lease, events, full_sync=full_sync))
        self._rows_under_way += len(events)
        future.add_done_callback(partial(self._written, len(events)))
        return future

    def _written(self, rows: int, future: "asyncio.Future[Sequence[Delivery]]") -> None:
        self._rows_under_way -= rows
        if future.cancelled():
            return
        if (error := future.exception()) is not None:
            self._failure = self._failure or error
        else:
            self.feed.publish(future.result())

    async def _finish(self, events: Sequence[AgentEvent], *, discard_inbox: bool = False) -> Sequence[AgentEvent]:
        if self._failure is not None:
            failure = self._failure
            if isinstance(failure, UnkeepableEvent):
                self._failure = None  # Later events can be recorded.
            raise failure
        gathered = self._gathered.take()
        has_failed = any(isinstance(event, StateChange) and event.error for event in events)
        waiting = () if has_failed else self.session.calls.waiting
        finished = await self._journal.finish(self.lease, [*gathered, *events], waiting, discard_inbox=discard_inbox)
        if not finished.inbox:
            # Before the end is published, so that a user who answers at once finds the task at rest.
            self._on_end(self)
        elif gathered:
            self._gather(*gathered)
            await self._write()
        self.feed.publish(finished.deliveries)
        return finished.inbox

    async def _take(self, inbox: Sequence[AgentEvent]) -> bool:
        """Record the events that arrived while the segment ran; return False if one was a cancellation.

        A message behind an answer stays in the inbox until the answered call has run, which it would give up.
        """
        if any(isinstance(event, StateChange) and event.state is TaskState.CANCELED for event in inbox):
            return False
        kept: list[AgentEvent] = []
        count = 0
        for event in inbox:
            match event:
                case ConfirmationAccepted(confirmation):
                    if any(call.tool_call_id == confirmation.tool_call_id for call in self.session.calls.waiting):
                        kept.append(self.session.apply(event))
                case Prompt():
                    if any(isinstance(one, ConfirmationAccepted) for one in kept):
                        self.has_inbox = True
                        break
                    kept.append(self.session.apply(event))
                case _:
                    pass
            count += 1
        self.feed.publish(await self._journal.take(self.lease, kept, count))
        return True

    async def _take_steering(self) -> bool:
        """Record the messages for the work under way that came first; return whether there were any.

        Those behind another message or an answer wait for the end of the work.
        """
        if self._cancelled:
            return False
        if await self._take_beside():
            return True
        if not self.has_inbox:
            return False
        self.has_inbox = False
        inbox = await self._journal.inbox(self.lease.task_id)
        steering = list(itertools.takewhile(lambda event: isinstance(event, Prompt) and event.is_steering, inbox))
        if not steering:
            return False
        self._flush_text()
        self._end_message()
        if self._gathered:
            await self._write()
        await self._take(steering)
        return True

    async def _take_beside(self) -> bool:
        """Record the messages that came with answers, whose calls have run; return whether there were any."""
        messages = tuple(self.session.beside)
        if not messages:
            return False
        self._flush_text()
        self._end_message()
        await self._record(*messages)
        return True

    async def _end_cancelled(self) -> StateChange:
        await self._fold_once()
        self._end_message()
        end = StateChange(TaskState.CANCELED)
        await self._record(*cancelled_calls(self.session))
        await self._finish([end], discard_inbox=True)
        return end


def _log_failure(task_id: str, error: Exception) -> None:
    """Log why an agent failed: in one line if every error on the way is ours, since their texts say everything."""
    text, traced = "", error
    if isinstance(error, AgentFailedError):
        cause = error.__cause__
        said = f" {cause}" if isinstance(cause, IsthmusError) and str(cause) not in str(error) else ""
        text, traced = f": {error}{said}", None if _is_ours(cause) else cause
    log.error("the agent failed on task %s%s", task_id, text, exc_info=traced)


def _is_ours(error: BaseException | None) -> bool:
    """Return whether an error and all its causes are ours."""
    return error is None or (isinstance(error, IsthmusError) and _is_ours(error.__cause__))


def _ends_text(event: AgentEvent) -> bool:
    """Return whether an event is a state after which the text that is being streamed is complete.

    While the task goes on working, the text may have broken off, and is then replaced.
    """
    return isinstance(event, StateChange) and event.state is not TaskState.WORKING


def _failure_of(error: Exception) -> StateChange:
    if isinstance(error, AgentFailedError):
        return StateChange(TaskState.FAILED, str(error), "internal_error")
    text = f"The agent failed: {type(error).__name__}: {error}. This is a bug; the log has the details."
    return StateChange(TaskState.FAILED, text, "internal_error")
