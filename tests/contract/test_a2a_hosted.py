"""A third-party agent under a third-party ASGI server: each version, dialect and feature works without its help."""

import runpy
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest

from isthmus.a2a import Hosting, RemoteAgent, asgi_application
from isthmus.a2a.options import Skill
from isthmus.client import InvalidRequest, PromptMessage
from isthmus.events import StateChange, TaskState
from isthmus.journal.port.base import JournalError
from support.a2a_hosting import Everything, Hosted, hosted
from support.a2a_serving import EXTENSION, TOKEN, StreamItem, allow, answer, prompt
from support.example_program import EXAMPLES
from support.turns import events_of
from support.waiting import eventually_async
from support.wire_server import Answer, WireServer

pytestmark = pytest.mark.anyio

V1 = {"A2A-Version": "1.0"}


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


async def test_a_card_without_skills_of_its_own_has_the_agent_as_its_skill(button: Hosted) -> None:
    for version in ("0.3", "1.0"):
        headers = {"A2A-Version": version}
        card = (await button.http.get(button.url + ".well-known/agent-card.json", headers=headers)).json()
        (skill,) = card["skills"]
        assert (skill["id"], skill["name"], skill["description"]) == ("button", "Button", "Presses it.")
        assert skill["tags"] == ["agent"]


@pytest.mark.slow
async def test_a_stream_resumes_after_its_last_event_in_either_version(button: Hosted, workspace: Path) -> None:
    seen = await button.stream("message/stream", prompt("you", workspace), EXTENSION)
    task_id = seen[0].result["id"]
    numbers = [int(item.id) for item in seen if item.id is not None]
    assert numbers == sorted(set(numbers))
    again = await button.stream("tasks/resubscribe", {"id": task_id}, {**EXTENSION, "Last-Event-ID": str(numbers[1])})
    assert [item.answer for item in again] == [item.answer for item in seen[2:]]
    headers = {**V1, "Last-Event-ID": str(numbers[1])}
    artifacts = [item.id for item in seen if item.result["kind"] == "artifact-update"]
    async with button.opened("SubscribeToTask", {"id": task_id}, headers) as items:  # it stays open: the task waits
        found: list[StreamItem] = []
        while not found or found[-1].id != seen[-1].id:
            found.append(await anext(items))
    assert [item.id for item in found if "artifactUpdate" in item.result] == artifacts


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


@pytest.mark.slow
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


@pytest.mark.parametrize("protocol", ["0.3", "1.0"])
async def test_a_session_that_names_no_folder_works_in_the_servers_own(workspace: Path, protocol: str) -> None:
    async with hosted(Everything(), workspace, workspaces=(workspace,)) as server:
        card = (await server.http.get(f"{server.url}.well-known/agent-card.json")).json()
        assert card["capabilities"]["extensions"][0]["params"]["default_workspace"] is True
        agent = await RemoteAgent.connect(server.url, TOKEN, protocol=protocol)
        for settings in (None, {"approval_mode": "default"}):
            turn = await agent.prompt(PromptMessage("you", settings=settings))
            assert turn.snapshot.workspace == str(workspace)
            assert (await events_of(turn))[-1] == StateChange(TaskState.INPUT_REQUIRED)
        with pytest.raises(InvalidRequest, match="not allowed on this server"):
            await agent.prompt(PromptMessage("you", settings={"workspace_path": "/"}))
        await agent.aclose()
