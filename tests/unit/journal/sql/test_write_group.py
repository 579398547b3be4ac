"""The rules of writing: what each write comes to, without a database."""

from copy import deepcopy
from typing import Any

import pytest

from isthmus.client import AllAtWork, LimitReached, UserLimits
from isthmus.events import Prompt, StateChange, TaskState
from isthmus.journal.port.base import JournalError, RepeatedMessage, StaleLease
from isthmus.journal.port.task_rows import ClaimedTask, FormerLease, Lease, QueuedTask, TaskRow
from isthmus.journal.sql.rows import encode_events
from isthmus.journal.sql.task_writes import Release, Renew, Take, TakeOver
from isthmus.journal.sql.write_group import start_tag
from support.group_tables import GroupTables
from support.group_writes import (
    ASK,
    NOW,
    SECONDS,
    TEXT,
    append,
    at_rest,
    begun,
    cancel,
    claim,
    create,
    do,
    finish,
    say_more,
    take,
)


@pytest.fixture
def tables() -> GroupTables:
    return GroupTables()


def test_a_new_task_is_leased_to_its_owner(tables: GroupTables) -> None:
    task = begun(tables, message_id="m1", digest="d", parent="p1", label="gpu")
    assert task.lease == Lease("t1", "owner-a", 1)
    assert task.row == TaskRow(
        *("t1", "c1", "/work", "Fix it", TaskState.SUBMITTED, 1, "owner-a", 1, NOW + SECONDS, NOW, NOW),
        user="u1",
        parent="p1",
        label="gpu",
    )
    assert [item.seq for item in task.deliveries] == [1]


def test_a_new_task_without_an_owner_waits_in_the_queue(tables: GroupTables) -> None:
    task = do(tables, create(owner=None, limits=UserLimits(max_running=2)))
    assert isinstance(task, QueuedTask)
    assert (task.row.is_queued, task.row.owner, task.row.lease_until) == (True, None, 0.0)
    assert tables.tasks["t1"].running_limit == 2


def test_the_tasks_of_one_user_wait_behind_each_other(tables: GroupTables) -> None:
    tables.commit([create(number, owner=None) for number in (1, 2)], NOW)
    do(tables, create(3, owner=None))
    do(tables, create(4, owner=None, user="u2"))
    assert {name: entry.tag for name, entry in tables.tasks.items()} == {"t1": 1, "t2": 2, "t3": 3, "t4": 1}


@pytest.mark.parametrize(("started", "newest", "tag"), [(0, 0, 1), (7, 0, 8), (7, 9, 10), (9, 7, 10)])
def test_a_start_tag_is_behind_the_last_start_and_the_users_own(started: int, newest: int, tag: int) -> None:
    assert start_tag(started, newest) == tag


def test_a_task_id_is_used_once(tables: GroupTables) -> None:
    results = tables.commit([create(), create()], NOW)
    assert isinstance(results[0], ClaimedTask)
    assert isinstance(results[1], JournalError)
    assert len(tables.stored("t1")) == 1


@pytest.mark.parametrize("is_one_group", [True, False])
def test_a_message_begins_one_task(tables: GroupTables, is_one_group: bool) -> None:
    writes = [create(number, message_id="m1", digest="d") for number in (1, 2)]
    results = tables.commit(writes, NOW) if is_one_group else [tables.commit([write], NOW)[0] for write in writes]
    assert isinstance(results[1], RepeatedMessage)
    assert results[1].task_id == "t1"


@pytest.mark.parametrize("write", [say_more, cancel])
@pytest.mark.parametrize("is_one_group", [True, False])
def test_a_message_may_begin_another_task_once_the_first_is_known(
    tables: GroupTables, write: Any, is_one_group: bool
) -> None:
    lease = begun(tables, message_id="m1", digest="d").lease
    writes = [write(lease), create(2, message_id="m1", digest="d")]
    results = tables.commit(writes, NOW) if is_one_group else [do(tables, each) for each in writes]
    assert isinstance(results[1], ClaimedTask)


