import json
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from isthmus.client import LimitReached, UserLimits
from isthmus.development_tool import ToolCallConfirmation
from isthmus.events import ConfirmationAccepted, Prompt, StateChange, TaskState, TextContent
from isthmus.internal_events import ModelReply
from isthmus.journal.port.base import INBOX_CHARACTERS, INBOX_MESSAGES, Journal, JournalError
from isthmus.journal.port.task_rows import ClaimedTask, NewTask
from isthmus.journal.sqlite.journal import SqliteJournal
from support.journals import JournalPlace

pytestmark = pytest.mark.anyio

VERSION_1 = Path(__file__).parent / "journals" / "version_1.sqlite"
"""A journal made by the program with version 1: a completed task, one that waits, and an interrupted one."""
LEASE = 20.0


@pytest.fixture
async def journal(journal_place: JournalPlace) -> AsyncIterator[Journal]:
    opened = await journal_place.open()
    yield opened
    await opened.aclose()


async def new_task(journal: Journal, task_id: str, user: str = "", limits: UserLimits | None = None) -> ClaimedTask:
    task = NewTask(task_id, "c1", "/work", "Fix it", user)
    return await journal.create(task, [Prompt("m1", f"Fix {task_id}")], "owner", LEASE, limits or UserLimits())


async def end(journal: Journal, taken: ClaimedTask, state: TaskState) -> None:
    await journal.finish(taken.lease, [StateChange(state)], [])


