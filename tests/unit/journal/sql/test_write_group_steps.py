"""The rules of writing as a state machine: what holds after any writes, however they are grouped."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from isthmus.client import UserLimits
from isthmus.errors import IsthmusError
from isthmus.events import AgentEvent, Prompt, StateChange, TaskState, TextContent
from isthmus.journal.port.task_rows import ClaimedTask, Lease, NewTask, TaskRow
from isthmus.journal.sql.rows import encode_events
from isthmus.journal.sql.task_writes import Append, Claim, Create, FinishRun, Release, Renew, Take, TakeOver, TaskWrite
from isthmus.journal.sql.write_facts import TaskEntry
from support.group_tables import GroupTables

NOW, SECONDS = 1000.0, 60.0
LIMITS = UserLimits(max_tasks=3, max_running=2)
WAITING = Prompt("w", "Look here")

task_ids = st.integers(0, 3).map("t{}".format)
owners = st.sampled_from(("owner-a", "owner-b"))
leases = st.builds(Lease, task_ids, owners, st.integers(1, 3))
limits = st.sampled_from((UserLimits(), LIMITS))
changes = st.builds(StateChange, st.sampled_from(TaskState))
texts = st.builds(TextContent, st.just("m"), st.text(max_size=3))
prompts = st.builds(Prompt, st.sampled_from(("m1", "m2")), st.just("Go on"))
event_lists = st.lists(st.one_of(texts, prompts, changes), max_size=3)


def _row(task_id: str, epoch: int, until: float) -> TaskRow:
    """Return a row as somebody may have read it, at any time."""
    context = "c"
    return TaskRow(
        task_id, context, "/work", "", TaskState.WORKING, 1, None, epoch, until, NOW, NOW, user=_user(task_id)
    )


def _user(task_id: str) -> str:
    return f"u{int(task_id[1:]) // 3}"


rows = st.builds(_row, task_ids, st.integers(1, 3), st.sampled_from((0.0, NOW + SECONDS)))


def _with_bodies(kind: Any, *given: Any, events: Sequence[AgentEvent], rest: Sequence[Any]) -> TaskWrite:
    return kind(*given, events, encode_events(events), *rest)


@st.composite
def _writes(draw: st.DrawFn) -> TaskWrite:
    events = draw(event_lists)
    match draw(st.sampled_from((Create, Append, Append, FinishRun, Take, Claim, TakeOver, Renew, Release))):
        case kind if kind is Create:
            task_id, owner = draw(task_ids), draw(st.none() | owners)
            message = draw(st.sampled_from(("", "m1", "m2")))
            task = NewTask(task_id, "c", "/work", "", _user(task_id), message, "d")
            return _with_bodies(Create, task, events=events, rest=(owner, SECONDS if owner else 0.0, draw(limits)))
        case kind if kind is Append:
            return _with_bodies(Append, draw(leases), events=events, rest=())
        case kind if kind is FinishRun:
            return _with_bodies(FinishRun, draw(leases), events=events, rest=("[]", draw(st.booleans())))
        case kind if kind is Take:
            return _with_bodies(Take, draw(leases), events=events, rest=(draw(st.integers(0, 2)),))
        case kind if kind is Claim:
            owner = draw(st.none() | owners)
            return _with_bodies(Claim, draw(rows), events=events, rest=(owner, SECONDS if owner else 0.0, draw(limits)))
        case kind if kind is TakeOver:
            return TakeOver(draw(rows), draw(owners), SECONDS)
        case kind if kind is Renew:
            return Renew(draw(st.lists(leases, max_size=2)), SECONDS)
        case _:
            return Release(draw(st.lists(leases, max_size=2)))


groups = st.lists(st.lists(_writes(), min_size=1, max_size=4), min_size=1, max_size=8)


def _tables() -> GroupTables:
    """Return tables with a task at work, in whose inbox something waits."""
    tables = GroupTables()
    prompt = [Prompt("m0", "Fix it")]
    task = NewTask("t0", "c", "/work", "", _user("t0"), "m0", "d")
    tables.commit([Create(task, prompt, encode_events(prompt), "owner-a", SECONDS, UserLimits())], NOW)
    tables.put("t0", [WAITING])
    return tables


def _plain(results: Sequence[Any]) -> Sequence[Any]:
    """Return results so that errors can be compared."""
    return [(type(result), str(result)) if isinstance(result, IsthmusError) else result for result in results]


@given(groups)
def test_writes_come_to_the_same_in_one_group_and_one_by_one(groups: list[list[TaskWrite]]) -> None:
    grouped, single = _tables(), _tables()
    for group in groups:
        results = grouped.commit(group, NOW)
        assert _plain(results) == _plain([single.commit([write], NOW)[0] for write in group])
        assert grouped == single


@given(st.lists(_writes(), max_size=20))
def test_each_task_is_consistent_after_any_writes(writes: list[TaskWrite]) -> None:
    tables = _tables()
    for write in writes:
        before = deepcopy(tables)
        (result,) = tables.commit([write], NOW)
        if isinstance(result, IsthmusError) or result is None:
            assert tables == before or isinstance(write, Release)
        for task_id, entry in tables.tasks.items():
            _check(tables, entry, before.tasks.get(task_id))
        if isinstance(result, ClaimedTask):
            entry = tables.tasks[result.lease.task_id]
            assert (entry.owner, entry.epoch) == (result.lease.owner, result.lease.epoch)
            assert entry.lease_until == NOW + SECONDS


def _check(tables: GroupTables, entry: TaskEntry, before: TaskEntry | None) -> None:
    assert [seq for seq, _ in tables.events.get(entry.task_id, [])] == [*range(1, entry.seq + 1)]
    if entry.owner is None:
        assert entry.lease_until == 0.0
    if entry.tag:
        assert entry.owner is None
    else:
        assert entry.running_limit is None
    if before is None:
        assert entry.epoch == 1
        return
    assert entry.epoch - before.epoch in (0, 1)
    if entry.epoch == before.epoch:
        assert entry.owner in (None, before.owner)  # only a new lease has another owner
        assert entry.tag == before.tag
    if before.tag and entry.epoch == before.epoch:
        assert entry.seq == before.seq  # what waits in the queue is written by nobody


@given(st.lists(_writes(), max_size=20), st.data())
def test_only_the_holder_of_a_lease_writes_events(writes: list[TaskWrite], data: st.DataObject) -> None:
    tables = _tables()
    for write in writes:
        tables.commit([write], NOW)
    lease = data.draw(leases)
    entry = tables.tasks.get(lease.task_id)
    is_held = entry is not None and (entry.owner, entry.epoch) == (lease.owner, lease.epoch)
    (result,) = tables.commit([Append(lease, [WAITING], encode_events([WAITING]))], NOW)
    assert isinstance(result, IsthmusError) is not is_held


@given(st.lists(_writes(), max_size=20))
def test_a_user_who_is_limited_never_begins_more_tasks(writes: list[TaskWrite]) -> None:
    tables = _tables()
    for write in writes:
        (result,) = tables.commit([write], NOW)
        if isinstance(write, Create | Claim) and write.limits == LIMITS and isinstance(result, ClaimedTask):
            tasks = [entry for entry in tables.tasks.values() if entry.user == result.row.user]
            unended = [entry for entry in tasks if not TaskState(entry.state).is_terminal]
            at_work = [entry for entry in unended if not entry.tag and not TaskState(entry.state).is_waiting]
            assert len(unended) <= 3
            assert len(at_work) <= 2
