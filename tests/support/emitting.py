"""Turns of agents without an engine: what they emit goes into a list."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from isthmus.agent.session import Session
from isthmus.agent.turn import AgentTurn
from isthmus.engine.task_run import Agent
from isthmus.events import AgentEvent


class KilledError(BaseException):
    """The process has ended: nothing after it is kept."""


def collecting_turn(session: Session, into: list[AgentEvent], steps: int | None = None) -> AgentTurn:
    """A turn whose events are added to a list; with ``steps`` its process is killed at the next one after so many."""
    left = steps

    async def keep(event: AgentEvent) -> None:
        nonlocal left
        if left == 0:
            raise KilledError
        left = None if left is None else left - 1
        into.append(event)
        await asyncio.sleep(0)

    return AgentTurn(session, keep)


async def until_killed(work: Coroutine[Any, Any, object]) -> None:
    """Do some work up to its end or its process's."""
    with suppress(KilledError):
        await work


async def emitted(agent: Agent, session: Session) -> list[AgentEvent]:
    """What an agent emits in one turn, and the state that ends it."""
    events: list[AgentEvent] = []
    turn = collecting_turn(session, events)
    end = session.apply(await agent.advance(turn))
    return [*events, end]
