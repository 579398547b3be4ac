"""Kills the agent while it calls real MCP servers, which record their calls: none runs twice, no process remains."""

import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from chaos.crash_run import CrashRun, PlannedKill, Watched
from chaos.run_checks import check_replay
from isthmus.development_tool import ToolCall, ToolCallStatus
from isthmus.events import AgentEvent, ConfirmationAccepted, ToolCallUpdate, event_to_json
from isthmus.journal.sqlite.journal import SqliteJournal
from support.mcp_hosting import write_servers
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

SERVER = Path(__file__).with_name("mcp_server.py")
IS_LONG = "CHAOS_KILLS" in os.environ
KILLS = int(os.environ.get("CHAOS_KILLS", "2"))
SEED = int(os.environ.get("CHAOS_SEED", str(random.SystemRandom().randrange(10**6))))
KILLS_PER_RUN = 4 if IS_LONG else 2
"""Maximum number of kills in one run."""
TASKS = 4
WORK = """
  - prompt: '\\Awork (?P<n>N)'
    replies:
      - call: {name: t_mark, arguments: {n: '{{n}}-a'}}
      - steps:
          - call: {name: t_look, arguments: {n: '{{n}}-b'}}
          - call: {name: p_mark, arguments: {n: '{{n}}-c'}}
      - call: {name: aN_ask, arguments: {n: '{{n}}-d'}}
      - call: {name: t_mark, arguments: {n: '{{n}}-e'}}
      - text: 'Task {{n}} is done.'
"""
SCRIPT = """
name: chaos
chunk_characters: 20
scenarios:
  - prompt: '\\Amore (?P<n>\\d+)'
    replies: [{text: 'Also {{n}}.'}]
""" + "".join(WORK.replace("N", str(number)) for number in range(TASKS))
"""A script with one server a task: a stdio server with calls of several sessions cannot say which one it asks."""
POINTS = ("append committed", "executing asked", "executing committed", "finish open", "claim committed")


@pytest.mark.extended
@pytest.mark.timeout(1800 if IS_LONG else 300)
async def test_no_call_of_a_server_is_repeated_or_left_over_when_the_process_dies(
    tmp_path: Path,
) -> None:
    print(f"CHAOS_SEED={SEED} CHAOS_KILLS={KILLS}")
    chance = random.Random(SEED)  # noqa: S311 - to be repeated
    kills: Counter[str] = Counter()
    found: Counter[str] = Counter()
    began, runs = time.monotonic(), 0
    while kills.total() < KILLS:
        planned_kills = [any_kill(chance) for _ in range(KILLS_PER_RUN)]
        with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
            run = run_in(Path(folder) / "run", planned_kills, chance.randrange(10**6))
            try:
                await run.play()
                found += await check(run)
            except (AssertionError, TimeoutError) as error:
                state = [(task.number, task.state, task.at, task.waiting) for task in run.tasks.values()]
                details = f"CHAOS_SEED={SEED}, run {runs}: {planned_kills}\n{state}\n{run.log()}"
                raise AssertionError(f"{error}\n{details}") from error
        kills += run.kills
        runs += 1
    print(f"{kills.total()} kills in {runs} runs, {time.monotonic() - began:.0f} s: {dict(kills)}; {dict(found)}")
    if IS_LONG:  # A run or two may pass without one.
        for what in ("t_mark", "t_look", "p_mark", "elicitation", "read_mcp_resource"):
            assert found[f"{what} SUCCEEDED"], f"no {what} ever succeeded: {found}"
        assert found["elicitation CANCELLED"], f"no process was ever killed while a call waited for an answer: {found}"


def any_kill(chance: random.Random) -> PlannedKill:
    if chance.random() < 0.7:
        return PlannedKill(seen=chance.randrange(1, 60))
    return PlannedKill(chance.choice(POINTS), chance.randrange(1, 12))


