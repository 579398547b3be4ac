"""The push notification configs of one user's tasks, stored in the journal."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from typing_extensions import override

from isthmus.a2a.protocol.operations import PushService
from isthmus.a2a.push.delivery import PushDelivery, payload_by
from isthmus.a2a.push.sender import PushSender
from isthmus.a2a.wires import Wires
from isthmus.client import AgentClient, PushTarget, TaskNotFound
from isthmus.engine import Engine
from isthmus.journal.port.pushes import PushJournal, PushRow
from isthmus.runtime.telemetry import NO_TELEMETRY, Telemetry

TARGETS = 16
"""Maximum number of push notification configs of one task."""


@asynccontextmanager
async def pushing(
    engine: Engine,
    sender: PushSender,
    wires: Wires,
    model_name: Callable[[], str] = str,
    is_served: Callable[[str], bool] = lambda _: True,
    telemetry: Telemetry = NO_TELEMETRY,
) -> "AsyncGenerator[Callable[[AgentClient], UserPushes]]":
    """Deliver the push notifications of an engine's tasks; yield a function that makes the service of one user's agent.

    ``is_served`` returns whether the user with this name still has access.
    """
    journal = engine.journal
    delivery = PushDelivery(
        journal, journal.pushes, sender, payload_by(wires), model_name, is_served, telemetry=telemetry
    )
    await delivery.start()
    try:
        yield lambda agent: UserPushes(agent, journal.pushes, sender)
    finally:
        await delivery.aclose()


class UserPushes(PushService):
    """Push targets of the tasks that ``agent`` shows to its user."""

    def __init__(self, agent: AgentClient, journal: PushJournal, sender: PushSender) -> None:
        self._agent = agent
        self._journal = journal
        self._sender = sender

    @override
    async def check(self, target: PushTarget) -> None:
        await self._sender.check(target)

    @override
    async def set(
        self, task_id: str, target: PushTarget, wire_name: str, uri: str | None, *, after: int | None = None
    ) -> PushTarget:
        task = await self._agent.get(task_id, 0)
        await self._sender.check(target)
        if after is None:
            after = task.seq - 1 if task.state.ends_stream else task.seq
        target = replace(target, id=target.id or task_id)
        await self._journal.add(PushRow(task_id, target, wire_name, uri, after), TARGETS)
        return _without_credentials(target)

    @override
    async def get(self, task_id: str, push_id: str | None = None) -> PushTarget:
        for target in await self.list(task_id):
            if push_id is None or target.id == push_id:
                return target
        named = "" if push_id is None else f" with the id {push_id[:100]}"
        raise TaskNotFound(f"task {task_id} has no push notification config{named}")

    @override
    async def list(self, task_id: str) -> Sequence[PushTarget]:
        return [_without_credentials(row.target) for row in await self.rows(task_id)]

    async def rows(self, task_id: str) -> Sequence[PushRow]:
        """Return all targets with the state of their deliveries. They contain secrets, so do not send them to clients.

        Raises:
            TaskNotFound: the user has no such task.
        """
        await self._agent.get(task_id, 0)
        return await self._journal.of_task(task_id)

    @override
    async def delete(self, task_id: str, push_id: str) -> None:
        await self._agent.get(task_id, 0)
        await self._journal.remove(task_id, push_id)


def _without_credentials(target: PushTarget) -> PushTarget:
    """Return a target for an answer. It keeps the token, by which a client recognises its own notifications."""
    return replace(target, credentials=None)
