"""Cost of 200 tasks that wait for a user's answer: memory, asyncio tasks, and idle CPU.

The peer is the same server before these tasks, warmed up by other tasks that have waited and ended.
"""

import asyncio
import json
import time
from statistics import median

from bench.figures import Figure, at_most, beside
from bench.load import TOKEN, Connection, message, rpc
from bench.processes import ServerProgram, clean_home, python_program, server
from isthmus.a2a.protocol.extension import URI

TASKS = 200
ANSWERS = 20
WARM_UP = 300
"""Number of tasks before the measurement; more than are measured, so that caches already have their final size."""
IDLE_SECONDS = 5.0


def run(rounds: int | None) -> list[Figure]:
    """Run one round, as the figures are differences within a process."""
    del rounds
    with clean_home() as environment, server(python_program("bench.programs.isthmus_a2a"), environment) as program:
        return asyncio.run(_measure(program, environment["PWD"]))


async def _measure(program: ServerProgram, workspace: str) -> list[Figure]:
    client = _Client(program.first_line, workspace)
    for task_id in [await client.ask() for _ in range(WARM_UP)]:
        await client.cancel(task_id)
    before, idle_before = await _at_rest(program)
    waiting = [await client.ask() for _ in range(TASKS)]
    after, idle_after = await _at_rest(program)
    answered: list[float] = []
    for task_id in waiting[:ANSWERS]:
        begin = time.perf_counter()
        await client.answer(task_id)
        answered.append((time.perf_counter() - begin) * 1000)
    return [
        at_most(f"{TASKS} waiting tasks, memory", after["memory"] - before["memory"], "MiB more", 2),
        at_most(f"{TASKS} waiting tasks, asyncio tasks", after["tasks"] - before["tasks"], "more", 0),
        # A tenth of a percent of a core is below the resolution of the measurement.
        at_most(f"{TASKS} waiting tasks, idle CPU", idle_after - idle_before, "% more", 0.1),
        beside("idle CPU", idle_after, "% of a core", "without them", idle_before),
        Figure("from an answer to completed", median(answered), "ms"),
    ]


async def _at_rest(program: ServerProgram) -> tuple[dict[str, float], float]:
    """Return the current figures, and the percentage of a core that the idle server uses."""
    await asyncio.sleep(1)  # text timers and last commits
    first = program.ask()
    await asyncio.sleep(IDLE_SECONDS)
    last = program.ask()
    return last, (last["cpu"] - first["cpu"]) / IDLE_SECONDS * 100


class _Client:
    """Client that makes waiting tasks, each over a separate connection, so that none stays open."""

    def __init__(self, url: str, workspace: str) -> None:
        self._url = url
        self._headers = {"Authorization": f"Bearer {TOKEN}", "X-A2A-Extensions": URI, "Connection": "close"}
        self._metadata = {URI: {"workspace_path": workspace}}

    async def ask(self) -> str:
        """Start a task that asks a question, and return its id."""
        task = await self._call("message/send", {"message": message("ask", self._metadata)})
        return self._in_state(task, "input-required")

    async def answer(self, task_id: str) -> None:
        """Allow the request of a task, which completes it."""
        data = {"tool_call_id": "one", "selected_option_id": "proceed_once"}
        content = message("", {}, taskId=task_id) | {"parts": [{"kind": "data", "data": data}]}
        self._in_state(await self._call("message/send", {"message": content}), "completed")

    async def cancel(self, task_id: str) -> None:
        """Cancel a task."""
        self._in_state(await self._call("tasks/cancel", {"id": task_id}), "canceled")

    def _in_state(self, answer: bytes, state: str) -> str:
        task = json.loads(answer).get("result", {})
        if task.get("status", {}).get("state") != state:
            raise RuntimeError(f"expected a task in state {state}, received {answer[:500]!r}")
        return task["id"]

    async def _call(self, method: str, params: object) -> bytes:
        async with Connection(self._url, self._headers) as connection:
            return (await connection.post(rpc(method, params))).body
