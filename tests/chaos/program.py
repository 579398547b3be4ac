"""A program with the agent, to be killed: the real engine, agent and tools behind lines of JSON on stdin and stdout.

Run as ``python program.py FOLDER [POINT COUNT]``: at the COUNT-th time that POINT is reached, the process kills itself
with SIGKILL. The points are put around the journal and the tools here; the product does not know them.
"""

import asyncio
import json
import os
import signal
import sqlite3
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

from isthmus.client import NO_LIMITS, Delivery, PromptMessage, TaskError, UserLimits
from isthmus.development_tool import ConfirmationDetails, ToolCall, ToolCallConfirmation
from isthmus.engine import Engine
from isthmus.events import AgentEvent, event_to_json
from isthmus.journal.port.task_rows import ClaimedTask, Finished, Lease, NewTask, TaskRow
from isthmus.journal.postgres import attempt as postgres_attempt
from isthmus.journal.postgres import journal as postgres_journal
from isthmus.journal.postgres import statements as postgres_sql
from isthmus.journal.postgres.journal import PostgresJournal
from isthmus.journal.sql.task_writes import TaskWrite
from isthmus.journal.sqlite import journal as sqlite_journal
from isthmus.journal.sqlite import statements as sqlite_writes
from isthmus.journal.sqlite import writer
from isthmus.journal.sqlite.journal import SqliteJournal
from isthmus.programs.agent import building as agent_building
from isthmus.programs.agent.local_agent import local_agent, rule_for
from isthmus.programs.agent.local_agent_options import LocalAgentOptions
from isthmus.programs.setup.setup import GivenOptions, decide
from isthmus.tools.builtin import builtin_tools
from isthmus.tools.port.base import Arguments, CallContext, Tool, ToolContext, ToolKind, ToolResult
from isthmus.tools.port.tool_set import ToolSet

if TYPE_CHECKING:
    from isthmus.journal.port.base import Journal
    from isthmus.journal.port.queue import TaskQueue

T = TypeVar("T")

JOURNAL = "CHAOS_JOURNAL"
"""Environment variable with the URL of the journal, if it is in a database."""
STEPS = ("create", "append", "executing", "finish", "claim", "post", "take", "take-over")
POINTS = (
    *(f"{step} {moment}" for step in STEPS for moment in ("asked", "open", "committed")),
    "effect to come",
    "effect begun",
    "effect done",
)
"""Points by step. ``asked``: the write was requested. ``open``: its statements are done, the transaction is not.
``committed``: no client was notified yet. The effect: EXECUTING is on the disk, the tool has begun, it is done and
nothing of it is written."""


@dataclass
class KillPoint:
    """The point at which this process kills itself. Without a point it does not."""

    point: str = ""
    count: int = 1

    def at(self, point: str) -> None:
        """Kill the process if this is the point."""
        if point == self.point:
            self.count -= 1
            if self.count == 0:
                os.kill(os.getpid(), signal.SIGKILL)


KILL_POINT = KillPoint()


def _took(result: object) -> bool:
    """Return whether a write did anything: of tasks to take there may be none."""
    return result != []


