"""Facts that a group reads before its writes: only the ones on which a write depends."""

import pytest

from isthmus.client import NO_LIMITS, UserLimits
from isthmus.events import TaskState
from isthmus.journal.port.task_rows import Lease, TaskRow
from isthmus.journal.sql.task_writes import Release, Renew, TakeOver, TaskWrite
from isthmus.journal.sql.write_facts import Needs, has_limits
from support.group_writes import NOW, SECONDS, append, claim, create, finish, take

LEASE, OTHER = Lease("t1", "owner-a", 1), Lease("t2", "owner-a", 1)
ROW = TaskRow("t1", "c1", "", "", TaskState.COMPLETED, 1, None, 1, 0.0, NOW, NOW, user="u1")
LIMITED = UserLimits(max_tasks=2)


def needs(write: TaskWrite) -> dict[str, set[object]]:
    """Return the needs of a write that are not empty."""
    found = Needs([write])
    return {name: value for name in Needs.__slots__ if (value := getattr(found, name))}


@pytest.mark.parametrize("write", [append(LEASE), TakeOver(ROW, "owner-b", SECONDS), claim(ROW)], ids=str)
def test_a_write_depends_on_the_row_of_its_task(write: TaskWrite) -> None:
    assert needs(write) == {"tasks": {"t1"}}


@pytest.mark.parametrize("write", [Renew([LEASE, OTHER], SECONDS), Release([LEASE, OTHER])], ids=str)
def test_a_write_of_several_leases_depends_on_the_rows_of_all(write: TaskWrite) -> None:
    assert needs(write) == {"tasks": {"t1", "t2"}}


@pytest.mark.parametrize("write", [finish(LEASE), take(LEASE)], ids=str)
def test_an_end_and_the_taking_of_messages_depend_on_the_inbox(write: TaskWrite) -> None:
    assert needs(write) == {"tasks": {"t1"}, "inboxes": {"t1"}}


def test_a_new_task_depends_on_the_tasks_of_its_message_alone() -> None:
    assert needs(create()) == {}
    assert needs(create(message_id="m1")) == {"messages": {("u1", "m1")}}


def test_a_task_that_is_to_wait_depends_on_its_users_place_in_the_queue() -> None:
    assert needs(create(owner=None)) == {"queueing": {"u1"}}
    assert needs(claim(ROW, None)) == {"tasks": {"t1"}, "queueing": {"u1"}}


def test_a_user_with_limits_is_counted() -> None:
    assert needs(create(limits=LIMITED)) == {"limited": {"u1"}}
    assert needs(claim(ROW, limits=LIMITED)) == {"tasks": {"t1"}, "limited": {"u1"}}


def test_a_group_depends_on_what_each_of_its_writes_does() -> None:
    found = Needs([append(LEASE), finish(OTHER), create(message_id="m1")])
    assert (found.tasks, found.inboxes, found.messages) == ({"t1", "t2"}, {"t2"}, {("u1", "m1")})


@pytest.mark.parametrize(
    ("limits", "expected"),
    [(NO_LIMITS, False), (UserLimits(max_tasks=0), True), (UserLimits(max_running=0), True)],
)
def test_a_limit_of_either_kind_is_one(limits: UserLimits, expected: bool) -> None:
    assert has_limits(limits) is expected
