"""An agent of somebody else under an ASGI server of somebody else: each version, dialect and feature, for free."""

import asyncio
import runpy
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvicorn

from isthmus.a2a import Hosting, asgi_application
from isthmus.a2a.options import Skill
from isthmus.a2a.server.listen import bind
from isthmus.agent.hosted import AgentPort, ask, decision
from isthmus.agent.session import Session
from isthmus.development_tool import GenericDetails, ToolCall, ToolCallStatus, ToolOutput
from isthmus.events import AgentEvent, AgentMessage, ArtifactPart, ArtifactUpdate, TextContent, ToolCallUpdate
from isthmus.journal.base import JournalError
from support.a2a_serving import EXTENSION, TOKEN, StreamItem, allow, answer, items_of, prompt, rpc
from support.example_program import EXAMPLES
from support.plain_http import plain_client
from support.waiting import eventually_async
from support.wire_server import Answer, WireServer

pytestmark = pytest.mark.anyio

V1 = {"A2A-Version": "1.0"}


class Everything:
    """Text, an artifact, a whole message, and a call that a person must allow."""

    async def run(self, session: Session) -> AsyncGenerator[AgentEvent, None]:
        if decision(session, "call-1") is None:
            yield TextContent("", "Hello ")
            yield TextContent("", session.prompt)
            yield ArtifactUpdate("report", (ArtifactPart(text="all is well"),), "Report")
            yield ask("call-1", "press", {"button": 9007199254740993}, GenericDetails("Press the button"))
            return
        yield ToolCallUpdate(ToolCall("call-1", ToolCallStatus.EXECUTING, "press", {}))
        done = ToolCall("call-1", ToolCallStatus.SUCCEEDED, "press", {}, output=ToolOutput("pressed"))
        yield ToolCallUpdate(done)
        yield AgentMessage("", "Pressed.")


@dataclass(frozen=True, slots=True)
class Hosted:
    url: str
    http: httpx2.AsyncClient

    async def call(self, method: str, params: object, **headers: str) -> Any:
        response = await self.http.post(self.url, json=rpc(method, params), headers=headers)
        return response.json()["result"]

    async def stream(self, method: str, params: object, headers: dict[str, str]) -> Sequence[StreamItem]:
        async with self.http.stream("POST", self.url, json=rpc(method, params), headers=headers) as response:
            return [item async for item in items_of(response)]


@asynccontextmanager
async def hosted(agent: AgentPort, folder: Path, **more: Any) -> AsyncGenerator[Hosted]:
    """The agent under a plain uvicorn, which tells it of startup and shutdown."""
    hosting = Hosting("Button", "Presses it.", "3", folder=folder / "state", workspace=folder, token=TOKEN, **more)
    listener = bind("127.0.0.1", 0)
    config = uvicorn.Config(asgi_application(agent, hosting), lifespan="on", log_config=None, access_log=False)
    server = uvicorn.Server(config)
    running = asyncio.create_task(server.serve([listener]))
    try:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        async with plain_client(headers={"Authorization": f"Bearer {TOKEN}"}) as http:
            yield Hosted(url, http)
    finally:
        server.should_exit = True
        await running
        listener.close()


@pytest.fixture
async def button(workspace: Path) -> AsyncGenerator[Hosted]:
    async with hosted(Everything(), workspace) as client:
        yield client


async def test_the_card_is_the_agents_own(workspace: Path) -> None:
    async with hosted(Everything(), workspace, skills=(Skill("press", "Press", "Presses.", ("button",)),)) as client:
        card = (await client.http.get(client.url + ".well-known/agent-card.json")).json()
    assert (card["name"], card["description"], card["version"]) == ("Button", "Presses it.", "3")
    assert [skill["id"] for skill in card["skills"]] == ["press"]
    assert card["capabilities"]["pushNotifications"] is True
    assert [extension["required"] for extension in card["capabilities"]["extensions"]] == [False]


async def test_a_stream_resumes_after_its_last_event_in_either_version(button: Hosted, workspace: Path) -> None:
    seen = await button.stream("message/stream", prompt("you", workspace), EXTENSION)
    task_id = seen[0].result["id"]
    numbers = [int(item.id) for item in seen if item.id is not None]
    assert numbers == sorted(set(numbers))
    again = await button.stream("tasks/resubscribe", {"id": task_id}, {**EXTENSION, "Last-Event-ID": str(numbers[1])})
    assert [item.answer for item in again] == [item.answer for item in seen[2:]]
    new = await button.stream("SubscribeToTask", {"id": task_id}, {**V1, "Last-Event-ID": str(numbers[1])})
    assert [item.id for item in new if "artifactUpdate" in item.result] == [
        item.id for item in seen if item.result["kind"] == "artifact-update"
    ]


