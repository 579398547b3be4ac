import asyncio
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest

from isthmus.client import LimitReached, PromptMessage, TaskNotFound, Turn
from isthmus.engine import Engine, EngineOptions
from isthmus.engine.port import retention as retention_module
from isthmus.engine.port.placement import Placement
from isthmus.engine.port.retention import Retention
from isthmus.engine.port.workspaces import WorkspaceRule
from isthmus.events import Prompt, StateChange, TaskState
from isthmus.journal.port.base import Journal, JournalError
from isthmus.journal.port.task_rows import NewTask, TaskRow
from isthmus.journal.sqlite.journal import SqliteJournal
from support.agents import AskingAgent, EchoAgent, WaitingAgent
from support.engines import engine_on, once
from support.journals import journal_at
from support.turns import all_of
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


async def opened(path: Path) -> Journal:
    return await journal_at(path / "journal.sqlite")


async def add(
    journal: Journal, task_id: str, state: TaskState, text: str = "x", context: str | None = None, user: str = ""
) -> None:
    """Add a task in this state, with this amount of text."""
    task = NewTask(task_id, context or f"context of {task_id}", "/work", "Fix it", user)
    taken = await journal.create(task, [Prompt("m", text)], "owner", 20)
    if state is not TaskState.WORKING:
        await journal.finish(taken.lease, [StateChange(state)], [])


async def ids(journal: Journal) -> set[str]:
    return {row.task_id for row in await journal.tasks(1000)}


def bytes_of(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in path.glob("journal.sqlite*"))


@pytest.mark.sqlite_file
async def test_what_is_deleted_is_gone_from_the_files_and_the_rest_is_as_it_was(tmp_path: Path) -> None:
    journal = await opened(tmp_path)
    secret = "a password that nobody should find " * 2000
    await add(journal, "t1", TaskState.COMPLETED, secret)
    await add(journal, "t2", TaskState.COMPLETED, "kept")
    before = await journal.removal.size()
    assert b"a password" in bytes_of(tmp_path)
    assert await Retention(journal).delete(["t1", "t9"]) == ["t1"]
    assert await journal.removal.erase()
    assert b"a password" not in bytes_of(tmp_path)
    assert b"context of t1" not in bytes_of(tmp_path)
    assert await journal.task("t1") is None
    assert [item.event for item in await journal.events("t2", 0, 1)] == [Prompt("m", "kept")]
    assert await journal.removal.size() < before - len(secret) / 2
    assert await journal.removal.free_pages() == 0
    await journal.aclose()
    with sqlite3.connect(tmp_path / "journal.sqlite") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("SELECT count(*) FROM tasks").fetchone() == (1,)
    connection.close()


async def test_a_running_task_is_never_deleted_and_a_waiting_one_only_when_that_is_said(tmp_path: Path) -> None:
    journal = await opened(tmp_path)
    await add(journal, "running", TaskState.WORKING)
    await add(journal, "waiting", TaskState.INPUT_REQUIRED)
    retention = Retention(journal)
    assert await retention.delete(["running", "waiting"]) == []
    assert await retention.delete(["running", "waiting"], also_waiting=True) == ["waiting"]
    assert await ids(journal) == {"running"}
    await journal.aclose()


async def test_a_removal_that_was_broken_off_is_finished_later_with_its_files(tmp_path: Path) -> None:
    journal = await opened(tmp_path)
    await add(journal, "t1", TaskState.COMPLETED)
    asked: list[Sequence[str]] = []

    async def fails(task_ids: Sequence[str]) -> None:
        raise JournalError("no disk")

    async def files(task_ids: Sequence[str]) -> None:
        asked.append(task_ids)

    with pytest.raises(JournalError):
        await Retention(journal, fails).delete(["t1"])
    assert await ids(journal) == set()
    assert await journal.task("t1") is None
    assert await journal.find("deleted", 5) == []
    await add(journal, "t2", TaskState.COMPLETED)
    await journal.aclose()
    journal = await opened(tmp_path)
    await Retention(journal, files).finish()
    assert asked == [["t1"]]
    assert await journal.removal.marked() == []
    assert await ids(journal) == {"t2"}
    await journal.aclose()


