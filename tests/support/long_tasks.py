"""Tasks with very many or very large events, written straight into the journal of a server that does not run yet."""

import asyncio
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

from isthmus.development_tool import AgentThought, FileDiff, ToolCall, ToolCallStatus, ToolOutput
from isthmus.events import AgentEvent, Prompt, StateChange, TaskState, TextContent, Thought, ToolCallUpdate
from isthmus.journal.port.task_rows import NewTask
from isthmus.journal.sqlite.journal import SqliteJournal
from isthmus.parts.files.task_files import TaskFiles
from isthmus.programs.agent.local_agent import AGENT

EVENTS_PER_ROUND = 16
PARAGRAPH = "It *was* a long `night`, and the tide came in.\n\n"


def long_task(count: int) -> Iterator[AgentEvent]:
    """Yield about ``count`` events as a task of many hours has them: texts, thoughts, calls with outputs and diffs."""
    for number in range(count // EVENTS_PER_ROUND):
        yield Thought(AgentThought(f"Step {number}", "Look at the files, **then** decide. " * 5))
        for piece in range(8):
            yield TextContent(f"text-{number}", f"Part {number}.{piece}. {PARAGRAPH}")
        yield from _call(f"shell-{number}", "run_shell_command", {"command": f"make step-{number}"}, _output(number))
        yield from _call(f"edit-{number}", "replace", {"file_path": "/w/a.py", "instruction": "Go"}, _diff(number))
        yield TextContent(f"last-{number}", f"Step {number} is over.")


def _call(call_id: str, tool: str, parameters: dict[str, object], output: ToolOutput) -> Iterator[ToolCallUpdate]:
    for status in (ToolCallStatus.PENDING, ToolCallStatus.EXECUTING):
        yield ToolCallUpdate(ToolCall(call_id, status, tool, parameters))
    yield ToolCallUpdate(ToolCall(call_id, ToolCallStatus.SUCCEEDED, tool, parameters, output=output))


def _output(number: int) -> ToolOutput:
    return ToolOutput(text="".join(f"line {line} of step {number}: all is well\n" for line in range(50)))


def _diff(number: int) -> ToolOutput:
    before = "".join(f"value_{line} = {line}\n" for line in range(60))
    after = before.replace("value_7 = 7", f"value_7 = {number}")
    return ToolOutput(diff=FileDiff("a.py", f"/w/src/module_{number % 40}.py", after, before))


def huge_events(size: int) -> Sequence[AgentEvent]:
    """Return events with a line and an output of ``size`` characters, and others of a fifth of it."""
    line = "x" * size
    smaller = line[: size // 5]
    return [
        TextContent("line", line),
        TextContent("stars", "**[_`" * (size // 25)),
        *_call("huge", "run_shell_command", {"command": f"echo {smaller}"}, ToolOutput(text=line)),
        *_call("diff", "write_file", {"file_path": "/w/a"}, ToolOutput(diff=FileDiff("a", "/w/a", smaller))),
        TextContent("after", "The huge part is over."),
    ]


def seed(data_dir: Path, workspace: Path, task_id: str, events: Iterable[AgentEvent], prompt: str) -> None:
    """Write a completed task of the local user into the journal in a data folder."""

    async def write() -> None:
        data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        journal = await SqliteJournal.open(TaskFiles(data_dir).journal, agent=(AGENT,))
        try:
            task = NewTask(task_id, f"context-{task_id}", str(workspace), "a long task")
            claimed = await journal.create(task, [Prompt(f"m-{task_id}", prompt, None)], "seed", 600)
            await journal.append(claimed.lease, [StateChange(TaskState.WORKING)])
            remaining = iter(events)
            while batch := list(islice(remaining, 500)):
                await journal.append(claimed.lease, batch)
            await journal.finish(claimed.lease, [StateChange(TaskState.COMPLETED)], [])
        finally:
            await journal.aclose()

    # A thread of its own: Playwright runs an event loop in that of the test.
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: asyncio.run(write())).result()


def seed_history(data_dir: Path, workspace: Path, prompts: Sequence[str], together: int = 0) -> None:
    """Store an ended task for each prompt, a minute after the one before; ids count from 0.

    The title is the prompt's first line. The last tasks, as many as ``together``, are one session.
    """
    first = time.time() - 60 * len(prompts)
    at = first

    async def store() -> None:
        nonlocal at
        data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        journal = await SqliteJournal.open(TaskFiles(data_dir).journal, lambda: at, agent=(AGENT,))
        try:
            for number, prompt in enumerate(prompts):
                at = first + 60 * number
                session = f"session-{number}" if number < len(prompts) - together else "together"
                task = NewTask(f"past-{number}", session, str(workspace), prompt.splitlines()[0])
                claimed = await journal.create(task, [Prompt(f"m-{number}", prompt, None)], "here", 60)
                await journal.finish(claimed.lease, [StateChange(TaskState.COMPLETED)], [])
        finally:
            await journal.aclose()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: asyncio.run(store())).result()
