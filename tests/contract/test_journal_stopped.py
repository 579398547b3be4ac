"""A server that is stopped in the middle of a write: the database takes its locks back, and others get its tasks."""

import asyncio
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from isthmus.events import Prompt, TextContent
from isthmus.journal.port.base import StaleLease
from isthmus.journal.port.queue import QueueScope
from isthmus.journal.port.replicas import Member
from isthmus.journal.port.task_rows import NewTask
from isthmus.journal.postgres.driver import Connection
from isthmus.journal.postgres.journal import PostgresJournal
from isthmus.journal.postgres.journal import attempt as postgres_attempt
from isthmus.journal.postgres.journal import replicas as postgres_replicas
from isthmus.journal.postgres.statements import store
from support.pgbouncer import pool_before
from support.postgres import Postgres, postgres, run_sql
from support.waiting import eventually_async

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

LEASE = 0.5
STATEMENT = "UPDATE tasks SET seq = seq + 1, title = 'stopped' WHERE id = $1"


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres() as found:
        yield found


@pytest.fixture(scope="module")
def pool(server: Postgres) -> Iterator[int]:
    with pool_before(server) as port:
        yield port


class StoppedWriter:
    """A process that is stopped after it has locked a task, and before its next statement: ``prepared``, or idle.

    It does the same as with SIGSTOP: nothing more is sent to the database.
    """

    def __init__(self, moment: str) -> None:
        self._moment = moment
        self.is_stopped = asyncio.Event()
        self.goes_on = asyncio.Event()

    async def store(self, connection: Connection, group: object, text: str | None) -> None:
        """Take the place of the function that stores a group of writes."""
        driver: Any = getattr(connection, "_connection", connection)
        prepared = await driver.prepare(STATEMENT) if self._moment == "prepared" else None
        self.is_stopped.set()
        await self.goes_on.wait()
        if prepared is not None:
            await prepared.fetch("t1")
        else:
            await driver.execute(STATEMENT, "t1")


async def _has_session(database: str, state: str) -> bool:
    """Return whether a session in this state waits for its client, which holds the lock of a task."""
    query = (
        "SELECT count(*) FROM pg_stat_activity JOIN pg_locks USING (pid) WHERE state = $1 AND wait_event = 'ClientRead'"
        " AND relation = 'tasks'::regclass AND mode = 'RowShareLock'"
    )
    return await run_sql(database, query, state) == 1


@pytest.mark.parametrize("moment", ["idle", "prepared"])
@pytest.mark.parametrize("way", ["direct", "behind a pool"])
async def test_the_task_of_a_server_stopped_in_a_write_is_taken_over(
    server: Postgres, pool: int, monkeypatch: pytest.MonkeyPatch, way: str, moment: str
) -> None:
    database = server.database()
    pooled = f"{database.replace(f':{server.port}/', f':{pool}/')}?pool=transaction"
    monkeypatch.setattr(postgres_replicas, "STOPPED_SECONDS", 1.0)
    stopped = await PostgresJournal.open(pooled if way == "behind a pool" else database)
    other = await PostgresJournal.open(database)
    try:
        for name, journal in (("first", stopped), ("second", other)):
            await journal.replicas.join(Member(name, (), 1, LEASE), lambda _: None)
        task = await stopped.create(NewTask("t1", "c1", "/work", "Fix it"), [Prompt("m1", "Fix it")], "first", LEASE)
        writer = StoppedWriter(moment)
        with monkeypatch.context() as patched:
            patched.setattr(postgres_attempt, "store", writer.store)
            written = asyncio.ensure_future(stopped.append(task.lease, [TextContent("m", "lost")]))
            await writer.is_stopped.wait()
        seen = "idle in transaction" if moment == "idle" else "active"
        await eventually_async(lambda: _has_session(database, seen))
        claimed = await eventually_async(lambda: other.queue.take("second", LEASE, 8, QueueScope()), 60)
        assert [one.row.task_id for one in claimed] == ["t1"]

        writer.goes_on.set()
        with pytest.raises(StaleLease):
            await written
        assert await run_sql(database, "SELECT title FROM tasks WHERE id = 't1'") == "Fix it"
    finally:
        await stopped.aclose()
        await other.aclose()


