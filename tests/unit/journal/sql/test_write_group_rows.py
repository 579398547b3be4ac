"""Results of a group of writes for the tables and for other processes: rows, messages, sizes, and a notice."""

from dataclasses import replace

import pytest

from isthmus.development_tool import ToolCall, ToolCallConfirmation, ToolCallStatus
from isthmus.events import ConfirmationAccepted, Prompt, StateChange, TaskState, TextContent
from isthmus.journal.port.notices import JournalNotice
from isthmus.journal.port.task_rows import TaskRow
from isthmus.journal.sql.rows import encode_events, stored_calls
from isthmus.journal.sql.task_writes import FinishRun, Release, Renew, Take, TakeOver, TaskWrite
from isthmus.journal.sql.write_group import EVENT_BYTES, WriteGroup
from support.group_tables import GroupTables
from support.group_writes import ASK, NOW, SECONDS, append, at_rest, begun, claim, create, do, finish

MORE = Prompt("m2", "And this")
ANSWER = ConfirmationAccepted(ToolCallConfirmation("call-1", "proceed_once"), "the terminal", "m3")


@pytest.fixture
def tables() -> GroupTables:
    return GroupTables()


def applied(tables: GroupTables, *writes: TaskWrite, now: float = NOW) -> WriteGroup:
    group = tables.group(writes, now)
    assert not any(isinstance(result, Exception) for result in group.results(writes))
    return group


def test_the_messages_of_clients_are_kept_by_their_ids(tables: GroupTables) -> None:
    lease = begun(tables).lease
    events = [TextContent("m", "Hello"), MORE, ANSWER, Prompt("", "Of no client")]
    group = applied(tables, append(lease, events))
    assert [(entry.task_id, message, number) for entry, message, number in group.messages] == [
        ("t1", "m2", 3),
        ("t1", "m3", 4),
    ]


def test_events_have_the_time_of_their_group_and_so_has_their_task(tables: GroupTables) -> None:
    lease = begun(tables).lease
    group = applied(tables, append(lease), now=NOW + 7)
    assert [delivery.at for _, delivery, _ in group.events] == [NOW + 7]
    assert group.entries["t1"].updated == NOW + 7


def test_a_task_is_as_large_as_its_events(tables: GroupTables) -> None:
    lease = begun(tables).lease
    do(tables, append(lease, [MORE]))
    bodies = [body for _, body in tables.events["t1"]]
    assert tables.tasks["t1"].size == sum(map(len, bodies)) + 2 * EVENT_BYTES


def test_an_inbox_is_counted_as_it_is_emptied(tables: GroupTables) -> None:
    lease = begun(tables).lease
    tables.put("t1", [MORE, MORE, MORE])
    do(tables, Take(lease, [MORE], encode_events([MORE]), 1))
    assert tables.tasks["t1"].inbox == 2
    do(tables, Take(lease, [MORE], encode_events([MORE]), 5))  # more than there are
    assert (tables.tasks["t1"].inbox, tables.inboxes["t1"]) == (0, [])


def test_the_questions_of_a_run_are_kept_until_the_task_goes_on(tables: GroupTables) -> None:
    call = ToolCall("call-1", ToolCallStatus.PENDING, "look", {})
    task = begun(tables)
    do(tables, FinishRun(task.lease, [ASK], encode_events([ASK]), stored_calls([call]), False))
    row = replace(task.row, owner=None, lease_until=0.0)
    assert do(tables, TakeOver(row, "owner-b", SECONDS)).row.pending == (call,)
    do(tables, Release([do(tables, TakeOver(_row(tables, row), "owner-b", SECONDS)).lease]))
    assert do(tables, claim(_row(tables, row))).row.pending == ()


def _row(tables: GroupTables, row: TaskRow) -> TaskRow:
    entry = tables.tasks[row.task_id]
    return replace(row, owner=entry.owner, epoch=entry.epoch, lease_until=entry.lease_until)


def test_the_reason_of_an_end_is_kept_beside_its_error(tables: GroupTables) -> None:
    lease = begun(tables).lease
    do(tables, finish(lease, StateChange(TaskState.FAILED, "No more tokens today", "quota")))
    assert (tables.tasks["t1"].error, tables.tasks["t1"].reason) == ("No more tokens today", "quota")


def test_followers_elsewhere_are_told_of_each_task_with_new_events_once(tables: GroupTables) -> None:
    one, two = begun(tables, 1).lease, begun(tables, 2).lease
    group = applied(tables, append(one), append(two), append(one), Renew([two], SECONDS))
    assert group.notice == JournalNotice(events=("t1", "t2"))


def test_nobody_elsewhere_follows_a_task_that_has_just_begun(tables: GroupTables) -> None:
    assert not applied(tables, create()).notice


@pytest.mark.parametrize("has_others", [True, False])
def test_the_end_of_a_run_tells_of_the_queue_if_its_user_may_have_others_there(
    tables: GroupTables, has_others: bool
) -> None:
    lease = begun(tables).lease
    tables.tasks["t1"].has_others_waiting = has_others
    assert applied(tables, finish(lease)).notice == JournalNotice(events=("t1",), is_queue=has_others)


def test_news_of_the_queue_is_not_taken_back_by_a_later_write(tables: GroupTables) -> None:
    lease = begun(tables).lease
    assert applied(tables, create(2, owner=None), finish(lease)).notice.is_queue


def test_a_task_that_waits_or_is_released_is_news_of_the_queue(tables: GroupTables) -> None:
    assert applied(tables, create(owner=None)).notice == JournalNotice(is_queue=True)
    row = at_rest(tables, 2)
    assert applied(tables, claim(row, None)).notice == JournalNotice(events=("t2",), is_queue=True)
    lease = begun(tables, 3).lease
    assert applied(tables, Release([lease])).notice == JournalNotice(is_queue=True)
    assert not applied(tables, Release([replace(lease, epoch=9)])).notice


def test_only_rows_that_a_write_changed_are_stored(tables: GroupTables) -> None:
    task = begun(tables)
    row = do(tables, create(2, owner=None)).row
    group = applied(tables, Renew([replace(task.lease, epoch=9)], SECONDS), claim(replace(row, epoch=9)))
    assert not any(entry.is_changed for entry in group.entries.values())