async def test_a_journal_of_version_1_keeps_everything_and_is_the_local_users(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    path.write_bytes(VERSION_1.read_bytes())
    with sqlite3.connect(VERSION_1) as connection:
        before = connection.execute("SELECT * FROM tasks ORDER BY key").fetchall()
        bodies = connection.execute("SELECT task, seq, at, type, body FROM events ORDER BY task, seq").fetchall()
    connection.close()
    journal = await SqliteJournal.open(path)
    rows = await journal.tasks(10, user="")
    assert [row.state for row in rows] == [TaskState.WORKING, TaskState.INPUT_REQUIRED, TaskState.COMPLETED]
    assert [call.tool_call_id for call in rows[1].pending] == ["one"]
    assert [type(item.event) for item in await journal.events(rows[2].task_id, 0, 10)] == [
        Prompt,
        StateChange,
        TextContent,
        ModelReply,
        StateChange,
    ]
    assert await journal.claim(rows[1], [Prompt("m", "go on")], "owner", LEASE) is not None
    await new_task(journal, "new", "alice")
    await journal.aclose()
    with sqlite3.connect(path) as connection:
        after = connection.execute("SELECT *, user FROM tasks ORDER BY key").fetchall()
        assert [row[:5] for row in after[:3]] == [row[:5] for row in before]
        assert [row[-1] for row in after] == ["", "", "", "alice"]
        kept = connection.execute("SELECT task, seq, at, type, body FROM events ORDER BY task, seq").fetchall()
        assert set(bodies) <= set(kept)
        assert connection.execute("PRAGMA user_version").fetchone() == (12,)
        assert connection.execute("SELECT task, message, seq FROM messages ORDER BY task, seq").fetchall() == [
            (task, message, seq)
            for task, seq, _, kind, body in sorted(kept)
            if kind in ("Prompt", "ConfirmationAccepted") and (message := json.loads(body).get("message_id"))
        ]
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


async def test_an_upgrade_that_breaks_off_leaves_the_file_at_its_version(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    path.write_bytes(VERSION_1.read_bytes())
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("CREATE TABLE messages (task INTEGER)")  # as a later version has one, of another form
    with pytest.raises(JournalError, match="table messages already exists"):
        await SqliteJournal.open(path)
    assert connection.execute("PRAGMA user_version").fetchone() == (1,)
    connection.execute("DROP TABLE messages")
    connection.close()
    journal = await SqliteJournal.open(path)
    assert len(await journal.tasks(10)) == 3
    await journal.aclose()


async def test_the_tasks_of_a_user_are_listed_without_those_of_others(journal: Journal) -> None:
    for task_id, user in (("t1", "alice"), ("t2", "bob"), ("t3", "alice"), ("t4", "")):
        await new_task(journal, task_id, user)
    assert [row.task_id for row in await journal.tasks(10, user="alice")] == ["t3", "t1"]
    assert [row.task_id for row in await journal.tasks(10, [TaskState.SUBMITTED], "")] == ["t4"]
    assert len(await journal.tasks(10)) == 4
    row = await journal.task("t2")
    assert row is not None
    assert row.user == "bob"


async def test_the_same_context_id_is_another_session_for_another_user(journal: Journal) -> None:
    await new_task(journal, "t1", "alice")
    assert await journal.workspace_of("c1", "alice") == "/work"
    assert await journal.workspace_of("c1", "bob") is None
    await new_task(journal, "t2", "bob")
    assert [item.event for _, item in await journal.session("c1", "bob")] == [Prompt("m1", "Fix t2")]


async def test_a_user_has_no_more_unended_tasks_than_allowed(journal: Journal) -> None:
    limits = UserLimits(max_tasks=2)
    first = await new_task(journal, "t1", "alice", limits)
    second = await new_task(journal, "t2", "alice", limits)
    await new_task(journal, "b1", "bob", limits)
    await end(journal, first, TaskState.INPUT_REQUIRED)
    with pytest.raises(LimitReached, match=r"you have 2 tasks that work, .* turn; the limit is 2"):
        await new_task(journal, "t3", "alice", limits)
    assert await journal.task("t3") is None
    await end(journal, second, TaskState.COMPLETED)
    await new_task(journal, "t3", "alice", limits)


async def test_a_waiting_task_is_not_a_running_one_until_it_is_answered(journal: Journal) -> None:
    limits = UserLimits(max_running=1)
    waiting = await new_task(journal, "t1", "alice", limits)
    await end(journal, waiting, TaskState.INPUT_REQUIRED)
    running = await new_task(journal, "t2", "alice", limits)
    with pytest.raises(LimitReached, match="1 of your tasks are working; the limit is 1 at once"):
        await new_task(journal, "t3", "alice", limits)
    row = await journal.task("t1")
    assert row is not None
    with pytest.raises(LimitReached, match="working"):
        await journal.claim(row, [], "owner", LEASE, limits)
    assert await journal.task("t1") == row
    await end(journal, running, TaskState.COMPLETED)
    assert await journal.claim(row, [], "owner", LEASE, limits) is not None


async def test_the_limit_holds_for_tasks_that_are_made_at_the_same_moment(journal: Journal) -> None:
    limits = UserLimits(max_tasks=3)
    tasks = [NewTask(f"t{number}", "c1", "/work", "x", "alice") for number in range(20)]
    writes = [journal.create(task, [Prompt("m", "x")], "owner", LEASE, limits) for task in tasks]
    made = 0
    for write in writes:
        try:
            await write
            made += 1
        except LimitReached:
            pass
    assert made == 3
    assert len(await journal.tasks(100)) == 3


@pytest.mark.slow
async def test_an_inbox_takes_no_more_than_its_messages_and_keeps_those_it_has(journal: Journal) -> None:
    taken = await new_task(journal, "t1")
    for number in range(INBOX_MESSAGES):
        await journal.post(taken.row, [Prompt(f"m{number}", "And this")])
    with pytest.raises(LimitReached, match=f"{INBOX_MESSAGES} messages .* are waiting for task t1"):
        await journal.post(taken.row, [Prompt("late", "And this")])
    # A user's decision is not limited like messages: it is always accepted.
    stop = StateChange(TaskState.CANCELED)
    answer = ConfirmationAccepted(ToolCallConfirmation("call", "proceed_once"), "test")
    await journal.post(taken.row, [answer])
    await journal.post(taken.row, [stop])
    inbox = await journal.inbox("t1")
    assert [event.message_id for event in inbox if isinstance(event, Prompt)] == [
        f"m{number}" for number in range(INBOX_MESSAGES)
    ]
    assert list(inbox[INBOX_MESSAGES:]) == [answer, stop]


@pytest.mark.slow
async def test_an_inbox_takes_no_more_than_its_size(journal: Journal) -> None:
    taken = await new_task(journal, "t1")
    half = "x" * (INBOX_CHARACTERS // 2 - 1000)
    await journal.post(taken.row, [Prompt("m1", half)])
    await journal.post(taken.row, [Prompt("m2", half)])
    with pytest.raises(LimitReached, match="characters"):
        await journal.post(taken.row, [Prompt("m3", "x" * 4000)])


async def test_the_tasks_that_a_task_began_count_for_no_limit_and_go_with_it(journal: Journal) -> None:
    taken = await new_task(journal, "parent", "alice")
    for name in ("first", "second"):
        child = NewTask(name, name, "/work", "A part", "alice", parent="parent")
        begun = await journal.create(child, [Prompt("m", "A part")], "owner", LEASE)
        assert begun.row.parent == "parent"
        await end(journal, begun, TaskState.INPUT_REQUIRED if name == "second" else TaskState.COMPLETED)
    assert [row.task_id for row in await journal.children("parent")] == ["first", "second"]
    assert await journal.children("") == []
    await end(journal, taken, TaskState.COMPLETED)
    await new_task(journal, "other", "alice", UserLimits(max_tasks=1))
    assert list(await journal.removal.mark(["parent"])) == ["parent"]
    assert sorted(await journal.removal.marked()) == ["first", "parent", "second"]
    assert [row.task_id for row in await journal.tasks(10)] == ["other"]
