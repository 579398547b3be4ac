"""Contract of the queue of a journal: tasks that wait for a process with a free slot, and their order."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence

import pytest

from isthmus.client import LimitReached, PushTarget, UserLimits
from isthmus.development_tool import ToolCall, ToolCallStatus
from isthmus.events import Prompt, StateChange, TaskState
from isthmus.journal.port.base import Journal, RepeatedMessage
from isthmus.journal.port.pushes import PushRow, PushState
from isthmus.journal.port.queue import QueueScope
from isthmus.journal.port.task_rows import FormerLease, NewTask
from support.journal_tasks import LEASE, new_task, row_of, texts
from support.journals import JournalPlace

pytestmark = pytest.mark.anyio

ALL = QueueScope()


@pytest.fixture
async def journal(journal_place: JournalPlace) -> AsyncIterator[Journal]:
    opened = await journal_place.open()
    yield opened
    await opened.aclose()


async def queue(journal: Journal, task_id: str, user: str = "", *, workspace: str = "/work", label: str = "") -> None:
    task = NewTask(task_id, f"context of {task_id}", workspace, "Fix it", user, label=label)
    await journal.queue.add(task, [Prompt(f"message of {task_id}", "Fix it")])


async def take(journal: Journal, limit: int, scope: QueueScope = ALL, gone: Sequence[str] = ()) -> Sequence[str]:
    return [item.row.task_id for item in await journal.queue.take("owner-b", LEASE, limit, scope, gone)]


async def test_a_queued_task_is_submitted_and_has_no_owner(journal: Journal) -> None:
    queued = await journal.queue.add(NewTask("t1", "c1", "/work", "Fix it", label="gpu"), [Prompt("m1", "Fix it")])
    row = await row_of(journal)
    assert row == queued.row
    assert (row.state, row.seq, row.owner, row.label, row.is_queued) == (TaskState.SUBMITTED, 1, None, "gpu", True)
    assert [item.event for item in queued.deliveries] == [Prompt("m1", "Fix it")]
    assert await journal.queue.length() == 1


async def test_a_taken_task_is_leased_and_waits_no_more(journal: Journal) -> None:
    await queue(journal, "t1")
    (taken,) = await journal.queue.take("owner-b", LEASE, 5, ALL)
    row = await row_of(journal)
    assert row == taken.row
    assert (row.owner, row.epoch, row.is_queued, taken.lease.epoch) == ("owner-b", 2, False, 2)
    assert await journal.queue.length() == 0
    await journal.append(taken.lease, texts("works"))
    assert await take(journal, 5) == []


async def test_each_task_is_taken_once_by_processes_that_take_at_the_same_time(journal: Journal) -> None:
    for number in range(20):
        await queue(journal, f"t{number}", f"user {number % 3}")
    found = await asyncio.gather(*(take(journal, 3) for _ in range(10)))
    assert sorted(task_id for part in found for task_id in part) == sorted(f"t{number}" for number in range(20))


async def test_users_take_turns_however_many_tasks_one_has_queued(journal: Journal) -> None:
    for number in range(6):
        await queue(journal, f"a{number}", "alice")
    for number in range(2):
        await queue(journal, f"b{number}", "bob")
    order = [task_id for _ in range(8) for task_id in await take(journal, 1)]
    assert order == ["a0", "b0", "a1", "b1", "a2", "a3", "a4", "a5"]


async def test_a_user_who_queues_again_and_again_does_not_hold_others_up(journal: Journal) -> None:
    """Ten users always have one task waiting; an eleventh has queued many before. Each gets the same share."""
    for number in range(40):
        await queue(journal, f"a{number}", "alice")
    for user in range(10):
        await queue(journal, f"{user}-0", str(user))
    started: Counter[str] = Counter()
    for turn in range(1, 221):
        (task_id,) = await take(journal, 1)
        user = (await row_of(journal, task_id)).user
        started[user] += 1
        if user != "alice":
            await queue(journal, f"{user}-{turn}", user)
        if turn % 11 == 0:
            assert max(started.values()) - min(started.values()) <= 1, f"after {turn} tasks"
    assert started["alice"] == 20


async def test_released_tasks_start_before_those_that_wait(journal: Journal) -> None:
    await queue(journal, "waiting")
    taken = await new_task(journal)
    await journal.release([taken.lease])
    assert await take(journal, 5) == ["t1", "waiting"]


async def test_tasks_of_owners_that_are_gone_are_taken_and_fence_them(journal: Journal) -> None:
    taken = await new_task(journal)
    assert await take(journal, 5) == []
    assert [*await journal.queue.owners()] == ["owner-a"]
    assert await take(journal, 5, gone=["owner-a"]) == ["t1"]
    assert (await row_of(journal)).epoch == taken.lease.epoch + 1


async def test_tasks_whose_lease_has_expired_are_taken(journal_place: JournalPlace) -> None:
    now = [1000.0]
    journal = await journal_place.open(lambda: now[0])
    try:
        await new_task(journal)
        now[0] += LEASE - 1
        assert await take(journal, 5) == []
        now[0] += 2
        assert await take(journal, 5) == ["t1"]
    finally:
        await journal.aclose()


async def test_owners_whose_lease_ran_out_are_spared_when_it_is_asked_for(journal_place: JournalPlace) -> None:
    now = [1000.0]
    journal = await journal_place.open(lambda: now[0])

    async def spared(gone: Sequence[str] = ()) -> Sequence[str]:
        return [item.row.task_id for item in await journal.queue.take("owner-b", LEASE, 5, ALL, gone, lambda: True)]

    try:
        await new_task(journal, "t1")
        await journal.create(NewTask("child", "child", "/work", "Part", parent="t1"), [], "owner-a", LEASE)
        asked = await new_task(journal, "t3")
        await journal.finish(asked.lease, [StateChange(TaskState.INPUT_REQUIRED)], [])
        await journal.queue.resume(await row_of(journal, "t3"), [Prompt("m2", "Go on")], reserved="owner-a")
        released = await new_task(journal, "t2")
        await journal.release([released.lease])
        now[0] += 2 * LEASE
        assert await spared() == ["t2"]
        assert await journal.queue.abandoned_children(5, ALL, in_grace=True) == []
        assert await spared(["owner-a"]) == ["t1", "t3"]
        assert len(await journal.queue.abandoned_children(5, ALL, ["owner-a"], in_grace=True)) == 1
    finally:
        await journal.aclose()


async def test_a_taken_task_names_the_lease_before(journal_place: JournalPlace) -> None:
    now = [1000.0]
    journal = await journal_place.open(lambda: now[0])
    try:
        await new_task(journal)
        now[0] += LEASE + 5
        (taken,) = await journal.queue.take("owner-b", LEASE, 5, ALL)
        assert taken.former == FormerLease("owner-a", 1000.0 + LEASE)
        again = await journal.take_over(taken.row, "owner-c", LEASE)
        assert again is not None
        assert again.former == FormerLease("owner-b", now[0] + LEASE)
        await journal.release([again.lease])
        (released,) = await journal.queue.take("owner-b", LEASE, 5, ALL)
        assert released.former is None
    finally:
        await journal.aclose()


async def test_only_processes_with_a_tasks_label_take_it(journal: Journal) -> None:
    await queue(journal, "any")
    await queue(journal, "gpu", label="gpu")
    assert await take(journal, 5) == ["any"]
    assert await take(journal, 5, QueueScope(("", "disk"))) == []
    assert await take(journal, 5, QueueScope(("", "gpu"))) == ["gpu"]


async def test_only_tasks_in_the_folders_of_a_process_are_taken(journal: Journal) -> None:
    await queue(journal, "in", workspace="/srv/a/deep")
    await queue(journal, "beside", workspace="/srv/ab")
    await queue(journal, "same", workspace="/srv/a")
    assert await take(journal, 5, QueueScope(roots=("/srv/a",))) == ["in", "same"]


async def test_an_answered_task_waits_with_its_answer(journal: Journal) -> None:
    taken = await new_task(journal)
    call = ToolCall("call", ToolCallStatus.PENDING, "shell", {})
    await journal.finish(taken.lease, [StateChange(TaskState.INPUT_REQUIRED)], [call])
    queued = await journal.queue.resume(await row_of(journal), [Prompt("m2", "Go on")])
    assert queued is not None
    row = await row_of(journal)
    assert row == queued.row
    assert (row.state, row.owner, row.is_queued, row.pending, row.seq) == (TaskState.WORKING, None, True, (), 3)
    assert await journal.queue.resume(row, [Prompt("m3", "Again")]) is None
    assert await journal.claim(row, [Prompt("m3", "Again")], "owner-c", LEASE) is None
    assert await take(journal, 5) == ["t1"]


async def test_a_queued_task_receives_messages_and_cancellations(journal: Journal) -> None:
    await queue(journal, "t1")
    await journal.post(await row_of(journal), [Prompt("m2", "Besides")])
    (taken,) = await journal.queue.take("owner-b", LEASE, 1, ALL)
    assert await journal.inbox("t1") == [Prompt("m2", "Besides")]
    finished = await journal.finish(taken.lease, [StateChange(TaskState.COMPLETED)], [])
    assert finished.inbox == [Prompt("m2", "Besides")]


async def test_a_task_that_is_taken_over_leaves_the_queue(journal: Journal) -> None:
    await queue(journal, "t1")
    assert await journal.take_over(await row_of(journal), "owner-a", LEASE) is not None
    assert await journal.queue.length() == 0
    assert await take(journal, 5) == []


async def test_limits_and_repeated_messages_hold_for_queued_tasks(journal: Journal) -> None:
    limits = UserLimits(max_tasks=1)
    task = NewTask("t1", "c1", "/work", "Fix it", "alice", "m1", "digest")
    await journal.queue.add(task, [Prompt("m1", "Fix it")], limits)
    with pytest.raises(RepeatedMessage):
        await journal.queue.add(NewTask("t2", "c2", "/work", "Fix it", "alice", "m1", "digest"), [], limits)
    with pytest.raises(LimitReached, match="you have 1 tasks that work, or wait"):
        await journal.queue.add(NewTask("t3", "c3", "/work", "More", "alice"), [], limits)


async def test_subagents_tasks_are_not_taken_but_named_when_abandoned(journal: Journal) -> None:
    await journal.create(NewTask("child", "child", "/work", "Part", parent="t1"), [], "owner-a", LEASE)
    assert await take(journal, 5, gone=["owner-a"]) == []
    assert await journal.queue.abandoned_children(5, ALL) == []
    assert [row.task_id for row in await journal.queue.abandoned_children(5, ALL, ["owner-a"])] == ["child"]


async def test_a_taken_task_says_whether_it_waited_in_the_queue(journal: Journal) -> None:
    await journal.release([(await new_task(journal, "t1")).lease])
    await queue(journal, "t2")
    taken = await journal.queue.take("owner-b", LEASE, 5, ALL)
    assert {item.row.task_id: item.was_queued for item in taken} == {"t1": False, "t2": True}


async def test_tasks_are_counted_by_state_and_user(journal: Journal) -> None:
    assert list(await journal.counts()) == []
    for task_id, user in (("t1", "alice"), ("t2", "alice"), ("t3", ""), ("t4", "")):
        await queue(journal, task_id, user)
    (taken,) = await journal.queue.take("owner-b", LEASE, 1, ALL)
    await journal.finish(taken.lease, [StateChange(TaskState.COMPLETED)], ())
    ended, waiting = TaskState.COMPLETED, TaskState.SUBMITTED
    found = await journal.counts()
    assert {(count.state, count.user): count.tasks for count in found} == {(ended, ""): 1, (waiting, ""): 3}
    found = await journal.counts(by_user=True)
    assert sum(count.tasks for count in found if count.user == "alice") == 2
    assert sum(count.tasks for count in found) == 4
    await journal.removal.mark([taken.row.task_id])
    assert [count.state for count in await journal.counts()] == [waiting]


async def test_push_targets_are_counted_by_state(journal: Journal) -> None:
    await queue(journal, "t1")
    assert dict(await journal.pushes.counts()) == {}
    for name in ("one", "two"):
        await journal.pushes.add(PushRow("t1", PushTarget("https://example.org", id=name), "0.3", None, 1), 16)
    (row, _) = await journal.pushes.of_task("t1")
    assert await journal.pushes.claim(row, "owner-a")
    await journal.pushes.failed(row, "owner-a", "gone", None)
    assert dict(await journal.pushes.counts()) == {PushState.ACTIVE: 1, PushState.GIVEN_UP: 1}


async def test_a_task_that_is_reserved_is_left_to_its_process_for_the_time_of_a_lease(
    journal_place: JournalPlace,
) -> None:
    now = [1000.0]
    journal = await journal_place.open(lambda: now[0])
    try:
        for task_id in ("t1", "t2", "t3"):
            taken = await new_task(journal, task_id)
            await journal.finish(taken.lease, [StateChange(TaskState.INPUT_REQUIRED)], [])
            await journal.queue.resume(await row_of(journal, task_id), [Prompt("m2", "Go on")], reserved="owner-x")
        assert await take(journal, 1) == []
        assert await take(journal, 1, QueueScope(is_reserved=True)) == []
        (own,) = await journal.queue.take("owner-x", LEASE, 1, QueueScope(is_reserved=True))
        assert (own.row.task_id, own.former) == ("t1", None)
        await journal.finish(own.lease, [StateChange(TaskState.COMPLETED)], [])
        assert await take(journal, 1, gone=["owner-x"]) == ["t2"]
        now[0] += LEASE + 1
        rest = {item.row.task_id: item for item in await journal.queue.take("owner-b", LEASE, 5, ALL)}
        assert rest["t3"].former == FormerLease("owner-x", 1000.0 + LEASE)
    finally:
        await journal.aclose()
