"""Appendix A of the RFC played step by step by a client that knows nothing else, and its neighbours.

The server's model is scripted by the caller: it calls write_file after the prompt, and says the final text
when it has the result. Each expectation names the section of the RFC that it rests on.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from support.rfc_client import CommandRun, RfcClient, Stream
from support.rfc_commands import CommandStatus, SlashCommand
from support.rfc_events import ConfirmationRequest, Event, FileDiff, Kind, State, Task, ToolCall

Item = Task | Event

FIRST_HALF = [
    "Task submitted",
    "STATE_CHANGE working",
    "TOOL_CALL_UPDATE PENDING",
    "STATE_CHANGE input-required final",
]
SECOND_HALF = [
    "TOOL_CALL_UPDATE EXECUTING",
    "TOOL_CALL_UPDATE SUCCEEDED",
    "TEXT_CONTENT",
    "STATE_CHANGE completed final",
]
# How a stream that continues a task begins is left open: with its Task, with 'working', with both, or at once.
BEGINNINGS = ("Task submitted", "Task working", "STATE_CHANGE working")


@dataclass(frozen=True)
class Script:
    """Words of the user and of the model; the file name is relative to the workspace."""

    prompt: str
    file_name: str
    content: str
    final_text: str


@dataclass(frozen=True)
class Waiting:
    """A task that waits for the user (after step 4): all that its client has to remember."""

    task_id: str
    context_id: str
    tool_call: ToolCall
    items: tuple[Item, ...]


def run_appendix_a(
    client: RfcClient, workspace: Path, script: Script, follow_up: str, follow_up_text: str
) -> list[Item]:
    """Play steps 1 to 10, and return the items of the three streams."""
    waiting = first_half(client, workspace, script)
    after = second_half(client, waiting, workspace, script)
    return [*waiting.items, *after, *continue_completed(client, waiting, follow_up, follow_up_text)]


def first_half(client: RfcClient, workspace: Path, script: Script) -> Waiting:
    """Play steps 1 to 4, and return what a client needs to answer later."""
    items = list(client.start(script.prompt, str(workspace)))
    waiting = check_first_half(items, workspace, script)
    check_waiting_task(client, waiting)
    return waiting


def second_half(
    client: RfcClient, waiting: Waiting, workspace: Path, script: Script, new_content: str | None = None
) -> list[Item]:
    """Play steps 5 to 9, with a client that may be new; with new content, the user changed the file's."""
    check_waiting_task(client, waiting)
    items = list(_approve(client, waiting, new_content))
    check_second_half(items, waiting, workspace, script, new_content)
    assert client.get(waiting.task_id).state is State.COMPLETED
    return items


def continue_completed(client: RfcClient, waiting: Waiting, follow_up: str, follow_up_text: str) -> list[Item]:
    """Play step 10: a completed task is continued by another message with the same taskId."""
    items = list(client.continue_task(waiting.task_id, waiting.context_id, follow_up))
    lines = [line for line in outline(items) if line not in BEGINNINGS]
    assert lines == ["TEXT_CONTENT", "STATE_CHANGE completed final"], outline(items)
    assert joined_text(items) == follow_up_text
    _check_no_errors(items)
    return items


def run_two_at_once(
    client: RfcClient, workspaces: tuple[Path, Path], scripts: tuple[Script, Script]
) -> tuple[list[Item], list[Item]]:
    """Play steps 1 to 9 in two tasks whose streams are open at once; the second one is approved first."""
    first, second = (client.start(script.prompt, str(path)) for script, path in zip(scripts, workspaces, strict=True))
    before = _read_in_turns((first, second))
    one = check_first_half(before[0], workspaces[0], scripts[0])
    two = check_first_half(before[1], workspaces[1], scripts[1])
    assert one.task_id != two.task_id, "each Task has a new taskId (Appendix A, step 2)"
    assert one.context_id != two.context_id, "a message without contextId begins a context of its own (A2A)"
    check_waiting_task(client, one)
    check_waiting_task(client, two)
    second = _approve(client, two)
    after = _read_in_turns((_approve(client, one), second))
    check_second_half(after[0], one, workspaces[0], scripts[0])
    check_second_half(after[1], two, workspaces[1], scripts[1])
    return before[0] + after[0], before[1] + after[1]