@pytest.mark.slow
async def test_the_longest_unchanged_ended_tasks_go_first_and_only_as_many_as_needed(tmp_path: Path) -> None:
    journal = await opened(tmp_path)
    text = "x" * 20_000
    await add(journal, "waiting", TaskState.INPUT_REQUIRED, text)
    await add(journal, "working", TaskState.WORKING, text)
    await add(journal, "of a session that waits", TaskState.COMPLETED, text, "context of waiting")
    for number in range(60):
        await add(journal, f"t{number:02}", TaskState.COMPLETED, text)
    size = await journal.removal.size()
    retention = Retention(journal, maximum_size=size - 1000)
    removed = await retention.hold_size()
    assert removed == [f"t{number:02}" for number in range(20)]
    assert await journal.removal.size() < size * 0.9
    assert not retention.is_full
    assert await retention.hold_size() == []
    everything = Retention(journal, maximum_size=1000)
    assert len(await everything.hold_size()) == 40
    assert everything.is_full
    assert await ids(journal) == {"waiting", "working", "of a session that waits"}
    await journal.aclose()


@pytest.mark.parametrize("target", [0.9, 0.5])
async def test_what_is_removed_leaves_the_share_that_was_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: float
) -> None:
    """Otherwise a journal at its maximum would remove a task for each new one."""
    monkeypatch.setattr(retention_module, "TASKS", 1)
    journal = await opened(tmp_path)
    for number in range(30):
        await add(journal, f"t{number:02}", TaskState.COMPLETED, "x" * 20_000)
    maximum = await journal.removal.size() - 1000
    assert len(await Retention(journal, maximum_size=maximum, target=target).hold_size()) > 1
    size = await journal.removal.size()
    assert maximum * (target - 0.1) < size <= maximum * target
    await journal.aclose()


async def test_a_journal_below_its_maximum_keeps_everything_also_above_the_share(tmp_path: Path) -> None:
    journal = await opened(tmp_path)
    for number in range(5):
        await add(journal, f"t{number}", TaskState.COMPLETED, "x" * 20_000)
    maximum = await journal.removal.size() + 1000
    assert await Retention(journal, maximum_size=maximum, target=0.5).hold_size() == []
    await journal.aclose()


async def test_a_journal_without_maximum_keeps_everything(tmp_path: Path) -> None:
    journal = await opened(tmp_path)
    await add(journal, "t1", TaskState.COMPLETED, "x" * 100_000)
    assert await Retention(journal, maximum_size=None).hold_size() == []
    assert await ids(journal) == {"t1"}
    await journal.aclose()


async def test_an_engine_removes_old_tasks_by_itself_and_their_files(tmp_path: Path) -> None:
    asked: list[str] = []

    async def files(task_ids: Sequence[str]) -> None:
        asked.extend(task_ids)

    rule = WorkspaceRule(default=tmp_path)
    options = EngineOptions(rule, placement=Placement(lease_seconds=0.2), maximum_size=150_000, delete_files=files)
    engine = Engine(EchoAgent(), await opened(tmp_path), options)
    await engine.start()
    first = await engine.prompt(PromptMessage("old " + "x" * 100_000))
    await all_of(first)
    async with asyncio.timeout(60):
        while not asked:
            await all_of(await engine.prompt(PromptMessage("new " + "x" * 20_000)))
    assert asked[0] == first.task_id
    with pytest.raises(TaskNotFound):
        await engine.get(first.task_id)
    await engine.aclose()


async def test_a_full_journal_refuses_new_tasks_and_lets_those_it_has_go_on(tmp_path: Path) -> None:
    agent = AskingAgent()
    async with engine_on(tmp_path, agent) as engine:
        turn = await engine.prompt(PromptMessage("x" * 200_000))
        await all_of(turn)
    options = EngineOptions(
        WorkspaceRule(default=tmp_path), placement=Placement(lease_seconds=0.2), maximum_size=190_000
    )
    engine = Engine(agent, await opened(tmp_path), options)
    await engine.start()
    async with asyncio.timeout(60):
        while (refused := await refusal(engine)) is None:
            pass
    assert "the journal is at its maximum size (190000 bytes)" in refused
    assert "isthmus.journal.maxSize" in refused
    await all_of(await engine.answer(turn.task_id, once("one"), answered_by="test"))
    assert agent.ran == ["one"]
    # Now that it has ended it is deleted to make room.
    async with asyncio.timeout(60):
        while await refusal(engine) is not None:
            await asyncio.sleep(0)
    await engine.aclose()


