"""Push notifications of a real engine and journal: their delivery, and the receiver's record."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from isthmus.a2a.push.delivery import PushDelivery, PushLimits, payload_by
from isthmus.a2a.push.sender import PushSender
from isthmus.a2a.push.service import UserPushes
from isthmus.a2a.push.targets import PushRule
from isthmus.a2a.wires import Wires
from isthmus.client import PromptMessage, TaskSnapshot
from isthmus.engine import Engine, EngineOptions
from isthmus.engine.port.agents import Agent
from isthmus.engine.port.workspaces import WorkspaceRule
from isthmus.journal.port.base import Journal
from support.journals import journal_at
from support.turns import all_of
from support.waiting import eventually_async
from support.wire_server import Answer, WireServer

ALLOWED = PushRule.of(["127.0.0.0/8"])
QUICK = PushLimits(first_wait_seconds=0.01, longest_wait_seconds=0.02)
FINE = Answer(204, {"content-length": "0"})


@dataclass(slots=True)
class Pushing:
    """An engine whose push notifications are delivered."""

    engine: Engine
    journal: Journal
    pushes: UserPushes

    async def prompted(self, text: str = "hello") -> TaskSnapshot:
        """Return a task that has stopped."""
        turn = await self.engine.prompt(PromptMessage(text))
        await all_of(turn)
        return await self.engine.get(turn.task_id)


@asynccontextmanager
async def pushing(
    folder: Path, agent: Agent, sender: PushSender | None = None, limits: PushLimits = QUICK
) -> AsyncGenerator[Pushing]:
    """Start an engine with a journal in `folder`; failed notifications are sent again at once."""
    journal = await journal_at(folder / "journal.sqlite")
    sender = sender or PushSender(ALLOWED)
    engine = Engine(agent, journal, EngineOptions(WorkspaceRule(default=folder)))
    delivery = PushDelivery(journal, journal.pushes, sender, payload_by(Wires()), limits=limits)
    await engine.start()
    await delivery.start()
    try:
        yield Pushing(engine, journal, UserPushes(engine, journal.pushes, sender))
    finally:
        await delivery.aclose()
        await engine.aclose()


def states(server: WireServer) -> list[str]:
    """Return the states that a receiver got."""
    return [request.json["status"]["state"] for request in server.requests]


async def told(server: WireServer, *expected: str) -> None:
    """Wait until a receiver got these states, and no others."""

    def check() -> bool:
        assert states(server) == list(expected)
        return True

    await eventually_async(check)