async def test_a_question_is_answered_and_whole_numbers_stay_whole(button: Hosted, workspace: Path) -> None:
    seen = await button.stream("message/stream", prompt("you", workspace), EXTENSION)
    task_id = seen[0].result["id"]
    assert seen[-1].result["final"] is True
    assert seen[-1].state == "input-required"
    assert seen[-1].data["input_parameters"] == {"button": 9007199254740993}
    answered = await button.stream("message/stream", answer(task_id, allow()), EXTENSION)
    states = [item.data["status"] for item in answered if item.kind == "TOOL_CALL_UPDATE"]
    assert states == ["EXECUTING", "SUCCEEDED"]
    assert answered[-2].text == "Pressed."
    assert answered[-1].state == "completed"
    task = await button.call("tasks/get", {"id": task_id})
    assert task["status"]["message"]["parts"][0]["text"] == "Pressed."
    assert task["artifacts"][0]["parts"] == [{"kind": "text", "text": "all is well"}]


async def test_a_plain_client_of_1_0_answers_in_words(button: Hosted) -> None:
    message = {"role": "ROLE_USER", "messageId": "m", "parts": [{"text": "you"}]}
    task = (await button.call("SendMessage", {"message": message}, **V1))["task"]
    assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    message = {"role": "ROLE_USER", "messageId": "n", "taskId": task["id"], "parts": [{"text": "yes"}]}
    task = (await button.call("SendMessage", {"message": message}, **V1))["task"]
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    assert task["artifacts"][0]["name"] == "Report"


async def test_a_client_of_the_gemini_server_gets_its_dialect(button: Hosted, workspace: Path) -> None:
    settings = {"coderAgent": {"kind": "agent-settings", "workspacePath": str(workspace)}}
    params = prompt("you", metadata=settings)
    seen = await button.stream("message/stream", params, {})
    kinds = [item.result.get("metadata", {}).get("coderAgent", {}).get("kind") for item in seen]
    assert "tool-call-confirmation" in kinds
    assert seen[-1].result["status"]["state"] == "input-required"
    parts = [{"kind": "data", "data": {"callId": "call-1", "outcome": "proceed_once"}}]
    message = {"kind": "message", "role": "user", "messageId": "n", "taskId": seen[0].result["id"], "parts": parts}
    answered = await button.stream("message/stream", {"message": message}, {})
    assert answered[-1].result["status"]["state"] == "input-required"
    assert answered[-1].result["final"] is True


async def test_news_is_pushed(workspace: Path) -> None:
    with WireServer(lambda _: Answer(204, {"content-length": "0"})) as hooks:
        async with hosted(Everything(), workspace, pushes_to=("127.0.0.1",)) as client:
            params = prompt("you", workspace)
            params["configuration"] = {"pushNotificationConfig": {"url": f"{hooks.base_url}/hook", "token": "t"}}
            await client.stream("message/stream", params, EXTENSION)
            await eventually_async(lambda: any("input-required" in request.body.decode() for request in hooks.requests))


async def test_the_echo_example_runs_under_any_asgi_server(workspace: Path) -> None:
    echo = runpy.run_path(str(EXAMPLES / "echo_agent.py"))["EchoAgent"]
    async with hosted(echo(), workspace) as client:
        seen = await client.stream("message/stream", prompt("a b", workspace), EXTENSION)
    assert "".join(item.text for item in seen if item.kind == "TEXT_CONTENT") == "a b "


async def test_an_agent_on_the_folder_of_another_one_is_refused_and_a_renamed_one_is_not(workspace: Path) -> None:
    folder = workspace / "state"
    one = asgi_application(Everything(), Hosting("One", folder=folder, workspace=workspace, token=TOKEN))
    await one.open()
    await one.aclose()
    two = asgi_application(Everything(), Hosting("Two", folder=folder, workspace=workspace, token=TOKEN))
    with pytest.raises(JournalError, match=r"journal of the agent 'One', and this one is 'Two'"):
        await two.open()
    await two.aclose()
    renamed = Hosting("Two", folder=folder, workspace=workspace, token=TOKEN, former_names=("One",))
    for hosting in (renamed, replace(renamed, former_names=())):
        again = asgi_application(Everything(), hosting)
        await again.open()
        await again.aclose()
