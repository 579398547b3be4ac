"""Three servers on one database, one of which a fault befalls in each round, and clients that go to any of them."""

import asyncio
import contextlib
import os
import random
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from chaos.replica_faults import Machines, Replica, ReplicaFaults
from isthmus.a2a.client.remote_agent import RemoteAgent
from isthmus.client import Delivery, PromptMessage, TaskNotFound, Turn
from isthmus.development_tool import ToolCallConfirmation
from isthmus.events import StateChange, ToolCallUpdate
from isthmus.rpc.messages import RpcError

ONLY = [name for name in os.environ.get("CHAOS_FAULTS", "").split(",") if name]
"""Names of the faults that happen, to look into some of them; all if it is empty."""
SECONDS = 90.0
"""Maximum time in seconds for a round; one that takes longer hangs."""
FOLLOW_SECONDS = 10.0
"""Maximum time in seconds for which a client stays with a server that sends nothing."""
SCRIPT = """
name: chaos
chunk_characters: 9
scenarios:
  - prompt: '\\Awork (?P<n>[\\d-]+)'
    replies:
      - text: First a command of {{n}}.
        call: {name: run_shell_command, arguments: {command: 'sleep 0.05; echo {{n}}-a >> TRACES'}}
      - steps:
          - text: 'One two three four five six seven eight nine ten. '
          - delay: 0.1
          - text: 'And again one two three four five six seven eight nine ten. '
          - delay: 0.1
          - call: {name: run_shell_command, arguments: {command: 'echo {{n}}-b >> TRACES'}}
      - text: 'Task {{n}} is done.'
  - prompt: '\\Ahold (?P<n>[\\d-]+) (?P<gate>\\S+)'
    replies:
      - call:
          name: run_shell_command
          arguments:
            command: >-
              echo {{n}}-begun >> TRACES;
              for i in $(seq 600); do [ -e {{gate}} ] && break; sleep 0.1; done;
              echo {{n}}-held >> TRACES
      - text: 'Task {{n}} is done.'
"""


@dataclass
class WatchedTask:
    """A task as its client saw it, over all servers."""

    name: str
    task_id: str = ""
    seen: list[Delivery] = field(default_factory=list[Delivery])

    @property
    def at(self) -> int:
        return self.seen[-1].seq or 0 if self.seen else 0


