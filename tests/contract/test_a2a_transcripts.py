"""The golden transcripts, replayed both ways: against the server over a real socket, and into the client's decoder."""

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from isthmus.a2a.protocol.extension import URI
from isthmus.a2a.v03 import decoder as v03_decoder
from isthmus.a2a.v1 import decoder as v1_decoder
from isthmus.development_tool import ConfirmationRequest, ToolCall, ToolCallStatus
from isthmus.encoding.codec import to_json
from isthmus.events import AgentEvent, StateChange, TaskState, TextContent, Thought, ToolCallUpdate
from support.client_decoding import Decoding, decoded_snapshot
from support.script_agent import serve_with
from support.transcript import exchanges, read_transcript, with_names, with_values, without_wording
from support.wire_scenes import SCENES

pytestmark = pytest.mark.anyio

WORKSPACE = "/workspace"
CLIENT_NAMES = {
    "WORKSPACE": WORKSPACE,
    "TASK": "t",
    "CONTEXT": "c",
    "TIME": "2026-01-01T00:00:00.000Z",
    "MESSAGE": "m",
}
DECODERS = {"": v03_decoder, "_v1": v1_decoder}
DETAILS = {
    "appendix_a": "file_edit_details",
    "confirm_file_edit": "file_edit_details",
    "confirm_execute": "execute_details",
    "confirm_mcp": "mcp_details",
    "confirm_generic": "generic_details",
}


def task_in(result: dict[str, Any]) -> dict[str, Any] | None:
    """Return the Task of a stream item of either version."""
    return result if result.get("kind") == "task" else result.get("task")


@pytest.mark.requirement("A2A-135", "A2A-142", "A2A-144", "A2A-147")
@pytest.mark.parametrize("kind", ["memory", "engine"])
@pytest.mark.parametrize("version", DECODERS)
@pytest.mark.parametrize("name", SCENES)
async def test_the_server_speaks_as_it_is_written(
    name: str, version: str, kind: str, workspace: Path, tmp_path: Path, agent_kind: str
) -> None:
    values = {"WORKSPACE": str(workspace)}
    steps = SCENES[name].steps(str(workspace))
    async with serve_with(kind, tmp_path)(lambda _: steps) as server:
        for request, expected in exchanges(read_transcript(name + version)):
            items = await server.stream(request["method"], with_values(request["params"], values))
            if (task := task_in(items[0].result)) is not None:
                values |= {"TASK": task["id"], "CONTEXT": task["contextId"]}
            names = {value: name for name, value in values.items()}
            received = [{"server": with_names(item.result, names), "has_id": item.id is not None} for item in items]
            if agent_kind == "acp":
                received, expected = without_wording(received), without_wording(expected)
            assert received == expected


def read_by_client(name: str, version: str, wire: ModuleType) -> tuple[list[AgentEvent], list[AgentEvent]]:
    """Return the events that the client reads from both streams of a transcript."""
    (_, asked), (_, answered) = exchanges(read_transcript(name + version))
    first, *events = with_values([line["server"] for line in asked], CLIENT_NAMES)
    task = task_in(first)
    assert task is not None
    snapshot = decoded_snapshot(task, URI, 1, wire)
    assert (snapshot.state, snapshot.workspace) == (TaskState.SUBMITTED, WORKSPACE)
    assert [(message.role, message.text) for message in snapshot.history] == [("user", SCENES[name].prompt)]
    decoder = Decoding(URI, snapshot.state, wire=wire)
    before = [delivery.event for item in events for delivery in decoder.decode(item, None)]
    assert decoder.at_rest
    decoder = Decoding(URI, TaskState.INPUT_REQUIRED, wire=wire)
    rest = with_values([line["server"] for line in answered], CLIENT_NAMES)
    return before, [delivery.event for item in rest for delivery in decoder.decode(item, None)]


@pytest.mark.parametrize("version", DECODERS)
@pytest.mark.parametrize("name", SCENES)
async def test_the_client_reads_what_is_written(name: str, version: str) -> None:
    scene = SCENES[name]
    before, after = read_by_client(name, version, DECODERS[version])
    pending = scene.call(WORKSPACE)
    assert before == [
        StateChange(TaskState.WORKING),
        Thought(scene.thought),
        ToolCallUpdate(pending),
        StateChange(TaskState.INPUT_REQUIRED),
    ]
    calls = [event.tool_call for event in after if isinstance(event, ToolCallUpdate)]
    done = [ToolCallStatus.EXECUTING, ToolCallStatus.SUCCEEDED]
    is_rejected = scene.answer["selected_option_id"] == "cancel"
    assert [call.status for call in calls] == ([ToolCallStatus.CANCELLED] if is_rejected else done)
    assert after[len(calls) :] == [TextContent("text-1", scene.text), StateChange(TaskState.COMPLETED)]


@pytest.mark.parametrize("name", SCENES)
async def test_both_versions_tell_the_same(name: str) -> None:
    old, new = (read_by_client(name, version, wire) for version, wire in DECODERS.items())
    assert old == new


@pytest.mark.parametrize(("name", "details"), DETAILS.items())
async def test_each_transcript_shows_its_kind_of_question(name: str, details: str) -> None:
    def requests(call: ToolCall) -> ConfirmationRequest:
        assert call.confirmation_request is not None
        return call.confirmation_request

    assert [key for key in to_json(requests(SCENES[name].call(WORKSPACE))) if key != "options"] == [details]
