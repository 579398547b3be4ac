"""The tries of a model's request, as events: each wait is a notice, and a network that is away a state of the task.

The state is in the journal: other clients see it, also after the process has ended, and the next process goes on. Not
here: the waits themselves, see :mod:`isthmus.models.endpoint.patience`.
"""

from isthmus.agent.session.turn import AgentTurn
from isthmus.client import OFFLINE
from isthmus.events import RetryNotice, StateChange, TaskState
from isthmus.models.port.base import Retrying


async def note_retry(turn: AgentTurn, item: Retrying) -> None:
    """Emit the notice about the next try, and the state if the network went away."""
    await turn.emit(RetryNotice(item.attempt, item.attempts, item.delay, item.reason, item.is_offline))
    if item.is_offline:
        await turn.emit(StateChange(TaskState.WORKING, reason=OFFLINE))
    else:
        await note_connection(turn)


async def note_connection(turn: AgentTurn) -> None:
    """Emit that the network is back, if it was away."""
    if turn.session.is_offline:
        await turn.emit(StateChange(TaskState.WORKING))
