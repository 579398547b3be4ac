"""Lists of tasks, page by page: a journal's result is the same as that of a search through all tasks."""

import itertools
from collections.abc import AsyncIterator, Iterator

import pytest

from isthmus.client import TaskPlace, TaskQuery, TaskSnapshot, select_tasks
from isthmus.events import Prompt, StateChange, TaskState
from isthmus.journal.port.base import Journal
from isthmus.journal.port.task_rows import NewTask, TaskRow
from support.journals import JournalPlace

pytestmark = pytest.mark.anyio

TIMES = (1000.1, 1000.1, 1000.2, 1000.2000001, 1001.0)
"""Times of change; several tasks change at the same time."""


@pytest.fixture
async def journal(journal_place: JournalPlace) -> AsyncIterator[Journal]:
    def clock() -> Iterator[float]:
        for index in itertools.count():
            yield TIMES[index // 12 % len(TIMES)]

    ticks = clock()
    opened = await journal_place.open(lambda: next(ticks))
    for index in range(30):
        workspace = ("/project", "/project/below", "/projector", "/")[index % 4]
        task = NewTask(f"t{index * 7 % 30:02}", f"c{index % 3}", workspace, "Fix it", ("", "alice")[index % 5 == 0])
        taken = await opened.create(task, [Prompt("m", "Fix it")], "owner", 20)
        if index % 2:
            await opened.finish(taken.lease, [StateChange(TaskState.COMPLETED)], [])
    yield opened
    await opened.aclose()


def snapshot(row: TaskRow) -> TaskSnapshot:
    """Return the list entry of a row."""
    times = (row.created_at, row.updated_at)
    return TaskSnapshot(row.task_id, row.context_id, row.state, row.seq, row.workspace, *times)


@pytest.mark.slow
@pytest.mark.parametrize("limit", [1, 4, 100])
@pytest.mark.parametrize("context_id", [None, "c1", "nowhere"])
@pytest.mark.parametrize("state", [None, TaskState.COMPLETED, TaskState.FAILED])
@pytest.mark.parametrize("since", [None, 1000.2])
async def test_pages_have_every_task_that_fits_once_and_in_order(
    journal: Journal, limit: int, context_id: str | None, state: TaskState | None, since: float | None
) -> None:
    everything = [snapshot(row) for row in await journal.tasks(1000, user="")]
    query = TaskQuery(1000, context_id, state, since)
    expected = select_tasks(everything, query)
    seen: list[str] = []
    after: TaskPlace | None = None
    while True:
        rows, total = await journal.list_tasks(TaskQuery(limit, context_id, state, since, after), "")
        assert total == expected.total
        assert [row.task_id for row in rows] == [
            task.task_id for task in select_tasks(everything, TaskQuery(limit, context_id, state, since, after)).tasks
        ]
        seen += [row.task_id for row in rows]
        if len(rows) < limit:
            break
        after = TaskPlace(rows[-1].updated_at, rows[-1].task_id)
    assert seen == [task.task_id for task in expected.tasks]
    assert len(seen) == len(set(seen))


async def test_a_list_has_tasks_of_its_user_and_of_the_places_allowed(journal: Journal) -> None:
    rows, total = await journal.list_tasks(TaskQuery(), "alice")
    assert (total, {row.user for row in rows}) == (6, {"alice"})
    rows, total = await journal.list_tasks(TaskQuery(), "", ["/project"])
    assert {row.workspace for row in rows} == {"/project", "/project/below"}
    assert total == len(rows)
    rows, _ = await journal.list_tasks(TaskQuery(), "", ["/projector", "/project/below"])
    assert {row.workspace for row in rows} == {"/projector", "/project/below"}
    rows, _ = await journal.list_tasks(TaskQuery(), "", ["/"])
    assert {row.workspace for row in rows} == {"/project", "/project/below", "/projector", "/"}


async def test_a_page_after_a_task_that_is_gone_goes_on_at_its_place(journal: Journal) -> None:
    (first, *rest), _ = await journal.list_tasks(TaskQuery(3, state=TaskState.COMPLETED), "")
    assert list(await journal.removal.mark([first.task_id])) == [first.task_id]
    after = TaskPlace(first.updated_at, first.task_id)
    rows, _ = await journal.list_tasks(TaskQuery(2, state=TaskState.COMPLETED, after=after), "")
    assert rows == rest
