"""The dialect ``coderAgent`` as pure functions: the updates for any course of a task, and the decoded requests."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.a2a.coder_agent.calls import root_commands
from isthmus.a2a.coder_agent.commands import encode_command, encode_result, find_command
from isthmus.a2a.coder_agent.encoder import CoderAgentEncoder, encode_task
from isthmus.a2a.coder_agent.requests import choose_options, settings_of
from isthmus.a2a.coder_agent.reservations import Reservations
from isthmus.a2a.coder_agent.vocabulary import (
    STATUSES,
    AnswerOutcome,
    CallStatus,
    call_of_artifact,
    option_id_of,
    outcome_of,
    output_artifact,
    status_of,
)
from isthmus.client import Delivery, HistoryMessage, InvalidRequest, TaskSnapshot
from isthmus.development_tool import (
    ConfirmationOption,
    ConfirmationRequest,
    ErrorDetails,
    ModifiedFileDetails,
    SlashCommand,
    SlashCommandArgument,
    ToolCall,
    ToolCallConfirmation,
    ToolCallStatus,
    ToolOutput,
)
from isthmus.events import AgentEvent, AgentMessage, Prompt, StateChange, TaskState, TextContent, ToolCallUpdate
from support.memory_agent import write_file_call

NEXT: dict[str, set[str]] = {
    "": {"validating"},
    "validating": {"scheduled", "awaiting_approval", "success", "error", "cancelled"},
    "awaiting_approval": {"scheduled", "error", "cancelled", "success"},
    "scheduled": {"executing"},
    "executing": {"success", "error", "cancelled"},
    "success": set(),
    "error": set(),
    "cancelled": set(),
}
"""Statuses that the scheduler of that server may send for a call after each status."""

QUESTION = ConfirmationRequest((ConfirmationOption("proceed_once", "Once"), ConfirmationOption("cancel", "No")))


def snapshot(state: TaskState = TaskState.WORKING, seq: int = 0, **more: Any) -> TaskSnapshot:
    """Return a task."""
    return TaskSnapshot("task", "context", state, seq, "/workspace", 0.0, 0.0, **more)


def life(call_id: str, asks: bool, end: ToolCallStatus, runs: bool) -> list[AgentEvent]:
    """Return the events of one call."""
    call = ToolCall(call_id, ToolCallStatus.PENDING, "write_file", {})
    told = [
        ToolCall(call_id, ToolCallStatus.PENDING, "write_file", {}, confirmation_request=QUESTION if asks else None)
    ]
    if runs or end is ToolCallStatus.SUCCEEDED:
        told.append(ToolCall(call_id, ToolCallStatus.EXECUTING, "write_file", {}))
        told.append(ToolCall(call_id, ToolCallStatus.EXECUTING, "write_file", {}, live_content="..."))
    output = ToolOutput(text="done") if end is ToolCallStatus.SUCCEEDED else None
    error = ErrorDetails("no") if end is ToolCallStatus.FAILED else None
    told.append(ToolCall(call.tool_call_id, end, "write_file", {}, output=output, error=error))
    return [ToolCallUpdate(item) for item in told]


@st.composite
def courses(draw: st.DrawFn) -> list[AgentEvent]:
    """Return any course of a task: turns of texts and batches of calls whose events are interleaved."""
    events: list[AgentEvent] = []
    for turn in range(draw(st.integers(1, 3))):
        events += [Prompt(f"m{turn}", "go"), StateChange(TaskState.WORKING)]
        ends = st.sampled_from((ToolCallStatus.SUCCEEDED, ToolCallStatus.FAILED, ToolCallStatus.CANCELLED))
        lives = [
            life(f"call-{turn}-{index}", draw(st.booleans()), draw(ends), draw(st.booleans()))
            for index in range(draw(st.integers(0, 3)))
        ]
        while any(lives):
            chosen = draw(st.sampled_from([item for item in lives if item]))
            events.append(chosen.pop(0))
            if draw(st.integers(0, 5)) == 0:
                events += [StateChange(TaskState.INPUT_REQUIRED), StateChange(TaskState.WORKING)]
        events.append(TextContent(f"t{turn}", "said"))
        events.append(StateChange(TaskState.COMPLETED))
    return events


def deliveries(events: Sequence[AgentEvent]) -> list[Delivery]:
    """Return events with their numbers; progress has none."""
    found: list[Delivery] = []
    seq = 0
    for event in events:
        is_kept = not (isinstance(event, ToolCallUpdate) and event.is_ephemeral)
        seq += is_kept
        found.append(Delivery(seq if is_kept else None, 0.0, event))
    return found


def encoded(items: Sequence[Delivery], start: TaskSnapshot) -> list[list[dict[str, Any]]]:
    """Return the updates for each delivery of a stream."""
    encoder = CoderAgentEncoder(start)
    return [list(encoder.encode(item)) for item in items]


def statuses(told: Sequence[dict[str, Any]]) -> dict[str, list[str]]:
    """Return the statuses sent for each call, in order."""
    found: dict[str, list[str]] = {}
    for item in told:
        for part in item.get("status", {}).get("message", {}).get("parts", []):
            if "request" in part.get("data", {}):
                found.setdefault(part["data"]["request"]["callId"], []).append(part["data"]["status"])
    return found


@given(courses())
def test_every_call_is_told_as_that_servers_scheduler_may_tell_it(course: list[AgentEvent]) -> None:
    told = [item for items in encoded(deliveries(course), snapshot()) for item in items]
    for order in statuses(told).values():
        for before, after in zip(["", *order], order, strict=False):
            assert after in NEXT[before], order
        assert NEXT[order[-1]] == set()
    states = {item["status"]["state"] for item in told if "status" in item}
    assert states <= {"working", "input-required"}
    texts = [item for item in told if item.get("metadata", {}).get("coderAgent", {}).get("kind") == "text-content"]
    assert {item["status"]["state"] for item in texts} == {"working"}


@given(courses())
def test_a_replay_from_the_first_event_says_what_the_stream_said_at_any_time(
    course: list[AgentEvent],
) -> None:
    items = deliveries(course)
    kept = [item for item in items if item.seq is not None]
    pending = (write_file_call("call-0-0"),)
    late = snapshot(TaskState.INPUT_REQUIRED, seq=kept[-1].seq or 0, pending=pending)
    live = [told for item, told in zip(items, encoded(items, snapshot()), strict=True) if item.seq is not None]
    assert encoded(kept, late) == live


@given(st.text(min_size=1))
def test_the_artifact_of_a_call_names_it(call_id: str) -> None:
    assert call_of_artifact(output_artifact(call_id)) == call_id


@pytest.mark.parametrize("artifact_id", ["report", "tool-output", "tool--output", "tool-x", "x-output"])
def test_another_artifact_names_no_call(artifact_id: str) -> None:
    assert call_of_artifact(artifact_id) is None


@pytest.mark.parametrize("status", list(ToolCallStatus)[1:])
def test_a_status_goes_there_and_back(status: ToolCallStatus) -> None:
    assert STATUSES[status_of(ToolCall("c", status, "t", {}))] is status
    assert STATUSES.keys() == set(CallStatus)


def unstated(*ids: str) -> list[ConfirmationOption]:
    return [ConfirmationOption(each, each) for each in ids]


@pytest.mark.parametrize("value", [outcome.value for outcome in AnswerOutcome])
def test_an_outcome_that_is_offered_by_its_own_name_is_that_option(value: str) -> None:
    assert option_id_of(AnswerOutcome(value), unstated(value)) == value
    assert outcome_of(value) is AnswerOutcome(value)


@pytest.mark.parametrize(
    ("outcome", "option_id"),
    [
        (AnswerOutcome.PROCEED_ONCE, "o-2"),
        (AnswerOutcome.PROCEED_ALWAYS, "o-1"),
        (AnswerOutcome.PROCEED_ALWAYS_TOOL, "o-2"),
        (AnswerOutcome.PROCEED_ALWAYS_SERVER, "o-2"),
        (AnswerOutcome.CANCEL, "o-3"),
        (AnswerOutcome.MODIFY_WITH_EDITOR, None),
    ],
)
def test_an_outcome_is_the_option_that_states_its_kind(outcome: AnswerOutcome, option_id: str | None) -> None:
    kinds = ("allow_always", "allow_once", "reject_once", "reject_always")
    options = [ConfirmationOption(f"o-{number}", "x", kind=kind) for number, kind in enumerate(kinds, 1)]
    assert option_id_of(outcome, options) == option_id


def test_no_outcome_grants_more_than_it_says() -> None:
    wide = unstated("proceed_always_server", "proceed_always_tool", "proceed_always_prefix")
    assert option_id_of(AnswerOutcome.PROCEED_ONCE, wide) is None
    assert option_id_of(AnswerOutcome.CANCEL, (*unstated("proceed_once"), *wide)) is None
    assert option_id_of(AnswerOutcome.PROCEED_ALWAYS_TOOL, unstated("proceed_always_server")) is None
    assert option_id_of(AnswerOutcome.PROCEED_ONCE, [ConfirmationOption("allow", "Allow", kind="allow_always")]) is None
    assert outcome_of("proceed_always_prefix") is AnswerOutcome.PROCEED_ALWAYS
    assert outcome_of("unknown") is None


def test_new_content_counts_for_edits_alone() -> None:
    edited = ToolCallConfirmation("call-1", "proceed_once", ModifiedFileDetails("mine"))
    plain = ToolCall("call-1", ToolCallStatus.PENDING, "deploy", {}, confirmation_request=QUESTION)
    assert choose_options([write_file_call()], [edited]) == (edited,)
    assert choose_options([plain], [edited]) == (ToolCallConfirmation("call-1", "proceed_once"),)


def test_an_answer_that_no_option_fits_is_refused() -> None:
    request = ConfirmationRequest((ConfirmationOption("deploy", "Deploy"),))
    call = ToolCall("call-1", ToolCallStatus.PENDING, "deploy", {}, confirmation_request=request)
    with pytest.raises(InvalidRequest, match="expected one of deploy"):
        choose_options([call], [ToolCallConfirmation("call-1", "proceed_once")])


def test_settings_become_ours() -> None:
    assert settings_of({}) == {"dialect": "coderAgent"}
    stated = {"kind": "agent-settings", "workspacePath": "/w", "autoExecute": True}
    assert settings_of(stated) == {"dialect": "coderAgent", "workspace_path": "/w", "approval_mode": "yolo"}
    assert "approval_mode" not in settings_of({"autoExecute": False})


@pytest.mark.parametrize(
    ("command", "roots"),
    [
        ("git status", "git"),
        ("echo one; sleep 2 && echo two | wc -l", "echo, sleep, wc"),
        ("FOO=1 /usr/bin/make all", "make"),
        ("  ", ""),
    ],
)
def test_the_programs_of_a_command_are_named_once(command: str, roots: str) -> None:
    assert root_commands(command) == roots


def test_a_task_without_history_says_its_last_text() -> None:
    history = (HistoryMessage("m1", "user", "Hello"), HistoryMessage("m2", "agent", "Hello to you."))
    task = encode_task(snapshot(TaskState.COMPLETED, history=history), 0)
    assert task["status"]["message"]["parts"] == [{"kind": "text", "text": "Hello to you."}]
    assert (task["status"]["state"], task["history"]) == ("input-required", [])
    assert "message" not in encode_task(snapshot(TaskState.COMPLETED, history=history))["status"]


def test_a_reservation_is_taken_once_and_belongs_to_its_user() -> None:
    reservations = Reservations(limit=2)
    first, second = reservations.make("context", {}, "ada"), reservations.make(None, {}, "bob")
    assert [each.task_id for each in reservations.of("ada")] == [first.task_id]
    assert reservations.get(first.task_id, "bob") is None
    assert reservations.get(first.task_id, "ada") == first
    reservations.fulfil(first.task_id)
    assert reservations.get(first.task_id, "ada") is None
    kept = reservations.make(None, {}, "ada")
    reservations.make(None, {}, "bob")
    reservations.make(None, {}, "bob")
    assert reservations.get(second.task_id, "bob") is None
    assert reservations.get(kept.task_id, "bob") is None
    assert reservations.get(kept.task_id, "ada") == kept


TREE = (
    SlashCommand("memory", "Memory", sub_commands=(SlashCommand("show", "Show"), SlashCommand("add", "Add"))),
    SlashCommand("restore", "Restore", arguments=(SlashCommandArgument("id", "Which one"),)),
)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("memory show", (("memory", "show"), ())),
        ("memory", (("memory", "show"), ())),
        ("restore list", (("restore",), ())),
        ("restore some id", (("restore",), ("some", "id"))),
        ("memory nonsense", None),
        ("nonsense", None),
        ("", None),
    ],
)
def test_a_command_is_found_by_its_whole_name(name: str, found: object) -> None:
    assert find_command(name, TREE) == found


def test_commands_are_listed_with_whole_names() -> None:
    memory, restore = (encode_command(command) for command in TREE)
    assert [below["name"] for below in memory["subCommands"]] == ["memory show", "memory add"]
    assert restore["arguments"] == [{"name": "id", "description": "Which one", "isRequired": False}]


@pytest.mark.parametrize(
    ("name", "events", "result"),
    [
        ("about", [AgentMessage("m", "It is."), StateChange(TaskState.COMPLETED)], {"name": "about", "data": "It is."}),
        ("about", [StateChange(TaskState.FAILED, "Broken.")], "Broken."),
        ("about", [StateChange(TaskState.WORKING)], "about continues as task t; follow it with tasks/resubscribe"),
        (
            "restore",
            [StateChange(TaskState.FAILED, "None.")],
            {"name": "restore", "data": {"type": "message", "messageType": "error", "content": "None."}},
        ),
    ],
)
def test_a_command_has_one_value_to_say_or_an_error(name: str, events: list[AgentEvent], result: object) -> None:
    assert encode_result(name, "t", events) == result


def test_a_command_that_asks_says_how_to_answer() -> None:
    assert "answer task t" in str(encode_result("deploy", "t", [StateChange(TaskState.INPUT_REQUIRED)]))
