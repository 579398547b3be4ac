"""Model tokens that users have used today, counted from the events of a journal, on each kind of journal."""

from collections.abc import AsyncIterator, Sequence

import pytest

from isthmus.a2a.server.users.quota import UsedToday
from isthmus.a2a.serving.token_use import FIRST_TASKS, LOOK_SECONDS, PAGE, JournalTokens, TokenBudget
from isthmus.events import AgentEvent, Prompt, StateChange, TaskState, TextContent
from isthmus.internal_events import Compacted, ModelReply, ModelUsed
from isthmus.journal.port.base import Journal
from isthmus.journal.port.removed_tokens import DAY
from isthmus.journal.port.task_rows import ClaimedTask, NewTask
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
    return ModelReply("m", "model", {}, input_tokens=tokens - 1, output_tokens=1, cached_tokens=5, thought_tokens=1)


async def new_task(journal: Journal, task_id: str, *events: AgentEvent, user: str = "alice") -> ClaimedTask:
    task = NewTask(task_id, f"c-{task_id}", "/work", "Fix it", user)
    return await journal.create(task, [Prompt(f"m-{task_id}", "Fix it"), *events], "owner", LEASE)


async def add(journal: Journal, taken: ClaimedTask, events: Sequence[AgentEvent]) -> None:
    await journal.append(taken.lease, events)


async def test_all_tokens_of_a_user_and_of_nobody_else_are_counted(journal: Journal) -> None:
    tokens = JournalTokens(journal)
    assert await tokens.today("alice") == UsedToday(0, MIDNIGHT)
    await new_task(journal, "t1", used(10), ModelUsed("model", 20, 3), Compacted("s", 1, 900, 90, 40, 5))
    await new_task(journal, "t2", used(100), user="bob")
    await new_task(journal, "t3", used(1000), user="")
    child = NewTask("t4", "t4", "/work", "A part", "alice", parent="t1")
    await journal.create(child, [Prompt("m", "x"), used(5)], "owner", LEASE)
    assert (await tokens.today("alice")).tokens == 10 + 23 + 45 + 5
    assert (await tokens.today("bob")).tokens == 100
    assert (await tokens.today("carol")).tokens == 0


async def test_what_was_counted_is_not_counted_again_and_what_came_since_is(journal: Journal, clock: Clock) -> None:
    tokens = JournalTokens(journal)
    task = await new_task(journal, "t1", used(10))
    assert (await tokens.today("alice")).tokens == 10
    clock.now += 3600
    await add(journal, task, [used(3), TextContent("m", "x"), used(4)])
    assert (await tokens.today("alice")).tokens == 17
    assert (await tokens.today("alice")).tokens == 17
    await journal.finish(task.lease, [used(1), StateChange(TaskState.COMPLETED)], [])
    assert (await tokens.today("alice")).tokens == 18
    assert (await JournalTokens(journal).today("alice")).tokens == 18


async def test_the_day_ends_at_midnight_by_utc(journal: Journal, clock: Clock) -> None:
    tokens = JournalTokens(journal)
    old = await new_task(journal, "t1", used(10), *[TextContent("m", str(number)) for number in range(20)])
    await new_task(journal, "t2", used(10))
    assert (await tokens.today("alice")).tokens == 20
    clock.now = MIDNIGHT + DAY - 1.0
    await add(journal, old, [used(7)])
    clock.now = MIDNIGHT + DAY + 0.0
    await add(journal, old, [used(3), used(1)])
    for each in (tokens, JournalTokens(journal)):
        assert await each.today("alice") == UsedToday(4, MIDNIGHT + DAY)
    clock.now += DAY
    assert await tokens.today("alice") == UsedToday(0, MIDNIGHT + 2 * DAY)


async def test_removed_tasks_give_no_tokens_back(journal: Journal, clock: Clock) -> None:
    known = JournalTokens(journal)
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
    for tokens in (known, JournalTokens(journal)):
        assert (await tokens.today("alice")).tokens == 11 + 21 + 31 + 5
        assert (await tokens.today("bob")).tokens == 0
    again = await new_task(journal, "t1", used(2))  # the same id
    await journal.finish(again.lease, [StateChange(TaskState.COMPLETED)], [])
    await journal.removal.mark(["t1"])
    assert (await JournalTokens(journal).today("alice")).tokens == 11 + 21 + 31 + 5 + 2
    clock.now += DAY
    late = await new_task(journal, "t5", used(7))
    await journal.finish(late.lease, [StateChange(TaskState.COMPLETED)], [])
    await journal.removal.mark(["t5", "t2"])
    for tokens in (known, JournalTokens(journal)):
        assert (await tokens.today("alice")).tokens == 7
    assert await journal.removal.used("alice", MIDNIGHT) == {}


async def test_many_tasks_and_long_ones_are_counted_to_their_end(journal: Journal) -> None:
    for number in range(FIRST_TASKS + 10):
        await new_task(journal, f"t{number}", used(1 + 1))
    long = await new_task(journal, "long")
    await add(journal, long, [used(2) if number % 2 else TextContent("m", "x") for number in range(PAGE * 2 + 1)])
    assert (await JournalTokens(journal).today("alice")).tokens == (FIRST_TASKS + 10) * 2 + PAGE * 2


async def test_a_task_at_work_is_ended_at_the_maximum_without_reading_the_journal_before(
    journal: Journal, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads, tasks = list[float](), journal.tasks

    def counted(limit: int, states: Sequence[TaskState] = (), user: str | None = None) -> object:
        reads.append(clock.now)
        return tasks(limit, states, user)

    monkeypatch.setattr(journal, "tasks", counted)
    budget = TokenBudget(JournalTokens(journal), {"alice": 100, "bob": None}.get)
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
    budget = TokenBudget(JournalTokens(journal), {"alice": 100}.get)
    task = await new_task(journal, "t1", used(10))
    assert await budget.refusal("alice") is None
    await add(journal, task, [used(90)])
    assert await budget.refusal("alice") is None
    clock.now += LOOK_SECONDS
    refusal = await budget.refusal("alice")
    assert refusal is not None
    assert "100 model tokens today" in refusal.text
