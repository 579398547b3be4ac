"""Trivial tasks per second of 1, 2 and 4 servers on one database, each with a small part of a core for itself.

PostgreSQL and the load have no quota. A ratio is judged only where the single server had used up its quota: otherwise
it would count clients.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from bench.cluster.pressure import Pressed, press, warm
from bench.cluster.replicas import Replica, isthmus_serve, sdk_serve
from bench.figures import Figure, beside
from bench.quotas import Quota, QuotaUnavailable, quota

if TYPE_CHECKING:
    from support.postgres import Postgres


@dataclass(frozen=True, slots=True)
class Plan:
    """The numbers of servers, the clients of each server, and the load: warm-up in seconds, and how much longer it is.

    A server that needs more processor time for a task needs more time and fewer clients, or all tasks would end late.
    """

    counts: tuple[int, ...]
    clients: int
    warm_up_seconds: float
    longer: float


SHARE = 0.15
"""Part of a core that a server has."""
OURS = Plan((1, 2, 4), 6, 1.0, 1.0)
SDK = Plan((1, 2), 3, 1.5, 1.5)
BUDGETS = {2: 1.8, 4: 3.2}
SATURATED = 0.9
JUDGED_ROUNDS = 3
"""Number of rounds from which ratios are judged: other programs on the machine make a processor slower for seconds."""
FIRST_TASKS = 40
"""Number of the first tasks of a server, which it runs without its quota."""
Start = Callable[[Mapping[str, str], str, str], AbstractContextManager[Replica]]
Runs = dict[int, list[Pressed]]
"""The measurements of each number of servers."""


def scale(
    environment: Mapping[str, str], database: "Postgres", sdk: str, rounds: int, seconds: float
) -> Iterator[Figure]:
    """Measure ours and the peer's, named ``sdk``, in turns."""
    ours: Runs = {}
    theirs: Runs = {}
    for _ in range(rounds):
        _round(environment, database, OURS, isthmus_serve, seconds, ours)
        if sdk:
            _round(environment, database, SDK, sdk_serve, seconds, theirs)
    yield from _ratios("", ours)
    if sdk:
        yield from _ratios(f"{sdk}: ", theirs)
        for name, unit, value in _COMPARED:
            yield beside(name, _median(ours[1], value), unit, sdk, _median(theirs[1], value))
        yield beside("tasks/s of 2 servers", _rate(ours, 2), "/s", sdk, _rate(theirs, 2))
    yield Figure("CPU of the load, 4 servers", _median(ours[4], lambda run: run.load_share * 100), "% of a core")


_COMPARED: Sequence[tuple[str, str, Callable[[Pressed], float]]] = (
    ("tasks/s of 1 server", "/s", lambda run: run.rate),
    ("CPU per task, 1 server", "ms", lambda run: run.cpu),
    ("CPU per task, PostgreSQL", "ms", lambda run: run.database_cpu),
)


def _round(
    environment: Mapping[str, str], database: "Postgres", plan: Plan, start: Start, seconds: float, found: Runs
) -> None:
    """Measure one server, then start others beside it."""
    url = database.database()
    with ExitStack() as stack:
        quotas = _quotas(stack, max(plan.counts))
        replicas: list[Replica] = []
        for count in plan.counts:
            for number in range(len(replicas), count):
                replica = stack.enter_context(start(environment, f"machine{number}", url))
                warm(replica, plan.clients, FIRST_TASKS)
                if (limit := quotas[number]) is not None:
                    limit.add(replica.program.process.pid)
                replicas.append(replica)
            pressed = press(replicas, plan.clients, seconds * plan.longer, plan.warm_up_seconds, database)
            found.setdefault(count, []).append(pressed)


def _quotas(stack: ExitStack, count: int) -> Sequence[Quota | None]:
    try:
        return [stack.enter_context(quota(SHARE)) for _ in range(count)]
    except QuotaUnavailable:
        return [None] * count


def quotas_missing() -> str:
    """Return the reason why quotas cannot be used here; empty if they can."""
    try:
        with quota(SHARE):
            return ""
    except QuotaUnavailable as error:
        return str(error)


def reason_not_to_judge(missing: str, share: float, rounds: int) -> str:
    """Return the reason why ratios are not judged, if there is one.

    ``missing`` is the reason why quotas cannot be used; ``share`` is the part of its quota that the single server used.
    """
    if missing:
        return f"none: no CPU quotas here ({missing})"
    if rounds < JUDGED_ROUNDS:
        return f"none: of fewer than {JUDGED_ROUNDS} rounds"
    return "" if share >= SATURATED else f"none: 1 server used {share:.0%} of its quota"


def _ratios(whose: str, found: Runs) -> Iterator[Figure]:
    share = _median(found[1], lambda run: run.share_of(SHARE))
    reason = reason_not_to_judge(quotas_missing(), share, len(found[1]))
    one = _rate(found, 1)
    yield Figure(f"{whose}CPU of 1 server of its quota", share * 100, f"% of {SHARE:g} core")
    for count in (count for count in found if count > 1):
        limit = None if whose or reason else BUDGETS[count]
        name = f"{whose}tasks/s, {count} servers beside 1"
        yield beside(name, _rate(found, count), "/s", "1 server", one, at_least=limit, no_budget=reason)
        # Where a busy machine does not give the servers what their quotas allow, this still says what they need.
        several, single = (_median(found[number], lambda run: run.cpu) for number in (count, 1))
        yield beside(f"{whose}CPU per task, {count} servers beside 1", several, "ms", "1 server", single)
        used = _median(found[count], lambda run: run.busy) / (SHARE * count) * 100
        yield Figure(f"{whose}CPU of {count} servers of their quotas", used, "%")


def _rate(found: Runs, count: int) -> float:
    return _median(found[count], lambda run: run.rate)


def _median(runs: Sequence[Pressed], value: Callable[[Pressed], float]) -> float:
    return median(value(run) for run in runs)
