"""Turns of agents without an engine: the emitted events go into a list."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from isthmus.agent.session.session import Session
from isthmus.agent.session.spending import Spending
from isthmus.agent.session.turn import AgentTurn
from isthmus.engine.port.agents import Agent
from isthmus.events import AgentEvent


class KilledError(BaseException):
    """The process has ended: no later event is stored."""


def collecting_turn(
    session: Session, into: list[AgentEvent], steps: int | None = None, spending: Spending | None = None
) -> AgentTurn:
    """Return a turn whose events are added to a list; its process is killed at the event after number ``steps``."""
    left = steps

    async def keep(event: AgentEvent) -> None:
        nonlocal left
        if left == 0:
            raise KilledError
        left = None if left is None else left - 1
        into.append(event)
        await asyncio.sleep(0)

    return AgentTurn(session, keep, spending=spending)


async def until_killed(work: Coroutine[Any, Any, object]) -> None:
    """Run work until it ends or its process is killed."""
    with suppress(KilledError):
        await work


async def emitted(agent: Agent, session: Session) -> list[AgentEvent]:
    """Return the events that an agent emits in one turn, and the state that ends it."""
    events: list[AgentEvent] = []
    turn = collecting_turn(session, events)
    end = session.apply(await agent.advance(turn))
    return [*events, end]