async def test_writes_of_other_tasks_go_on_while_a_stopped_server_holds_one(
    server: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = server.database()
    stopped, other = await PostgresJournal.open(database), await PostgresJournal.open(database)
    try:
        held = await stopped.create(NewTask("t1", "c1", "/work", "Fix it"), [Prompt("m1", "Fix it")], "first", 60.0)
        own = await other.create(NewTask("t2", "c2", "/work", "And this"), [Prompt("m2", "And this")], "second", 60.0)
        writer = StoppedWriter("idle")
        with monkeypatch.context() as patched:
            patched.setattr(postgres_attempt, "store", writer.store)
            written = asyncio.ensure_future(stopped.append(held.lease, [TextContent("m", "lost")]))
            await writer.is_stopped.wait()
        # Locks of an idle session are kept for two seconds.
        posting = asyncio.ensure_future(other.post(held.row, [Prompt("m3", "More")]))
        appended = [other.append(own.lease, [TextContent("m", str(number))]) for number in range(3)]
        await asyncio.gather(*appended)
        assert not posting.done()

        await posting
        writer.goes_on.set()
        await asyncio.wait([written])
        texts = [item.event for item in await other.events("t2", 0, 100)]
        assert texts[1:] == [TextContent("m", "0"), TextContent("m", "1"), TextContent("m", "2")]
    finally:
        await stopped.aclose()
        await other.aclose()


async def test_a_server_that_may_not_see_other_sessions_stays_connected(
    server: Postgres, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    database = server.database()
    for statement in (
        "CREATE ROLE limited LOGIN",
        "GRANT CREATE ON SCHEMA public TO limited",
        "REVOKE SELECT ON pg_stat_activity FROM PUBLIC",
    ):
        await run_sql(database, statement)
    parts = urlsplit(database)
    of_limited = parts._replace(netloc=f"limited@{parts.netloc.rpartition('@')[2]}").geturl()
    looked: list[int] = []
    end_stopped = postgres_replicas.PostgresReplicas._end_stopped  # pyright: ignore[reportPrivateUsage]

    async def look(replicas: postgres_replicas.PostgresReplicas, connection: Connection) -> None:
        await end_stopped(replicas, connection)
        looked.append(id(connection))

    monkeypatch.setattr(postgres_replicas.PostgresReplicas, "_end_stopped", look)
    monkeypatch.setattr(postgres_replicas, "STOPPED_LOOK_SECONDS", 0.0)
    first, second = await PostgresJournal.open(of_limited), await PostgresJournal.open(of_limited)
    try:
        for name, journal in (("first", first), ("second", second)):
            await journal.replicas.join(Member(name, (), 1, LEASE), lambda _: None)
        await eventually_async(lambda: _is_true(len(looked) >= 6), 20)
        assert len(set(looked)) <= 2
        assert "no news of other processes" not in caplog.text
        assert caplog.text.count("are not ended") <= 2
    finally:
        await first.aclose()
        await second.aclose()


async def _is_true(value: bool) -> bool:
    return value


class _LockedError(Exception):
    sqlstate = "55P03"


async def test_writes_of_a_group_that_failed_keep_their_order_behind_a_lock(
    server: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = await PostgresJournal.open(server.database())
    faults = [RuntimeError("one of them is at fault"), _LockedError()]

    async def failing(*values: Any) -> None:
        if faults:
            raise faults.pop(0)
        await store(*values)

    try:
        task = await journal.create(NewTask("t1", "c1", "/work", "Fix it"), [Prompt("m1", "Fix it")], "first", 60.0)
        monkeypatch.setattr(postgres_attempt, "store", failing)
        await asyncio.gather(*(journal.append(task.lease, [TextContent("m", str(number))]) for number in range(3)))
        texts = [item.event for item in await journal.events("t1", 0, 100)]
        assert texts[1:] == [TextContent("m", "0"), TextContent("m", "1"), TextContent("m", "2")]
    finally:
        await journal.aclose()
