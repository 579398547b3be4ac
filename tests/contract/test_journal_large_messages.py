"""Large messages in a journal in PostgreSQL: they are encoded beside the event loop, and sent one after the other."""

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

from isthmus.events import Prompt
from isthmus.journal.port.base import UnkeepableEvent
from isthmus.journal.port.task_rows import NewTask
from isthmus.journal.postgres.journal import PostgresJournal
from isthmus.journal.postgres.journal import attempt as postgres_attempt
from isthmus.journal.postgres.journal import writer as postgres_writer
from isthmus.journal.postgres.statements import store
from isthmus.journal.sql import rows
from isthmus.journal.sql.write_group import WriteGroup
from support.journal_tasks import LEASE, new_task, row_of

if TYPE_CHECKING:
    from support.postgres import Postgres

pytestmark = pytest.mark.anyio

LARGE = "x" * 400_000


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the threads in which events are encoded, one for each."""
    found: list[str] = []
    encode = rows.encode_event

    def noted(event: Any) -> str:
        found.append(threading.current_thread().name)
        return encode(event)

    monkeypatch.setattr(rows, "encode_event", noted)
    return found


async def test_large_messages_do_not_hold_the_loop_up(
    postgres_server: "Postgres", monkeypatch: pytest.MonkeyPatch, threads: list[str]
) -> None:
    sizes: list[int] = []

    async def noted(connection: Any, group: WriteGroup, notice: str | None = None) -> None:
        sizes.append(sum(len(body) for _, _, body in group.events))
        await store(connection, group, notice)

    monkeypatch.setattr(postgres_attempt, "store", noted)
    journal = await PostgresJournal.open(postgres_server.database())
    try:
        tasks = [NewTask(f"t{number}", f"c{number}", "/work", "Fix it") for number in range(6)]
        await asyncio.gather(*(journal.create(task, [Prompt("m", LARGE)], "owner-a", LEASE) for task in tasks))
        assert max(sizes) < postgres_writer.GROUP_CHARACTERS
        row = await row_of(journal, "t0")
        await journal.post(row, [Prompt("m2", LARGE)])
        assert await journal.inbox("t0") == [Prompt("m2", LARGE)]
        assert set(threads) == {"isthmus-large_0"}
        await new_task(journal, "small")
        assert threads[-1] != "isthmus-large_0"
        assert [item.event for item in await journal.events("t3", 0, 9)] == [Prompt("m", LARGE)]
    finally:
        await journal.aclose()


async def test_a_message_that_is_too_large_is_refused_alone_and_in_its_turn(
    postgres_server: "Postgres", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "EVENT_CHARACTERS", 500_000)
    journal = await PostgresJournal.open(postgres_server.database())
    try:
        row = (await new_task(journal)).row
        task, message = NewTask("t2", "c2", "/work", "Fix it"), Prompt("m", LARGE * 2)
        refused, unsent, _ = await asyncio.gather(
            journal.create(task, [message], "owner-a", LEASE),
            journal.post(row, [message]),
            journal.create(task, [Prompt("m", LARGE)], "owner-a", LEASE),
            return_exceptions=True,
        )
        assert isinstance(refused, UnkeepableEvent)
        assert isinstance(unsent, UnkeepableEvent)
        assert (await row_of(journal, "t2")).seq == 1
        assert list(await journal.inbox("t1")) == []
    finally:
        await journal.aclose()
