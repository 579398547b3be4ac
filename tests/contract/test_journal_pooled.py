"""A journal behind a real connection pool whose sessions change with each transaction (PgBouncer)."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from isthmus.client import PromptMessage
from isthmus.engine import Engine, EngineOptions
from isthmus.engine.port.placement import Placement
from isthmus.engine.port.workspaces import WorkspaceRule
from isthmus.events import Prompt, StateChange, TaskState
from isthmus.journal.port.base import JournalError
from isthmus.journal.port.replicas import Member
from isthmus.journal.port.task_rows import NewTask
from isthmus.journal.postgres.files import PostgresFiles
from isthmus.journal.postgres.journal import PostgresJournal
from support.agents import EchoAgent, WaitingAgent
from support.journal_tasks import LEASE, texts
from support.pgbouncer import pool_before
from support.postgres import Postgres, postgres
from support.turns import all_of
from support.waiting import eventually_async

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres() as found:
        yield found


@pytest.fixture(scope="module")
def pool(server: Postgres) -> Iterator[int]:
    with pool_before(server) as port:
        yield port


@pytest.fixture
def url(server: Postgres, pool: int) -> str:
    return f"{server.database().replace(f':{server.port}/', f':{pool}/')}?pool=transaction"


@pytest.fixture
async def journals(url: str) -> AsyncIterator[list[PostgresJournal]]:
    opened = [await PostgresJournal.open(url) for _ in range(3)]
    yield opened
    for journal in opened:
        await journal.aclose()


async def test_files_of_tasks_pass_the_pool(journals: list[PostgresJournal]) -> None:
    first, second = (PostgresFiles(journal.read) for journal in journals[:2])
    await first.keep("t1", "a.png", "/a/outputs", bytes(range(256)))
    await second.add_folder(await second.find(["t1", "t2"], ["a.png"]), "/b/outputs")
    (found,) = await first.find(["t1"], ["a.png"])
    assert found.folders == ("/a/outputs", "/b/outputs")
    assert await second.read("t1", "a.png") == bytes(range(256))


async def test_several_journals_share_the_sessions_of_a_pool(journals: list[PostgresJournal]) -> None:
    async def work(journal: PostgresJournal, number: int) -> None:
        task = f"t{number}"
        taken = await journal.create(NewTask(task, "c1", "/work", "Fix it"), [Prompt("m", "Fix it")], "owner", LEASE)
        for word in ("one", "two", "three"):
            await journal.append(taken.lease, texts(word))
            assert (await journal.task(task)) is not None
        await journal.finish(taken.lease, [StateChange(TaskState.COMPLETED)], [])
        assert [item.seq for item in await journal.events(task, 0, 10)] == [1, 2, 3, 4, 5]

    await asyncio.gather(*(work(journals[number % 3], number) for number in range(60)))
    assert len(await journals[0].tasks(100, [TaskState.COMPLETED])) == 60


async def test_a_task_is_followed_and_cancelled_at_another_engine(url: str, tmp_path: Path) -> None:
    agent = WaitingAgent()
    options = EngineOptions(WorkspaceRule(default=tmp_path), placement=Placement(lease_seconds=2.0))
    first = Engine(agent, await PostgresJournal.open(url), options)
    second = Engine(EchoAgent(), await PostgresJournal.open(url), options)
    await first.start()
    await second.start()
    try:
        turn = await first.prompt(PromptMessage("hi"))
        await agent.started.wait()
        followed = asyncio.create_task(all_of(await second.follow(turn.task_id, 0)))
        assert (await second.cancel(turn.task_id)).state is TaskState.CANCELED
        assert (await followed)[-1].event == StateChange(TaskState.CANCELED)
    finally:
        await first.aclose()
        await second.aclose()


async def test_nobody_who_lives_counts_as_gone(journals: list[PostgresJournal]) -> None:
    names = [f"one:machine {number}:1:1" for number in range(3)]
    for journal, name in zip(journals, names, strict=True):
        await journal.replicas.join(Member(name), lambda _: None)
    seen = [asyncio.create_task(_watched(journal, names)) for journal in journals]
    assert await asyncio.gather(*seen) == [False, False, False]


async def _watched(journal: PostgresJournal, names: list[str]) -> bool:
    """Return whether a process was gone within the time in which the locks of dead ones are noticed."""
    until = asyncio.get_running_loop().time() + 3.5
    found: list[str] = []

    def look() -> bool:
        found.extend(name for name in names if journal.replicas.is_gone(name))
        return asyncio.get_running_loop().time() > until

    await eventually_async(look)
    return bool(found)


async def test_without_the_parameter_the_error_says_what_to_do(url: str) -> None:
    with pytest.raises(JournalError, match=r"Add \?pool=transaction to the journal's URL"):
        await _use_until_it_fails(url.partition("?")[0])


async def _use_until_it_fails(url: str) -> None:
    async with asyncio.timeout(30):
        opened = [await PostgresJournal.open(url) for _ in range(4)]
        try:
            while True:
                await asyncio.gather(*(journal.tasks(number) for journal in opened for number in range(1, 5)))
        finally:
            for journal in opened:
                await journal.aclose()
