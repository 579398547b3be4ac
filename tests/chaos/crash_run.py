"""A run of tasks with commands and edits, in a process that is killed repeatedly until all have ended.

Clients watch, answer, and record the events; afterwards the records are compared with the journal and the traces.
"""

import asyncio
import json
import os
import random
import signal
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chaos.program import JOURNAL
from support.streamed_program import StreamedProgram, streamed_program

SECONDS = 150.0
"""Maximum seconds of a run; one that takes longer hangs, however busy the machine is."""

SCRIPT = """
name: chaos
chunk_characters: 7
scenarios:
  - prompt: '\\Amore (?P<n>\\d+)'
    replies: [{text: 'Also {{n}}.'}]
  - prompt: '\\Awork (?P<n>\\d+)'
    replies:
      - text: First a command, then I look at the folder.
        call: {name: run_shell_command, arguments: {command: 'sleep 0.1; echo {{n}}-a >> TRACES'}}
      - steps:
          - text: Two at once.
          - call: {name: run_shell_command, arguments: {command: 'echo {{n}}-b >> TRACES'}}
          - call: {name: list_directory, arguments: {dir_path: '{{workspace}}'}}
          - call: {name: write_file, arguments: {file_path: '{{workspace}}/file-{{n}}.txt', content: "{{n}}\\n"}}
      - call: {name: run_shell_command, arguments: {command: 'echo {{n}}-c >> TRACES; sleep 0.02'}}
      - text: 'Task {{n}} is done, and that is all that there was to do about it.'
"""
UNTIL_ENDED = ("completed", "failed", "canceled")


class KilledError(Exception):
    """The process was killed before it answered."""


@dataclass
class PlannedKill:
    """A planned kill of the process: at the ``count``-th time of a point in it, or when a client has seen this many
    events; with neither it is not killed."""

    point: str = ""
    count: int = 1
    seen: int = 0


