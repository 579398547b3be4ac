"""Push notifications as clients set and receive them, over real sockets, in both versions."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from a2a.types import Task

from isthmus.a2a.options import ServerOptions
from isthmus.a2a.protocol.extension import URI
from isthmus.a2a.push.sender import PushSender
from isthmus.a2a.push.service import pushing
from isthmus.a2a.push.targets import PushRule
from isthmus.a2a.wires import Wires
from isthmus.engine import Engine, EngineOptions
from isthmus.engine.port.agents import Agent
from isthmus.engine.port.workspaces import WorkspaceRule
from support.a2a_serving import EXTENSION, TOKEN, RawClient, allow, answer, prompt, rpc, serving
from support.agent_behind import behind
from support.agents import AskingAgent, EchoAgent, WaitingAgent
from support.journals import journal_at
from support.waiting import eventually_async
from support.wire_server import Answer, WireServer

pytestmark = pytest.mark.anyio

FINE = Answer(204, {"content-length": "0"})
V1 = {"A2A-Version": "1.0"}


@asynccontextmanager
async def push_server(folder: Path, agent: Agent, *allowed: str) -> AsyncGenerator[RawClient]:
    rule = WorkspaceRule(default=folder)
    engine = Engine(behind(agent), await journal_at(folder / "journal.sqlite"), EngineOptions(rule))
    await engine.start()
    async with AsyncExitStack() as stack:
        push = await stack.enter_async_context(pushing(engine, PushSender(PushRule.of(allowed)), Wires()))
        yield await stack.enter_async_context(serving(engine, ServerOptions(TOKEN), push=push))


@pytest.fixture
async def echo(workspace: Path) -> AsyncGenerator[RawClient]:
    async with push_server(workspace, EchoAgent(), "127.0.0.1") as client:
        yield client


def receiver() -> WireServer:
    return WireServer(lambda _: FINE)


async def received(server: WireServer, count: int) -> list[dict[str, Any]]:
    await eventually_async(lambda: len(server.requests) >= count)
    assert len(server.requests) == count
    return [request.json for request in server.requests]


def with_push(params: Mapping[str, Any], config: Mapping[str, Any], **configuration: Any) -> dict[str, Any]:
    return {**params, "configuration": {"pushNotificationConfig": config, **configuration}}


@pytest.mark.requirement("A2A-005", "A2A-007")
async def test_a_config_in_the_first_message_tells_of_the_task_after_the_client_has_left(workspace: Path) -> None:
    gate = WaitingAgent()
    with receiver() as hooks:
        config = {
            "url": f"{hooks.base_url}/hook",
            "token": "t",
            "authentication": {"schemes": ["Bearer"], "credentials": "c"},
        }
        async with push_server(workspace, gate, "127.0.0.1") as client:
            async with client.opened("message/stream", with_push(prompt("go", workspace), config)) as items:
                first = await anext(items)
            gate.release.set()
            told = await received(hooks, 2)
        tasks = [Task.model_validate(item) for item in told]
    assert [task.id for task in tasks] == [first.result["id"]] * 2
    assert [task.status.state.value for task in tasks] == ["working", "completed"]
    head = hooks.requests[0].headers
    assert head["x-a2a-notification-token"] == "t"
    assert head["authorization"] == "Bearer c"
    assert URI in told[0]["metadata"]


@pytest.mark.requirement("A2A-006", "A2A-007")
async def test_a_config_set_later_tells_of_the_question_whole_and_of_the_end(workspace: Path) -> None:
    with receiver() as hooks:
        async with push_server(workspace, AskingAgent(), "127.0.0.1") as client:
            task = await client.result("message/send", prompt("go", workspace))
            config = {"url": hooks.base_url, "token": "t"}
            params = {"taskId": task["id"], "pushNotificationConfig": config}
            set_one = await client.result("tasks/pushNotificationConfig/set", params)
            assert set_one["taskId"] == task["id"]
            assert set_one["pushNotificationConfig"]["url"] == hooks.base_url
            (asked,) = await received(hooks, 1)
            (part,) = asked["status"]["message"]["parts"]
            assert part["data"]["confirmation_request"]["options"][0]["id"] == "proceed_once"
            await client.stream("message/stream", answer(asked["id"], allow(part["data"]["tool_call_id"])))
            told = await received(hooks, 2)
    assert told[-1]["status"]["state"] == "completed"
    keys = [request.headers["idempotency-key"] for request in hooks.requests]
    assert len(set(keys)) == 2


async def test_configs_are_set_read_listed_and_deleted(echo: RawClient, workspace: Path) -> None:
    with receiver() as hooks:
        task = await echo.result("message/send", prompt("go", workspace))
        for name in ("one", "two"):
            config = {"id": name, "url": f"{hooks.base_url}/{name}", "token": f"token-{name}"}
            secret = {"authentication": {"schemes": ["Bearer"], "credentials": "very-secret"}}
            params = {"taskId": task["id"], "pushNotificationConfig": {**config, **secret}}
            answered = await echo.result("tasks/pushNotificationConfig/set", params)
            assert answered["pushNotificationConfig"]["token"] == f"token-{name}"
            assert "very-secret" not in str(answered)
        listed: Any = await echo.result("tasks/pushNotificationConfig/list", {"id": task["id"]})
        assert [item["pushNotificationConfig"]["id"] for item in listed] == ["one", "two"]
        chosen = {"id": task["id"], "pushNotificationConfigId": "two"}
        assert (await echo.result("tasks/pushNotificationConfig/get", chosen))["pushNotificationConfig"]["id"] == "two"
        assert await echo.result("tasks/pushNotificationConfig/delete", chosen) is None
        assert (await echo.error("tasks/pushNotificationConfig/get", chosen))["code"] == -32001
        listed = await echo.result("tasks/pushNotificationConfig/list", {"id": task["id"]})
        assert len(listed) == 1


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://127.0.0.1:9/", "loopback"),
        ("http://localhost:9/", "loopback"),
        ("http://[::1]/", "loopback"),
        ("http://10.0.0.1/", "private"),
        ("http://169.254.169.254/latest/meta-data", "link-local"),
        ("ftp://example.org/", "https://"),
        ("https://u:p@example.org/", "contains a user"),
        ("https://no.such.host.invalid/", "cannot be resolved"),
        ("", "url"),
    ],
)
async def test_a_refused_url_is_32602_with_the_reason_and_makes_no_task(workspace: Path, url: str, why: str) -> None:
    async with push_server(workspace, EchoAgent()) as client:
        for method in ("message/send", "message/stream"):
            error = await client.error(method, with_push(prompt("go", workspace), {"url": url}))
            assert error["code"] == -32602
            assert why in error["message"]
        assert (await client.result("isthmus/tasks", {}))["tasks"] == []
        task = await client.result("message/send", prompt("go", workspace))
        params = {"taskId": task["id"], "pushNotificationConfig": {"url": url}}
        error = await client.error("tasks/pushNotificationConfig/set", params)
        assert (error["code"], why in error["message"]) == (-32602, True)
        assert await client.result("tasks/pushNotificationConfig/list", {"id": task["id"]}) == []


async def test_a_client_of_1_0_is_told_in_1_0(echo: RawClient, workspace: Path) -> None:
    with receiver() as hooks:
        message = {
            "role": "ROLE_USER",
            "messageId": "m",
            "parts": [{"text": "hello"}],
            "metadata": {URI: {"workspace_path": str(workspace)}},
        }
        config = {"url": hooks.base_url, "token": "t", "authentication": {"scheme": "Bearer", "credentials": "c"}}
        configuration = {"taskPushNotificationConfig": config}
        params = {"message": message, "configuration": configuration}
        task = (await echo.result("SendMessage", params, {**V1, **EXTENSION}))["task"]
        told = await received(hooks, 2)
        assert [item["task"]["status"]["state"] for item in told] == ["TASK_STATE_WORKING", "TASK_STATE_COMPLETED"]
        assert told[-1]["task"]["id"] == task["id"]
        (part,) = told[-1]["task"]["status"]["message"]["parts"]
        assert (list(part), part["text"].strip()) == (["text"], "hello")
        assert hooks.requests[0].headers["authorization"] == "Bearer c"
        listed = await echo.result("ListTaskPushNotificationConfigs", {"taskId": task["id"]}, V1)
        assert [item["url"] for item in listed["configs"]] == [hooks.base_url]


async def test_a_client_without_the_extension_is_told_in_plain_words(workspace: Path) -> None:
    with receiver() as hooks:
        async with push_server(workspace, AskingAgent(), "127.0.0.1") as client:
            params = with_push(prompt("go"), {"url": hooks.base_url})
            await client.result("message/send", params, {})
            told = await received(hooks, 2)
    question = told[-1]["status"]["message"]["parts"]
    assert "run this command" in question[0]["text"]
    assert "metadata" not in told[-1]


async def test_the_card_says_whether_there_are_push_notifications(echo: RawClient, workspace: Path) -> None:
    card = (await echo.http.get(echo.url + ".well-known/agent-card.json")).json()
    assert card["capabilities"]["pushNotifications"] is True


async def test_a_url_that_no_longer_may_be_called_is_not(workspace: Path, caplog: pytest.LogCaptureFixture) -> None:
    with receiver() as hooks:
        async with push_server(workspace, AskingAgent(), "127.0.0.1") as client:
            task = await client.result("message/send", prompt("go", workspace))
            params = {"taskId": task["id"], "pushNotificationConfig": {"url": hooks.base_url}}
            await client.result("tasks/pushNotificationConfig/set", params)
            await received(hooks, 1)
        async with push_server(workspace, AskingAgent()) as client:
            await client.stream("message/stream", answer(task["id"], allow("one")))
            await eventually_async(lambda: "leads to a loopback address" in caplog.text)
        assert len(hooks.requests) == 1


async def test_who_is_told_does_not_matter_to_the_request(echo: RawClient) -> None:
    error = await echo.error("tasks/pushNotificationConfig/set", {"taskId": "x"})
    assert error["code"] == -32602
    response = await echo.http.post(echo.url, json=rpc("tasks/pushNotificationConfig/get", {"id": "no-task"}))
    assert response.json()["error"]["code"] == -32001
