"""What a turn brings, read to its end within a deadline."""

import asyncio

from isthmus.client import Delivery, Execution, Turn
from isthmus.events import AgentEvent
from isthmus.task_view import TaskView

SECONDS = 60
"""How long a turn may take; far more than any takes that goes well."""


async def all_of(turn: Turn) -> list[Delivery]:
    """Every delivery."""
    async with asyncio.timeout(SECONDS):
        return [delivery async for delivery in turn.deliveries]


async def events_of(turn: Turn) -> list[AgentEvent]:
    """Every event."""
    return [delivery.event for delivery in await all_of(turn)]


async def events_of_command(execution: Execution) -> list[AgentEvent]:
    """Every event of a command, which has started."""
    assert execution.turn is not None
    return await events_of(execution.turn)


async def view_of(turn: Turn) -> TaskView:
    """What it came to."""
    view = TaskView.of_snapshot(turn.snapshot)
    for delivery in await all_of(turn):
        view.apply(delivery)
    return view
