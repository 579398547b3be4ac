"""Checks after a run: the clients' records against the journal, and the journal against the traces."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from chaos.crash_run import CrashRun, Watched
from isthmus.development_tool import ToolCall, ToolCallStatus
from isthmus.events import ConfirmationAccepted, Prompt, StateChange, ToolCallUpdate, event_to_json
from isthmus.journal.opening import open_journal
from isthmus.journal.port.task_rows import TaskRow


async def check(run: CrashRun) -> None:
    """Raise AssertionError if anything was lost, done twice or left working."""
    journal = await open_journal(run.folder / "data" / "journal.sqlite", run.journal)
    try:
        rows = {row.task_id: row for row in await journal.tasks(1000)}
        assert sorted(task.number for task in run.tasks.values()) == sorted(
            int(row.title.split()[1]) for row in rows.values()
        ), "a prompt made no task, or more than one"
        begun = _lines(run, "begun")
        for line, count in begun.items():
            assert count == 1, f"{line} was begun {count} times"
        traces = _lines(run, "traces")
        for line, count in traces.items():
            assert count == 1, f"{line} took effect {count} times"
        for task in run.tasks.values():
            events = await journal.events(task.task_id, 0, 100_000)
            stored = [(item.seq or 0, json.dumps(event_to_json(item.event), sort_keys=True)) for item in events]
            check_replay(task, rows[task.task_id], stored)
            _check_calls(task, [item.event for item in events], begun, traces)
            assert not await journal.inbox(task.task_id), f"task {task.number} has messages left in its inbox"
    finally:
        await journal.aclose()


def _lines(run: CrashRun, name: str) -> "Counter[str]":
    file = run.folder / name
    return Counter(file.read_text(encoding="utf-8").splitlines() if file.exists() else [])


def check_replay(task: Watched, row: TaskRow, stored: Sequence[tuple[int, str]]) -> None:
    """Raise AssertionError if a task has not ended, or if its journal differs from the events that were seen."""
    assert row.state.is_terminal, f"task {task.number} is left {row.state}"
    assert row.owner is None, f"task {task.number} is still leased"
    assert [seq for seq, _ in stored] == list(range(1, row.seq + 1)), f"the events of task {task.number} have gaps"
    assert task.seen == stored[: len(task.seen)], f"task {task.number} has other events than the journal"
    assert len(task.seen) == len(stored), f"task {task.number}: {len(task.seen)} of {len(stored)} events were seen"


def _check_calls(task: Watched, events: Sequence[Any], begun: "Counter[str]", traces: "Counter[str]") -> None:
    name = f"task {task.number}"
    calls: dict[str, list[ToolCall]] = {}
    for event in events:
        if isinstance(event, ToolCallUpdate):
            calls.setdefault(event.tool_call.tool_call_id, []).append(event.tool_call)
    answered = Counter(event.confirmation.tool_call_id for event in events if isinstance(event, ConfirmationAccepted))
    assert all(count == 1 for count in answered.values()), f"{name}: a call has two answers"
    for call_id, states in calls.items():
        last = states[-1]
        assert last.status.is_final, f"{name}: call {call_id} is left {last.status}"
        assert sum(call.status.is_final for call in states) == 1, f"{name}: call {call_id} ended twice"
        executing = [call for call in states if call.status is ToolCallStatus.EXECUTING]
        if last.tool_name == "list_directory":
            continue
        assert len(executing) <= 1, f"{name}: call {call_id} executed twice"
        started = begun[f"{task.task_id} {call_id}"]
        assert started <= len(executing), f"{name}: call {call_id} began before EXECUTING was stored"
        if last.status is ToolCallStatus.SUCCEEDED:
            assert started == 1, f"{name}: call {call_id} succeeded without having begun"
            command = str(last.input_parameters.get("command", ""))
            if "echo" in command:
                trace = command.split("echo ")[1].split()[0]
                assert traces[trace] == 1, f"{name}: {trace} succeeded and left no trace"
    prompts = [event.text for event in events if isinstance(event, Prompt)]
    assert prompts.count(f"work {task.number}") == 1
    more = prompts.count(f"more {task.number}")
    last_state = [event.state for event in events if isinstance(event, StateChange)][-1]
    if task.acknowledged_more and last_state != "canceled":
        assert more >= 1, f"{name}: its second message is lost"
