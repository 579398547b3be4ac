"""One task's events in order and without repetition, over as many turns of the agent client as that takes.

A turn ends when a user is asked, and a connection may end at any time; ``TaskStream`` goes on where the last one
stopped, so that fronts see one stream per task. It folds every event into a TaskView before it hands it on.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

from isthmus.client import ELICITATION, SAMPLING, AgentClient, Delivery, TaskSnapshot, Turn
from isthmus.development_tool import ToolCallConfirmation
from isthmus.events import ConfirmationAccepted, TaskState
from isthmus.task_view import TaskView

RETRIES = 5
"""How often in a row a stream that ended too early, without anything new, is taken up again."""
WATCH_SECONDS = 0.5
"""How often, at least, it is looked whether somebody else has answered: a stream ends at a question."""


@dataclass(frozen=True, slots=True)
class TerminalTimeouts:
    """How long a front waits for its agent."""

    retry_seconds: float = 0.2
    """Pause before a stream that ended too early is taken up again; it doubles each time."""
    return_seconds: float = 2.0
    """Pause before it is looked again whether an agent that could not be reached is back."""
    cancel_seconds: float = 10.0
    """Maximum time for a cancelled task to end."""


class TaskStream:
    """The events of a task after ``snapshot``: those of ``turn``, if there is one, then what follows.

    ``view`` is kept up to date, and knows which event was seen last.
    """

    def __init__(
        self,
        agent: AgentClient,
        snapshot: TaskSnapshot,
        turn: Turn | None = None,
        timeouts: TerminalTimeouts = TerminalTimeouts(),
    ) -> None:
        self.view = TaskView.of_snapshot(snapshot)
        self.task_id = snapshot.task_id
        self.context_id = snapshot.context_id
        self._agent = agent
        self._turn = turn
        self._retry_seconds = timeouts.retry_seconds

    async def deliveries(self) -> AsyncIterator[Delivery]:
        """Yield the events until the work ends or a user is asked; a stream that breaks off before is taken up again.

        It ends as well when that fails RETRIES times in a row: then ``view.state`` is one of a task at work.
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
        """Answer a question; ``deliveries`` then goes on with what follows from it.

        Raises:
            InvalidRequest: somebody else answered first; ``deliveries`` goes on as well.
        """
        seen = self.view.seq
        turn = await self._agent.answer(
            self.task_id, [confirmation], answered_by=answered_by, context_id=self.context_id
        )
        # Known from here on, also when the agent does not repeat the answer: nobody is asked twice.
        self.view.take_answer(ConfirmationAccepted(confirmation, answered_by))
        if turn.snapshot.seq > seen:
            # Something happened between our last event and the answer: take up our own thread instead.
            await _close(turn)
        else:
            self._turn = turn

    async def while_asked(self) -> AsyncIterator[Delivery]:
        """Yield the events while a question is open: what other surfaces do. Ends when the task has ended."""
        pause = self._retry_seconds
        while not self.view.state.is_terminal:
            snapshot = await self._agent.get(self.task_id, 0)
            if not self._is_news(snapshot):
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
                # An agent that replays nothing: how it stands now is all there is to know.
                self.view.take_snapshot(snapshot)

    def _is_news(self, snapshot: TaskSnapshot) -> bool:
        """Return whether the task is not as it was last seen."""
        asked = [question.call.tool_call_id for question in self.view.questions]
        pending = [call.tool_call_id for call in snapshot.pending]
        is_same = snapshot.state is self.view.state and sorted(asked) == sorted(pending)
        return not is_same or snapshot.seq > self.view.seq

    async def missed(self) -> AsyncIterator[Delivery]:
        """What the agent has recorded that was not seen yet; does not wait for more."""
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
        """A user is asked now."""
        return self.view.state is TaskState.INPUT_REQUIRED and bool(self.view.questions)


async def opened(agent: AgentClient, task_id: str, timeouts: TerminalTimeouts = TerminalTimeouts()) -> TaskStream:
    """Return the stream of a task that somebody comes back to.

    One that waits for what a server wants to know is followed at once: when that server has ended with its agent's
    process, the task goes on by being followed, and its question need not be asked.
    """
    snapshot = await agent.get(task_id, 0)
    if all(call.tool_name not in (ELICITATION, SAMPLING) for call in snapshot.pending):
        return TaskStream(agent, snapshot, None, timeouts)
    turn = await agent.follow(task_id, after=snapshot.seq)
    if turn.snapshot.state is snapshot.state and turn.snapshot.seq == snapshot.seq:
        await _close(turn)
        return TaskStream(agent, snapshot, None, timeouts)
    return TaskStream(agent, replace(snapshot, state=TaskState.WORKING, pending=()), turn, timeouts)


async def _closing(turn: Turn) -> AsyncIterator[Delivery]:
    """Yield the turn's deliveries, let go of also when the iteration is left early."""
    try:
        async for delivery in turn.deliveries:
            yield delivery
    finally:
        await _close(turn)


async def _close(turn: Turn) -> None:
    close = getattr(turn.deliveries, "aclose", None)
    if close is not None:
        await close()
