"""A journal in a database that refuses, crashes and comes back: clear errors, nothing lost, nothing twice."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from isthmus.client import TaskQuery
from isthmus.events import Prompt, StateChange, TaskState, TextContent
from isthmus.journal.port.base import JournalError, JournalUnavailable, RepeatedMessage, StaleLease
from isthmus.journal.port.queue import QueueScope
from isthmus.journal.port.task_rows import ClaimedTask, Lease, NewTask
from isthmus.journal.postgres import connection as postgres_connection
from isthmus.journal.postgres import writer as postgres_writer
from isthmus.journal.postgres.connection import Database, clock_offset
from isthmus.journal.postgres.driver import Connection
from isthmus.journal.postgres.journal import PostgresJournal
from support.cutting_proxy import cutting_proxy
from support.ports import free_port
from support.postgres import Postgres, postgres, run_sql
from support.waiting import eventually_async

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

LEASE = 60.0


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    """Return a server of this file alone: its tests stop it."""
    with postgres(is_durable=True) as found:
        yield found


@pytest.fixture
def url(server: Postgres) -> str:
    return server.database()


@pytest.fixture
async def journal(url: str) -> AsyncIterator[PostgresJournal]:
    opened = await PostgresJournal.open(url)
    yield opened
    await opened.aclose()


async def new_task(journal: PostgresJournal, task_id: str = "t1", message: str = "") -> ClaimedTask:
    task = NewTask(task_id, "c1", "/work", "Fix it", message_id=message)
    return await journal.create(task, [Prompt("m1", "Fix it")], "owner", LEASE)


async def texts_of(journal: PostgresJournal, task_id: str = "t1") -> list[str]:
    items = await journal.events(task_id, 0, 100_000)
    assert [item.seq for item in items] == list(range(1, len(items) + 1))
    return [item.event.text for item in items if isinstance(item.event, TextContent)]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("postgresql://postgres@127.0.0.1:{free}/journal", "cannot be opened"),
        ("postgresql://postgres@127.0.0.1:{port}/nothing", "does not exist"),
        ("postgresql://nobody:s3cret@127.0.0.1:{port}/postgres", "refuses the user or password|cannot be opened"),
        ("mysql://root@127.0.0.1/journal", "'mysql' is not the scheme of a database"),
        ("postgresql://postgres@127.0.0.1:{port}x/journal", "cannot be opened"),
        ("postgresql://postgres@127.0.0.1:{port}/postgres?pool=foo", r"has \?pool=foo; expected \?pool=transaction"),
        ("postgresql://postgres@127.0.0.1:{port}/postgres?a=b&pool=", r"has \?pool=; expected \?pool=transaction"),
        ("postgresql://postgres@127.0.0.1:{port}/postgres?nope=1", "does not know an option behind"),
    ],
)
async def test_a_database_that_cannot_be_opened_is_named_without_its_password(
    server: Postgres, given: str, said: str
) -> None:
    with pytest.raises(JournalError, match=said) as raised:
        await PostgresJournal.open(given.format(port=server.port, free=free_port()))
    assert "s3cret" not in str(raised.value)


async def test_the_tables_of_another_program_are_left_alone(server: Postgres, url: str) -> None:
    await run_sql(url, "CREATE TABLE tasks (name text)")
    with pytest.raises(JournalError, match="has a table tasks of another program"):
        await PostgresJournal.open(url)
    assert await run_sql(url, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == 1


async def test_a_newer_journal_is_left_alone(url: str) -> None:
    await (await PostgresJournal.open(url)).aclose()
    await run_sql(url, "UPDATE journal SET version = 99")
    with pytest.raises(JournalError, match=r"newer Isthmus \(journal version 99, this one knows 7\)"):
        await PostgresJournal.open(url)


async def test_a_database_that_only_reads_is_refused(server: Postgres, url: str) -> None:
    name = url.rpartition("/")[2]
    server.sql(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    with pytest.raises(JournalError, match="only reads"):
        await PostgresJournal.open(url)


async def test_the_journal_of_another_agent_is_left_alone(url: str) -> None:
    await (await PostgresJournal.open(url, agent=("one",))).aclose()
    with pytest.raises(JournalError, match="is the journal of the agent 'one', and this one is 'two'"):
        await PostgresJournal.open(url, agent=("two",))
    await (await PostgresJournal.open(url, agent=("new", "one"))).aclose()


async def test_of_many_that_open_an_empty_database_all_have_the_same_tables(url: str) -> None:
    opened = await asyncio.gather(*(PostgresJournal.open(url, agent=("one",)) for _ in range(6)))
    await new_task(opened[0])
    assert [row.task_id for row in await opened[5].tasks(10)] == ["t1"]
    for journal in opened:
        await journal.aclose()


async def test_what_runs_waits_for_a_database_that_crashes_and_requests_are_refused(
    server: Postgres, journal: PostgresJournal
) -> None:
    lease = (await new_task(journal)).lease
    await journal.append(lease, [TextContent("m", "before")])
    server.stop("immediate")
    writes = [journal.append(lease, [TextContent("m", f"{number}")]) for number in range(100)]
    with pytest.raises(JournalUnavailable, match="cannot be reached at the moment"):
        await asyncio.wait_for(new_task(journal, "t2"), 20)
    with pytest.raises(JournalUnavailable):
        await asyncio.wait_for(journal.task("t1"), 20)
    assert not any(write.done() for write in map(asyncio.ensure_future, writes))
    server.start()
    for write in writes:
        await asyncio.wait_for(write, 30)
    assert await texts_of(journal) == ["before", *map(str, range(100))]
    assert await journal.task("t2") is None
    await new_task(journal, "t2")


async def test_of_crashes_in_mid_stream_no_event_is_lost_or_doubled(server: Postgres, journal: PostgresJournal) -> None:
    lease = (await new_task(journal)).lease
    acknowledged: list[str] = []

    async def write() -> None:
        for number in range(600):
            await journal.append(lease, [TextContent("m", str(number))])
            acknowledged.append(str(number))

    writing = asyncio.create_task(write())
    for count in (50, 200, 400):

        async def far_enough(count: int = count) -> bool:
            return len(acknowledged) >= count

        await eventually_async(far_enough, what=f"{count} events")
        await asyncio.to_thread(server.stop, "immediate")
        await asyncio.to_thread(server.start)
    await asyncio.wait_for(writing, 60)
    assert await texts_of(journal) == acknowledged == list(map(str, range(600)))


async def test_sessions_that_the_server_ends_are_made_anew(url: str, journal: PostgresJournal) -> None:
    lease = (await new_task(journal)).lease
    for number in range(10):
        await run_sql(
            url,
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
            " WHERE application_name = 'isthmus' AND pid <> pg_backend_pid()",
        )
        await journal.append(lease, [TextContent("m", str(number))])
    assert await texts_of(journal) == list(map(str, range(10)))


async def test_a_database_that_only_reads_for_a_while_is_asked_with_pauses(
    server: Postgres, url: str, journal: PostgresJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = (await new_task(journal)).lease
    connect, tried = Database.connect, 0

    async def counted(self: Database) -> Connection:
        nonlocal tried
        tried += 1
        return await connect(self)

    monkeypatch.setattr(Database, "connect", counted)
    name = url.rpartition("/")[2]
    server.sql(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    server.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'isthmus'")
    write = asyncio.ensure_future(journal.append(lease, [TextContent("m", "kept")]))
    done, _ = await asyncio.wait([write], timeout=1.5)
    assert not done
    assert 2 < tried < 12
    server.sql(f"ALTER DATABASE {name} RESET default_transaction_read_only")
    await asyncio.wait_for(write, 20)
    assert await texts_of(journal) == ["kept"]


async def test_an_idle_server_finds_its_database_again(server: Postgres, journal: PostgresJournal) -> None:
    server.stop("immediate")
    for _ in range(3):
        with pytest.raises(JournalUnavailable):
            await asyncio.wait_for(new_task(journal), 20)
    server.start()
    assert (await new_task(journal)).row.task_id == "t1"


async def test_what_waits_is_limited_by_its_size(
    server: Postgres, journal: PostgresJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = (await new_task(journal)).lease
    monkeypatch.setattr(postgres_writer, "WAITING_CHARACTERS", 10_000)
    server.stop("immediate")
    writes = [asyncio.ensure_future(journal.append(lease, [TextContent("m", "x" * 3_000)])) for _ in range(10)]
    refused = [write for write in writes if write.done()]
    assert len(refused) == 6
    server.start()
    await asyncio.wait(writes, timeout=30)
    assert sum(isinstance(write.exception(), JournalUnavailable) for write in writes) == 6
    # What is limited is counted again as it leaves.
    await journal.append(lease, [TextContent("m", "more")])
    assert len(await texts_of(journal)) == 5


async def test_a_commit_whose_answer_is_lost_is_not_done_twice(server: Postgres, url: str) -> None:
    async with cutting_proxy(f"http://127.0.0.1:{server.port}/") as proxy:
        port = proxy.url.rstrip("/").rpartition(":")[2]
        journal = await PostgresJournal.open(url.replace(f":{server.port}/", f":{port}/"))
        try:
            lease = (await new_task(journal)).lease
            for number in range(20):
                proxy.lost_replies += [b"COMMIT"] * (number % 2)
                await asyncio.wait_for(journal.append(lease, [TextContent("m", str(number))]), 20)
            assert proxy.lost_replies == []
            assert await texts_of(journal) == list(map(str, range(20)))
            proxy.lost_replies = [b"COMMIT"]
            ended: Any = await asyncio.wait_for(journal.finish(lease, [StateChange(TaskState.COMPLETED)], []), 20)
            assert [item.seq for item in ended.deliveries] == [22]
            row = await journal.task("t1")
            assert row is not None
            assert (row.state, row.seq, row.owner) == (TaskState.COMPLETED, 22, None)
        finally:
            await journal.aclose()


async def test_a_request_whose_answer_is_lost_is_found_when_it_comes_again(server: Postgres, url: str) -> None:
    async with cutting_proxy(f"http://127.0.0.1:{server.port}/") as proxy:
        port = proxy.url.rstrip("/").rpartition(":")[2]
        journal = await PostgresJournal.open(url.replace(f":{server.port}/", f":{port}/"))
        try:
            proxy.lost_replies = [b"COMMIT"]
            with pytest.raises(JournalUnavailable, match="may be stored or not"):
                await asyncio.wait_for(new_task(journal, "t1", "message"), 20)
            with pytest.raises(RepeatedMessage):
                await asyncio.wait_for(new_task(journal, "t2", "message"), 20)
            assert [row.task_id for row in await journal.tasks(10)] == ["t1"]
        finally:
            await journal.aclose()


async def test_a_database_that_cannot_say_what_is_stored_stops_nothing_else(server: Postgres, url: str) -> None:
    async with cutting_proxy(f"http://127.0.0.1:{server.port}/") as proxy:
        port = proxy.url.rstrip("/").rpartition(":")[2]
        journal = await PostgresJournal.open(url.replace(f":{server.port}/", f":{port}/"))
        try:
            lease = (await new_task(journal)).lease
            proxy.cut_after, proxy.lost_replies = 0, [b"COMMIT"]
            written = journal.append(lease, [TextContent("m", "one")])
            await eventually_async(lambda: not proxy.lost_replies)
            await run_sql(url, "ALTER TABLE events RENAME TO hidden")
            proxy.cut_after = None
            with pytest.raises(JournalError, match="may be stored or not"):
                await asyncio.wait_for(written, 20)
            await run_sql(url, "ALTER TABLE hidden RENAME TO events")
            await asyncio.wait_for(new_task(journal, "t2"), 20)
        finally:
            await journal.aclose()


async def test_a_process_that_lost_its_lease_while_the_database_was_away_writes_nothing(
    server: Postgres, url: str, journal: PostgresJournal
) -> None:
    taken = await new_task(journal)
    other = await PostgresJournal.open(url)
    assert await other.take_over(taken.row, "owner-b", LEASE) is not None
    await other.aclose()
    server.stop("immediate")
    write = journal.append(taken.lease, [TextContent("m", "late")])
    server.start()
    with pytest.raises(StaleLease):
        await asyncio.wait_for(write, 30)
    assert await texts_of(journal) == []


async def test_texts_that_a_database_cannot_hold_break_nothing(journal: PostgresJournal) -> None:
    odd = "\x00 \U0001f600"
    task = NewTask("t1", "c1", "/work", odd)
    taken = await journal.create(task, [Prompt("m1", "a\x00b")], "owner", LEASE)
    await journal.append(taken.lease, [StateChange(TaskState.FAILED, error=odd)])
    good = await new_task(journal, "t2")
    wrong = [
        journal.create(NewTask(*ids, "/work", "x"), [Prompt("m1", "x")], "owner", LEASE)
        for ids in (("t\x003", "c1"), ("t3", "c\x001"))
    ]
    right = journal.append(good.lease, [TextContent("m", "kept")])
    for one in wrong:
        with pytest.raises(JournalError):
            await one
    await right
    row = await journal.task("t1")
    assert row is not None
    assert (row.title, row.error) == ("\ufffd \U0001f600", "\ufffd \U0001f600")
    assert [item.event for item in await journal.events("t1", 0, 1)] == [Prompt("m1", "a\x00b")]


@pytest.mark.parametrize("odd", ["t\x001", "t\ud8001"])
async def test_an_id_that_a_database_cannot_hold_is_that_of_no_task(journal: PostgresJournal, odd: str) -> None:
    await new_task(journal, "t1")
    assert await journal.task(odd) is None
    assert await journal.events(odd, 0, 10) == []
    assert await journal.list_tasks(TaskQuery(context_id=odd), "") == ([], 0)


MESSAGES = int(os.environ.get("RACING_MESSAGES", "400"))


@pytest.mark.timeout(600)
async def test_messages_that_race_the_end_of_a_run_are_each_taken_once(url: str) -> None:
    journals = [await PostgresJournal.open(url) for _ in range(2)]
    try:
        taken = await new_task(journals[0])
        await journals[0].finish(taken.lease, [StateChange(TaskState.INPUT_REQUIRED)], [])
        numbers = iter(range(MESSAGES))
        begun = 0
        asked: dict[str, int] = {}
        """The run, by its epoch, that each message was sent to."""
        done: dict[str, int] = {}
        """The run that took it."""

        async def end(journal: PostgresJournal, lease: Lease) -> None:
            """End a run at once, each tenth after a text so that messages come, or take them and try again."""
            if lease.epoch % 10 == 0:
                await journal.append(lease, [TextContent("m", "So it is.")])
            while (finished := await journal.finish(lease, [StateChange(TaskState.INPUT_REQUIRED)], [])).inbox:
                await journal.take(lease, finished.inbox, len(finished.inbox))
                done.update({event.message_id: lease.epoch for event in finished.inbox if isinstance(event, Prompt)})

        async def send(journal: PostgresJournal, name: str) -> None:
            """Send messages: to the run of the task, or with a run of their own if there is none."""
            nonlocal begun
            for number in numbers:
                message = Prompt(f"x{number}", "And this")
                while True:
                    row = await journal.task("t1")
                    assert row is not None
                    if row.owner is None:
                        if (claimed := await journal.claim(row, [message], name, LEASE)) is not None:
                            begun += 1
                            await end(journal, claimed.lease)
                            break
                    else:
                        try:
                            await journal.post(row, [message])
                            asked[message.message_id] = row.epoch
                            break
                        except StaleLease:
                            continue

        async with asyncio.timeout(500):
            await asyncio.gather(*(send(journals[index % 2], f"owner-{index}") for index in range(8)))
        items = await journals[1].events("t1", 0, 10 * MESSAGES)
        found = [item.event.message_id for item in items if isinstance(item.event, Prompt)][1:]
        assert sorted(found) == sorted(f"x{number}" for number in range(MESSAGES))
        assert 0 < begun < MESSAGES  # both ways were taken
        assert asked == done
        assert await journals[0].inbox("t1") == []
    finally:
        for journal in journals:
            await journal.aclose()


async def test_the_queue_is_not_slower_for_the_tasks_that_have_ended(
    server: Postgres, journal: PostgresJournal, url: str
) -> None:
    await journal.queue.add(NewTask("t1", "c1", "/work", "Fix it"), [Prompt("m1", "Fix it")])
    columns = await run_sql(
        url,
        "SELECT string_agg(quote_ident(column_name), ', ') FROM information_schema.columns"
        " WHERE table_name = 'tasks' AND column_name NOT IN ('key', 'id', 'state', 'tag')",
    )
    database = url.rpartition("/")[2]
    for name, state, tag, count in (("ended", "completed", "0", 5000), ("waiting", "submitted", "n + 1", 500)):
        into = f"INSERT INTO tasks (id, state, tag, {columns})"
        rows = f"SELECT '{name} ' || n, '{state}', {tag}, {columns}"
        server.sql(f"{into} {rows} FROM tasks, generate_series(1, {count}) AS n WHERE id = 't1'", database)
    server.sql("ANALYZE tasks", database)
    read = (
        "SELECT sum(coalesce(seq_tup_read, 0) + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes"
        " WHERE relname = 'tasks')) FROM pg_stat_user_tables WHERE relname = 'tasks'"
    )
    before = int(server.sql(read, database))
    taken = await journal.queue.take("owner", LEASE, 4, QueueScope())
    assert [item.row.task_id for item in taken] == ["t1", "waiting 1", "waiting 2", "waiting 3"]
    await journal.aclose()  # its session tells what it has read
    assert int(server.sql(read, database)) - before < 1000


async def test_a_machine_whose_clock_is_set_keeps_the_databases_time(
    journal: PostgresJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = await new_task(journal)
    clock = time.time
    for step in (30.0, -30.0, 86_400.0):
        monkeypatch.setattr(time, "time", lambda step=step: clock() + step)
        await journal.renew([taken.lease], LEASE)
        row = await journal.task("t1")
        assert row is not None
        assert abs(row.lease_until - clock() - LEASE) < 5
        assert await journal.queue.take("another", LEASE, 1, QueueScope()) == []


async def test_the_databases_time_is_not_taken_from_a_slow_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0, 104.0, 104.0, 104.02]
    times = [1000.0, 1004.01]

    class Answering:
        async def fetchval(self, query: str) -> float:
            assert "clock_timestamp" in query
            return times.pop(0)

    monkeypatch.setattr(postgres_connection, "time", SimpleNamespace(monotonic=lambda: clock.pop(0)))
    assert await clock_offset(cast("Connection", Answering())) == pytest.approx(900)
