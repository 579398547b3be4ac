"""The time at which an event reaches a follower at another server, beside the follower at the server that works."""

import asyncio
import json
import re
import time
from collections.abc import Sequence

from bench.cluster.replicas import PAUSE_SECONDS, Replica
from bench.load import Answer, rpc

FIRST = 5
"""Words before this one may have been stored before the followers came."""
_WORD = re.compile(rb"word(\d+) ")
_TASK = re.compile(rb'data: (\{"(?:jsonrpc|id|result)".*\})')


def delays(here: Replica, there: Replica, tasks: int, words: int) -> list[float]:
    """Stream tasks at ``here``; return for each word the milliseconds by which it is later at ``there``."""
    return asyncio.run(_delays(here, there, tasks, words))


async def _delays(here: Replica, there: Replica, tasks: int, words: int) -> list[float]:
    found = await asyncio.gather(*(_of_task(here, there, words, number) for number in range(tasks)))
    return [delay for each in found for delay in each]


async def _of_task(here: Replica, there: Replica, words: int, number: int) -> Sequence[float]:
    await asyncio.sleep(number * PAUSE_SECONDS / 3)
    async with here.connect() as connection:
        task = task_id(await connection.first_event(here.request(f"words {words} {PAUSE_SECONDS}")))
        near, far = await asyncio.gather(_times(here, task, words), _times(there, task, words))
    return [(far[word] - near[word]) * 1000 for word in near if word >= FIRST and word in far]


def task_id(answer: Answer) -> str:
    """Return the id of the task of which a stream's first event tells."""
    found = _TASK.search(answer.body)
    if found is None:
        raise RuntimeError(f"expected a task, received {answer.body[-500:]!r}")
    result = json.loads(found[1])["result"]
    return str(result["id"] if result.get("kind") == "task" else result["taskId"])


async def _times(replica: Replica, task: str, words: int) -> dict[int, float]:
    """Follow a task up to its last word; return the time of each word."""
    times: dict[int, float] = {}
    left = b""

    def note(piece: bytes) -> None:
        nonlocal left
        now = time.perf_counter()
        text = left + piece
        for word in _WORD.finditer(text):
            times.setdefault(int(word[1]), now)
        left = text[-10:]  # a word may be cut

    async with replica.connect() as connection:
        await connection.post(rpc("tasks/resubscribe", {"id": task}), on_piece=note)
    return times