class McpCrashRun(CrashRun):
    """A run in which no server may outlive the process that started it."""

    async def _run_process(self) -> bool:
        has_ended = await super()._run_process()
        await eventually_async(lambda: not self.servers(), 30, what=f"servers are left: {self.servers()}")
        return has_ended

    def servers(self) -> Sequence[int]:
        """Return the servers that still run."""
        file = self.folder / "pids"
        found = [int(line) for line in file.read_text(encoding="utf-8").split()] if file.exists() else []
        return [pid for pid in found if _runs(pid)]


def _runs(pid: int) -> bool:
    try:
        return str(SERVER) in Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8")
    except OSError:
        return False


def run_in(folder: Path, planned_kills: Sequence[PlannedKill], seed: int) -> McpCrashRun:
    home = folder / "home"
    home.mkdir(parents=True)
    servers: dict[str, dict[str, object]] = {
        name: {
            "command": sys.executable,
            "args": ["-S", str(SERVER), f"{name[0]}{name[7:]}_", str(folder)],
            "trust": True,
        }
        for name in ("trusted", "plain", *(f"asking_{number}" for number in range(TASKS)))
    }
    del servers["plain"]["trust"]
    write_servers(home, servers)
    return McpCrashRun(
        folder,
        planned_kills,
        seed,
        TASKS,
        script=SCRIPT,
        prompt="work {} @trusted:note://one",
        environment={"HOME": str(home)},
    )


async def check(run: CrashRun) -> "Counter[str]":
    """Return the number of calls by outcome. Raises AssertionError if one ran twice, was lost or did not end."""
    found: Counter[str] = Counter()
    file = run.folder / "traces"
    traces = Counter(file.read_text(encoding="utf-8").splitlines() if file.exists() else [])
    assert all(count == 1 for count in traces.values()), f"took effect more than once: {traces}"
    journal = await SqliteJournal.open(run.folder / "data" / "journal.sqlite")
    try:
        rows = {row.task_id: row for row in await journal.tasks(1000)}
        for task in run.tasks.values():
            events = await journal.events(task.task_id, 0, 100_000)
            stored = [(item.seq or 0, json.dumps(event_to_json(item.event), sort_keys=True)) for item in events]
            check_replay(task, rows[task.task_id], stored)
            found += check_calls(task, [item.event for item in events], traces)
    finally:
        await journal.aclose()
    return found


def check_calls(task: Watched, events: Sequence[AgentEvent], traces: "Counter[str]") -> "Counter[str]":
    updates: dict[str, list[ToolCall]] = {}
    for event in events:
        if isinstance(event, ToolCallUpdate):
            updates.setdefault(event.tool_call.tool_call_id, []).append(event.tool_call)
    answered = {event.confirmation.tool_call_id for event in events if isinstance(event, ConfirmationAccepted)}
    for call_id, states in updates.items():
        last, name = states[-1], f"call {call_id} of task {task.number}"
        n = str(last.input_parameters.get("n", ""))
        assert sum(call.status.is_final for call in states) == 1, f"{name} is left {last.status}, or ended twice"
        if last.tool_name.endswith("_mark"):
            executed = any(call.status is ToolCallStatus.EXECUTING for call in states)
            assert traces[n] <= executed, f"{name} took effect before EXECUTING was stored"
            assert last.status is not ToolCallStatus.SUCCEEDED or traces[n], f"{name} succeeded and left no trace"
        if last.tool_name.endswith("_ask"):
            accepted = [question for question in updates if question in answered and question.startswith(f"{call_id}?")]
            assert traces[f"{n}-accept"] <= len(accepted), f"{name} got an answer that no client sent"
            succeeded = last.status is ToolCallStatus.SUCCEEDED
            assert not succeeded or traces[f"{n}-accept"] + traces[f"{n}-decline"] + traces[f"{n}-cancel"], name
    return Counter(f"{states[-1].tool_name} {states[-1].status.name}" for states in updates.values())
