"""The load of a week in an hour: many users and tasks, two servers, retention. Memory, disk and latency stay flat.

``make load`` runs it with LOAD_SECONDS, LOAD_TASKS and LOAD_USERS; a short sample in ``make test`` judges no times.
"""

import asyncio
import json
import os
import random
import shutil
import statistics
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil
import pytest

from isthmus.a2a.client.remote_agent import RemoteAgent
from isthmus.a2a.server.users.users import UserTable
from isthmus.a2a.server.users.users_file import FILE, UsersFile
from isthmus.client import Delivery, PromptMessage
from isthmus.development_tool import ToolCallConfirmation
from isthmus.events import StateChange, TaskState
from support.loaded_program import loaded_program
from support.postgres import postgres, run_sql
from support.serve_program import ServeProgram, serve_program

pytestmark = pytest.mark.anyio

SECONDS = float(os.environ.get("LOAD_SECONDS", "4"))
TASKS = int(os.environ.get("LOAD_TASKS", "40"))
USERS = int(os.environ.get("LOAD_USERS", "4"))
IS_JUDGED = "LOAD_SECONDS" in os.environ
JOURNAL_SIZE = "8MB" if IS_JUDGED else "1MB"
"""Maximum size of the journal: reached long before the half of the run, from which on nothing may grow."""
SAMPLES = 40
"""Number of moments at which memory and disk are measured."""
GROWTH = 1.25
"""Maximum ratio of the last quarter of the run to the second one."""
SCRIPT = """
name: load
scenarios:
  - prompt: '\\Aask'
    replies:
      - call: {name: run_shell_command, arguments: {command: 'echo {{prompt}}'}}
      - text: 'Done with {{prompt}}.'
  - prompt: '.'
    replies:
      - text: 'You said: {{prompt}}, and this is a longer answer of some two hundred characters, as an agent gives
          it to a short question, so that the journal grows as it does in use, and retention has something to do.'
"""


@dataclass(frozen=True, slots=True)
class Sample:
    """One moment: memory of the servers and size of the journal in bytes, and the latency of the last tasks in s."""

    memory: int
    journal: int
    latency: float


class Load:
    """The users of two servers. ``ended`` are the latencies of the tasks so far, in seconds."""

    def __init__(self, servers: Sequence[ServeProgram], tokens: Sequence[str], workspace: Path) -> None:
        self.ended: list[float] = []
        self._servers = servers
        self._tokens = tokens
        self._settings = {"workspace_path": str(workspace)}
        self._random = random.Random(7)  # noqa: S311 - to be repeated
        self._left = TASKS

    async def run(self) -> None:
        """Run all tasks, spread over the time."""
        async with asyncio.TaskGroup() as group:
            for number, token in enumerate(self._tokens):
                group.create_task(self._user(number, token))

    async def _user(self, number: int, token: str) -> None:
        began, pause = time.monotonic(), SECONDS * USERS / TASKS
        agents = [await RemoteAgent.connect(server.url, token) for server in self._servers]
        try:
            for turn in range(TASKS // USERS):
                due = began + pause * (turn + number / USERS)
                await asyncio.sleep(max(0.0, due - time.monotonic()))  # delay: tasks come at the rate of the load
                started = time.monotonic()
                await self._task(agents, f"{'ask' if turn % 3 == 0 else 'say'} {number}-{turn}")
                self.ended.append(time.monotonic() - started)
        finally:
            for agent in agents:
                await agent.aclose()

    async def _task(self, agents: Sequence[RemoteAgent], text: str) -> None:
        """Begin a task at one server, follow it there, and answer its question at another."""
        agent, other = self._random.sample(list(agents), 2)
        async with asyncio.timeout(60):
            turn = await agent.prompt(PromptMessage(text, settings=self._settings))
            state = await _end_of(turn.deliveries)
            if state is TaskState.INPUT_REQUIRED:
                (call,) = (await other.get(turn.task_id)).pending
                answer = [ToolCallConfirmation(call.tool_call_id, "proceed_once")]
                answered = await other.answer(turn.task_id, answer, answered_by="load")
                state = await _end_of(answered.deliveries)
            assert state is TaskState.COMPLETED, f"{text}: {state}"


async def _end_of(deliveries: AsyncIterator[Delivery]) -> TaskState | None:
    state: TaskState | None = None
    async for item in deliveries:
        if isinstance(item.event, StateChange):
            state = item.event.state
    return state


@pytest.mark.extended
@pytest.mark.timeout(SECONDS * 2 + 120)
async def test_memory_disk_and_latency_stay_as_they_are(tmp_path: Path) -> None:
    workspace, first, second = (tmp_path / name for name in ("work", "a", "b"))
    for folder in (workspace, first, second):
        folder.mkdir()
    settings = Path(os.environ["HOME"]) / ".gemini" / "settings.json"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(json.dumps({"isthmus": {"journal": {"maxSize": JOURNAL_SIZE}}}), "utf-8")
    tokens = users_of(first / "data")
    (second / "data").mkdir()
    shutil.copy(first / "data" / FILE, second / "data" / FILE)
    with postgres(is_durable=True) as server, loaded_program() as copies:
        url = server.database()
        options = ("--journal", url, "--slots", "16")
        async with (
            serve_program(first, workspace, *options, script=SCRIPT, loaded=copies) as one,
            serve_program(second, workspace, *options, script=SCRIPT, loaded=copies) as two,
        ):
            load = Load((one, two), tokens, workspace)
            running = asyncio.create_task(load.run())
            samples: list[Sample] = []
            while not running.done():
                await asyncio.wait([running], timeout=SECONDS / SAMPLES)
                samples.append(await sample_of((one, two), url, load))
            await running
    report(load, samples)


def users_of(data: Path) -> Sequence[str]:
    """Make the users; return their tokens."""
    file = UsersFile(data / FILE)

    def add(table: UserTable, number: int) -> tuple[UserTable, str]:
        changed, _, token = table.added(f"user{number}", time.time())
        return changed, token

    return [file.change(partial(add, number=number)) for number in range(USERS)]


async def sample_of(servers: Sequence[ServeProgram], url: str, load: Load) -> Sample:
    memory = sum(psutil.Process(server.process.pid).memory_info().rss for server in servers)
    size = int(await run_sql(url, "SELECT pg_database_size(current_database())"))
    return Sample(memory, size, statistics.median(load.ended[-200:] or [0.0]))


def report(load: Load, samples: Sequence[Sample]) -> None:
    """Print the quarters of the run, and judge them in a long one."""
    assert len(load.ended) == TASKS // USERS * USERS
    quarter = max(1, len(samples) // 4)
    parts = [samples[quarter * number : quarter * (number + 1)] for number in range(4)]
    for name in ("memory", "journal", "latency"):
        found = [statistics.median(getattr(one, name) for one in part or samples[-1:]) for part in parts]
        print(f"{name}: {' '.join(f'{value:,.4g}' for value in found)}, last / second {found[3] / found[1]:.2f}")
        if IS_JUDGED:
            assert found[3] <= GROWTH * found[1], f"{name} grows: {found}"
    print(f"{len(load.ended):,} tasks, latency p95 {sorted(load.ended)[int(len(load.ended) * 0.95)]:.3f} s")