class _KillPoints:
    """Kill points around the writes of a journal; comes before it in a class."""

    step = ""
    """The step whose write is being queued."""

    def _at(self, step: str, write: Callable[[], Awaitable[T]]) -> Awaitable[T]:
        KILL_POINT.at(f"{step} asked")
        self.step = step
        future = asyncio.ensure_future(write())
        self.step = ""
        future.add_done_callback(lambda done: _took(done.result()) and KILL_POINT.at(f"{step} committed"))
        return future

    def _hook_queue(self, queue: "TaskQueue") -> None:
        """Put the kill points around the taking of tasks that another process has left."""
        take = queue.take
        queue.take = lambda *given: self._at("take-over", lambda: take(*given))  # type: ignore[method-assign]

    def create(
        self,
        task: NewTask,
        events: Sequence[AgentEvent],
        owner: str,
        lease_seconds: float,
        limits: UserLimits = NO_LIMITS,
    ) -> Awaitable[ClaimedTask]:
        above = cast("Journal", super()).create
        return self._at("create", lambda: above(task, events, owner, lease_seconds, limits))

    def append(
        self, lease: Lease, events: Sequence[AgentEvent], *, full_sync: bool = False
    ) -> Awaitable[Sequence[Delivery]]:
        above = cast("Journal", super()).append
        return self._at("executing" if full_sync else "append", lambda: above(lease, events, full_sync=full_sync))

    def finish(
        self, lease: Lease, events: Sequence[AgentEvent], pending: Sequence[ToolCall], *, discard_inbox: bool = False
    ) -> Awaitable[Finished]:
        above = cast("Journal", super()).finish
        return self._at("finish", lambda: above(lease, events, pending, discard_inbox=discard_inbox))

    def take(self, lease: Lease, events: Sequence[AgentEvent], count: int) -> Awaitable[Sequence[Delivery]]:
        above = cast("Journal", super()).take
        return self._at("take", lambda: above(lease, events, count))

    def claim(
        self,
        row: TaskRow,
        events: Sequence[AgentEvent],
        owner: str,
        lease_seconds: float,
        limits: UserLimits = NO_LIMITS,
    ) -> Awaitable[ClaimedTask | None]:
        above = cast("Journal", super()).claim
        return self._at("claim", lambda: above(row, events, owner, lease_seconds, limits))

    def take_over(self, row: TaskRow, owner: str, lease_seconds: float) -> Awaitable[ClaimedTask | None]:
        above = cast("Journal", super()).take_over
        return self._at("take-over", lambda: above(row, owner, lease_seconds))

    def post(self, row: TaskRow, events: Sequence[AgentEvent]) -> Awaitable[None]:
        above = cast("Journal", super()).post
        return self._at("post", lambda: above(row, events))


class KillableJournal(_KillPoints, SqliteJournal):
    """A journal in a file with kill points around its writes."""

    def __init__(self, path: Path, *arguments: Any, **options: Any) -> None:
        super().__init__(path, *arguments, **options)
        submit, submit_write, write_tasks = self._writer.submit, self._writer.submit_write, sqlite_writes.write_tasks
        made: list[str] = []

        def submit_write_killable(write: Callable[[], TaskWrite], **options: Any) -> "asyncio.Future[Any]":
            step = self.step

            def killable() -> TaskWrite:
                made.append(step)
                return write()

            return submit_write(killable, **options)

        def write_tasks_killable(*arguments: Any) -> list[Any]:
            results = write_tasks(*arguments)
            while made:
                KILL_POINT.at(f"{made.pop(0)} open")
            return results

        def submit_killable(work: Callable[[sqlite3.Connection], T], **options: Any) -> "asyncio.Future[T]":
            step = self.step

            def killable(connection: sqlite3.Connection) -> T:
                result = work(connection)
                if step and _took(result):
                    KILL_POINT.at(f"{step} open")
                return result

            return submit(killable, **options)

        self._writer.submit = submit_killable  # type: ignore[method-assign]
        self._writer.submit_write = submit_write_killable  # type: ignore[method-assign]
        writer.__dict__["write_tasks"] = write_tasks_killable
        self._hook_queue(self.queue)


