"""The rules of writing against facts from before somebody else wrote: an old lease, row or message changes nothing."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace

import pytest

from isthmus.client import AllAtWork, LimitReached, UserLimits
from isthmus.development_tool import ToolCallConfirmation
from isthmus.events import AgentEvent, ConfirmationAccepted, Prompt, StateChange, TaskState
from isthmus.journal.port.base import RepeatedMessage, StaleLease
from isthmus.journal.port.task_rows import ClaimedTask, Lease, QueuedTask, TaskRow
from isthmus.journal.sql.rows import DELETED
from isthmus.journal.sql.task_writes import Create, Release, Renew, TakeOver, TaskWrite
from support.group_tables import GroupTables
from support.group_writes import NOW, SECONDS, append, at_rest, begun, cancel, claim, create, do, finish, take

ONE_AT_WORK = UserLimits(max_running=1)
ONE_TASK = UserLimits(max_tasks=1)
MORE = Prompt("m2", "And this")
ANSWER = ConfirmationAccepted(ToolCallConfirmation("call-1", "proceed_once"), "the terminal", "m3")


@pytest.fixture
def tables() -> GroupTables:
    return GroupTables()


def current(tables: GroupTables, row: TaskRow) -> TaskRow:
    """Return a row with the lease that its task has now."""
    entry = tables.tasks[row.task_id]
    return replace(row, owner=entry.owner, epoch=entry.epoch, lease_until=entry.lease_until)


def lost_and_got_again(tables: GroupTables) -> tuple[Lease, TaskRow]:
    """Return the first lease and row of a task that its owner lost and got again: only the epoch tells them apart."""
    task = begun(tables)
    do(tables, TakeOver(task.row, "owner-b", SECONDS), NOW)
    assert do(tables, TakeOver(current(tables, task.row), "owner-a", SECONDS), NOW).lease == Lease("t1", "owner-a", 3)
    assert tables.tasks["t1"].lease_until == task.row.lease_until
    return task.lease, task.row


@pytest.mark.parametrize("write", [append, finish, take])
def test_a_lease_that_its_owner_lost_and_got_again_is_another_one(
    tables: GroupTables, write: Callable[[Lease], TaskWrite]
) -> None:
    former, _ = lost_and_got_again(tables)
    before = deepcopy(tables)
    with pytest.raises(StaleLease):
        do(tables, write(former))
    assert tables == before


def test_a_former_lease_is_neither_renewed_nor_released(tables: GroupTables) -> None:
    former, _ = lost_and_got_again(tables)
    before = deepcopy(tables)
    assert do(tables, Renew([former], SECONDS), NOW + 30) == [former]
    do(tables, Release([former, replace(former, owner="owner-b", epoch=3)]))
    assert tables == before


def test_a_row_from_before_two_take_overs_takes_nothing_over(tables: GroupTables) -> None:
    _, row = lost_and_got_again(tables)
    before = deepcopy(tables)
    assert do(tables, TakeOver(row, "owner-c", SECONDS)) is None
    assert tables == before


def test_a_row_from_before_a_renewal_takes_nothing_over(tables: GroupTables) -> None:
    task = begun(tables)
    do(tables, Renew([task.lease], SECONDS), NOW + 1)
    assert do(tables, TakeOver(task.row, "owner-c", SECONDS)) is None


@pytest.mark.parametrize("is_claim", [True, False])
def test_a_task_that_is_gone_is_not_taken(tables: GroupTables, is_claim: bool) -> None:
    row = at_rest(tables)
    tables.tasks.clear()
    write = claim(row) if is_claim else TakeOver(row, "owner-b", SECONDS)
    assert do(tables, write) is None
    assert tables.tasks == {}


def test_a_task_that_is_being_removed_is_not_claimed(tables: GroupTables) -> None:
    row = at_rest(tables)
    tables.tasks["t1"].state = DELETED
    before = deepcopy(tables)
    assert do(tables, claim(row)) is None
    assert tables == before


def test_a_claim_leaves_nothing_of_the_run_before(tables: GroupTables) -> None:
    row = at_rest(tables, change=StateChange(TaskState.INPUT_REQUIRED, "It broke", "quota"))
    tables.tasks["t1"].pending = '[{"toolCallId":"call-1"}]'
    do(tables, claim(row))
    entry = tables.tasks["t1"]
    assert (entry.pending, entry.error, entry.reason) == ("[]", None, None)


@pytest.mark.parametrize("owner", ["owner-b", None])
def test_a_claim_is_refused_beyond_the_limits_and_changes_nothing(tables: GroupTables, owner: str | None) -> None:
    row = at_rest(tables, change=StateChange(TaskState.FAILED))
    begun(tables, 2)
    before = deepcopy(tables)
    with pytest.raises(LimitReached):
        do(tables, claim(row, owner, ONE_TASK))
    assert tables == before


def test_a_claim_beyond_the_limit_of_running_tasks_may_wait(tables: GroupTables) -> None:
    row = at_rest(tables)
    begun(tables, 2)
    with pytest.raises(AllAtWork):
        do(tables, claim(row, limits=ONE_AT_WORK))
    assert isinstance(do(tables, claim(row, None, ONE_AT_WORK)), QueuedTask)


def test_a_task_of_another_one_does_not_make_room_when_it_goes_on(tables: GroupTables) -> None:
    child = begun(tables, 1, parent="t0")
    do(tables, finish(child.lease, StateChange(TaskState.WORKING)))
    begun(tables, 2)
    do(tables, append(Lease("t2", "owner-a", 1), [StateChange(TaskState.WORKING)]))
    with pytest.raises(LimitReached):
        do(tables, claim(current(tables, child.row), limits=ONE_TASK))


def test_a_claim_that_takes_nothing_makes_no_room_for_another_task(tables: GroupTables) -> None:
    row = at_rest(tables)
    old = replace(row, epoch=9)
    results = tables.commit([claim(old, limits=ONE_TASK), create(2, limits=ONE_TASK)], NOW)
    assert results[0] is None
    assert isinstance(results[1], LimitReached)


@pytest.mark.parametrize("way", ["claim", "take over"])
def test_a_task_that_goes_on_counts_as_running_for_the_next_of_its_group(tables: GroupTables, way: str) -> None:
    row = at_rest(tables)
    if way == "take over":
        row = do(tables, claim(row, None)).row
    write = claim(row, limits=ONE_AT_WORK) if way == "claim" else TakeOver(row, "owner-b", SECONDS)
    results = tables.commit([write, create(2, limits=ONE_AT_WORK)], NOW)
    assert isinstance(results[0], ClaimedTask)
    assert isinstance(results[1], AllAtWork)


def test_a_task_at_work_counts_as_running_whatever_it_does(tables: GroupTables) -> None:
    lease = begun(tables, limits=ONE_AT_WORK).lease
    do(tables, append(lease, [StateChange(TaskState.WORKING)]))
    with pytest.raises(AllAtWork):
        do(tables, create(2, limits=ONE_AT_WORK))


def repeated(number: int, digest: str = "d") -> Create:
    return create(number, message_id="m1", digest=digest)


@pytest.mark.parametrize("events", [[MORE], [MORE, ANSWER], [ANSWER, MORE]])
def test_a_message_may_begin_another_task_after_any_further_prompt(
    tables: GroupTables, events: Sequence[AgentEvent]
) -> None:
    lease = do(tables, repeated(1)).lease
    results = tables.commit([append(lease, events), repeated(2)], NOW)
    assert isinstance(results[1], ClaimedTask)


def test_an_answer_does_not_show_that_a_client_knows_of_the_task(tables: GroupTables) -> None:
    lease = do(tables, repeated(1)).lease
    results = tables.commit([append(lease, [ANSWER]), repeated(2)], NOW)
    assert isinstance(results[1], RepeatedMessage)


def test_only_the_newest_task_of_a_message_decides_whether_it_came_again(tables: GroupTables) -> None:
    results = tables.commit([repeated(1, "d"), repeated(2, "other"), repeated(3, "d")], NOW)
    assert [type(result) for result in results] == [ClaimedTask] * 3


def test_a_message_of_a_cancelled_task_begins_another_in_the_same_group(tables: GroupTables) -> None:
    lease = do(tables, repeated(1)).lease
    assert isinstance(tables.commit([cancel(lease), repeated(2)], NOW)[1], ClaimedTask)


def test_a_message_of_a_task_that_is_being_removed_begins_another(tables: GroupTables) -> None:
    lease = do(tables, repeated(1)).lease
    group = tables.group([append(lease), repeated(2)], NOW)
    group.entries["t1"].state = DELETED  # marked since the message's tasks were read
    assert isinstance(group.results([repeated(2)])[0], ClaimedTask)


def test_a_refused_write_does_not_stop_the_writes_behind_it(tables: GroupTables) -> None:
    lease = begun(tables).lease
    results = tables.commit([append(replace(lease, epoch=7)), append(lease)], NOW)
    assert isinstance(results[0], StaleLease)
    assert [item.seq for item in results[1]] == [2]
