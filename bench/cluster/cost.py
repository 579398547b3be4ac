"""CPU of a trivial task with its journal in PostgreSQL, beside the same server with SQLite and the same clients."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from statistics import median
from typing import TYPE_CHECKING

from bench.cluster.pressure import Pressed, press
from bench.cluster.replicas import Replica, isthmus_engine, isthmus_serve
from bench.figures import Figure, beside

if TYPE_CHECKING:
    from support.postgres import Postgres

CLIENTS = 32
BUDGET = 1.4
WARM_UP_SECONDS = 0.5


def cost(environment: Mapping[str, str], database: "Postgres", rounds: int, seconds: float) -> Iterator[Figure]:
    """Measure the engine alone, the whole `isthmus serve`, and the engine beside another server that rests."""
    found: dict[str, list[Pressed]] = {}
    with ExitStack() as stack:
        replicas: dict[str, Replica] = {
            "engine, SQLite": stack.enter_context(isthmus_engine(environment)),
            "engine": stack.enter_context(isthmus_engine(environment, database.database())),
            "serve, SQLite": stack.enter_context(isthmus_serve(environment, "alone")),
            "serve": stack.enter_context(isthmus_serve(environment, "together", database.database())),
        }
        shared = database.database()
        replicas["beside"] = stack.enter_context(isthmus_engine(environment, shared))
        stack.enter_context(isthmus_serve(environment, "resting", shared))
        for _ in range(rounds):
            for name, replica in replicas.items():
                stored = None if name.endswith("SQLite") else database
                found.setdefault(name, []).append(press([replica], CLIENTS, seconds, WARM_UP_SECONDS, stored))
    for name, title in (("engine", "CPU per task, engine"), ("serve", "CPU per task, isthmus serve")):
        peer = found[f"{name}, SQLite"]
        yield beside(title, _cpu(found[name]), "ms", "on SQLite", _cpu(peer), at_most=BUDGET)
        yield beside(f"{title}, with PostgreSQL's", _whole(found[name]), "ms", "on SQLite", _cpu(peer))
    yield beside("CPU per task, engine, 2 servers", _cpu(found["beside"]), "ms", "1 server", _cpu(found["engine"]))


def _cpu(runs: list[Pressed]) -> float:
    return median(run.cpu for run in runs)


def _whole(runs: list[Pressed]) -> float:
    return median(run.cpu + run.database_cpu for run in runs)
