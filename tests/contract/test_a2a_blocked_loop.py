"""A hosted agent that blocks the event loop is named in the log meanwhile."""

import logging
import threading
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest

from isthmus.agent.session.session import Session
from isthmus.events import AgentEvent, TextContent
from support.a2a_hosting import hosted
from support.a2a_serving import prompt

pytestmark = pytest.mark.anyio

LOG = "isthmus.a2a.blocked_loop"


class WarningHandler(logging.Handler):
    """A log handler that wakes the waiting test from any thread."""

    def __init__(self) -> None:
        super().__init__()
        self.came = threading.Event()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())
        self.came.set()


@pytest.fixture
def warnings() -> Generator[WarningHandler]:
    handler = WarningHandler()
    logging.getLogger(LOG).addHandler(handler)
    yield handler
    logging.getLogger(LOG).removeHandler(handler)


class Blocking:
    """An agent that blocks the loop once, until the log names it."""

    def __init__(self, warnings: WarningHandler) -> None:
        self._warnings = warnings
        self.was_warned = False

    async def run(self, session: Session) -> AsyncGenerator[AgentEvent, None]:
        self.look_up()
        yield TextContent("", "done")

    def look_up(self) -> None:
        self.was_warned = self._warnings.came.wait(60)


@pytest.mark.slow
async def test_an_agent_that_blocks_the_loop_is_named_with_where_it_is(
    workspace: Path, warnings: WarningHandler
) -> None:
    agent = Blocking(warnings)
    async with hosted(agent, workspace) as server:
        await server.call("message/send", prompt("go"))
    assert agent.was_warned
    named = [line for line in warnings.lines if "Blocking.run() in " in line]
    assert len(named) == 1
    assert Path(__file__).name in named[0]
    assert "look_up" in named[0]
    assert "asyncio.to_thread" in named[0]
