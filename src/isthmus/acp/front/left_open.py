"""The question of a turn that ended here although it is open: it could not be put to the user. A message answers it."""

from isthmus.acp.front.turn import SessionTurn
from isthmus.client import AgentClient, TaskNotFound
from isthmus.events import TaskState


class LeftOpen:
    """The task of the last such question of a session."""

    def __init__(self, agent: AgentClient) -> None:
        self._agent = agent
        self._task_id: str | None = None

    def note(self, turn: SessionTurn) -> None:
        """Note a turn that ended, if its question is open."""
        if turn.stream.is_asking:
            self._task_id = turn.stream.task_id

    def forget(self) -> None:
        """Forget it: the question is asked again."""
        self._task_id = None

    async def take(self) -> str | None:
        """Return the task of the question if it still waits, and forget it."""
        task_id, self._task_id = self._task_id, None
        if task_id is None:
            return None
        try:
            snapshot = await self._agent.get(task_id, 0)
        except TaskNotFound:  # deleted meanwhile
            return None
        return task_id if snapshot.state is TaskState.INPUT_REQUIRED else None