def test_the_same_message_id_with_other_content_begins_another_task(tables: GroupTables) -> None:
    writes = [create(number, message_id="m1", digest=digest) for number, digest in enumerate("dee", 1)]
    first, second, third = tables.commit(writes, NOW)
    assert (first.row.task_id, second.row.task_id) == ("t1", "t2")
    assert isinstance(third, RepeatedMessage)
    assert third.task_id == "t2"  # the newest one


@pytest.mark.parametrize(
    "lease", [Lease("t1", "owner-a", 2), Lease("t1", "owner-b", 1), Lease("t9", "owner-a", 1)], ids=str
)
@pytest.mark.parametrize("write", [append, finish, take])
def test_a_write_under_another_lease_changes_nothing(tables: GroupTables, lease: Lease, write: Any) -> None:
    begun(tables)
    before = deepcopy(tables)
    with pytest.raises(StaleLease):
        do(tables, write(lease), NOW + 1)
    assert tables == before


def test_events_are_numbered_over_groups_and_the_last_change_is_the_state(tables: GroupTables) -> None:
    lease = begun(tables).lease
    failed = StateChange(TaskState.FAILED, "It broke")
    tables.commit([append(lease, [ASK, *TEXT]), append(lease, [StateChange(TaskState.WORKING), failed, *TEXT])], NOW)
    entry = tables.tasks["t1"]
    assert (entry.state, entry.error, entry.seq) == (TaskState.FAILED, "It broke", 6)
    assert [seq for seq, _ in tables.events["t1"]] == [*range(1, 7)]


def test_the_end_of_a_run_releases_the_lease(tables: GroupTables) -> None:
    lease = begun(tables).lease
    do(tables, finish(lease), NOW + 1)
    entry = tables.tasks["t1"]
    assert (entry.state, entry.owner, entry.lease_until, entry.epoch) == (TaskState.COMPLETED, None, 0.0, 1)
    with pytest.raises(StaleLease):
        do(tables, append(lease))


def test_what_waits_in_the_inbox_keeps_a_run_from_ending(tables: GroupTables) -> None:
    lease = begun(tables).lease
    message = Prompt("m2", "And this")
    tables.put("t1", [message])
    assert do(tables, finish(lease)).inbox == [message]
    assert tables.tasks["t1"].owner == "owner-a"
    assert do(tables, finish(lease, discards_inbox=True)).inbox == ()
    assert tables.inboxes["t1"] == []


def test_the_oldest_events_of_an_inbox_are_taken_and_the_next_are_kept(tables: GroupTables) -> None:
    lease = begun(tables).lease
    tables.put("t1", [Prompt(f"m{number}", "And this") for number in (2, 3, 4)])
    taken = [Prompt("m2", "And this"), Prompt("m3", "And this")]
    results = tables.commit([Take(lease, taken, encode_events(taken), 2), finish(lease)], NOW)
    assert [item.event for item in results[0]] == taken
    assert results[1].inbox == [Prompt("m4", "And this")]
    assert len(tables.inboxes["t1"]) == 1


def test_a_claim_makes_a_task_at_rest_work_under_a_new_lease(tables: GroupTables) -> None:
    row = at_rest(tables, change=StateChange(TaskState.FAILED, "It broke"))
    task = do(tables, claim(row), NOW + 5)
    assert task.lease == Lease("t1", "owner-b", 2)
    assert (task.row.state, task.row.error, task.row.lease_until) == (TaskState.WORKING, None, NOW + 5 + SECONDS)
    assert (task.row.created_at, task.row.updated_at) == (NOW, NOW + 5)


def test_only_the_first_of_two_claims_gets_the_task(tables: GroupTables) -> None:
    row = at_rest(tables)
    first, second = tables.commit([claim(row, "owner-a"), claim(row, "owner-b")], NOW)
    assert first.lease.owner == "owner-a"
    assert second is None


@pytest.mark.parametrize("owner", ["owner-a", None])
def test_a_task_that_works_or_waits_is_not_claimed(tables: GroupTables, owner: str | None) -> None:
    row = do(tables, create(owner=owner)).row
    before = deepcopy(tables)
    assert do(tables, claim(row)) is None
    assert tables == before


@pytest.mark.parametrize("epoch", [0, 2])
def test_an_old_row_claims_nothing(tables: GroupTables, epoch: int) -> None:
    row = at_rest(tables)
    row = TaskRow(*(row.task_id, "", "", "", row.state, row.seq, None, epoch, 0.0, NOW, NOW))
    before = deepcopy(tables)
    assert do(tables, claim(row)) is None
    assert tables == before


