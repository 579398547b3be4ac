"""Push notification configs of A2A: who may set one, and what is remembered of it.

Implements :class:`isthmus.a2a.protocol.operations.PushService` for one user, over the journal.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from isthmus.a2a.push.delivery import PushDelivery, payload_by
from isthmus.a2a.push.sender import PushSender
from isthmus.a2a.wires import Wires
from isthmus.client import AgentClient, PushTarget, TaskNotFound
from isthmus.engine import Engine
from isthmus.journal.pushes import PushJournal, PushRow

TARGETS = 16
"""Push notification configs that one task may have."""


@asynccontextmanager
async def pushing(
    engine: Engine,
    sender: PushSender,
    wires: Wires,
    model_name: Callable[[], str] = str,
    is_served: Callable[[str], bool] = lambda _: True,
) -> "AsyncGenerator[Callable[[AgentClient], UserPushes]]":
    """Deliver an engine's news while this is open; gives what sets targets for the tasks that an agent shows.

    ``is_served`` says whether a user of this name may still be told of his tasks.
    """
    journal = engine.journal
    delivery = PushDelivery(journal, journal.pushes, sender, payload_by(wires), model_name, is_served)
    await delivery.start()
    try:
        yield lambda agent: UserPushes(agent, journal.pushes, sender)
    finally:
        await delivery.aclose()


class UserPushes:
    """The push targets of the tasks that ``agent`` shows."""

    def __init__(self, agent: AgentClient, journal: PushJournal, sender: PushSender) -> None:
        self._agent = agent
        self._journal = journal
        self._sender = sender

    async def check(self, target: PushTarget) -> None:
        """Make sure that a target could be set, before anything else happens for its sake.

        Raises:
            InvalidRequest: the URL is none that this server sends to; says why.
        """
        await self._sender.check(target)

    async def set(
        self, task_id: str, target: PushTarget, wire_name: str, uri: str | None, *, after: int | None = None
    ) -> PushTarget:
        """Add a target, or replace the one of its id, whose cursor stays; returned with an id.

        It is told of the state changes after event ``after``. By default of those to come, and first of the last one
        when the task rests: the client may have left before it came.

        Raises:
            TaskNotFound: the asker has no such task.
            InvalidRequest: the URL is none that this server sends to.
            LimitReached: the task has too many.
        """
        task = await self._agent.get(task_id, 0)
        await self._sender.check(target)
        if after is None:
            after = task.seq - 1 if task.state.ends_stream else task.seq
        target = replace(target, id=target.id or task_id)
        await self._journal.add(PushRow(task_id, target, wire_name, uri, after), TARGETS)
        return _shown(target)

    async def get(self, task_id: str, push_id: str | None = None) -> PushTarget:
        """One target, or the first; without its credentials.

        Raises:
            TaskNotFound: there is no such task, or it has no such target.
        """
        for target in await self.list(task_id):
            if push_id is None or target.id == push_id:
                return target
        named = "" if push_id is None else f" with the id {push_id[:100]}"
        raise TaskNotFound(f"task {task_id} has no push notification config{named}")

    async def list(self, task_id: str) -> Sequence[PushTarget]:
        """All targets, oldest first; without their credentials.

        Raises:
            TaskNotFound: the asker has no such task.
        """
        return [_shown(row.target) for row in await self.rows(task_id)]

    async def rows(self, task_id: str) -> Sequence[PushRow]:
        """All targets with what became of their notifications. They hold secrets: not for answers as they are.

        Raises:
            TaskNotFound: the asker has no such task.
        """
        await self._agent.get(task_id, 0)
        return await self._journal.of_task(task_id)

    async def delete(self, task_id: str, push_id: str) -> None:
        """Remove a target; one that is not there is no error.

        Raises:
            TaskNotFound: the asker has no such task.
        """
        await self._agent.get(task_id, 0)
        await self._journal.remove(task_id, push_id)


def _shown(target: PushTarget) -> PushTarget:
    """What answers say: the token tells the client its own notifications, the credentials nobody needs to see again."""
    return replace(target, credentials=None)