def run_reconnected(client: RfcClient, workspace: Path, script: Script) -> list[Item]:
    """Lose the first stream after its Task, read on by tasks/resubscribe, and play the rest; return what was read."""
    stream = client.start(script.prompt, str(workspace))
    task = next(stream)
    stream.close()
    rest = list(client.resubscribe(task.task_id))
    assert outline(rest)[-1] in (FIRST_HALF[-1], "Task input-required"), outline(rest)
    shown = client.get(task.task_id)
    assert shown.state is State.INPUT_REQUIRED, shown
    assert len(shown.tool_calls) == 1, f"the waiting ToolCall is in the task's status message (3.2): {shown}"
    _check_request(shown.tool_calls[0], workspace, script)
    waiting = Waiting(shown.task_id, shown.context_id, shown.tool_calls[0], (task, *rest))
    return [*waiting.items, *second_half(client, waiting, workspace, script)]


def run_cancelled(client: RfcClient, workspace: Path, script: Script) -> list[Item]:
    """Play steps 1 to 4, and answer with a cancellation: the execution is skipped."""
    waiting = first_half(client, workspace, script)
    call = waiting.tool_call
    request = _request(call)
    assert "cancel" in request.options, f"the client answers cancel (ConfirmationOption): {request}"
    items = list(client.confirm(waiting.task_id, waiting.context_id, call.tool_call_id, "cancel"))
    lines = outline(items)
    assert lines[0] == "TOOL_CALL_UPDATE CANCELLED", lines
    assert "TOOL_CALL_UPDATE EXECUTING" not in lines, lines
    assert not (workspace / script.file_name).exists(), "a cancelled call does not execute (Tool Call Lifecycle)"
    return [*waiting.items, *items]


def run_startup(client: RfcClient) -> tuple[SlashCommand, ...]:
    """Ask for the slash commands, before any session."""
    commands = client.commands()
    names = [each.name for each in commands]
    assert names, "an agent with slash commands lists them (3.3)"
    assert len(set(names)) == len(names), names
    assert not any("/" in name or " " in name for name in names), "the path of /memory add is ['memory', 'add'] (3.3)"
    return commands


def run_command(client: RfcClient, path: list[str], args: str) -> tuple[CommandRun, list[Item]]:
    """Execute a slash command that asks nothing, up to its end."""
    run = client.execute(path, args)
    assert run.start.status is CommandStatus.STARTED, run.start
    assert run.stream is not None
    items = list(run.stream)
    assert outline(items)[-1] == "STATE_CHANGE completed final", outline(items)
    _check_no_errors(items)
    return run, items


def check_first_half(items: Sequence[Item], workspace: Path, script: Script) -> Waiting:
    """Check the stream of steps 2 to 4, and return the task that waits."""
    assert outline(items) == FIRST_HALF, outline(items)
    pending = items[2]
    assert isinstance(pending, Event)
    assert pending.state in (State.WORKING, State.INPUT_REQUIRED), pending
    assert pending.model, f"metadata.model is the model used for the event (Event Metadata): {pending}"
    asked = [item for item in items if item.state is State.INPUT_REQUIRED and pending.tool_call in item.tool_calls]
    assert asked, "an event has the state 'input-required', and the ConfirmationRequest in its message (3.2)"
    _check_request(pending.tool_call, workspace, script)
    assert not (workspace / script.file_name).exists(), "nothing is written before the user approves"
    _check_no_errors(items)
    return Waiting(pending.task_id, pending.context_id, pending.tool_call, tuple(items))


def check_waiting_task(client: RfcClient, waiting: Waiting) -> None:
    """Check that tasks/get shows the state, and the whole ToolCall that waits."""
    task = client.get(waiting.task_id)
    assert (task.context_id, task.state) == (waiting.context_id, State.INPUT_REQUIRED), task
    assert task.tool_calls == (waiting.tool_call,), f"the task's status message has the waiting ToolCall (3.2): {task}"


