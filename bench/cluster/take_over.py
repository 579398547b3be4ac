"""The time from kill -9 of a server until another one has its tasks, which cannot see that the process has ended."""

import asyncio
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING

from bench.cluster.following import task_id
from bench.cluster.replicas import PAUSE_SECONDS, WORDS, Replica, isthmus_serve, sdk_serve
from bench.figures import Figure, at_most
from bench.load import rpc

if TYPE_CHECKING:
    from support.postgres import Postgres

BUDGET_SECONDS = 2.0
LIMIT_SECONDS = 30.0
LOOK_SECONDS = 0.01
SETTLED_SECONDS = 0.5
"""Time in seconds after which nothing of a killed process is written any more."""
_EPOCH = "SELECT epoch FROM tasks WHERE id = $1"
_OWNER = "SELECT owner IS NOT NULL FROM tasks WHERE id = $1"


def take_overs(
    environment: Mapping[str, str], database: "Postgres", sdk: str, kills: int, sdk_seconds: float
) -> Iterator[Figure]:
    """Kill servers at work, one after the other, beside one that stays; then one of the peer, named ``sdk``."""
    url = database.database()
    times: list[float] = []
    with isthmus_serve(environment, "survivor", url):
        for number in range(kills):
            with isthmus_serve(environment, f"victim{number}", url) as victim:
                times.append(asyncio.run(_take_over(victim, url)))
    left = _sdk_leaves(environment, database, sdk_seconds) if sdk else ""
    yield at_most(f"take-over after kill -9, longest of {kills}", max(times), "s", BUDGET_SECONDS)
    peer = f"{sdk}: {left}" if sdk else ""
    yield Figure("take-over after kill -9, shortest", min(times), "s", peer)


async def _take_over(victim: Replica, url: str) -> float:
    from support.postgres import run_sql

    async with victim.connect() as connection:
        task = task_id(await connection.first_event(victim.request(f"words {WORDS} {PAUSE_SECONDS}")))
    before = await run_sql(url, _EPOCH, task)
    end = time.monotonic() + LIMIT_SECONDS
    killed = time.monotonic()
    victim.kill()
    while time.monotonic() < end:
        if await run_sql(url, _EPOCH, task) > before and await run_sql(url, _OWNER, task):
            return time.monotonic() - killed
        await asyncio.sleep(LOOK_SECONDS)
    raise RuntimeError(f"no server took the task over within {LIMIT_SECONDS:g} s")


def _sdk_leaves(environment: Mapping[str, str], database: "Postgres", seconds: float) -> str:
    """Kill a process of the SDK at work; return the state of its task at another process after some seconds."""
    url = database.database()
    with ExitStack() as stack:
        survivor = stack.enter_context(sdk_serve(environment, "survivor", url))
        victim = stack.enter_context(sdk_serve(environment, "victim", url))
        return asyncio.run(_state_after(victim, survivor, seconds))


async def _state_after(victim: Replica, survivor: Replica, seconds: float) -> str:
    async with victim.connect() as connection:
        task = task_id(await connection.first_event(victim.request(f"words {WORDS} {PAUSE_SECONDS}")))
    await asyncio.sleep(1)
    victim.kill()
    states: list[bytes] = []
    for pause in (SETTLED_SECONDS, seconds):
        await asyncio.sleep(pause)
        async with survivor.connect() as connection:
            states.append((await connection.post(rpc("tasks/get", {"id": task}))).body)
    is_same = states[0] == states[1] and b'"working"' in states[1]
    return f"not within {seconds:g} s" if is_same else "its task went on"
