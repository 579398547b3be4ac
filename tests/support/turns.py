"""Readers of turns: each reads to the end within a deadline."""

import asyncio

from isthmus.client import Delivery, Execution, Turn
from isthmus.events import AgentEvent
from isthmus.task_view import TaskView

SECONDS = 60
"""Maximum seconds for a turn; far more than any successful one takes."""


async def all_of(turn: Turn) -> list[Delivery]:
    """Return every delivery."""
    async with asyncio.timeout(SECONDS):
        return [delivery async for delivery in turn.deliveries]


async def events_of(turn: Turn) -> list[AgentEvent]:
    """Return every event."""
    return [delivery.event for delivery in await all_of(turn)]


async def events_of_command(execution: Execution) -> list[AgentEvent]:
    """Return every event of a started command."""
    assert execution.turn is not None
    return await events_of(execution.turn)


async def view_of(turn: Turn) -> TaskView:
    """Return the final view of the task."""
    view = TaskView.of_snapshot(turn.snapshot)
    for delivery in await all_of(turn):
        view.apply(delivery)
    return view
