"""RemoteAgent against golden transcripts: a server that plays them compares its requests with the recorded ones."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from isthmus.a2a.client.discovery import GEMINI_CARD
from isthmus.a2a.client.remote_agent import RemoteAgent
from isthmus.a2a.protocol.extension import URI
from isthmus.client import PromptMessage, Turn
from isthmus.development_tool import ModifiedFileDetails, ToolCallConfirmation
from isthmus.events import TaskState
from isthmus.task_view import TaskView
from support.coder_agent_scenes import recorded
from support.replay_server import ReplayServer
from support.transcript import FOLDER, read_transcript

pytestmark = pytest.mark.anyio

SETTINGS = {"workspace_path": "WORKSPACE"}
GEMINI: Mapping[str, Any] = {"name": GEMINI_CARD, "protocolVersion": "0.3.0", "capabilities": {"streaming": True}}
V1 = {"protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
RFC: Mapping[str, Any] = {"name": "Agent", "capabilities": {"streaming": True, "extensions": [{"uri": URI}]}}

SCENES: Mapping[str, tuple[TaskState, str, Mapping[str, str]]] = {
    "text": (TaskState.COMPLETED, "Again.", {}),
    "edit_once": (TaskState.COMPLETED, "Done.", {"CALL-1": "SUCCEEDED"}),
    "edit_cancel": (TaskState.COMPLETED, "", {"CALL-1": "CANCELLED"}),
    "shell_once": (TaskState.COMPLETED, "Ran.", {"CALL-1": "SUCCEEDED"}),
    "two_calls": (TaskState.COMPLETED, "Both done.", {"CALL-1": "SUCCEEDED", "CALL-2": "SUCCEEDED"}),
    "info": (TaskState.COMPLETED, "", {"CALL-1": "CANCELLED"}),
    "mcp": (TaskState.COMPLETED, "Kept.", {"CALL-1": "SUCCEEDED"}),
    "model_fails": (TaskState.FAILED, "", {}),
}
"""Final state, last text, and final status of the calls, by scene."""


async def read(turn: Turn, view: TaskView) -> None:
    """Apply a turn to a view."""
    async with asyncio.timeout(60):
        async for delivery in turn.deliveries:
            view.apply(delivery)


def requests_of(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages that the recorded client sends."""
    found = [line["client"] for line in lines if "client" in line]
    methods = ("message/stream", "SendStreamingMessage")
    return [item["params"]["message"] for item in found if item.get("method") in methods]


def confirmation(data: Mapping[str, Any]) -> ToolCallConfirmation:
    """Return a recorded answer, of either dialect."""
    details: Mapping[str, str] | None = data.get("file_details")
    content = details["new_content"] if details is not None else None
    return ToolCallConfirmation(
        data.get("callId") or data["tool_call_id"],
        data.get("outcome") or data["selected_option_id"],
        ModifiedFileDetails(content) if content is not None else None,
    )


async def played(lines: list[dict[str, Any]], card: Mapping[str, Any], protocol: str | None = None) -> TaskView:
    """Return the task as seen by a client that sends the recorded messages."""
    view = TaskView()
    with ReplayServer(lines, card) as server:
        agent = await RemoteAgent.connect(server.base_url, protocol=protocol)
        context_id: str | None = None
        for message in requests_of(lines):
            part = message["parts"][0]
            if "text" in part:
                settings = SETTINGS if context_id is None else None
                turn = await agent.prompt(PromptMessage(part["text"], context_id=context_id, settings=settings))
                context_id = turn.context_id
            else:
                assert [item.call.tool_call_id for item in view.questions] == [confirmation(part["data"]).tool_call_id]
                turn = await agent.answer("TASK", [confirmation(part["data"])], answered_by="test")
            await read(turn, view)
        await agent.aclose()
        assert server.problems == []
        assert server.is_over
    return view


@pytest.mark.parametrize("name", SCENES)
async def test_what_gemini_clis_server_said_is_understood(name: str) -> None:
    state, text, calls = SCENES[name]
    view = await played(recorded(name), GEMINI)
    assert (view.state, {key: item.call.status.name for key, item in view.calls.items()}) == (state, calls)
    if text:
        assert list(view.messages.values())[-1].text == text
    assert view.questions == ()
    assert (view.error is not None) == (state is TaskState.FAILED)


async def test_the_dialect_is_known_by_its_events_where_the_card_does_not_tell() -> None:
    lines = [line for line in recorded("text") if "client" not in line or "metadata" not in json.dumps(line["client"])]
    first = recorded("text")[0]
    del first["client"]["params"]["message"]["metadata"]
    view = await played([first, *lines], {**GEMINI, "name": "Somebody's fork"})
    assert view.state is TaskState.COMPLETED
    assert len(view.thoughts) == 1


@pytest.mark.requirement("A2A-096", "A2A-098", "A2A-099", "A2A-143")
@pytest.mark.parametrize("name", sorted(path.stem for path in Path(FOLDER).glob("*.jsonl")))
async def test_the_client_plays_its_part_in_what_the_document_shows(name: str) -> None:
    is_v1 = name.endswith("_v1")
    card = {**RFC, "supportedInterfaces": [V1]} if is_v1 else RFC
    view = await played(list(read_transcript(name)), card, "1.0" if is_v1 else "0.3")
    assert view.state is TaskState.COMPLETED
    assert all(item.call.status.is_final and item.was_asked for item in view.calls.values())