def test_a_claim_without_an_owner_waits_for_whom_it_is_reserved(tables: GroupTables) -> None:
    task = do(tables, claim(at_rest(tables), None, reserved="owner-a"))
    assert isinstance(task, QueuedTask)
    assert (tables.tasks["t1"].reserved, tables.tasks["t1"].tag) == ("owner-a", 1)


def test_a_take_over_replaces_the_lease_that_its_row_has(tables: GroupTables) -> None:
    row = begun(tables).row
    task = do(tables, TakeOver(row, "owner-b", SECONDS), NOW + 90)
    assert task.lease == Lease("t1", "owner-b", 2)
    assert task.former == FormerLease("owner-a", NOW + SECONDS)
    assert do(tables, TakeOver(row, "owner-c", SECONDS), NOW + 90) is None


def test_a_task_that_is_taken_over_leaves_the_queue(tables: GroupTables) -> None:
    row = do(tables, claim(at_rest(tables), None, UserLimits(max_running=1), reserved="owner-a")).row
    task = do(tables, TakeOver(row, "owner-b", SECONDS))
    entry = tables.tasks["t1"]
    assert (task.row.is_queued, entry.tag, entry.reserved, entry.running_limit) == (False, 0, "", None)


def test_a_renewed_lease_is_not_taken_over(tables: GroupTables) -> None:
    task = begun(tables)
    lost = Lease("t1", "owner-a", 7)
    assert do(tables, Renew([task.lease, lost], SECONDS), NOW + 30) == [lost]
    assert do(tables, TakeOver(task.row, "owner-b", SECONDS), NOW + 70) is None


def test_a_released_task_has_no_owner_and_keeps_its_state(tables: GroupTables) -> None:
    task = begun(tables)
    do(tables, Release([task.lease, Lease("t9", "owner-a", 1)]))
    entry = tables.tasks["t1"]
    assert (entry.owner, entry.lease_until, entry.state) == (None, 0.0, TaskState.SUBMITTED)


def test_a_user_has_at_most_as_many_tasks_as_the_limits_allow(tables: GroupTables) -> None:
    limits = UserLimits(max_tasks=2)
    first, _, third = tables.commit([create(number, limits=limits) for number in (1, 2, 3)], NOW)
    assert isinstance(third, LimitReached)
    tables.commit([finish(first.lease), create(4, limits=limits)], NOW)
    assert set(tables.tasks) == {"t1", "t2", "t4"}


def test_a_task_of_another_one_is_not_counted(tables: GroupTables) -> None:
    limits = UserLimits(max_tasks=2)
    writes = [create(limits=limits), create(2, parent="t1"), create(3, limits=limits), create(4, limits=limits)]
    results = tables.commit(writes, NOW)
    assert [type(result) for result in results] == [ClaimedTask, ClaimedTask, ClaimedTask, LimitReached]


def test_beyond_the_limit_of_running_tasks_one_may_wait(tables: GroupTables) -> None:
    limits = UserLimits(max_running=1)
    begun(tables, limits=limits)
    with pytest.raises(AllAtWork):
        do(tables, create(2, limits=limits))
    assert isinstance(do(tables, create(2, owner=None, limits=limits)), QueuedTask)


def test_a_task_that_waits_is_not_counted_as_running(tables: GroupTables) -> None:
    limits = UserLimits(max_running=1)
    results = tables.commit([create(owner=None, limits=limits), create(2, limits=limits)], NOW)
    assert [type(result) for result in results] == [QueuedTask, ClaimedTask]


def test_a_task_that_goes_on_is_not_counted_twice(tables: GroupTables) -> None:
    row = at_rest(tables)
    assert isinstance(do(tables, claim(row, limits=UserLimits(max_tasks=1, max_running=1))), ClaimedTask)


def test_an_error_in_place_of_a_write_is_its_result(tables: GroupTables) -> None:
    error = JournalError("not made")
    results = tables.commit([error, create()], NOW)
    assert results[0] is error
    assert isinstance(results[1], ClaimedTask)