class KillablePostgresJournal(_KillPoints, PostgresJournal):
    """A journal in a database with kill points around its writes."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        submit, run, store = self._writer.submit, self._writer.run, postgres_sql.store
        queued: list[str] = []

        def submit_killable(*arguments: Any) -> Any:
            queued.append(self.step)
            return submit(*arguments)

        def run_killable(work: Callable[..., Awaitable[T]], *preparation: Any) -> Any:
            step = self.step

            async def killable(*arguments: Any) -> T:
                result = await work(*arguments)
                if _took(result):
                    KILL_POINT.at(f"{step} open")
                return result

            return run(killable, *preparation)

        async def store_killable(*arguments: Any) -> None:
            await store(*arguments)
            while queued:
                KILL_POINT.at(f"{queued.pop(0)} open")

        self._writer.submit = submit_killable  # type: ignore[method-assign]
        self._writer.run = run_killable  # type: ignore[method-assign]
        postgres_attempt.__dict__["store"] = store_killable
        self._hook_queue(self.queue)


@dataclass(frozen=True)
class KillableTool:
    """A tool with an effect, with kill points around it; each start appends a line to the file ``begun``."""

    tool: Tool
    begun: ClassVar[Path]

    @property
    def name(self) -> str:
        return self.tool.name

    @property
    def description(self) -> str:
        return self.tool.description

    @property
    def parameters(self) -> Mapping[str, Any]:
        return self.tool.parameters

    @property
    def kind(self) -> ToolKind:
        return self.tool.kind

    def describe(self, arguments: Arguments) -> str:
        return self.tool.describe(arguments)

    async def propose(self, arguments: Arguments, context: ToolContext) -> ConfirmationDetails | None:
        return await self.tool.propose(arguments, context)

    async def run(self, arguments: Arguments, context: CallContext) -> ToolResult:
        KILL_POINT.at("effect to come")
        with self.begun.open("a", encoding="utf-8") as file:
            file.write(f"{context.output_folder.name} {context.tool_call_id}\n")
        KILL_POINT.at("effect begun")
        result = await self.tool.run(arguments, context)
        KILL_POINT.at("effect done")
        return result


def killable_tools(**options: Any) -> ToolSet:
    """Return the built-in tools, with kill points around those with an effect."""
    tools = builtin_tools(**options).tools.values()
    return ToolSet.of(*(tool if tool.kind is ToolKind.READ else KillableTool(tool) for tool in tools))


class CommandLoop:
    """A loop that runs the commands on stdin and writes their results."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Run commands until stdin ends."""
        reader = asyncio.StreamReader(limit=2**24)
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        self.write({"ready": True})
        while line := await reader.readline():
            task = asyncio.create_task(self._do(json.loads(line)))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def write(self, value: object) -> None:
        """Write one line."""
        sys.stdout.write(json.dumps(value) + "\n")
        sys.stdout.flush()

    async def _do(self, request: Mapping[str, Any]) -> None:
        try:
            result = await self._result(request)
            self.write({"id": request["id"], "result": result})
        except TaskError as error:
            self.write({"id": request["id"], "error": str(error)})

    async def _result(self, request: Mapping[str, Any]) -> object:
        engine = self._engine
        match request["do"]:
            case "prompt":
                turn = await engine.prompt(PromptMessage(request["text"], task_id=request.get("task")))
                return turn.task_id
            case "answer":
                answer = ToolCallConfirmation(request["call"], request["option"])
                await engine.answer(request["task"], [answer], answered_by=request["by"])
            case "cancel":
                return (await engine.cancel(request["task"])).state
            case "tasks":
                found = await engine.tasks(1000)
                return [[item.task_id, item.title, item.state, item.seq] for item in found]
            case "follow":
                turn = await engine.follow(request["task"], request["after"])
                async for item in turn.deliveries:
                    if item.seq is not None:
                        self.write({"task": request["task"], "seq": item.seq, "event": event_to_json(item.event)})
            case other:
                raise ValueError(other)
        return None


async def run(folder: Path, point: str, count: int) -> None:
    """Run until stdin ends, or until the process is killed."""
    KILL_POINT.point, KILL_POINT.count = point, count
    KillableTool.begun = folder / "begun"
    sqlite_journal.SqliteJournal = KillableJournal  # type: ignore[misc]
    postgres_journal.PostgresJournal = KillablePostgresJournal  # type: ignore[misc]
    agent_building.builtin_tools = killable_tools  # type: ignore[assignment]
    given = GivenOptions(
        model=f"scripted:{folder / 'script.yaml'}", workspace=folder / "work", data_dir=folder / "data", ide=False
    )
    setup = replace(decide(given, may_ask=True), journal=os.environ.get(JOURNAL, ""))
    async with local_agent(setup, rule_for(setup), LocalAgentOptions(takes_over=True)) as engine:
        await CommandLoop(engine).run()


def main() -> None:
    """Run with the arguments of the command line."""
    folder, point, count = (*sys.argv[1:], "", "1")[:3]
    asyncio.run(run(Path(folder), point, int(count)))


if __name__ == "__main__":
    main()
