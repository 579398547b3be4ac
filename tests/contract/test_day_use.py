"""Model tokens and costs of a user's day, counted from the events of a journal, on each kind of journal."""

import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from isthmus.engine.users.day_use import FIRST_TASKS, LOOK_SECONDS, PAGE, DayBudget, DayUse
from isthmus.events import AgentEvent, Prompt, StateChange, TaskState, TextContent
from isthmus.internal_events import Compacted, ModelReply, ModelUsed
from isthmus.journal.port.base import Journal
from isthmus.journal.port.day_limits import DayLimits
from isthmus.journal.port.removed_tokens import DAY, Used, UsedToday
from isthmus.journal.port.task_rows import ClaimedTask, NewTask
from isthmus.journal.sqlite.journal import SqliteJournal
from support.journals import JournalPlace

pytestmark = pytest.mark.anyio

LEASE = 20.0
MIDNIGHT = 20_000 * DAY


class Clock:
    """The journal's clock, which the test moves."""

    def __init__(self) -> None:
        self.now = MIDNIGHT + 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def journal(journal_place: JournalPlace, clock: Clock) -> AsyncIterator[Journal]:
    opened = await journal_place.open(clock)
    yield opened
    await opened.aclose()


def used(tokens: int) -> AgentEvent:
    reply = ModelReply("m", "model", {}, input_tokens=tokens - 1, output_tokens=1, cached_tokens=5, thought_tokens=1)
    return replace(reply, cost=100)


async def new_task(journal: Journal, task_id: str, *events: AgentEvent, user: str = "alice") -> ClaimedTask:
    task = NewTask(task_id, f"c-{task_id}", "/work", "Fix it", user)
    return await journal.create(task, [Prompt(f"m-{task_id}", "Fix it"), *events], "owner", LEASE)


async def add(journal: Journal, taken: ClaimedTask, events: Sequence[AgentEvent]) -> None:
    await journal.append(taken.lease, events)


async def test_all_tokens_of_a_user_and_of_nobody_else_are_counted(journal: Journal) -> None:
    tokens = DayUse(journal)
    assert await tokens.today("alice") == UsedToday(begun=MIDNIGHT)
    await new_task(journal, "t1", used(10), ModelUsed("model", 20, 3), Compacted("s", 1, 900, 90, 40, 5))
    await new_task(journal, "t2", used(100), user="bob")
    await new_task(journal, "t3", used(1000), user="")
    child = NewTask("t4", "t4", "/work", "A part", "alice", parent="t1")
    await journal.create(child, [Prompt("m", "x"), used(5)], "owner", LEASE)
    assert (await tokens.today("alice")).tokens == 10 + 23 + 45 + 5
    assert (await tokens.today("bob")).tokens == 100
    assert (await tokens.today("carol")).tokens == 0


async def test_what_was_counted_is_not_counted_again_and_what_came_since_is(journal: Journal, clock: Clock) -> None:
    tokens = DayUse(journal)
    task = await new_task(journal, "t1", used(10))
    assert (await tokens.today("alice")).tokens == 10
    clock.now += 3600
    await add(journal, task, [used(3), TextContent("m", "x"), used(4)])
    assert (await tokens.today("alice")).tokens == 17
    assert (await tokens.today("alice")).tokens == 17
    await journal.finish(task.lease, [used(1), StateChange(TaskState.COMPLETED)], [])
    assert (await tokens.today("alice")).tokens == 18
    assert (await DayUse(journal).today("alice")).tokens == 18


async def test_the_day_ends_at_midnight_by_utc(journal: Journal, clock: Clock) -> None:
    tokens = DayUse(journal)
    old = await new_task(journal, "t1", used(10), *[TextContent("m", str(number)) for number in range(20)])
    await new_task(journal, "t2", used(10))
    assert (await tokens.today("alice")).tokens == 20
    clock.now = MIDNIGHT + DAY - 1.0
    await add(journal, old, [used(7)])
    clock.now = MIDNIGHT + DAY + 0.0
    await add(journal, old, [used(3), used(1)])
    for each in (tokens, DayUse(journal)):
        assert await each.today("alice") == UsedToday(4, 200, 0, MIDNIGHT + DAY)
    clock.now += DAY
    assert await tokens.today("alice") == UsedToday(begun=MIDNIGHT + 2 * DAY)


async def test_removed_tasks_give_no_tokens_back(journal: Journal, clock: Clock) -> None:
    known = DayUse(journal)
    for number, name in enumerate(("t1", "t2", "t3"), 1):
        task = await new_task(journal, name, used(10 * number))
        await journal.finish(task.lease, [used(1), StateChange(TaskState.COMPLETED)], [])
        if name == "t2":
            assert (await known.today("alice")).tokens == 11 + 21
    child = NewTask("t4", "t4", "/work", "A part", "alice", parent="t1")
    part = await journal.create(child, [Prompt("m", "x"), used(5)], "owner", LEASE)
    await journal.finish(part.lease, [StateChange(TaskState.COMPLETED)], [])
    assert list(await journal.removal.mark(["t1", "t3"])) == ["t1", "t3"]
    for name in ("t1", "t3", "t4"):
        assert await journal.removal.remove(name, 1000)
    for tokens in (known, DayUse(journal)):
        assert (await tokens.today("alice")).tokens == 11 + 21 + 31 + 5
        assert (await tokens.today("bob")).tokens == 0
    again = await new_task(journal, "t1", used(2))  # the same id
    await journal.finish(again.lease, [StateChange(TaskState.COMPLETED)], [])
    await journal.removal.mark(["t1"])
    assert (await DayUse(journal).today("alice")).tokens == 11 + 21 + 31 + 5 + 2
    clock.now += DAY
    late = await new_task(journal, "t5", used(7))
    await journal.finish(late.lease, [StateChange(TaskState.COMPLETED)], [])
    await journal.removal.mark(["t5", "t2"])
    for tokens in (known, DayUse(journal)):
        assert (await tokens.today("alice")).tokens == 7
    assert await journal.removal.used("alice", MIDNIGHT) == {}