class ReplicaRun:
    """The servers of a test in ``folder``, and the faults that ``seed`` chooses."""

    def __init__(self, folder: Path, machines: Machines, seed: int) -> None:
        self.workspace = folder / "work"
        self.traces = folder / "traces"
        self.faults: Counter[str] = Counter()
        self.workspace.mkdir()
        self.machines = machines
        self._random = random.Random(seed)  # noqa: S311 - to be repeated
        script = SCRIPT.replace("TRACES", str(self.traces))
        self.servers = ReplicaFaults(folder, self.workspace, machines, script, self._random)

    @property
    def take_overs(self) -> Mapping[str, Sequence[float]]:
        """Times in seconds from a fault to the moment at which another server has the task."""
        return self.servers.take_overs

    @property
    def done(self) -> "Counter[str]":
        """The lines that commands wrote, by which it is seen what they did."""
        return Counter(self.traces.read_text("utf-8").split() if self.traces.exists() else [])

    async def __aenter__(self) -> Self:
        await self.servers.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.servers.__aexit__(*error)

    # --- a round ---

    async def play(self, number: int) -> None:
        """Play a round: begin tasks, let a fault happen while they run, and see each of them end well."""
        tasks = [WatchedTask(f"{number}-{part}") for part in range(3)]
        fault, befall = self._random.choice([one for one in self.servers.all() if not ONLY or one[0] in ONLY])
        self.faults[fault] += 1
        try:
            async with asyncio.timeout(SECONDS):
                clients = [asyncio.create_task(self.client(task)) for task in tasks]
                await asyncio.sleep(self._random.uniform(0.0, 0.9))  # delay: the fault comes at a random moment
                await befall()
                await asyncio.gather(*clients)
                for task in tasks:
                    await self.check(task)
        except TimeoutError as error:
            states = [await self._row(task.task_id) for task in tasks if task.task_id]
            paused = [replica.number for replica in self.servers.replicas if replica.is_paused]
            raise AssertionError(
                f"round {number} ({fault}) hangs: {states}; paused: {paused}; sessions: {await self._sessions()}"
            ) from error

    # --- the database as the judge ---

    async def _row(self, task_id: str) -> str:
        statement = "SELECT concat_ws(' ', state, owner, epoch, tag, seq) FROM tasks WHERE id = $1"
        return await self.machines.sql(statement, task_id)

    async def _sessions(self) -> str:
        return await self.machines.sql(
            "SELECT string_agg(concat_ws(' ', pid, state, wait_event, now() - state_change, left(query, 60)), '; ')"
            " FROM pg_stat_activity WHERE datname = current_database()"
        )

    # --- clients ---

    @contextlib.asynccontextmanager
    async def _anyone(self) -> AsyncGenerator[RemoteAgent]:
        program = self._random.choice(self.servers.replicas).program
        async with asyncio.timeout(FOLLOW_SECONDS):
            agent = await RemoteAgent.connect(program.url, program.token)
        try:
            yield agent
        finally:
            await agent.aclose()

    async def client(self, task: WatchedTask) -> None:
        """Watch and answer at one server after another until the task has ended."""
        while True:
            try:
                async with self._anyone() as agent:
                    if await self._watch(agent, task):
                        return
            except TaskNotFound:
                raise
            except Exception:  # whatever a dying server answers, another one is asked
                await asyncio.sleep(0.05)  # delay: pause between two attempts at any server

    async def begin(self, task: WatchedTask, replica: Replica, text: str) -> None:
        """Begin a task whose first call a user allows, at one server."""
        agent = await RemoteAgent.connect(replica.program.url, replica.program.token)
        try:
            turn = await self._prompt(agent, task, text)
            task.seen += [item async for item in turn.deliveries if item.seq is not None]
            (call,) = (await agent.get(task.task_id)).pending
            answer = [ToolCallConfirmation(call.tool_call_id, "proceed_once")]
            await agent.answer(task.task_id, answer, answered_by="chaos")
        finally:
            await agent.aclose()

    async def _prompt(self, agent: RemoteAgent, task: WatchedTask, text: str) -> Turn:
        settings = {"workspace_path": str(self.workspace)}
        turn = await agent.prompt(PromptMessage(text, settings=settings, message_id=f"message {task.name}"))
        task.task_id = turn.task_id
        return turn

    async def _watch(self, agent: RemoteAgent, task: WatchedTask) -> bool:
        if not task.task_id:
            turn = await self._prompt(agent, task, f"work {task.name}")
        else:
            turn = await agent.follow(task.task_id, task.at)
        while True:
            async with asyncio.timeout(FOLLOW_SECONDS):
                async for delivery in turn.deliveries:
                    if delivery.seq is not None:
                        task.seen.append(delivery)
            snapshot = await agent.get(task.task_id)
            if snapshot.state.is_terminal:
                return True
            for call in snapshot.pending:
                answer = [ToolCallConfirmation(call.tool_call_id, "proceed_once")]
                async with self._anyone() as another:
                    await another.answer(task.task_id, answer, answered_by="chaos")
            turn = await agent.follow(task.task_id, task.at)

    async def _replayed(self, task: WatchedTask) -> Sequence[Delivery]:
        """Return all events of a task from a server that has the database."""
        while True:
            with contextlib.suppress(RpcError):
                async with self._anyone() as agent:
                    turn = await agent.follow(task.task_id, 0)
                    return [item async for item in turn.deliveries if item.seq is not None]
            await asyncio.sleep(0.05)  # delay: pause between two attempts at any server

    async def check(self, task: WatchedTask) -> None:
        """Check that a task lost nothing, did nothing twice, and that its client saw each event once."""
        events = await self._replayed(task)
        numbers = [item.seq or 0 for item in _once_each(events)]
        assert numbers == sorted(set(numbers)), f"{task.name}: {numbers}"
        stored = await self.machines.sql(
            "SELECT count(*) = max(seq) AND max(seq) = (SELECT seq FROM tasks WHERE key = task) FROM events"
            " WHERE task = (SELECT key FROM tasks WHERE id = $1) GROUP BY task",
            task.task_id,
        )
        assert stored == "True", f"{task.name}: event numbers have gaps"
        seen = _once_each(task.seen)
        expected = [(item.seq, item.event) for item in _once_each(events) if (item.seq or 0) >= (seen[0].seq or 0)]
        found = [(item.seq, item.event) for item in seen]
        missing = [item for item in expected if item not in found]
        wrong = [item for item in found if item not in expected]
        assert found == expected, f"{task.name}: missing {missing}, wrong {wrong}, {[number for number, _ in found]}"
        end = seen[-1].event
        assert isinstance(end, StateChange), task.name
        effects = {line: count for line, count in self.done.items() if line.startswith(f"{task.name}-")}
        assert all(count <= 1 for count in effects.values()), f"{task.name}: {effects}"
        if str(end.state) == "completed":
            calls = {
                item.event.tool_call.tool_call_id: item.event.tool_call
                for item in events
                if isinstance(item.event, ToolCallUpdate)
            }
            succeeded = sum(str(call.status) == "SUCCEEDED" for call in calls.values())
            assert sum(effects.values()) >= succeeded, f"{task.name}: {effects}, {succeeded} calls succeeded"


def _once_each(deliveries: Sequence[Delivery]) -> list[Delivery]:
    """Return deliveries without the questions that an input-required state repeats for clients that missed them."""
    states = {item.seq for item in deliveries if isinstance(item.event, StateChange)}
    return [item for item in deliveries if not (item.seq in states and isinstance(item.event, ToolCallUpdate))]
