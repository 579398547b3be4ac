"""Contract of the queue of a journal for users with a limit of tasks at work: what holds waiting tasks back, and what
lets them start.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from isthmus.client import NO_LIMITS, AllAtWork, LimitReached, UserLimits
from isthmus.events import Prompt, StateChange, TaskState
from isthmus.journal.port.base import Journal, StaleLease
from isthmus.journal.port.queue import QueueScope
from isthmus.journal.port.task_rows import ClaimedTask, NewTask
from isthmus.journal.postgres.journal import PostgresJournal
from isthmus.journal.sqlite.journal import SqliteJournal
from support.journal_tasks import LEASE, row_of
from support.journals import JournalPlace
from support.postgres import run_sql

if TYPE_CHECKING:
    from support.postgres import Postgres

pytestmark = pytest.mark.anyio

ALL = QueueScope()
ONE, TWO = UserLimits(max_running=1), UserLimits(max_running=2)
REST = [StateChange(TaskState.INPUT_REQUIRED)]
END = [StateChange(TaskState.COMPLETED)]


@pytest.fixture
async def journal(journal_place: JournalPlace) -> AsyncIterator[Journal]:
    opened = await journal_place.open()
    yield opened
    await opened.aclose()


def new(task_id: str, user: str = "alice", *, label: str = "", parent: str = "") -> NewTask:
    return NewTask(task_id, f"context of {task_id}", "/work", "Fix it", user, label=label, parent=parent)


async def queue(journal: Journal, limits: UserLimits, *task_ids: str, user: str = "alice", label: str = "") -> None:
    for task_id in task_ids:
        await journal.queue.add(new(task_id, user, label=label), [Prompt(f"of {task_id}", "Fix it")], limits)


async def start(journal: Journal, task_id: str, limits: UserLimits = NO_LIMITS, user: str = "alice") -> ClaimedTask:
    return await journal.create(new(task_id, user), [Prompt(f"of {task_id}", "Fix it")], "owner-a", LEASE, limits)


async def taken(journal: Journal, limit: int = 9, gone: Sequence[str] = ()) -> Sequence[ClaimedTask]:
    return await journal.queue.take("owner-b", LEASE, limit, ALL, gone)


async def take(journal: Journal, limit: int = 9, gone: Sequence[str] = ()) -> Sequence[str]:
    """Take what may start, step by step as a process does; return the ids in the order in which they started."""
    found: list[str] = []
    while len(found) < limit and (step := await taken(journal, limit - len(found), gone)):
        found += [item.row.task_id for item in step]
    return found


async def test_a_task_that_waits_is_not_at_work_and_is_not_refused_as_one(journal: Journal) -> None:
    await queue(journal, ONE, "a1", "a2", "a3")
    await start(journal, "a4", ONE)
    with pytest.raises(AllAtWork, match="1 of your tasks are working; the limit is 1 at once"):
        await start(journal, "a5", ONE)
    assert await journal.task("a5") is None


async def test_waiting_tasks_are_limited_with_all_that_have_not_ended(journal: Journal) -> None:
    limits = UserLimits(max_tasks=3, max_running=1)
    await queue(journal, limits, "a1", "a2")
    asked = await start(journal, "a3", limits)
    with pytest.raises(LimitReached, match="you have 3 tasks that work, or wait for an answer or their turn") as raised:
        await queue(journal, limits, "a4")
    assert not isinstance(raised.value, AllAtWork)
    assert await journal.task("a4") is None
    await journal.finish(asked.lease, REST, [])
    assert await journal.queue.resume(await row_of(journal, "a3"), [Prompt("m", "Go on")], limits) is not None


async def test_tasks_of_a_user_with_enough_at_work_are_passed_over(journal: Journal) -> None:
    await queue(journal, TWO, "a1", "a2", "a3", "a4")
    await queue(journal, TWO, "b1", user="bob")
    await queue(journal, NO_LIMITS, "c1", "c2", "c3", user="carol")
    assert await take(journal) == ["a1", "b1", "c1", "a2", "c2", "c3"]
    assert await journal.queue.holds_back(ALL)
    assert await take(journal) == []


async def test_a_task_starts_when_another_of_its_user_has_ended_or_waits_for_an_answer(journal: Journal) -> None:
    await queue(journal, TWO, "a1", "a2", "a3", "a4", "a5")
    first, second = await taken(journal)
    assert await take(journal) == []
    await journal.finish(first.lease, REST, [])
    assert await take(journal) == ["a3"]
    await journal.finish(second.lease, END, [])
    assert await take(journal) == ["a4"]
    assert await take(journal) == []


async def test_each_task_waits_by_the_limit_that_it_came_with(journal: Journal) -> None:
    """The user has two tokens with different limits."""
    await queue(journal, TWO, "a1", "a2")
    await queue(journal, UserLimits(max_running=4), "b1", "b2", "b3")
    await queue(journal, TWO, "a3")
    assert await take(journal) == ["a1", "a2", "b1", "b2"]


async def test_what_started_at_once_counts_for_those_that_wait(journal: Journal) -> None:
    await start(journal, "a1")
    await start(journal, "b1", user="bob")
    await journal.create(new("part", parent="a1"), [], "owner-a", LEASE)
    await queue(journal, TWO, "a2", "a3")
    await queue(journal, ONE, "b2", user="bob")
    assert await take(journal) == ["a2"]


async def test_few_slots_are_filled_with_what_may_start(journal: Journal) -> None:
    await queue(journal, ONE, "a1", "a2", "a3")
    await queue(journal, ONE, "b1", "b2", user="bob")
    assert await take(journal, 1) == ["a1"]
    assert await take(journal, 1) == ["b1"]
    assert await take(journal, 1) == []


async def test_those_that_were_held_back_keep_their_place(journal: Journal) -> None:
    await queue(journal, ONE, "a1", "a2", "a3")
    (first,) = await taken(journal)
    await queue(journal, NO_LIMITS, "b1", "b2", "b3", user="bob")
    assert await take(journal, 2) == ["b1", "b2"]
    await queue(journal, NO_LIMITS, "b4", user="bob")
    await journal.finish(first.lease, END, [])
    assert await take(journal) == ["a2", "b3", "b4"]


async def test_only_tasks_in_the_scope_are_said_to_be_held_back(journal: Journal) -> None:
    assert not await journal.queue.holds_back(ALL)
    await queue(journal, ONE, "a1", label="gpu")
    await queue(journal, NO_LIMITS, "a2")
    assert not await journal.queue.holds_back(ALL)
    assert not await journal.queue.holds_back(QueueScope(("", "gpu"), is_reserved=True))
    assert await journal.queue.holds_back(QueueScope(("", "gpu")))


async def test_processes_that_take_at_the_same_time_start_no_more_than_allowed(journal_place: JournalPlace) -> None:
    """Together with others that start at once, in each process."""
    first, second = await journal_place.open(), await journal_place.open()
    limits = UserLimits(max_running=3)
    try:
        for turn in range(12):
            await queue(first, limits, *(f"{turn}-{number}" for number in range(6)), user=f"user {turn}")

            async def begin(journal: Journal, task_id: str, turn: int = turn) -> Sequence[ClaimedTask]:
                try:
                    return [await start(journal, task_id, limits, f"user {turn}")]
                except AllAtWork:
                    return []

            begun = await asyncio.gather(
                taken(first, 2),
                begin(first, f"{turn}-a"),
                taken(second, 2),
                begin(second, f"{turn}-b"),
                taken(first),
                taken(second),
            )
            started = [item.row.task_id for part in begun for item in part]
            assert len(started) == len(set(started)) <= 3
            assert len(started) + len(await taken(first)) == 3
    finally:
        await first.aclose()
        await second.aclose()


# --- old facts ---


async def test_a_task_whose_lease_expired_is_at_work_until_somebody_goes_on_with_it(
    journal_place: JournalPlace,
) -> None:
    now = [1000.0]
    journal = await journal_place.open(lambda: now[0])
    try:
        await start(journal, "a1", ONE)
        await queue(journal, ONE, "a2")
        now[0] += LEASE + 1
        (again,) = await taken(journal)
        assert again.row.task_id == "a1"
        assert await take(journal) == []
        await journal.finish(again.lease, END, [])
        assert await take(journal) == ["a2"]
    finally:
        await journal.aclose()


async def test_the_end_of_a_run_that_was_taken_over_lets_nothing_start(journal: Journal) -> None:
    old = await start(journal, "a1", ONE)
    await queue(journal, ONE, "a2")
    assert await take(journal, gone=["owner-a"]) == ["a1"]
    with pytest.raises(StaleLease):
        await journal.finish(old.lease, END, [])
    assert await take(journal) == []


async def test_tasks_that_a_process_released_count_until_they_go_on(journal: Journal) -> None:
    released = await start(journal, "a1", ONE)
    await queue(journal, ONE, "a2")
    await journal.release([released.lease])
    with pytest.raises(AllAtWork):
        await start(journal, "a3", ONE)
    assert await take(journal) == ["a1"]


async def test_a_waiting_task_that_is_taken_over_counts_and_is_held_back_no_more(journal: Journal) -> None:
    """As for a cancellation, which waits for nobody."""
    await queue(journal, ONE, "a1", "a2")
    (first,) = await taken(journal)
    over = await journal.take_over(await row_of(journal, "a2"), "owner-a", LEASE)
    assert over is not None
    assert not await journal.queue.holds_back(ALL)
    await journal.finish(first.lease, END, [])
    await queue(journal, ONE, "a3")
    assert await take(journal) == []
    await journal.finish(over.lease, [StateChange(TaskState.CANCELED)], [])
    assert await take(journal) == ["a3"]


async def test_an_answer_waits_by_its_own_limit_and_not_by_an_earlier_one(journal: Journal) -> None:
    await queue(journal, ONE, "a1")
    (first,) = await taken(journal)
    await journal.finish(first.lease, REST, [])
    await start(journal, "a2")
    old = await row_of(journal, "a1")
    assert await journal.queue.resume(old, [Prompt("m", "Go on")], TWO) is not None
    assert await journal.queue.resume(old, [Prompt("m", "Go on")], NO_LIMITS) is None
    await start(journal, "a3")
    assert await take(journal) == []
    again = await journal.take_over(await row_of(journal, "a1"), "owner-a", LEASE)
    assert again is not None
    await journal.finish(again.lease, REST, [])
    assert await journal.queue.resume(await row_of(journal, "a1"), [Prompt("m", "Go on")]) is not None
    assert await take(journal) == ["a1"]


# --- older versions ---


async def test_what_waits_in_a_file_of_the_version_before_starts_as_before(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    old = await SqliteJournal.open(path)
    await queue(old, ONE, "a1", "a2")
    await old.aclose()
    with sqlite3.connect(path) as connection:
        connection.executescript(
            "DROP TABLE sessions; DROP TABLE queued; DROP INDEX tasks_at_work;"
            " ALTER TABLE tasks DROP COLUMN running_limit;"
            " ALTER TABLE removed_tokens DROP COLUMN cost; PRAGMA user_version=9"
        )
    connection.close()
    upgraded = await SqliteJournal.open(path)
    await queue(upgraded, ONE, "a3")
    assert await take(upgraded) == ["a1", "a2"]
    await upgraded.aclose()
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (12,)
    connection.close()


async def test_what_waits_in_a_database_of_the_version_before_starts_as_before(postgres_server: "Postgres") -> None:
    url = postgres_server.database()
    old = await PostgresJournal.open(url)
    await queue(old, ONE, "a1", "a2")
    await old.aclose()
    await run_sql(url, "ALTER TABLE tasks DROP COLUMN running_limit")
    await run_sql(url, "ALTER TABLE removed_tokens DROP COLUMN cost")
    await run_sql(url, "DROP TABLE sessions, queued")
    await run_sql(url, "UPDATE journal SET version = 4")
    upgraded = await PostgresJournal.open(url)
    await queue(upgraded, ONE, "a3")
    assert await take(upgraded) == ["a1", "a2"]
    await upgraded.aclose()
    assert await run_sql(url, "SELECT version FROM journal") == 7