async def test_many_tasks_and_long_ones_are_counted_to_their_end(journal: Journal) -> None:
    for number in range(FIRST_TASKS + 10):
        await new_task(journal, f"t{number}", used(1 + 1))
    long = await new_task(journal, "long")
    await add(journal, long, [used(2) if number % 2 else TextContent("m", "x") for number in range(PAGE * 2 + 1)])
    assert (await DayUse(journal).today("alice")).tokens == (FIRST_TASKS + 10) * 2 + PAGE * 2


async def test_a_task_at_work_is_ended_at_the_maximum_without_reading_the_journal_before(
    journal: Journal, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads, tasks = list[float](), journal.tasks

    def counted(limit: int, states: Sequence[TaskState] = (), user: str | None = None) -> object:
        reads.append(clock.now)
        return tasks(limit, states, user)

    monkeypatch.setattr(journal, "tasks", counted)
    budget = DayBudget(DayUse(journal), {"alice": DayLimits(100), "bob": DayLimits()}.__getitem__)
    task = await new_task(journal, "t1", used(10))
    assert await budget.refusal("alice") is None
    for _ in range(8):
        await add(journal, task, [used(10)])
        budget.used("alice", used(10))
        assert await budget.refusal("alice") is None
    assert len(reads) == 1
    await add(journal, task, [used(20)])
    budget.used("alice", used(20))
    refusal = await budget.refusal("alice")
    assert refusal is not None
    assert refusal.text.startswith(
        "alice has used 110 model tokens today, and 100 are the maximum of a day; the work ended"
    )
    assert refusal.text.endswith("send a message in this session from 2024-10-05T00:00+00:00 on to continue")
    assert len(reads) == 2
    clock.now += DAY
    assert await budget.refusal("alice") is None
    assert await budget.refusal("bob") is None


async def test_what_a_users_tasks_use_elsewhere_is_seen_after_a_while(journal: Journal, clock: Clock) -> None:
    budget = DayBudget(DayUse(journal), {"alice": DayLimits(100)}.__getitem__)
    task = await new_task(journal, "t1", used(10))
    assert await budget.refusal("alice") is None
    await add(journal, task, [used(90)])
    assert await budget.refusal("alice") is None
    clock.now += LOOK_SECONDS
    refusal = await budget.refusal("alice")
    assert refusal is not None
    assert "100 model tokens today" in refusal.text


async def test_the_cost_of_a_day_is_counted_with_removed_tasks_and_each_subagent_once(journal: Journal) -> None:
    known = DayUse(journal)
    parent = await new_task(journal, "t1", used(10), ModelUsed("model", 20, 3, cost=7, unpriced=2, requests=3))
    child = NewTask("t2", "t2", "/work", "A part", "alice", parent="t1")
    part = await journal.create(child, [Prompt("m", "x"), used(5)], "owner", LEASE)
    await add(journal, parent, [ModelUsed("model", 4, 1, cost=100, subtask="t2"), Compacted("s", 1, 9, 9, 1, 1)])
    expected = UsedToday(10 + 23 + 5 + 2, 100 + 7 + 100, 3, MIDNIGHT)
    for each in (known, DayUse(journal)):
        assert await each.today("alice") == expected
    for task in (part, parent):
        await journal.finish(task.lease, [StateChange(TaskState.COMPLETED)], [])
    await journal.removal.mark(["t1"])
    for each in (known, DayUse(journal)):
        assert await each.today("alice") == replace(expected, unpriced=0)
    assert await journal.removal.used("alice", MIDNIGHT) == {"t1": Used(35, 107), "t2": Used(5, 100)}


async def test_a_task_at_work_is_ended_at_the_cost_of_a_day(journal: Journal) -> None:
    cent = 10**10
    budget = DayBudget(DayUse(journal), lambda user: DayLimits(None if user else 1_000, 2 * cent), "isthmus.budget.day")
    assert budget.limits_money("")
    assert not DayBudget(DayUse(journal), lambda _: DayLimits(5)).limits_money("")
    for user, said in (
        ("", "Your sessions have cost $0.02 today, and $0.02 is the budget of a day (isthmus."),
        ("bob", "bob has"),
    ):
        task = await new_task(journal, f"t-{user}", user=user)
        assert await budget.refusal(user) is None
        event = ModelReply("m", "model", {}, 1, 1, cost=2 * cent)
        await add(journal, task, [event])
        budget.used(user, event)
        refusal = await budget.refusal(user)
        assert refusal is not None
        assert refusal.reason == "budget"
        assert refusal.text.startswith(said)
        assert refusal.text.endswith("send a message in this session from 2024-10-05T00:00+00:00 on to continue")


async def test_what_was_removed_before_costs_were_kept_still_counts(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    await (await SqliteJournal.open(path)).aclose()
    with closing(sqlite3.connect(path)) as connection:  # As version 10 had it.
        connection.executescript("DROP TABLE sessions; DROP TABLE queued; ALTER TABLE removed_tokens DROP COLUMN cost")
        connection.execute("INSERT INTO removed_tokens VALUES ('alice', 't1', ?, 7)", (MIDNIGHT,))
        connection.execute("PRAGMA user_version=10")
        connection.commit()
    opened = await SqliteJournal.open(path)
    try:
        assert await opened.removal.used("alice", MIDNIGHT) == {"t1": Used(7, 0)}
    finally:
        await opened.aclose()
