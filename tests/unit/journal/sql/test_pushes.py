"""When there may be something to push, and why a target was not added: decided without a database."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pytest

from isthmus.client import LimitReached, PushTarget
from isthmus.events import AgentEvent, StateChange, TaskState, TextContent
from isthmus.journal.port.base import JournalError
from isthmus.journal.port.pushes import PushRow
from isthmus.journal.sql.pushes import SqlPushes
from isthmus.journal.sql.rows import SQLITE

pytestmark = pytest.mark.anyio
T = TypeVar("T")
ROW = PushRow("t1", PushTarget("https://example.org/", "p1"), "v1", None, 0)
TEXT, CHANGE = TextContent("m", "Hello"), StateChange(TaskState.COMPLETED)


class Tables:
    """A database that answers as it is told."""

    def __init__(self) -> None:
        self.found: Sequence[Sequence[Any]] = ()
        self.writes: list[asyncio.Future[int]] = []
        self.reading: Callable[[], None] = lambda: None

    async def read(self, query: str, values: Sequence[Any], decode: Callable[[Any], T]) -> list[T]:
        self.reading()
        return [decode(row) for row in self.found]

    def write(self, statement: str, rows: Sequence[Sequence[Any]]) -> "asyncio.Future[int]":
        self.writes.append(asyncio.Future[int]())
        return self.writes[-1]


class Scene:
    """Push targets of which it is told when there may be something to send."""

    def __init__(self) -> None:
        self.tables = Tables()
        self.pushes = SqlPushes(self.tables.read, self.tables.write, lambda: 1000.0, SQLITE)
        self.told = 0
        self.pushes.on_change = self._tell

    def _tell(self) -> None:
        self.told += 1

    async def write(self, events: Sequence[AgentEvent], error: Exception | None = None) -> None:
        """Watch events, and end their write."""
        written = asyncio.Future[Any]()
        self.pushes.watch(events, written)
        assert self.told == 0  # nothing is committed yet
        if error is None:
            written.set_result(None)
        else:
            written.set_exception(error)
            written.exception()  # somebody has looked at it
        await asyncio.sleep(0)

    async def add(self, added: int) -> None:
        """Add a target; `added` is the number of rows that its statement changes."""
        adding = self.pushes.add(ROW, 3)
        self.tables.writes[-1].set_result(added)
        await adding


@pytest.fixture
async def scene() -> Scene:
    return Scene()


@pytest.mark.parametrize(("events", "told"), [([CHANGE], 1), ([TEXT, CHANGE], 1), ([TEXT], 0), ([], 0)])
async def test_only_a_change_of_state_is_something_to_push(
    scene: Scene, events: Sequence[AgentEvent], told: int
) -> None:
    await scene.write(events)
    assert scene.told == told


async def test_a_change_that_was_not_written_is_not_pushed(scene: Scene) -> None:
    await scene.write([CHANGE], JournalError("no disk"))
    assert scene.told == 0


async def test_without_an_active_target_changes_cost_nothing(scene: Scene) -> None:
    assert not await scene.pushes.has_active()
    await scene.write([CHANGE])
    assert scene.told == 0


async def test_with_an_active_target_changes_are_told(scene: Scene) -> None:
    scene.tables.found = [(1,)]
    assert await scene.pushes.has_active()
    await scene.write([CHANGE])
    assert scene.told == 1


async def test_a_new_target_is_told_and_has_changes_told_again(scene: Scene) -> None:
    assert not await scene.pushes.has_active()
    await scene.add(1)
    assert scene.told == 1
    scene.told = 0
    await scene.write([CHANGE])
    assert scene.told == 1


async def test_a_target_that_is_added_while_active_ones_are_looked_for_counts(scene: Scene) -> None:
    adding: list[Any] = []
    scene.tables.reading = lambda: adding.append(scene.pushes.add(ROW, 3))
    assert await scene.pushes.has_active()
    scene.tables.writes[-1].set_result(1)
    await adding[0]


async def test_a_target_beyond_the_limit_of_its_task_is_refused(scene: Scene) -> None:
    scene.tables.found = [(3,)]
    with pytest.raises(LimitReached, match="task t1 has 3 push notification configs, which is the maximum"):
        await scene.add(0)


async def test_a_target_of_a_task_that_is_gone_is_refused(scene: Scene) -> None:
    with pytest.raises(JournalError, match="task t1 does not exist any more"):
        await scene.add(0)
