"""A real engine over a real journal, for tests of an engine with an agent."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from isthmus.client import Delivery
from isthmus.development_tool import ToolCallConfirmation
from isthmus.engine import Engine, EngineOptions
from isthmus.engine.port.agents import Agent
from isthmus.engine.port.placement import EVERY_TASK, Placement
from isthmus.engine.port.workspaces import WorkspaceRule
from isthmus.events import AgentEvent
from isthmus.journal.port.base import Journal
from support.journals import journal_at


@asynccontextmanager
async def engine_on(
    path: Path,
    agent: Agent,
    *,
    takes_over: bool = True,
    workspace: Path | None = None,
    lease_seconds: float = 20.0,
    busy_seconds: float = 5.0,
    placement: Placement = EVERY_TASK,
    journal: Journal | None = None,
) -> AsyncGenerator[Engine]:
    """Start an engine in ``path``, its default workspace, with the journal or one there; close it at the end."""
    rule = WorkspaceRule(default=path) if workspace is None else WorkspaceRule(workspace, (workspace,))
    options = EngineOptions(rule, takes_over=takes_over, placement=replace(placement, lease_seconds=lease_seconds))
    opened = journal or await journal_at(path / "journal.sqlite", busy_seconds=busy_seconds)
    engine = Engine(agent, opened, options)
    await engine.start()
    try:
        yield engine
    finally:
        await engine.aclose()


def events(deliveries: Sequence[Delivery]) -> list[AgentEvent]:
    """Return the delivered events."""
    return [delivery.event for delivery in deliveries]


def once(call_id: str, option: str = "proceed_once") -> list[ToolCallConfirmation]:
    """Return the answer to one call."""
    return [ToolCallConfirmation(call_id, option)]