async def test_a_task_that_is_deleted_as_soon_as_it_is_cancelled_is_answered_as_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = await opened(tmp_path)
    look_up = journal.task

    async def delete_what_is_cancelled(task_id: str) -> TaskRow | None:
        row = await look_up(task_id)
        if row is not None and row.state is TaskState.CANCELED:
            await Retention(journal).delete([task_id])
            return None
        return row

    monkeypatch.setattr(journal, "task", delete_what_is_cancelled)
    engine = Engine(AskingAgent(), journal, EngineOptions(WorkspaceRule(default=tmp_path)))
    await engine.start()
    turn = await engine.prompt(PromptMessage("ask"))
    await all_of(turn)
    cancelled = await engine.cancel(turn.task_id)
    assert (cancelled.task_id, cancelled.state, cancelled.pending) == (turn.task_id, TaskState.CANCELED, ())
    assert await ids(journal) == set()
    await engine.aclose()


async def refusal(engine: Engine) -> str | None:
    try:
        made: Turn = await engine.prompt(PromptMessage("one more"))
    except LimitReached as error:
        return str(error)
    await all_of(made)
    await engine.cancel(made.task_id)
    return None


@pytest.mark.sqlite_file
async def test_a_full_disk_stops_nothing_for_good_and_says_so(tmp_path: Path) -> None:
    agent = WaitingAgent()
    journal = await SqliteJournal.open(tmp_path / "journal.sqlite")
    engine = Engine(
        agent, journal, EngineOptions(WorkspaceRule(default=tmp_path), placement=Placement(lease_seconds=0.3))
    )
    await engine.start()
    turn = await engine.prompt(PromptMessage("work"))
    await agent.started.wait()
    await set_pages(journal, 0)
    with pytest.raises(JournalError, match=r"the disk that holds the journal is full.*Free some space"):
        await engine.prompt(PromptMessage("x" * 100_000))
    assert [task.task_id for task in await engine.tasks()] == [turn.task_id]
    await set_pages(journal, 1_000_000)
    agent.release.set()

    async def is_completed() -> bool:
        return (await engine.get(turn.task_id)).state is TaskState.COMPLETED

    await eventually_async(is_completed, 60)
    await engine.aclose()


async def set_pages(journal: SqliteJournal, pages: int) -> None:
    """Set the maximum number of pages of the file, at least its current one: SQLite then reports a full disk."""

    def work(connection: sqlite3.Connection) -> None:
        connection.execute(f"PRAGMA max_page_count={max(1, pages):d}")

    await journal._writer.submit(work)  # pyright: ignore[reportPrivateUsage]


@pytest.mark.slow
async def test_a_user_who_fills_the_journal_displaces_his_own_tasks_and_no_others(tmp_path: Path) -> None:
    journal = await opened(tmp_path)
    text = "x" * 20_000
    for number in range(10):
        await add(journal, f"mine-{number}", TaskState.COMPLETED, text)
        await add(journal, f"bob-{number}", TaskState.COMPLETED, text, user="bob")
    maximum = await journal.removal.size() + 300_000
    for number in range(60):
        await add(journal, f"alice-{number}", TaskState.COMPLETED, text, user="alice")
    shares = await journal.removal.shares()
    assert shares.keys() == {"", "alice", "bob"}
    assert shares["alice"] > 5 * shares["bob"] > 1_000_000
    removed = await Retention(journal, maximum_size=maximum).hold_size()
    assert removed[0] == "alice-0"
    assert {task_id.partition("-")[0] for task_id in removed} == {"alice"}
    assert await journal.removal.size() <= maximum
    await journal.aclose()


async def test_when_nothing_of_the_largest_can_go_the_next_one_gives_room(tmp_path: Path) -> None:
    journal = await opened(tmp_path)
    text = "x" * 20_000
    for number in range(10):
        await add(journal, f"bob-{number}", TaskState.COMPLETED, text, user="bob")
    for number in range(20):
        await add(journal, f"alice-{number}", TaskState.INPUT_REQUIRED, text, user="alice")
    retention = Retention(journal, maximum_size=await journal.removal.size() - 50_000)
    removed = await retention.hold_size()
    assert removed
    assert all(task_id.startswith("bob") for task_id in removed)
    assert not retention.is_full
    await journal.aclose()
