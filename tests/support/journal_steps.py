"""Random steps on journals, for tests of what holds for any journal: the strategies, and how a step is done."""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from hypothesis import strategies as st

from isthmus.client import Delivery, UserLimits
from isthmus.development_tool import ToolCallConfirmation
from isthmus.errors import IsthmusError
from isthmus.events import ConfirmationAccepted, Prompt, StateChange, TaskState, TextContent
from isthmus.journal.port.base import Journal
from isthmus.journal.port.queue import QueueScope
from isthmus.journal.port.task_rows import ClaimedTask, Finished, Lease, NewTask, QueuedTask, TaskRow

OWNERS = ("owner-a", "owner-b")
LIMITS = UserLimits(max_tasks=3, max_running=2)

tasks = st.integers(0, 3)
owners = st.sampled_from(OWNERS)
events = st.lists(
    st.one_of(
        st.builds(TextContent, st.just("m"), st.text(max_size=4)),
        st.builds(Prompt, st.sampled_from(("p1", "p2")), st.just("Go on")),
        st.builds(StateChange, st.sampled_from((TaskState.WORKING, TaskState.INPUT_REQUIRED, TaskState.COMPLETED))),
    ),
    max_size=3,
)
messages = st.one_of(
    st.builds(Prompt, st.sampled_from(("p1", "p2")), st.sampled_from(("Go on", "Stop"))),
    st.builds(
        ConfirmationAccepted,
        st.builds(ToolCallConfirmation, st.sampled_from(("call-1", "call-2")), st.just("proceed_once")),
        st.just("test"),
    ),
    st.just(StateChange(TaskState.CANCELED)),
)
steps = st.one_of(
    st.tuples(st.just("create"), tasks, owners, events, st.booleans()),
    st.tuples(st.just("append"), tasks, owners, events),
    st.tuples(st.just("finish"), tasks, owners, events, st.booleans()),
    st.tuples(st.just("take"), tasks, owners, events, st.integers(0, 2)),
    st.tuples(st.just("claim"), tasks, owners, events, st.booleans()),
    st.tuples(st.just("queue"), tasks, owners, events, st.booleans()),
    st.tuples(st.just("resume"), tasks, owners, events, st.booleans()),
    st.tuples(st.just("begin"), tasks, owners, st.integers(1, 3)),
    st.tuples(st.just("take_over"), tasks, owners),
    st.tuples(st.just("renew"), tasks, owners),
    st.tuples(st.just("release"), tasks, owners),
    st.tuples(st.just("post"), tasks, st.lists(messages, min_size=1, max_size=2)),
    st.tuples(st.just("mark"), tasks, st.booleans()),
    st.tuples(st.just("look"), tasks),
)


@dataclass(slots=True)
class Side:
    """One journal, with the newest lease that each owner has had of each task, and the rows that were read."""

    journal: Journal
    name: str
    leases: dict[tuple[str, str], Lease] = field(default_factory=dict[tuple[str, str], Lease])
    rows: dict[str, TaskRow] = field(default_factory=dict[str, TaskRow])

    def begin(self, step: tuple[Any, ...]) -> Awaitable[Any] | None:
        """Queue a step; None if it has nothing to work on."""
        kind, number, *given = step
        task = f"{self.name}-{number}"
        journal, row = self.journal, self.rows.get(task)
        match kind, *given:
            case "create", owner, events, is_limited:
                new = NewTask(task, f"{self.name}-c", "/work", "Fix it", self.name, f"{self.name}-{number % 2}", "d")
                return journal.create(new, events, owner, 60, LIMITS if is_limited else UserLimits())
            case "queue", _, events, is_limited:
                new = NewTask(task, f"{self.name}-c", "/work", "Fix it", self.name, f"{self.name}-{number % 2}", "d")
                return journal.queue.add(new, events, LIMITS if is_limited else UserLimits())
            case "resume", _, events, is_limited if row is not None:
                return journal.queue.resume(row, events, LIMITS if is_limited else UserLimits())
            case "begin", owner, count:
                return journal.queue.take(owner, 60, count, QueueScope())
            case "look", *_:
                return journal.task(task)
            case "mark", also_waiting:
                return journal.removal.mark([task], also_waiting=also_waiting)
            case "claim", owner, events, is_limited if row is not None:
                return journal.claim(row, events, owner, 60, LIMITS if is_limited else UserLimits())
            case "take_over", owner if row is not None:
                return journal.take_over(row, owner, 60)
            case "post", events if row is not None:
                return journal.post(row, events)
            case (("append" | "finish" | "take" | "renew" | "release"), owner, *_):
                lease = self.leases.get((task, owner))
                return self._write(kind, lease, given) if lease is not None else None
            case _:
                return None  # the task was not read yet

    def _write(self, kind: str, lease: Lease, given: Sequence[Any]) -> Awaitable[Any]:
        match kind:
            case "append":
                return self.journal.append(lease, given[1])
            case "finish":
                return self.journal.finish(lease, given[1], [], discard_inbox=given[2])
            case "take":
                return self.journal.take(lease, given[1], given[2])
            case "renew":
                return self.journal.renew([lease], 60)
            case _:
                return self.journal.release([lease])

    async def end(self, step: tuple[Any, ...], begun: Awaitable[Any]) -> object:
        """Return the result of a step without its times."""
        try:
            result = await begun
        except IsthmusError as error:
            return type(error).__name__
        if step[0] == "begin":
            return [await self.end(("taken", 0), _done(taken)) for taken in result]
        if isinstance(result, ClaimedTask):
            self.leases[result.lease.task_id, result.lease.owner] = result.lease
        row = result.row if isinstance(result, ClaimedTask | QueuedTask) else result
        if isinstance(row, TaskRow):
            self.rows[row.task_id] = row
        return plain(result)


async def _done(result: object) -> object:
    return result


def plain(result: object) -> object:
    """Return a result without what differs from journal to journal: the times."""
    match result:
        case TaskRow():
            return replace(result, lease_until=result.lease_until > 0, created_at=0.0, updated_at=0.0)
        case ClaimedTask():
            return result.lease, plain(result.row), plain(result.deliveries)
        case QueuedTask():
            return plain(result.row), plain(result.deliveries)
        case Finished():
            return plain(result.deliveries), list(result.inbox)
        case list() | tuple():
            items = cast("Sequence[Any]", result)
            return [(item.seq, item.event) if isinstance(item, Delivery) else item for item in items]
        case _:
            return result


async def run_steps(side: Side, group: Sequence[tuple[Any, ...]]) -> list[object]:
    """Do a group of steps, which are queued at once and so share a transaction; return their results."""
    writes = [step for step in group if step[0] != "look"]
    begun = [(step, work) for step in writes if (work := side.begin(step)) is not None]
    results = [await side.end(step, work) for step, work in begun]
    for step in group:
        if step[0] == "look" and (work := side.begin(step)) is not None:
            results.append(await side.end(step, work))
    return results
