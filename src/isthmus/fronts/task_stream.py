"""The events of one task in order and without repetition, over any number of turns of the agent client.

A turn ends when a user is asked, and a connection may end at any time; ``TaskStream`` continues after the last event,
so that fronts see one stream per task. It applies every event to a TaskView before it yields it.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import replace

from isthmus.client import AgentClient, Delivery, PromptMessage, TaskSnapshot, Turn
from isthmus.development_tool import ToolCallConfirmation
from isthmus.events import ConfirmationAccepted, TaskState
from isthmus.questions import ELICITATION, SAMPLING
from isthmus.record import record
from isthmus.task_view import TaskView

RETRIES = 5
"""Maximum number of consecutive attempts to resume a stream that ended too early, without a new event."""
WATCH_SECONDS = 0.5
"""Maximum delay between checks for an answer given elsewhere, which are needed because a stream ends at a question."""


@record
class FrontTimeouts:
    """Timeouts, in seconds, of a front that waits for its agent."""

    retry_seconds: float = 0.2
    """Delay before a stream that ended too early is resumed; it doubles each time."""
    return_seconds: float = 2.0
    """Delay before an agent that could not be reached is tried again."""
    cancel_seconds: float = 10.0
    """Maximum time for a cancelled task to end."""


class TaskStream:
    """The events of a task after ``snapshot``: first ``turn``'s, if there is one, then the following ones.

    ``view`` is kept up to date, and holds the number of the last event seen.
    """

    def __init__(
        self,
        agent: AgentClient,
        snapshot: TaskSnapshot,
        turn: Turn | None = None,
        timeouts: FrontTimeouts = FrontTimeouts(),
    ) -> None:
        self.view = TaskView.of_snapshot(snapshot)
        self.task_id = snapshot.task_id
        self.context_id = snapshot.context_id
        self._agent = agent
        self._turn = turn
        self._retry_seconds = timeouts.retry_seconds
        self._steered = 0
        """Number of messages that were sent for the work under way."""

    async def deliveries(self) -> AsyncIterator[Delivery]:
        """Yield the events until the task ends or a user is asked; resume a stream that ends before.

        Ends as well if that fails RETRIES times in a row; ``view.state`` is then a running task's.
        """
        attempts = 0
        while True:
            turn = self._turn or await self._agent.follow(self.task_id, after=self.view.seq)
            self._turn = None
            progress = False
            async for delivery in _closing(turn):
                if self.view.apply(delivery):
                    progress = True
                    yield delivery
            if self.view.state.ends_stream:
                return
            attempts = 0 if progress else attempts + 1
            if attempts > RETRIES:
                return
            await asyncio.sleep(self._retry_seconds * 2**attempts)

    async def answer(self, confirmation: ToolCallConfirmation, answered_by: str) -> None:
        """Answer a question; ``deliveries`` then continues with the events that follow.

        Raises:
            InvalidRequest: another client answered first; ``deliveries`` continues as well.
        """
        seen = self.view.seq
        turn = await self._agent.answer(
            self.task_id, [confirmation], answered_by=answered_by, context_id=self.context_id
        )
        # Applied even if the agent does not repeat the answer, so that the user is not asked twice.
        self.view.take_answer(ConfirmationAccepted(confirmation, answered_by))
        if turn.snapshot.seq > seen:
            # There were events between our last one and the answer: continue after our last one instead.
            await _close(turn)
        else:
            self._turn = turn

    async def tell(self, text: str) -> None:
        """Send a message in place of answers: the open questions are rejected, and the agent goes on with the message.

        Raises:
            TaskError: the agent refuses it.
        """
        seen = self.view.seq
        message = PromptMessage(text, task_id=self.task_id, context_id=self.context_id)
        turn = await self._agent.prompt(message)
        self.view.state = TaskState.WORKING
        if turn.snapshot.seq > seen:
            await _close(turn)
        else:
            self._turn = turn

    async def steer(self, text: str) -> None:
        """Send a message for the work under way, which the stream has in its place.

        Raises:
            TaskError: the agent refuses it.
        """
        message = PromptMessage(text, task_id=self.task_id, context_id=self.context_id, is_steering=True)
        turn = await self._agent.prompt(message)
        self._steered += 1
        await _close(turn)

    def is_behind(self) -> bool:
        """Return whether a message for the work under way came after its end, so that the work goes on.

        :meth:`deliveries` then yields the further events.
        """
        seen = sum(prompt.is_steering for prompt in self.view.prompts)
        if not self.view.state.ends_stream or seen >= self._steered:
            return False
        self.view.state = TaskState.WORKING
        return True

    async def while_asked(self) -> AsyncGenerator[Delivery, None]:
        """Yield the events while a question is open, caused by other surfaces, until the task has ended."""
        pause = self._retry_seconds
        while not self.view.state.is_terminal:
            snapshot = await self._agent.get(self.task_id, 0)
            if not self._has_changed(snapshot):
                await asyncio.sleep(pause)
                pause = min(pause * 1.5, WATCH_SECONDS)
                continue
            pause = self._retry_seconds
            progress = False
            async for delivery in _closing(await self._agent.follow(self.task_id, after=self.view.seq)):
                if self.view.apply(delivery):
                    progress = True
                    yield delivery
            if not progress:
                # The agent does not replay events: its current state is all that is known.
                self.view.take_snapshot(snapshot)

    def _has_changed(self, snapshot: TaskSnapshot) -> bool:
        """Return whether the task has changed since it was last seen."""
        asked = [question.call.tool_call_id for question in self.view.questions]
        pending = [call.tool_call_id for call in snapshot.pending]
        is_same = snapshot.state is self.view.state and sorted(asked) == sorted(pending)
        return not is_same or snapshot.seq > self.view.seq

    async def missed(self) -> AsyncIterator[Delivery]:
        """Yield the recorded events that were not seen yet, without waiting for more."""
        target = (await self._agent.get(self.task_id, 0)).seq
        if target <= self.view.seq:
            return
        async for delivery in _closing(await self._agent.follow(self.task_id, after=self.view.seq)):
            if self.view.apply(delivery):
                yield delivery
            if self.view.seq >= target:
                return

    @property
    def is_asking(self) -> bool:
        """Whether a question is open."""
        return self.view.state is TaskState.INPUT_REQUIRED and bool(self.view.questions)


async def opened(agent: AgentClient, task_id: str, timeouts: FrontTimeouts = FrontTimeouts()) -> TaskStream:
    """Return the stream of a task that a user comes back to.

    A task that waits for an answer to a server's question is followed at once: if that server ended with its agent's
    process, following makes the task continue, and the question is not asked.
    """
    snapshot = await agent.get(task_id, 0)
    if all(call.tool_name not in (ELICITATION, SAMPLING) for call in snapshot.pending):
        return TaskStream(agent, snapshot, None, timeouts)
    turn = await agent.follow(task_id, after=snapshot.seq)
    if turn.snapshot.state is snapshot.state and turn.snapshot.seq == snapshot.seq:
        await _close(turn)
        return TaskStream(agent, snapshot, None, timeouts)
    return TaskStream(agent, replace(snapshot, state=TaskState.WORKING, pending=()), turn, timeouts)


async def past_deliveries(agent: AgentClient, task_id: str, until: int | None = None) -> Sequence[Delivery]:
    """Return the events of a task until now, or until the event ``until``; none from an agent that repeats none."""
    turn = await agent.follow(task_id, after=0)
    last = turn.snapshot.seq if until is None else until
    found: list[Delivery] = []
    try:
        if last == 0:
            return ()
        async for delivery in turn.deliveries:
            found.append(delivery)
            if delivery.seq is not None and delivery.seq >= last:
                break
    finally:
        await _close(turn)
    return found


async def _closing(turn: Turn) -> AsyncIterator[Delivery]:
    """Yield the turn's deliveries, and close them even if the iteration ends early."""
    try:
        async for delivery in turn.deliveries:
            yield delivery
    finally:
        await _close(turn)


async def _close(turn: Turn) -> None:
    close = getattr(turn.deliveries, "aclose", None)
    if close is not None:
        await close()
