"""Contract of every journal with facts that were read earlier: an old row, lease, answer or cursor decides nothing."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace

import pytest

from isthmus.client import PushTarget
from isthmus.development_tool import ToolCall, ToolCallConfirmation, ToolCallStatus
from isthmus.events import AgentEvent, ConfirmationAccepted, Prompt, StateChange, TaskState
from isthmus.journal.port.base import Journal, RepeatedMessage, StaleLease
from isthmus.journal.port.pushes import PushRow, PushState
from isthmus.journal.port.queue import QueueScope
from isthmus.journal.port.saved_chats import ChatPlace, SavedChat
from isthmus.journal.port.task_rows import ClaimedTask, Lease, NewTask, QueuedTask, TaskRow
from support.journal_tasks import LEASE, new_task, row_of, texts
from support.journals import JournalPlace

pytestmark = pytest.mark.anyio

REST = [StateChange(TaskState.INPUT_REQUIRED)]
END = [StateChange(TaskState.COMPLETED)]


@pytest.fixture
async def journal(journal_place: JournalPlace) -> AsyncIterator[Journal]:
    opened = await journal_place.open()
    yield opened
    await opened.aclose()


def question(call: str) -> list[ToolCall]:
    return [ToolCall(call, ToolCallStatus.PENDING, "run_shell_command", {"command": "ls"})]


def answer(call: str, option: str = "proceed_once") -> ConfirmationAccepted:
    return ConfirmationAccepted(ToolCallConfirmation(call, option), "terminal")


async def asked_twice(journal: Journal) -> TaskRow:
    """Let a task ask, be answered and ask again; return its row from the first question."""
    first = await new_task(journal)
    await journal.finish(first.lease, REST, question("call-1"))
    old = await row_of(journal)
    second = await journal.claim(old, [answer("call-1")], "owner-a", LEASE)
    assert second is not None
    await journal.finish(second.lease, REST, question("call-2"))
    return old


async def taken_again(journal: Journal, owner: str = "owner-a") -> tuple[ClaimedTask, Lease]:
    """Let the owner of a task lose it to ``owner``; return the task as it was created, and the new lease."""
    first = await new_task(journal)
    second = await journal.take_over(first.row, owner, LEASE)
    assert second is not None
    return first, second.lease


def claim(journal: Journal, row: TaskRow) -> Awaitable[object]:
    return journal.claim(row, [answer("call-1", "cancel")], "owner-b", LEASE)


def resume(journal: Journal, row: TaskRow) -> Awaitable[object]:
    return journal.queue.resume(row, [answer("call-1", "cancel")])


@pytest.mark.parametrize("take", [claim, resume])
async def test_an_answer_to_a_row_from_before_another_answer_takes_nothing(
    journal: Journal, take: Callable[[Journal, TaskRow], Awaitable[object]]
) -> None:
    old = await asked_twice(journal)
    before = await row_of(journal)
    assert (before.state, before.owner, before.pending) == (old.state, old.owner, tuple(question("call-2")))
    assert await take(journal, old) is None
    assert await row_of(journal) == before
    assert isinstance(await take(journal, before), ClaimedTask | QueuedTask)


@pytest.mark.parametrize("take", [claim, resume])
async def test_a_row_from_before_a_claim_takes_no_task_at_work(
    journal: Journal, take: Callable[[Journal, TaskRow], Awaitable[object]]
) -> None:
    taken = await new_task(journal)
    at_work = await row_of(journal)
    assert await take(journal, at_work) is None
    await journal.finish(taken.lease, REST, question("call-1"))
    assert isinstance(await take(journal, await row_of(journal)), ClaimedTask | QueuedTask)
    assert await take(journal, replace(await row_of(journal), owner=None)) is None


@pytest.mark.parametrize("take", [claim, resume])
async def test_a_row_from_before_a_removal_brings_no_task_back(
    journal: Journal, take: Callable[[Journal, TaskRow], Awaitable[object]]
) -> None:
    taken = await new_task(journal)
    await journal.finish(taken.lease, END, [])
    old = await row_of(journal)
    await journal.removal.mark(["t1"])
    assert await take(journal, old) is None
    assert await journal.take_over(old, "owner-b", LEASE) is None
    assert await journal.task("t1") is None


async def test_a_task_that_came_into_the_queue_meanwhile_is_not_claimed(journal: Journal) -> None:
    taken = await new_task(journal)
    await journal.finish(taken.lease, REST, question("call-1"))
    waiting = await journal.queue.resume(await row_of(journal), [answer("call-1")])
    assert waiting is not None
    for row in (waiting.row, replace(waiting.row, is_queued=False)):
        assert await claim(journal, row) is None
    assert (await row_of(journal)).is_queued


@pytest.mark.parametrize("owner", ["owner-a", "owner-b"])
async def test_a_lease_from_before_a_take_over_writes_nothing(journal: Journal, owner: str) -> None:
    """Also where the owner is the same: it took its own task over."""
    first, lease = await taken_again(journal, owner)
    before = await row_of(journal)
    late: list[Callable[[], Awaitable[object]]] = [
        lambda: journal.append(first.lease, texts("late")),
        lambda: journal.finish(first.lease, END, []),
        lambda: journal.finish(first.lease, END, [], discard_inbox=True),
        lambda: journal.take(first.lease, [Prompt("m2", "late")], 1),
    ]
    for write in late:
        with pytest.raises(StaleLease, match="taken over"):
            await write()
    assert await row_of(journal) == before
    assert [item.event for item in await journal.append(lease, texts("on"))] == list(texts("on"))


@pytest.mark.parametrize("owner", ["owner-a", "owner-b"])
async def test_a_lease_from_before_a_take_over_takes_nothing_from_the_inbox(journal: Journal, owner: str) -> None:
    first, lease = await taken_again(journal, owner)
    message = Prompt("m2", "And this")
    await journal.post(await row_of(journal), [message])
    with pytest.raises(StaleLease):
        await journal.take(first.lease, [message], 1)
    for discards in (False, True):
        with pytest.raises(StaleLease, match="taken over"):
            await journal.finish(first.lease, END, [], discard_inbox=discards)
    assert list(await journal.inbox("t1")) == [message]
    assert [item.event for item in await journal.take(lease, [message], 1)] == [message]


@pytest.mark.parametrize("owner", ["owner-a", "owner-b"])
async def test_a_lease_from_before_a_take_over_is_neither_renewed_nor_released(
    journal_place: JournalPlace, owner: str
) -> None:
    now = [1000.0]
    journal = await journal_place.open(lambda: now[0])
    try:
        first, lease = await taken_again(journal, owner)
        before = await row_of(journal)
        now[0] += LEASE / 2
        assert list(await journal.renew([first.lease], LEASE)) == [first.lease]
        await journal.release([first.lease])
        assert await row_of(journal) == before
        assert list(await journal.renew([lease], LEASE)) == []
        assert (await row_of(journal)).lease_until == now[0] + LEASE
    finally:
        await journal.aclose()


async def test_a_lease_of_another_owner_writes_nothing(journal: Journal) -> None:
    taken = await new_task(journal)
    other = replace(taken.lease, owner="owner-b")
    with pytest.raises(StaleLease):
        await journal.append(other, texts("late"))
    assert list(await journal.renew([other], LEASE)) == [other]
    await journal.release([other])
    assert (await row_of(journal)).owner == "owner-a"


async def test_a_run_whose_end_came_writes_nothing_more(journal: Journal) -> None:
    taken = await new_task(journal)
    await journal.finish(taken.lease, END, [])
    with pytest.raises(StaleLease):
        await journal.append(taken.lease, texts("late"))
    with pytest.raises(StaleLease):
        await journal.finish(taken.lease, END, [])
    assert (await row_of(journal)).seq == 2


async def test_a_row_from_before_a_take_over_takes_nothing_over(journal: Journal) -> None:
    first, lease = await taken_again(journal, "owner-b")
    assert await journal.take_over(first.row, "owner-c", LEASE) is None
    row = await row_of(journal)
    assert (row.owner, row.epoch) == ("owner-b", lease.epoch)


async def test_a_cancellation_is_for_the_lease_in_force(journal: Journal) -> None:
    first, lease = await taken_again(journal)
    await journal.post(await row_of(journal), [StateChange(TaskState.CANCELED)])
    assert list(await journal.cancelled([first.lease])) == []
    assert list(await journal.cancelled([lease])) == ["t1"]


@pytest.mark.parametrize("owner", ["owner-a", "owner-b"])
@pytest.mark.parametrize(
    "event", [Prompt("m2", "And this"), answer("call-1"), StateChange(TaskState.CANCELED)], ids=["m", "answer", "end"]
)
async def test_what_is_sent_to_a_row_from_before_a_take_over_is_refused(
    journal: Journal, owner: str, event: AgentEvent
) -> None:
    """The run that it was meant for has ended; its sender looks at the task again."""
    first, _ = await taken_again(journal, owner)
    with pytest.raises(StaleLease, match="new owner"):
        await journal.post(first.row, [event])
    assert list(await journal.inbox("t1")) == []
    await journal.post(await row_of(journal), [event])
    assert list(await journal.inbox("t1")) == [event]


async def test_an_answer_that_was_taken_since_the_row_was_read_is_not_repeated(journal: Journal) -> None:
    taken = await new_task(journal)
    old = await row_of(journal)
    await journal.append(taken.lease, [answer("call-1")])
    for option in ("proceed_once", "cancel"):
        with pytest.raises(StaleLease, match="has been answered"):
            await journal.post(old, [answer("call-1", option)])
    await journal.post(old, [answer("call-2")])
    assert list(await journal.inbox("t1")) == [answer("call-2")]


async def test_a_call_that_is_asked_again_after_its_answer_is_answered_again(journal: Journal) -> None:
    taken = await new_task(journal)
    await journal.append(taken.lease, [answer("call-1")])
    await journal.post(await row_of(journal), [answer("call-1", "cancel")])
    assert list(await journal.inbox("t1")) == [answer("call-1", "cancel")]


async def test_a_message_that_was_taken_since_the_row_was_read_is_not_repeated(journal: Journal) -> None:
    taken = await new_task(journal)
    old, message = await row_of(journal), Prompt("m2", "And this")
    await journal.post(old, [message])
    with pytest.raises(RepeatedMessage):
        await journal.post(old, [message])
    await journal.take(taken.lease, [message], 1)
    with pytest.raises(RepeatedMessage):
        await journal.post(old, [message])
    await journal.post(old, [Prompt("m2", "Something else with its id")])
    assert len(await journal.inbox("t1")) == 1


async def test_of_two_first_messages_the_one_with_other_content_is_new(journal: Journal) -> None:
    first = NewTask("t1", "c1", "/work", "Fix it", message_id="m1", digest="d1")
    await journal.create(first, [Prompt("m1", "Fix it")], "owner-a", LEASE)
    with pytest.raises(RepeatedMessage) as repeated:
        await journal.create(replace(first, task_id="t2"), [Prompt("m1", "Fix it")], "owner-a", LEASE)
    assert repeated.value.task_id == "t1"
    other = replace(first, task_id="t3", digest="d3")
    await journal.create(other, [Prompt("m1", "Fix that")], "owner-a", LEASE)
    assert await journal.task("t2") is None
    assert await journal.task("t3") is not None


async def test_a_task_that_was_taken_from_the_queue_is_taken_once(journal: Journal) -> None:
    queued = await journal.queue.add(NewTask("t1", "c1", "/work", "Fix it"), [Prompt("m1", "Fix it")])
    (taken,) = await journal.queue.take("owner-a", LEASE, 5, QueueScope())
    assert await journal.take_over(queued.row, "owner-b", LEASE) is None
    with pytest.raises(StaleLease):
        await journal.post(queued.row, [Prompt("m2", "And this")])
    assert await journal.queue.take("owner-b", LEASE, 5, QueueScope()) == []
    assert (await row_of(journal)).owner == taken.lease.owner


# --- push targets ---


async def pushed(journal: Journal) -> PushRow:
    """Return the target of a task with two events of which none was told."""
    taken = await new_task(journal)
    await journal.pushes.add(PushRow("t1", PushTarget("https://one.example", "p1"), "1.0", None, 0), 5)
    await journal.finish(taken.lease, END, [])
    return await target_of(journal)


async def target_of(journal: Journal) -> PushRow:
    (found,) = await journal.pushes.of_task("t1")
    return found


async def test_a_target_is_sent_to_by_one_owner_and_from_its_cursor(journal: Journal) -> None:
    old = await pushed(journal)
    assert await journal.pushes.claim(old, "owner-a")
    assert not await journal.pushes.claim(old, "owner-b")
    await journal.pushes.delivered(old, "owner-a", 2)
    assert not await journal.pushes.claim(old, "owner-b"), "the event was told"
    assert await journal.pushes.claim(await target_of(journal), "owner-b")


async def test_a_target_that_was_replaced_or_given_up_is_not_sent_to(journal: Journal) -> None:
    old = await pushed(journal)
    moved = replace(old, target=PushTarget("https://two.example", "p1"))
    await journal.pushes.add(moved, 5)
    assert not await journal.pushes.claim(old, "owner-a")
    assert await journal.pushes.claim(moved, "owner-a")
    await journal.pushes.failed(moved, "owner-a", "it is gone", None)
    assert (await target_of(journal)).state is PushState.GIVEN_UP
    assert not await journal.pushes.claim(moved, "owner-a")


async def test_an_owner_that_lost_a_target_moves_no_cursor(journal: Journal) -> None:
    old = await pushed(journal)
    assert await journal.pushes.claim(old, "owner-a")
    await journal.pushes.release(["owner-a"])
    assert await journal.pushes.claim(old, "owner-b")
    before = await target_of(journal)
    await journal.pushes.delivered(old, "owner-a", 2)
    await journal.pushes.failed(old, "owner-a", "late", None)
    assert await target_of(journal) == before
    await journal.pushes.delivered(old, "owner-b", 2)
    after = await target_of(journal)
    assert (after.seq, after.owner) == (2, None)


# --- chats ---


async def test_a_chat_is_not_saved_over_one_that_came_meanwhile(journal: Journal) -> None:
    place = ChatPlace("", "/work")
    assert await journal.chats.save(place, SavedChat("plan", "First", 1, "t1", 0.0), [{"n": 1}]) is None
    known = await journal.chats.save(place, SavedChat("plan", "Second", 1, "t2", 0.0), [{"n": 2}])
    assert known is not None
    assert known.task_id == "t1"
    assert await journal.chats.messages(place, "plan") == ({"n": 1},)
