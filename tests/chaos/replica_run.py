"""Three servers on one database, one of which a fault befalls in each round, and clients that go to any of them."""

import asyncio
import contextlib
import random
import re
import signal
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from isthmus.a2a.client.remote_agent import RemoteAgent
from isthmus.client import Delivery, PromptMessage, TaskNotFound
from isthmus.development_tool import ToolCallConfirmation
from isthmus.events import StateChange, ToolCallUpdate
from isthmus.journal.lease_owner import MACHINE
from support.cutting_proxy import CuttingProxy, cutting_proxy
from support.loaded_program import LoadedProgram
from support.postgres import Postgres, run_sql
from support.serve_program import ServeProgram, serve_program

LEASE_SECONDS = 3.0
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
"""


@dataclass
class Replica:
    """A server and its own way to the database."""

    number: int
    proxy: CuttingProxy
    program: ServeProgram
    is_paused: bool = False


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
    """The servers of a test in ``folder``, with the faults that ``seed`` chooses; ``copies`` starts them quickly."""

    def __init__(self, folder: Path, server: Postgres, copies: LoadedProgram, seed: int) -> None:
        self.folder = folder
        self.workspace = folder / "work"
        self.traces = folder / "traces"
        self.faults: Counter[str] = Counter()
        self.take_overs: dict[str, list[float]] = {"kill": [], "pause": []}
        """Times in seconds from a fault to the moment at which another server has the task."""
        self._server = server
        self._copies = copies
        self._url = server.database()
        self._random = random.Random(seed)  # noqa: S311 - to be repeated
        self._replicas: list[Replica] = []
        self._stack = contextlib.AsyncExitStack()
        self.workspace.mkdir()

    async def __aenter__(self) -> "ReplicaRun":
        for number in range(3):
            proxy = await self._stack.enter_async_context(cutting_proxy(f"http://127.0.0.1:{self._server.port}/"))
            program = await self._stack.enter_async_context(self._program(number, proxy))
            self._replicas.append(Replica(number, proxy, program))
        return self

    async def __aexit__(self, *error: object) -> None:
        for replica in self._replicas:
            if replica.is_paused:
                replica.program.process.send_signal(signal.SIGCONT)
        await self._stack.aclose()

    def _program(self, number: int, proxy: CuttingProxy) -> "contextlib.AbstractAsyncContextManager[ServeProgram]":
        folder = self.folder / str(number)
        folder.mkdir(exist_ok=True)
        address = re.search(r"127\.0\.0\.1:\d+", proxy.url)
        assert address is not None
        url = self._url.replace(f"127.0.0.1:{self._server.port}", address[0])
        options = ("--journal", url, "--lease-seconds", str(LEASE_SECONDS), "--slots", "8")
        script = SCRIPT.replace("TRACES", str(self.traces))
        # As on another machine: nobody sees from its process number that it has ended.
        variables = {MACHINE: f"machine {number}"}
        return serve_program(
            folder, self.workspace, *options, script=script, environment=variables, loaded=self._copies
        )

    # --- a round ---

    async def play(self, number: int) -> None:
        """Play a round: begin tasks, let a fault happen while they run, and see each of them end well."""
        tasks = [WatchedTask(f"{number}-{part}") for part in range(3)]
        fault, befall = self._random.choice(self._faults())
        self.faults[fault] += 1
        try:
            async with asyncio.timeout(SECONDS):
                clients = [asyncio.create_task(self._client(task)) for task in tasks]
                await asyncio.sleep(self._random.uniform(0.0, 0.9))
                await befall(tasks)
                await asyncio.gather(*clients)
                for task in tasks:
                    await self._check(task)
        except TimeoutError as error:
            states = [await self._row(task.task_id) for task in tasks if task.task_id]
            paused = [replica.number for replica in self._replicas if replica.is_paused]
            raise AssertionError(
                f"round {number} ({fault}) hangs: {states}; paused: {paused}; sessions: {await self._sessions()}"
            ) from error

    def _faults(self) -> Sequence[tuple[str, Callable[[Sequence[WatchedTask]], Awaitable[None]]]]:
        return (
            ("kill", self._kill),
            ("kill", self._kill),
            ("pause", self._pause),
            ("cut", self._cut),
            ("partition", self._partition),
            ("terminate", self._terminate),
            ("database restart", self._restart_database),
            ("database crash", self._crash_database),
        )

    async def _kill(self, tasks: Sequence[WatchedTask]) -> None:
        replica = await self._busiest(tasks)
        owned = await self._owned(replica)
        killed = time.monotonic()
        replica.program.process.kill()
        await replica.program.process.wait()
        await self._until_taken("kill", owned, killed)
        await self._start(replica)

    async def _pause(self, tasks: Sequence[WatchedTask]) -> None:
        replica = await self._busiest(tasks)
        owned = await self._owned(replica)
        paused = time.monotonic()
        replica.program.process.send_signal(signal.SIGSTOP)
        replica.is_paused = True
        await self._until_taken("pause", owned, paused)
        await asyncio.sleep(max(0.0, paused + LEASE_SECONDS + 1 - time.monotonic()))
        replica.program.process.send_signal(signal.SIGCONT)
        replica.is_paused = False

    async def _cut(self, tasks: Sequence[WatchedTask]) -> None:
        del tasks
        for replica in self._replicas:
            replica.proxy.cut()

    async def _partition(self, tasks: Sequence[WatchedTask]) -> None:
        replica = await self._busiest(tasks)
        replica.proxy.cut_after = 0
        replica.proxy.cut()
        await asyncio.sleep(LEASE_SECONDS + 1)
        replica.proxy.cut_after = None
        replica.proxy.cut()

    async def _terminate(self, tasks: Sequence[WatchedTask]) -> None:
        replica = await self._busiest(tasks)
        assert await replica.program.end(signal.SIGTERM) == 0
        await self._start(replica)

    async def _restart_database(self, tasks: Sequence[WatchedTask]) -> None:
        del tasks
        await asyncio.to_thread(self._server.stop, "fast")
        await asyncio.to_thread(self._server.start)

    async def _crash_database(self, tasks: Sequence[WatchedTask]) -> None:
        del tasks
        await asyncio.to_thread(self._server.stop, "immediate")
        await asyncio.to_thread(self._server.start)

    async def _start(self, replica: Replica) -> None:
        replica.program = await self._stack.enter_async_context(self._program(replica.number, replica.proxy))

    # --- the database as the judge ---

    async def _sql(self, statement: str, *values: object) -> str:
        return str(await run_sql(self._url, statement, *values))

    async def _row(self, task_id: str) -> str:
        statement = "SELECT concat_ws(' ', state, owner, epoch, tag, seq) FROM tasks WHERE id = $1"
        return await self._sql(statement, task_id)

    async def _sessions(self) -> str:
        return await self._sql(
            "SELECT string_agg(concat_ws(' ', pid, state, wait_event, now() - state_change, left(query, 60)), '; ')"
            " FROM pg_stat_activity WHERE datname = current_database()"
        )

    async def _owners(self) -> dict[str, tuple[int, int]]:
        """Return the process number of the owner of each task at work, and the epoch."""
        rows = await self._sql(
            "SELECT coalesce(string_agg(concat_ws(' ', id, split_part(owner, ':', 3), epoch), ';'), '') FROM tasks"
            " WHERE owner IS NOT NULL AND state IN ('submitted', 'working')"
        )
        return {row.split()[0]: (int(row.split()[1]), int(row.split()[2])) for row in rows.split(";") if row}

    async def _busiest(self, tasks: Sequence[WatchedTask]) -> Replica:
        """Return a server that works on one of the tasks, if there is one."""
        del tasks
        pids = {pid for pid, _ in (await self._owners()).values()}
        busy = [replica for replica in self._replicas if replica.program.process.pid in pids]
        return self._random.choice(busy or self._replicas)

    async def _owned(self, replica: Replica) -> dict[str, int]:
        pid = replica.program.process.pid
        return {task: epoch for task, (owner, epoch) in (await self._owners()).items() if owner == pid}

    async def _until_taken(self, fault: str, owned: dict[str, int], since: float) -> None:
        """Wait until each task has been claimed anew, and note how long that took."""
        left = dict(owned)
        statement = "SELECT epoch > $1 OR state NOT IN ('submitted', 'working') FROM tasks WHERE id = $2"
        while left:
            for task, epoch in list(left.items()):
                if await self._sql(statement, epoch, task) == "True":
                    self.take_overs[fault].append(time.monotonic() - since)
                    del left[task]

    # --- clients ---

    @contextlib.asynccontextmanager
    async def _anyone(self) -> AsyncGenerator[RemoteAgent]:
        program = self._random.choice(self._replicas).program
        async with asyncio.timeout(FOLLOW_SECONDS):
            agent = await RemoteAgent.connect(program.url, program.token)
        try:
            yield agent
        finally:
            await agent.aclose()

    async def _client(self, task: WatchedTask) -> None:
        """Watch and answer at one server after another until the task has ended."""
        while True:
            try:
                async with self._anyone() as agent:
                    if await self._watch(agent, task):
                        return
            except TaskNotFound:
                raise
            except Exception:  # whatever a dying server answers, another one is asked
                await asyncio.sleep(0.05)

    async def _watch(self, agent: RemoteAgent, task: WatchedTask) -> bool:
        if not task.task_id:
            settings = {"workspace_path": str(self.workspace)}
            message = PromptMessage(f"work {task.name}", settings=settings, message_id=f"message {task.name}")
            turn = await agent.prompt(message)
            task.task_id = turn.task_id
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

    async def _check(self, task: WatchedTask) -> None:
        """Check that a task lost nothing, did nothing twice, and that its client saw each event once."""
        async with self._anyone() as agent:
            turn = await agent.follow(task.task_id, 0)
            events = [item async for item in turn.deliveries if item.seq is not None]
        numbers = [item.seq or 0 for item in _once_each(events)]
        assert numbers == sorted(set(numbers)), f"{task.name}: {numbers}"
        stored = await self._sql(
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
        done = Counter(self.traces.read_text("utf-8").split() if self.traces.exists() else [])
        effects = {name: done[f"{task.name}-{name}"] for name in "ab"}
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
