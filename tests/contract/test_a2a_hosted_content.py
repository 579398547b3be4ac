"""The message content that a hosted agent gets, and all the ways in which it may reply."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Literal

import pytest

from isthmus.a2a import RemoteAgent
from isthmus.a2a.options import Skill
from isthmus.agent.session.session import Session
from isthmus.client import PromptMessage
from isthmus.events import AgentEvent, AgentMessage, ArtifactPart, ArtifactUpdate, Prompt, StateChange, TaskState
from support.a2a_hosting import Hosted, hosted
from support.a2a_serving import TOKEN, prompt
from support.turns import events_of

pytestmark = pytest.mark.anyio

V1 = {"A2A-Version": "1.0"}
PNG = "iVBORw0KGgo="


class Mirror:
    """An agent that records its sessions, and replies as the test sets."""

    def __init__(self) -> None:
        self.got: list[Prompt] = []

    async def run(self, session: Session) -> AsyncGenerator[AgentEvent, None]:
        assert session.message is not None
        self.got.append(session.message)
        match session.prompt:
            case "reject":
                yield StateChange(TaskState.REJECTED, "not here")
            case "login":
                yield StateChange(TaskState.AUTH_REQUIRED, "open https://login.example/")
            case "answer":
                yield AgentMessage("", "just this", is_answer=True)
            case _:
                yield ArtifactUpdate("image", (ArtifactPart(raw=PNG, media_type="image/png", filename="a.png"),))


@pytest.fixture
def mirror() -> Mirror:
    return Mirror()


@pytest.fixture
async def client(mirror: Mirror, workspace: Path) -> AsyncGenerator[Hosted]:
    async with hosted(mirror, workspace) as served:
        yield served


async def test_parts_files_data_and_metadata_of_a_message_reach_the_agent(client: Hosted, mirror: Mirror) -> None:
    parts = [
        {"text": "look"},
        {"raw": PNG, "mediaType": "image/png", "filename": "in.png"},
        {"url": "https://example.com/b.pdf", "mediaType": "application/pdf"},
        {"data": {"n": 9007199254740993}},
    ]
    message = {"role": "ROLE_USER", "messageId": "m-1", "parts": parts, "metadata": {"trace": "t"}}
    task = (await client.call("SendMessage", {"message": message}, **V1))["task"]
    (got,) = mirror.got
    assert (got.message_id, got.metadata) == ("m-1", {"trace": "t"})
    assert got.content == (
        ArtifactPart(text="look"),
        ArtifactPart(raw=PNG, media_type="image/png", filename="in.png"),
        ArtifactPart(url="https://example.com/b.pdf", media_type="application/pdf"),
        ArtifactPart(data={"n": 9007199254740993}),
    )
    assert got.text.startswith("look")
    assert "in.png" in got.text
    image = {"raw": PNG, "mediaType": "image/png", "filename": "a.png"}
    assert task["artifacts"][0]["parts"] == [image]


async def test_an_image_alone_is_a_message_in_0_3_too(client: Hosted, mirror: Mirror) -> None:
    file = {"kind": "file", "file": {"bytes": PNG, "mimeType": "image/png", "name": "in.png"}}
    task = await client.call("message/send", prompt("", parts=[file]))
    assert mirror.got[0].content == (ArtifactPart(raw=PNG, media_type="image/png", filename="in.png"),)
    assert task["artifacts"][0]["parts"][0]["file"] == {"bytes": PNG, "mimeType": "image/png", "name": "a.png"}


@pytest.mark.parametrize("version", ["0.3", "1.0"])
async def test_our_client_sends_images_and_metadata_and_finds_the_image_that_came_of_it(
    client: Hosted, mirror: Mirror, workspace: Path, version: Literal["0.3", "1.0"]
) -> None:
    image = ArtifactPart(raw=PNG, media_type="image/png", filename="in.png")
    parts = (ArtifactPart(text="look"), image, ArtifactPart(data={"n": 1}))
    made = ArtifactUpdate("image", (ArtifactPart(raw=PNG, media_type="image/png", filename="a.png"),))
    settings = {"workspace_path": str(workspace)}
    agent = await RemoteAgent.connect(client.url, TOKEN, protocol=version)
    try:
        turn = await agent.prompt(PromptMessage("look", settings=settings, parts=parts, metadata={"trace": "t"}))
        events = await events_of(turn)
        task = await agent.get(turn.task_id)
        listed = await agent.tasks()
    finally:
        await agent.aclose()
    (got,) = mirror.got
    assert got.content == parts
    assert got.metadata is not None
    assert got.metadata["trace"] == "t"
    assert [event for event in events if isinstance(event, ArtifactUpdate)] == [made]
    assert task.artifacts == (made,)
    assert [each.task_id for each in listed] == [turn.task_id]


@pytest.mark.parametrize(
    ("word", "old", "new"),
    [("reject", "rejected", "TASK_STATE_REJECTED"), ("login", "auth-required", "TASK_STATE_AUTH_REQUIRED")],
)
async def test_an_agent_may_reject_a_task_or_want_a_login(client: Hosted, word: str, old: str, new: str) -> None:
    seen = await client.stream("message/stream", prompt(word), {})
    assert (seen[-1].state, seen[-1].result["final"]) == (old, True)
    task_id = seen[0].result["id"]
    task = await client.call("GetTask", {"id": task_id}, **V1)
    assert task["status"]["state"] == new
    assert task["status"]["message"]["parts"][0]["text"]
    listed = await client.call("ListTasks", {"status": new}, **V1)
    assert [task["id"] for task in listed["tasks"]] == [task_id]
    more = (await client.post("message/send", prompt("more", taskId=task_id, messageId="more"), {})).json()
    assert more["error"]["code"] == -32004 if word == "reject" else more["result"]["status"]["state"] == "completed"


async def test_an_answer_that_is_all_there_is_to_say_comes_as_a_message(client: Hosted) -> None:
    answer = await client.call("message/send", prompt("answer"))
    assert (answer["kind"], answer["role"]) == ("message", "agent")
    assert answer["parts"] == [{"kind": "text", "text": "just this"}]
    assert "taskId" not in answer
    message = {"role": "ROLE_USER", "messageId": "n", "contextId": answer["contextId"], "parts": [{"text": "answer"}]}
    again = (await client.call("SendMessage", {"message": message}, **V1))["message"]
    assert (again["role"], again["parts"]) == ("ROLE_AGENT", [{"text": "just this"}])
    assert again["contextId"] == answer["contextId"]
    seen = await client.stream("message/stream", prompt("answer", messageId="s"), {})
    assert seen[-1].state == "completed"


async def test_the_card_and_each_skill_in_it_tell_what_the_agent_reads_and_what_it_gives(workspace: Path) -> None:
    read, given = ("text/plain", "image/png"), ("text/plain", "image/svg+xml")
    skills = (Skill("draw", "Draw", "Draws.", ("picture",)),)
    async with hosted(Mirror(), workspace, skills=skills, input_modes=read, output_modes=given) as client:
        card = (await client.http.get(client.url + ".well-known/agent-card.json")).json()
    (skill,) = card["skills"]
    assert card["defaultInputModes"] == skill["inputModes"] == ["text/plain", "image/png"]
    assert card["defaultOutputModes"] == skill["outputModes"] == ["text/plain", "image/svg+xml"]
