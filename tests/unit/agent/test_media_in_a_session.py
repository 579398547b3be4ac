"""Media from a tool or a command to the model's messages, as the journal stores them."""

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from isthmus.agent.approval.policy import ApprovalMode, Policy
from isthmus.agent.context.transcript import transcript
from isthmus.agent.session.session import Session
from isthmus.agent.session.size import MEDIA_TOKENS, message_tokens
from isthmus.development_tool import ConfirmationDetails, ErrorDetails, ToolOutput
from isthmus.events import event_from_json, event_to_json
from isthmus.internal_events import CommandPrompt, MediaRefused, ModelReply, ToolResultRecorded
from isthmus.media import Media
from isthmus.models.port.base import Message, Text, ToolRequest
from isthmus.models.port.base import ModelToolResult as ToolResultPart
from isthmus.models.port.message import message_to_json
from isthmus.tools.port.base import Arguments, CallContext, ToolContext, ToolFailed, ToolKind, ToolResult, ToolSucceeded
from isthmus.tools.port.tool_set import ToolSet
from support.agent_harness import AgentHarness
from support.gemini_wire import GeminiWire
from support.scripted_wire import Call, Failure, Reply, Say

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)
IMAGE = Media("image/png", Path("/outputs/a.png"))
CALL = ModelReply("m", "test", message_to_json(Message("assistant", (ToolRequest("1", "camera", {}),))))


class Camera:
    """A tool whose result is an image, stored as tools store images."""

    name = "camera"
    description = "Takes a picture."
    kind = ToolKind.READ

    def __init__(self, *, fails: bool = False) -> None:
        self._fails = fails

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {"type": "object", "properties": {}}

    def describe(self, arguments: Arguments) -> str:
        return "Take a picture"

    async def propose(self, arguments: Arguments, context: ToolContext) -> ConfirmationDetails | None:
        return None

    async def run(self, arguments: Arguments, context: CallContext) -> ToolResult:
        path = context.output_folder / "picture.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(PNG)
        media = (Media("image/png", path),)
        if self._fails:
            return ToolFailed(ErrorDetails("blurred"), "it is blurred", media)
        return ToolSucceeded(ToolOutput(text="a picture"), "here it is", media)


@pytest.mark.anyio
@pytest.mark.parametrize("fails", [False, True])
async def test_a_tools_image_reaches_the_model_and_the_journal_has_its_path_alone(workspace: Path, fails: bool) -> None:
    replies = (Reply.of(Call("camera", {})), Reply.of(Say("nice")))
    with GeminiWire(replies) as wire:
        harness = AgentHarness(workspace, wire, Policy(ApprovalMode.YOLO), tools=ToolSet.of(Camera(fails=fails)))
        await harness.prompt("take a picture")
        response, image = harness.body()["contents"][-1]["parts"]
    said = {"error": "it is blurred"} if fails else {"output": "here it is"}
    assert response["functionResponse"]["response"] == said
    assert image == {"inlineData": {"mimeType": "image/png", "data": base64.b64encode(PNG).decode()}}
    (recorded,) = [event for event in harness.events if isinstance(event, ToolResultRecorded)]
    assert recorded.media == (Media("image/png", workspace / ".outputs" / "t" / "picture.png"),)
    assert len(json.dumps(event_to_json(recorded))) < 500


@pytest.mark.anyio
async def test_an_image_that_the_provider_refused_is_not_sent_again_by_the_next_process(workspace: Path) -> None:
    refusal = Failure(400, "This model does not support images")
    replies = (Reply.of(Call("camera", {})), refusal, *(Reply.of(Say(text)) for text in ("blind", "still", "seen")))
    with GeminiWire(replies) as wire:
        harness = AgentHarness(workspace, wire, Policy(ApprovalMode.YOLO), tools=ToolSet.of(Camera()))
        await harness.prompt("take a picture")
        await harness.prompt("what is on it?")
        harness.model = "other"
        await harness.prompt("and now?")
        sent = ["inlineData" in str(request.json) for request in wire.model_requests]
    # Another model may take it.
    assert sent == [False, True, False, False, True]
    (refused,) = [event for event in harness.events if isinstance(event, MediaRefused)]
    assert refused == MediaRefused("gemini:test", (Media("image/png", workspace / ".outputs" / "t" / "picture.png"),))


def test_a_result_of_an_older_journal_has_no_media() -> None:
    older = {"type": "ToolResultRecorded", "tool_call_id": "1", "content": "c", "is_error": False}
    assert event_from_json(older) == ToolResultRecorded("1", "c")
    assert event_from_json({"type": "CommandPrompt", "text": "t"}) == CommandPrompt("t")


def test_media_of_results_and_commands_are_in_the_conversation_behind_their_text() -> None:
    session = Session("c")
    for event in (CALL, ToolResultRecorded("1", "c", media=(IMAGE,)), CommandPrompt("explain", (IMAGE,))):
        session.apply(event_from_json(json.loads(json.dumps(event_to_json(event)))), "t")
    assert session.messages[-1].parts == (ToolResultPart("1", "camera", "c", media=(IMAGE,)), Text("explain"), IMAGE)


def test_an_image_counts_as_much_as_providers_count_for_one() -> None:
    bare = Message("user", (ToolResultPart("1", "camera", "c"),))
    assert message_tokens(Message("user", (ToolResultPart("1", "camera", "c", media=(IMAGE, IMAGE)), IMAGE))) == (
        message_tokens(bare) + 3 * MEDIA_TOKENS
    )


def test_a_summarys_author_is_told_where_the_images_are() -> None:
    messages = [Message("user", (ToolResultPart("1", "camera", "c", media=(IMAGE,)), IMAGE))]
    line = json.loads(transcript(messages, 10_000))
    assert [part["with"] for part in line["parts"]] == [["image/png in /outputs/a.png"]] * 2