def check_second_half(
    items: Sequence[Item], waiting: Waiting, workspace: Path, script: Script, new_content: str | None = None
) -> None:
    """Check the stream of steps 7 to 9, and the file."""
    content = script.content if new_content is None else new_content
    path = workspace / script.file_name
    assert outline(items) == SECOND_HALF, outline(items)
    for item in items[:-1]:
        assert isinstance(item, Event)
        assert item.state is State.WORKING, f"a task that executes and answers is 'working' (A2A): {item}"
        assert item.model, f"metadata.model is the model used for the event (Event Metadata): {item}"
    calls = [call for item in items for call in item.tool_calls]
    for call in calls:
        assert (call.tool_call_id, call.tool_name) == (waiting.tool_call.tool_call_id, waiting.tool_call.tool_name)
    output = calls[-1].output
    assert isinstance(output, FileDiff), f"a call that changed a file has a diff for output (ToolOutput): {calls[-1]}"
    assert Path(output.file_path).resolve() == path.resolve(), output
    assert output.new_content == content, output
    assert path.read_text(encoding="utf-8") == content
    assert joined_text(items) == script.final_text
    _check_no_errors(items)


def outline(items: Sequence[Item]) -> list[str]:
    """Return a line for each item; a run of texts, or of updates of a running tool, is one line."""
    lines: list[str] = []
    for item in items:
        match item:
            case Task():
                line = f"Task {item.state}"
            case Event(kind=Kind.STATE_CHANGE):
                line = f"STATE_CHANGE {item.state}{' final' if item.final else ''}"
            case Event(kind=Kind.TOOL_CALL_UPDATE | Kind.TOOL_CALL_CONFIRMATION):
                line = f"{item.kind} {item.tool_call.status}"
            case Event():
                line = str(item.kind)
        if not (lines[-1:] == [line] and line in ("TEXT_CONTENT", "TOOL_CALL_UPDATE EXECUTING")):
            lines.append(line)
    return lines


def joined_text(items: Sequence[Item]) -> str:
    """Return the text of the TEXT_CONTENT events."""
    return "".join(item.text for item in items if isinstance(item, Event) and item.kind is Kind.TEXT_CONTENT)


def _request(call: ToolCall) -> ConfirmationRequest:
    request = call.confirmation_request
    assert request is not None, f"the PENDING call has a populated confirmation_request (Appendix A, step 4): {call}"
    return request


def _check_request(call: ToolCall, workspace: Path, script: Script) -> None:
    """Check that a call of write_file shows the user the whole change, and offers the RFC's own option."""
    request = _request(call)
    path = workspace / script.file_name
    assert call.tool_name == "write_file", call
    assert script.content in call.input_parameters.values(), f"input_parameters are the LLM's (ToolCall): {call}"
    assert "proceed_once" in request.options, f"the client answers proceed_once (Appendix A, step 6): {request}"
    assert request.details_field == "file_edit_details", request
    diff = request.details
    assert isinstance(diff, FileDiff)
    assert Path(diff.file_path).is_absolute(), f"file_path is absolute (FileDiff): {diff}"
    assert Path(diff.file_path).resolve() == path.resolve(), diff
    assert diff.file_name in (path.name, script.file_name), diff
    assert diff.new_content == script.content, diff
    assert not diff.old_content, f"old_content is there if the file exists (FileDiff): {diff}"


def _approve(client: RfcClient, waiting: Waiting, new_content: str | None = None) -> Stream:
    call_id = waiting.tool_call.tool_call_id
    return client.confirm(waiting.task_id, waiting.context_id, call_id, "proceed_once", new_content)


def _read_in_turns(streams: tuple[Stream, Stream]) -> tuple[list[Item], list[Item]]:
    """Read an item of one stream, then of the other, until both have ended."""
    read: tuple[list[Item], list[Item]] = ([], [])
    open_streams = {0, 1}
    while open_streams:
        for index in sorted(open_streams):
            item = next(streams[index], None)
            if item is None:
                open_streams.discard(index)
            else:
                read[index].append(item)
    return read


def _check_no_errors(items: Sequence[Item]) -> None:
    errors = [item for item in items if isinstance(item, Event) and item.error is not None]
    assert not errors, f"metadata.error is for an unexpected error in the execution (Event Metadata): {errors}"