@dataclass
class Watched:
    """A task as the clients see it. ``seen`` are its events as they came, each with its number."""

    task_id: str
    number: int
    seen: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    state: str = ""
    waiting: dict[str, bool] = field(default_factory=dict[str, bool])
    """The calls that ask; True if they are answered."""
    options: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Options of each call that asks."""
    following: bool = False
    executed: int = 0
    more_in_process: int = 0
    sent_more: bool = False
    acknowledged_more: bool = False
    cancelled: bool = False

    @property
    def at(self) -> int:
        """Number of the last event."""
        return self.seen[-1][0] if self.seen else 0

    @property
    def has_ended(self) -> bool:
        """Whether no more events will come."""
        return self.state in UNTIL_ENDED and (not self.sent_more or self.has_more or self.state == "canceled")

    @property
    def has_more(self) -> bool:
        """Whether the task has started with its second message."""
        return any('"Prompt"' in event and "more" in event for _, event in self.seen)


class CrashRun:
    """One run in ``folder``. ``planned_kills`` are those of its processes, in order; the last process is not killed.

    ``prompt`` is the start of a task's message, with its number in place of ``{}``.
    """

    def __init__(
        self,
        folder: Path,
        planned_kills: Sequence[PlannedKill],
        seed: int,
        tasks: int = 4,
        *,
        script: str = SCRIPT,
        prompt: str = "work {}",
        environment: Mapping[str, str] | None = None,
        journal: str = "",
    ) -> None:
        self.folder = folder
        self.journal = journal
        """URL of the journal, if it is in a database."""
        self.traces = folder / "traces"
        self.planned_kills = list(planned_kills)
        self.prompt = prompt
        self._environment = {JOURNAL: journal, **(environment or {})}
        self.kills: Counter[str] = Counter()
        self.tasks: dict[str, Watched] = {}
        self.late_answers = 0
        """Number of answers that came after another client's."""
        self._random = random.Random(seed)  # noqa: S311 - to be repeated
        self._wanted = list(range(tasks))
        self._process: StreamedProgram | None = None
        self._requests: dict[int, asyncio.Future[Any]] = {}
        self._number = 0
        self._events_of_process = 0
        self._process_number = 0
        self._planned_kill = PlannedKill()
        (folder / "work").mkdir(parents=True)
        (folder / "script.yaml").write_text(script.replace("TRACES", str(self.traces)), encoding="utf-8")

    async def play(self) -> None:
        """Run one process after the other until every task has ended."""
        async with asyncio.timeout(SECONDS):
            while not await self._run_process():
                pass

    # --- a process ---

    async def _run_process(self) -> bool:
        """Run one process; return True if all tasks have ended."""
        self._planned_kill = self.planned_kills.pop(0) if self.planned_kills else PlannedKill()
        self._events_of_process = 0
        self._process_number += 1
        with (self.folder / "program.log").open("ab") as log:
            async with streamed_program(
                *(str(self.folder), self._planned_kill.point, str(self._planned_kill.count)),
                folder=self.folder,
                errors=log.fileno(),
                environment={**os.environ, **self._environment},
                program="chaos.program",
            ) as process:
                return await self._play_process(process)

    async def _play_process(self, process: StreamedProgram) -> bool:
        self._process = process
        self._requests = {0: asyncio.get_running_loop().create_future()}
        acting = asyncio.create_task(self._act_until_ended())
        reading = asyncio.create_task(self._read(process))
        try:
            await asyncio.wait({acting, reading}, return_when=asyncio.FIRST_COMPLETED)
            if acting.done() and acting.exception() is None:
                assert process.stdin is not None
                process.stdin.close()
                await process.wait()
                return True
            await reading
            code = await process.wait()
            await asyncio.wait({acting}, timeout=5)
            acting.cancel()
            try:
                await acting
            except* (KilledError, asyncio.CancelledError):
                pass
            if code != -signal.SIGKILL:
                raise AssertionError(f"the program ended with {code}:\n{self.log()}")
            self.kills[self._planned_kill.point or "seen"] += 1
            return False
        finally:
            acting.cancel()
            await asyncio.gather(acting, return_exceptions=True)
            if process.returncode is None:
                process.kill()
            await asyncio.gather(reading, return_exceptions=True)
            await process.wait()

    def log(self) -> str:
        """Return the end of the program's error output."""
        return (self.folder / "program.log").read_text(encoding="utf-8")[-4000:]

    async def _read(self, process: StreamedProgram) -> None:
        while line := await process.stdout.readline():
            try:
                response = json.loads(line)
            except ValueError:
                break  # Cut off by the kill.
            if "ready" in response:
                self._requests[0].set_result(None)
            elif "id" in response:
                self._requests[response["id"]].set_result(response)
            else:
                self._record(process, response)
        for request in self._requests.values():
            if not request.done():
                request.set_exception(KilledError())
                request.exception()  # Marks the exception as retrieved, also without a waiter.

    def _record(self, process: StreamedProgram, response: Mapping[str, Any]) -> None:
        task = self.tasks[response["task"]]
        event = response["event"]
        task.seen.append((response["seq"], json.dumps(event, sort_keys=True)))
        match event["type"]:
            case "StateChange":
                task.state = event["state"].lower().replace("_", "-")
                if task.state != "input-required":
                    task.waiting = {call: done for call, done in task.waiting.items() if not done}
            case "ToolCallUpdate":
                call = event["tool_call"]
                if call["status"] == "PENDING" and "confirmation_request" in call:
                    task.waiting.setdefault(call["tool_call_id"], False)
                    options = call["confirmation_request"]["options"]
                    task.options[call["tool_call_id"]] = [option["id"] for option in options]
                else:
                    task.waiting.pop(call["tool_call_id"], None)
                if call["status"] == "EXECUTING" and call["tool_name"] != "list_directory":
                    task.executed += 1
            case _:
                pass
        self._events_of_process += 1
        if self._events_of_process == self._planned_kill.seen and process.returncode is None:
            process.kill()

    async def _ask(self, **request: object) -> Any:
        """Return the response to a request; raises DiedError if the process is killed first."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._number += 1
        request["id"] = self._number
        future = asyncio.get_running_loop().create_future()
        self._requests[self._number] = future
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        return await future

    # --- the clients ---

    async def _act_until_ended(self) -> None:
        await self._requests[0]
        await self._begin()
        while True:
            async with asyncio.TaskGroup() as group:
                for task in self.tasks.values():
                    group.create_task(self._watch(task))
            # A message without an acknowledgement is sent again, so there may be two.
            behind = False
            for task_id, _, state, seq in (await self._ask(do="tasks"))["result"]:
                task = self.tasks[task_id]
                if seq > task.at or state not in UNTIL_ENDED:
                    task.state, behind = "", True
            if not behind:
                return

    async def _begin(self) -> None:
        """Find the existing tasks, and make the missing ones: each exactly once, even if its maker died."""
        found = (await self._ask(do="tasks"))["result"]
        for task_id, title, _, _ in found:
            number = int(title.split()[1])
            self.tasks.setdefault(task_id, Watched(task_id, number))
        known = {task.number for task in self.tasks.values()}
        for number in [number for number in self._wanted if number not in known]:
            task_id = (await self._ask(do="prompt", text=self.prompt.format(number)))["result"]
            self.tasks[task_id] = Watched(task_id, number)

    async def _watch(self, task: Watched) -> None:
        """Follow a task over its questions to its end, answering as two clients at once."""
        aside: list[asyncio.Task[Any]] = []
        try:
            while not task.has_ended:
                following = asyncio.create_task(self._ask(do="follow", task=task.task_id, after=task.at))
                aside.append(following)
                while not following.done():
                    await asyncio.wait({following}, timeout=0.005)
                    aside += self._disturb(task)
                response = following.result()
                if "error" in response:
                    raise AssertionError(f"task {task.number} cannot be followed after {task.at}: {response['error']}")
                open_calls = [call for call, is_answered in task.waiting.items() if not is_answered]
                if task.state == "input-required" and open_calls:
                    await self._answer(task, self._random.choice(open_calls))
            await asyncio.gather(*aside)
        finally:
            for item in aside:
                item.cancel()
            await asyncio.gather(*aside, return_exceptions=True)

    def _disturb(self, task: Watched) -> "list[asyncio.Task[None]]":
        """Send more messages or cancel while a task works, as other clients do; again after a kill."""
        if (
            task.number % 4 == 1
            and task.executed >= 1
            and task.more_in_process < self._process_number
            and not task.has_more
        ):
            task.more_in_process = self._process_number
            if not task.acknowledged_more:
                task.sent_more = True
                return [asyncio.create_task(self._send_more(task))]
        if task.number % 4 == 3 and task.executed >= 2 and not task.cancelled:
            task.cancelled = True
            return [asyncio.create_task(self._cancel(task))]
        return []

    async def _answer(self, task: Watched, call: str) -> None:
        option = "cancel" if self._random.random() < 0.15 else task.options[call][0]
        answers = [
            self._ask(do="answer", task=task.task_id, call=call, option=option, by=client) for client in ("one", "two")
        ]
        responses = await asyncio.gather(*answers)
        refused = [item["error"] for item in responses if "error" in item]
        for error in refused:
            if "is not waiting for an answer" not in error:
                raise AssertionError(f"an answer to {call} of task {task.number} was refused: {error}")
        if len(refused) == 1:
            self.late_answers += 1
            task.waiting[call] = True
        # Both refused: it was answered in an earlier process, and the events with that answer are on their way.

    async def _send_more(self, task: Watched) -> None:
        response = await self._ask(do="prompt", text=f"more {task.number}", task=task.task_id)
        if "error" in response:
            raise AssertionError(response["error"])
        task.acknowledged_more = True

    async def _cancel(self, task: Watched) -> None:
        response = await self._ask(do="cancel", task=task.task_id)
        if "error" in response and "only one that works or waits" not in response["error"]:
            raise AssertionError(response["error"])
