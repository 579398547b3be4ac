"""Journals agree: the same steps, in whatever order and grouping, have the same results in each kind of journal."""

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isthmus.client import TaskQuery
from isthmus.events import AgentEvent, TaskState
from isthmus.journal.port.base import Journal
from isthmus.journal.postgres.journal import PostgresJournal
from isthmus.journal.sqlite.journal import SqliteJournal
from support.journal_steps import Side, plain, run_steps, steps

if TYPE_CHECKING:
    from support.postgres import Postgres

pytestmark = pytest.mark.slow

_EXAMPLES = itertools.count()


@pytest.fixture
async def open_sides(
    tmp_path: Path, postgres_server: "Postgres"
) -> AsyncIterator[Callable[[], Awaitable[Sequence[Side]]]]:
    opened: list[Journal] = []

    async def sides() -> Sequence[Side]:
        if not opened:
            opened.append(await SqliteJournal.open(tmp_path / "journal.sqlite"))
            opened.append(await PostgresJournal.open(postgres_server.database()))
        name = f"e{next(_EXAMPLES)}"
        return [Side(journal, name) for journal in opened]

    yield sides
    for journal in opened:
        await journal.aclose()


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(steps, min_size=1, max_size=4), min_size=4, max_size=14))
@pytest.mark.anyio
async def test_the_same_steps_have_the_same_results(
    open_sides: Callable[[], Awaitable[Sequence[Side]]], groups: list[list[tuple[Any, ...]]]
) -> None:
    sqlite, postgres = await open_sides()
    for group in groups:
        # The steps of a group are queued at once, so that they share a transaction.
        results = [await run_steps(side, group) for side in (sqlite, postgres)]
        assert results[0] == results[1], group
    for number in range(4):
        task = f"{sqlite.name}-{number}"
        found = [await _left(side.journal, task) for side in (sqlite, postgres)]
        assert found[0] == found[1]
    listed = [
        await side.journal.list_tasks(TaskQuery(state=TaskState.WORKING), side.name) for side in (sqlite, postgres)
    ]
    assert {row.task_id for row in listed[0][0]} == {row.task_id for row in listed[1][0]}


async def _left(journal: Journal, task: str) -> object:
    row = await journal.task(task)
    events: Sequence[AgentEvent] = [item.event for item in await journal.events(task, 0, 1000)]
    found = [(item.seq, item.event) for item in await journal.of_message(task, "p1")]
    return plain(row), events, list(await journal.inbox(task)), found
