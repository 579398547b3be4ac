"""The golden transcripts, replayed both ways: against our server over a real socket, and into our client's decoder."""

from pathlib import Path
from typing import Any

import pytest

from isthmus.a2a.extension import URI
from isthmus.a2a.wire_v03_decoder import StreamDecoder, decode_task, is_task
from isthmus.client import PromptMessage
from isthmus.events import (
    AgentThought,
    StateChange,
    TaskState,
    TextContent,
    Thought,
    ToolCallStatus,
    ToolCallUpdate,
)
from support.memory_agent import Ask, Step, write_file_call
from support.script_agent import serve_with
from support.transcript import exchanges, read_transcript, with_names, with_values

pytestmark = pytest.mark.anyio

CLIENT_NAMES = {
    "WORKSPACE": "/workspace",
    "TASK": "t",
    "CONTEXT": "c",
    "TIME": "2026-01-01T00:00:00.000Z",
    "MESSAGE": "m",
}


def script(workspace: Path) -> Any:
    """What the agent does in the transcript."""

    def steps(_: PromptMessage) -> list[Step]:
        call = write_file_call("call-1", f"{workspace}/a.txt")
        return [Thought(AgentThought("Plan", "Change the file.")), Ask((call,)), TextContent("text-1", "Done.")]

    return steps


@pytest.mark.requirement("A2A-135", "A2A-142", "A2A-144", "A2A-147")
@pytest.mark.parametrize("kind", ["memory", "engine"])
async def test_the_server_speaks_appendix_a_as_it_is_written(kind: str, workspace: Path, tmp_path: Path) -> None:
    values = {"WORKSPACE": str(workspace)}
    async with serve_with(kind, tmp_path)(script(workspace)) as server:
        for request, expected in exchanges(read_transcript("appendix_a")):
            items = await server.stream(request["method"], with_values(request["params"], values))
            if items[0].result["kind"] == "task":
                values |= {"TASK": items[0].result["id"], "CONTEXT": items[0].result["contextId"]}
            names = {value: name for name, value in values.items()}
            received = [{"server": with_names(item.result, names), "has_id": item.id is not None} for item in items]
            assert received == expected


async def test_the_client_reads_appendix_a_as_it_is_written() -> None:
    (_, asked), (_, answered) = exchanges(read_transcript("appendix_a"))
    first, *events = with_values([line["server"] for line in asked], CLIENT_NAMES)
    assert is_task(first)
    snapshot = decode_task(first, URI, 1)
    assert (snapshot.state, snapshot.workspace) == (TaskState.SUBMITTED, "/workspace")
    assert [(message.role, message.text) for message in snapshot.history] == [("user", "Change a.txt")]
    decoder = StreamDecoder(URI, snapshot.state)
    seen = [delivery.event for item in events for delivery in decoder.decode(item, None)]
    pending = write_file_call("call-1", "/workspace/a.txt")
    assert seen == [
        StateChange(TaskState.WORKING),
        Thought(AgentThought("Plan", "Change the file.")),
        ToolCallUpdate(pending),
        StateChange(TaskState.INPUT_REQUIRED),
    ]
    assert decoder.is_final
    decoder = StreamDecoder(URI, TaskState.INPUT_REQUIRED)
    rest = with_values([line["server"] for line in answered], CLIENT_NAMES)
    seen = [delivery.event for item in rest for delivery in decoder.decode(item, None)]
    calls = [event.tool_call for event in seen if isinstance(event, ToolCallUpdate)]
    assert [call.status for call in calls] == [ToolCallStatus.EXECUTING, ToolCallStatus.SUCCEEDED]
    assert seen[2:] == [TextContent("text-1", "Done."), StateChange(TaskState.COMPLETED)]
    assert decoder.is_final
