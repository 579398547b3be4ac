"""The sessions of the journal: lists, states, words, names, the archive, and what stays when tasks are removed."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, TypeVar

import pytest

from isthmus.client import LimitReached
from isthmus.development_tool import ToolCall, ToolCallStatus
from isthmus.events import Prompt, StateChange, TaskState
from isthmus.journal.port.base import Journal
from isthmus.journal.port.sessions import QUEUED_MESSAGES, QueuedMessage, SessionQuery, SessionState
from isthmus.journal.port.task_rows import Lease, NewTask
from isthmus.journal.postgres.journal import PostgresJournal
from isthmus.journal.sql import sessions as sql_sessions
from support.fake_clock import FakeClock
from support.journals import JournalPlace

pytestmark = pytest.mark.anyio
T = TypeVar("T")

WAITS = StateChange(TaskState.INPUT_REQUIRED)
DONE = StateChange(TaskState.COMPLETED)
FAILED = StateChange(TaskState.FAILED)
CALL = ToolCall("call", ToolCallStatus.PENDING, "write_file", {})


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def journal(journal_place: JournalPlace, clock: FakeClock) -> AsyncIterator[Journal]:
    opened = await journal_place.open(clock.now)
    yield opened
    await opened.aclose()


async def begin(journal: Journal, clock: FakeClock, place: str, prompt: str = "", **more: str) -> Lease:
    """Begin the task ``place``, CONTEXT/NUMBER, at work; the clock goes on by a second."""
    clock.sleep_computer(1)
    context = more.pop("context", place.partition("/")[0])
    title = prompt.partition("\n")[0] or place
    task = NewTask(place, context, more.pop("workspace", "/work"), title, **more)
    return (await journal.create(task, [Prompt(f"m-{place}", prompt or place, None)], "here", 60)).lease


async def turn(
    journal: Journal, clock: FakeClock, place: str, prompt: str = "", end: StateChange = DONE, **more: str
) -> None:
    """Add a task as :func:`begin` does, and end its run a second later."""
    await rest(journal, clock, await begin(journal, clock, place, prompt, **more), end)


async def rest(journal: Journal, clock: FakeClock, lease: Lease, end: StateChange = DONE) -> None:
    """End the run of a task a second later."""
    clock.sleep_computer(1)
    await journal.finish(lease, [end], [CALL] if end is WAITS else [])


async def listed(journal: Journal, user: str = "", roots: Sequence[str] = (), **query: object) -> list[str]:
    found = await journal.sessions.list(SessionQuery(**query), user, roots)  # type: ignore[arg-type]
    return [row.context_id for row, _ in found.found]


async def test_turns_are_one_session_with_the_title_of_its_first_prompt(journal: Journal, clock: FakeClock) -> None:
    await turn(journal, clock, "a/1", "/diff")
    await turn(journal, clock, "a/2", "Why is the board late?")
    await turn(journal, clock, "b/1", "Other")
    await turn(journal, clock, "a/3", "Add a test", FAILED)
    (first, _), (second, _) = (await journal.sessions.list(SessionQuery(), "")).found
    assert (first.context_id, first.title, first.state) == ("a", "Why is the board late?", SessionState.FAILED)
    assert [task.task_id for task in first.tasks] == ["a/1", "a/2", "a/3"]
    assert (second.context_id, second.title, second.state) == ("b", "Other", SessionState.DONE)


async def test_the_session_that_changed_last_is_first(journal: Journal, clock: FakeClock) -> None:
    lease = await begin(journal, clock, "a/1")
    await turn(journal, clock, "a/2")
    await turn(journal, clock, "b/1")
    assert await listed(journal) == ["b", "a"]
    await rest(journal, clock, lease)  # an older turn ends later
    assert await listed(journal) == ["a", "b"]
    session = await journal.sessions.session("a", "")
    assert session is not None
    assert session.updated_at == clock.now()


async def test_a_session_waits_if_any_task_of_it_or_a_subagent_does(journal: Journal, clock: FakeClock) -> None:
    await turn(journal, clock, "asks/1", end=WAITS)
    await turn(journal, clock, "asks/2")
    await begin(journal, clock, "works/1")
    await turn(journal, clock, "works/2", end=FAILED)
    await begin(journal, clock, "parent/1")
    await turn(journal, clock, "child", context="child", parent="parent/1", end=WAITS)
    await turn(journal, clock, "done/1", end=FAILED)
    await turn(journal, clock, "done/2")
    await turn(journal, clock, "failed/1", end=StateChange(TaskState.CANCELED))
    assert await listed(journal) == ["failed", "done", "parent", "works", "asks"]
    assert await listed(journal, state=SessionState.WAITING) == ["parent", "asks"]
    assert await listed(journal, state=SessionState.WORKING) == ["works"]
    assert await listed(journal, state=SessionState.DONE) == ["done"]
    assert await listed(journal, state=SessionState.FAILED) == ["failed"]
    found = (await journal.sessions.list(SessionQuery(state=SessionState.WAITING), "")).found
    assert [row.questions for row, _ in found] == [1, 1]
    assert await journal.sessions.session("child", "") is None


async def test_words_are_sought_in_all_prompts_titles_and_the_folder(journal: Journal, clock: FakeClock) -> None:
    await turn(journal, clock, "a/1", "Tide tables")
    await turn(journal, clock, "a/2", 'Next\nfor the "Émile" quay', workspace="/home/ann/harbour")
    await turn(journal, clock, "b/1", "Other quay", workspace="/srv")
    assert await listed(journal, words=("QUAY",)) == ["b", "a"]
    assert await listed(journal, words=("tide", '"émile"')) == ["a"]
    assert await listed(journal, words=("harbour", "quay")) == []  # the folder of a session is its first one
    assert await listed(journal, words=("srv",)) == ["b"]
    await turn(journal, clock, "long/1", "Long\n" + "word " * 30_000 + "end")
    assert await listed(journal, words=("WORD",)) == ["long"]
    for unknown in ("message_id", "nfor", "%", "end"):
        assert await listed(journal, words=(unknown,)) == []
    ((_, prompt),) = (await journal.sessions.list(SessionQuery(words=("émile", "tide")), "")).found
    assert prompt.startswith("Next\nfor")
    assert await journal.sessions.rename("b", "", "Harbour lights")
    assert await listed(journal, words=("lights", "quay")) == ["b"]


async def test_a_name_stays_until_it_is_taken_back(journal: Journal, clock: FakeClock) -> None:
    await turn(journal, clock, "a/1", "Given")
    changes: list[tuple[str, str, float]] = []
    journal.sessions.changes.watch(lambda user, context, at: changes.append((user, context, at)))
    assert await journal.sessions.rename("a", "", "Chosen")
    assert not await journal.sessions.rename("b", "", "Unknown")
    assert not await journal.sessions.rename("a", "alice", "Another's")
    session = await journal.sessions.session("a", "")
    assert session is not None
    assert (session.title, session.given_title) == ("Chosen", "Given")
    assert changes == [("", "a", clock.now())]
    assert await journal.sessions.changed_since("", clock.now()) == [("a", clock.now())]
    assert await journal.sessions.changed_since("", clock.now() + 1) == []
    await journal.sessions.rename("a", "", "")
    session = await journal.sessions.session("a", "")
    assert session is not None
    assert session.title == "Given"


async def test_archived_sessions_are_listed_apart(journal: Journal, clock: FakeClock) -> None:
    for name in ("a", "b", "c"):
        await turn(journal, clock, f"{name}/1")
    await journal.sessions.rename("a", "", "Named")
    await journal.sessions.archive("a", "", is_archived=True)
    await journal.sessions.archive("b", "", is_archived=True)
    assert await listed(journal) == ["c"]
    assert await listed(journal, is_archived=True) == ["b", "a"]
    await journal.sessions.archive("b", "", is_archived=False)
    assert await listed(journal) == ["c", "b"]
    session = await journal.sessions.session("a", "")
    assert session is not None
    assert (session.title, session.note.archived_at) == ("Named", clock.now())


async def test_sessions_of_other_users_and_folders_are_not_shown(journal: Journal, clock: FakeClock) -> None:
    await turn(journal, clock, "mine/1", workspace="/home/ann/a")
    await turn(journal, clock, "else/1", workspace="/other")
    await turn(journal, clock, "mine/2", user="alice", workspace="/home/ann/a")
    assert await listed(journal) == ["else", "mine"]
    assert await listed(journal, roots=("/home/ann",)) == ["mine"]
    assert await listed(journal, "alice") == ["mine"]
    session = await journal.sessions.session("mine", "alice")
    assert session is not None
    assert [task.task_id for task in session.tasks] == ["mine/2"]
    assert await journal.sessions.session("else", "", ("/home/ann",)) is None


async def test_steps_together_have_each_session_once(
    journal: Journal, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql_sessions, "SEARCHED_TASKS", 4)
    monkeypatch.setattr(sql_sessions, "_AT_ONCE", 3)
    for number in range(10):
        await turn(journal, clock, f"s{number}/1")
        await turn(journal, clock, f"s{number}/2")
    found: list[str] = []
    after, steps = None, 0
    while True:
        step = await journal.sessions.list(SessionQuery(after=after, limit=3), "")
        found += [row.context_id for row, _ in step.found]
        steps, after = steps + 1, step.next
        if after is None:
            break
    assert found == [f"s{number}" for number in reversed(range(10))]
    assert steps == 5


async def test_records_are_removed_with_the_last_task_and_keep_the_title(journal: Journal, clock: FakeClock) -> None:
    await turn(journal, clock, "a/1", "/stats")
    await turn(journal, clock, "a/2", "Why is it late?")
    await turn(journal, clock, "a/3", "And now")
    await journal.sessions.archive("a", "", is_archived=True)
    await journal.removal.mark(["a/1", "a/2"])
    session = await journal.sessions.session("a", "")
    assert session is not None
    assert session.title == "Why is it late?"
    assert session.note.archived_at is not None
    await journal.removal.mark(["a/3"])
    assert await listed(journal, is_archived=True) == []
    await turn(journal, clock, "a/4", "New")
    assert await listed(journal) == ["a"]
    session = await journal.sessions.session("a", "")
    assert session is not None
    assert session.title == "New"


async def test_a_list_compares_a_task_with_those_of_its_session_alone(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = [NewTask(f"t{at}", "long" if at % 2 else f"s{at}", "/work", "a") for at in range(100)]
    begun = [journal.create(task, [Prompt(task.task_id, "word " * 20, None)], "here", 60) for task in tasks]
    await asyncio.gather(*[journal.finish((await one).lease, [DONE], []) for one in begun])
    sessions = journal.sessions
    assert isinstance(sessions, sql_sessions.SqlSessions)
    read, plans = sessions._read, list[str]()  # pyright: ignore[reportPrivateUsage]

    async def explained(query: str, values: Sequence[Any], row: Callable[[Sequence[Any]], T]) -> Sequence[T]:
        if "NOT EXISTS" in query:
            # Without statistics, as in a new journal, a database takes any index that fits.
            explain = "EXPLAIN " if isinstance(journal, PostgresJournal) else "EXPLAIN QUERY PLAN "
            plans.extend(await read(explain + query, values, lambda line: " ".join(map(str, line))))
        return await read(query, values, row)

    monkeypatch.setattr(sessions, "_read", explained)
    assert len(await listed(journal)) == 50
    compared = [line for line in plans if re.search(r"\bother", line) and re.search("SCAN|SEARCH|Scan", line)]
    assert len(compared) == 2
    assert all("tasks_by_context" in line for line in compared), compared


async def test_messages_wait_in_order_until_they_are_dropped(journal: Journal, clock: FakeClock) -> None:
    await turn(journal, clock, "a/1", "Given")
    sessions = journal.sessions
    for name in ("one", "two", "three"):
        assert await sessions.put("a", "", QueuedMessage(name, f"body of {name}"))
    assert not await sessions.put("none", "", QueuedMessage("x", "x"))
    assert not await sessions.put("a", "alice", QueuedMessage("x", "x"))
    assert await sessions.put("a", "", QueuedMessage("two", "edited", "a problem"))  # it stays where it is
    assert [(one.id, one.body) for one in await sessions.queue("a", "")] == [
        ("one", "body of one"),
        ("two", "edited"),
        ("three", "body of three"),
    ]
    assert await sessions.move_first("a", "", "three")
    assert await sessions.drop("a", "", "one")
    assert not await sessions.drop("a", "", "one")
    assert await sessions.queue("a", "") == [
        QueuedMessage("three", "body of three"),
        QueuedMessage("two", "edited", "a problem"),
    ]
    assert await sessions.with_queues() == [("", "a")]
    assert await sessions.changed_since("", clock.now()) == [("a", clock.now())]
    await journal.removal.mark(["a/1"])
    assert await sessions.with_queues() == []


async def test_the_messages_that_wait_in_a_session_are_limited(journal: Journal, clock: FakeClock) -> None:
    await turn(journal, clock, "a/1", "Given")
    for number in range(QUEUED_MESSAGES):
        await journal.sessions.put("a", "", QueuedMessage(str(number), "text"))
    with pytest.raises(LimitReached, match="20 messages"):
        await journal.sessions.put("a", "", QueuedMessage("more", "text"))
    assert await journal.sessions.put("a", "", QueuedMessage("3", "edited"))
