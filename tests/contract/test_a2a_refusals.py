"""Requests that the A2A server refuses, over a real socket: each with its exact error, and without side effects."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from isthmus.a2a.options import ServerOptions
from isthmus.a2a.protocol.extension import URI
from isthmus.client import PromptMessage, TaskSnapshot
from support.a2a_serving import EXTENSION, TOKEN, RawClient, allow, answer, prompt, rpc, serving
from support.memory_agent import MemoryAgent, conversation
from support.script_agent import engine_playing

pytestmark = pytest.mark.anyio

PATH = f'params.message.metadata["{URI}"].workspace_path'


@pytest.fixture
async def agent(workspace: Path) -> MemoryAgent:
    return MemoryAgent(default_workspace=str(workspace))


@pytest.fixture
async def server(agent: MemoryAgent) -> AsyncIterator[RawClient]:
    async with serving(agent) as client:
        yield client


async def waiting_task(server: RawClient, workspace: Path) -> dict[str, Any]:
    """Return the Task of a prompt that leads to a question."""
    return await server.result("message/send", prompt("edit", workspace))


@pytest.mark.parametrize(
    ("body", "code", "request_id", "text"),
    [
        (b"{", -32700, None, "not JSON"),
        (b"", -32700, None, "not JSON"),
        (b"\xff\xfe", -32700, None, "byte 0"),
        (b'{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"id":NaN}}', -32700, None, "NaN"),
        (b"[" * 200_000, -32700, None, "nested"),
        (b'{"a":' * 101 + b"1" + b"}" * 101, -32700, None, "nested at most 100 deep"),
        (b'{"jsonrpc":"2.0","id":1,"method":"\\ud800"}', -32700, None, "surrogate"),
        (b"[]", -32600, None, "no batches"),
        (json.dumps([rpc("tasks/get", {})]).encode(), -32600, None, "no batches"),
        (b'"text"', -32600, None, "an object"),
        (b'{"id":1,"method":"tasks/get"}', -32600, 1, "jsonrpc"),
        (b'{"jsonrpc":"1.0","id":1,"method":"tasks/get"}', -32600, 1, "jsonrpc"),
        (b'{"jsonrpc":"2.0","id":{},"method":"tasks/get"}', -32600, None, "id"),
        (b'{"jsonrpc":"2.0","id":true,"method":"tasks/get"}', -32600, None, "id"),
        (b'{"jsonrpc":"2.0","id":"a","method":5}', -32600, "a", "method"),
        (b'{"jsonrpc":"2.0","id":"a","method":"tasks/get","params":[1]}', -32602, "a", "params"),
        (b'{"jsonrpc":"2.0","id":"a","method":"tasks/gett"}', -32601, "a", "tasks/gett"),
        (b'{"jsonrpc":"2.0","id":2,"method":"sendMessage","params":{}}', -32601, 2, "sendMessage"),
        (b'{"jsonrpc":"2.0","id":2,"method":"tasks/pushNotificationConfig/set"}', -32003, 2, "push"),
    ],
)
async def test_a_request_that_is_none_gets_its_code(
    server: RawClient, body: bytes, code: int, request_id: object, text: str
) -> None:
    response = await server.http.post(server.url, content=body)
    found = response.json()
    assert response.status_code == 200
    assert (found["jsonrpc"], found["id"], found["error"]["code"]) == ("2.0", request_id, code)
    assert text in found["error"]["message"]


def message(**changes: Any) -> dict[str, Any]:
    """Return parameters whose message has other members; None removes one."""
    params = prompt("hello", "/")
    params["message"] = {key: value for key, value in {**params["message"], **changes}.items() if value is not None}
    return params


def settings(name: str, value: object) -> dict[str, Any]:
    """Return parameters whose AgentSettings have one more member."""
    return message(metadata={URI: {"workspace_path": "/", name: value}})


@pytest.mark.parametrize(
    ("method", "params", "code", "field"),
    [
        ("message/stream", {}, -32602, "params.message"),
        ("message/stream", {"message": "hello"}, -32602, "params.message"),
        ("message/stream", message(kind="task"), -32602, "params.message.kind"),
        ("message/stream", message(role="agent"), -32602, "params.message.role"),
        ("message/stream", message(messageId=None), -32602, "params.message.messageId"),
        ("message/stream", message(messageId=5), -32602, "params.message.messageId"),
        ("message/stream", message(taskId=5), -32602, "params.message.taskId"),
        ("message/stream", message(contextId=""), -32602, "params.message.contextId"),
        ("message/stream", message(parts=None), -32602, "params.message.parts"),
        ("message/stream", message(parts=[]), -32602, "params.message.parts"),
        ("message/stream", message(parts=["x"]), -32602, "params.message.parts[0]"),
        ("message/stream", message(parts=[{"kind": "text", "text": "  "}]), -32602, "params.message.parts"),
        ("message/stream", message(parts=[{"kind": "text"}]), -32602, "params.message.parts[0].text"),
        ("message/stream", message(parts=[{"text": "1.0"}]), -32602, "params.message.parts[0].kind"),
        ("message/stream", message(parts=[{"kind": "data", "data": 1}]), -32602, "params.message.parts[0].data"),
        ("message/stream", message(parts=[{"kind": "file"}]), -32602, "params.message.parts[0].file"),
        (
            "message/stream",
            message(parts=[{"kind": "file", "file": {"bytes": "?"}}]),
            -32602,
            "params.message.parts[0].file.bytes",
        ),
        ("message/stream", message(metadata="x"), -32602, "params.message.metadata"),
        ("message/stream", message(metadata={URI: "x"}), -32602, f'params.message.metadata["{URI}"]'),
        ("message/stream", settings("mcp_servers", "x"), -32602, f'metadata["{URI}"].mcp_servers'),
        ("message/stream", settings("mcp_servers", [{"url": 5}]), -32602, f'metadata["{URI}"].mcp_servers[0]'),
        ("message/stream", settings("allowed_tools", [1]), -32602, f'metadata["{URI}"].allowed_tools[0]'),
        ("message/stream", settings("model", ["m"]), -32602, f'metadata["{URI}"].model'),
        ("message/stream", settings("approval_mode", 1), -32602, f'metadata["{URI}"].approval_mode'),
        ("message/stream", settings("approvalMode", 1), -32602, f'metadata["{URI}"].approval_mode'),
        ("message/stream", settings("context_files", "GEMINI.md"), -32602, f'metadata["{URI}"].context_files'),
        ("message/stream", answer("t", {"tool_call_id": 5, "selected_option_id": "x"}), -32602, "tool_call_id"),
        (
            "message/stream",
            answer("t", allow(file_details={"new_content": 5})),
            -32602,
            "params.message.parts[0].data.file_details.new_content",
        ),
        (
            "message/stream",
            answer("t", allow(modified_details={"shell_details": {"command": "x"}})),
            -32602,
            "params.message.parts[0].data.modified_details",
        ),
        ("message/stream", answer("t", {"tool_call_id": "call-1"}), -32602, "data.selected_option_id"),
        ("message/stream", answer("t", {"selectedOptionId": "proceed_once"}), -32602, "data.tool_call_id"),
        ("message/stream", answer("t", allow(modified_details="mine")), -32602, "data.modified_details"),
        ("message/stream", message(parts=[{"kind": "data", "data": allow()}]), -32602, "params.message.taskId"),
        (
            "message/stream",
            answer("t", allow(), parts=[{"kind": "data", "data": allow()}, {"kind": "text", "text": "and"}]),
            -32001,
            "no task t",
        ),
        ("message/send", {**message(), "configuration": {"blocking": 1}}, -32602, "params.configuration.blocking"),
        (
            "message/send",
            {**message(), "configuration": {"historyLength": -1}},
            -32602,
            "params.configuration.historyLength",
        ),
        (
            "message/send",
            {**message(), "configuration": {"pushNotificationConfig": {"url": "http://x/"}}},
            -32003,
            "does not send push notifications",
        ),
        ("tasks/get", {}, -32602, "params.id"),
        ("tasks/get", {"id": 5}, -32602, "params.id"),
        ("tasks/get", {"id": "x", "historyLength": "five"}, -32602, "params.historyLength"),
        ("tasks/get", {"id": "x"}, -32001, "no task x"),
        ("tasks/cancel", {"id": "x"}, -32001, "no task x"),
        ("tasks/resubscribe", {"id": "x"}, -32001, "no task x"),
        ("message/stream", answer("x", allow()), -32001, "no task x"),
        ("message/send", prompt("more", taskId="x"), -32001, "no task x"),
    ],
)
async def test_a_parameter_that_does_not_fit_is_named(
    server: RawClient, agent: MemoryAgent, method: str, params: dict[str, Any], code: int, field: str
) -> None:
    error = await server.error(method, params)
    assert error["code"] == code
    assert field in error["message"]
    assert await agent.tasks() == []


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({}, f"{PATH}: expected a string"),
        ({"workspace_path": 5}, f"{PATH}: expected a string"),
        ({"workspace_path": "src"}, f"{PATH}: expected an absolute path"),
        ({"workspacePath": "./src"}, f"{PATH}: expected an absolute path"),
        ({"workspace_path": "/a\0b"}, f"{PATH}: expected an absolute path"),
    ],
)
async def test_a_session_without_a_usable_workspace_is_refused_by_the_name_of_the_key(
    server: RawClient, agent: MemoryAgent, settings: dict[str, Any], text: str
) -> None:
    params = message(metadata={URI: settings})
    for method in ("message/send", "message/stream"):
        error = await server.error(method, params, {})
        assert error["code"] == -32602
        assert text in error["message"]
    assert await agent.tasks() == []


async def test_a_session_without_settings_is_refused_where_the_extension_is_active(
    server: RawClient, agent: MemoryAgent
) -> None:
    for more in ({}, {"contextId": "new-session"}):
        error = await server.error("message/send", prompt("hello", **more))
        assert error["code"] == -32602
        assert "AgentSettings" in error["message"]
    assert await agent.tasks() == []


async def test_a_workspace_that_the_agent_cannot_have_is_refused_by_the_name_of_the_key(
    workspace: Path, tmp_path: Path
) -> None:
    inside, file = workspace / "project", workspace / "file"
    inside.mkdir()
    file.touch()
    (workspace / "way-out").symlink_to(tmp_path)
    async with engine_playing(conversation, tmp_path, workspace) as engine, serving(engine) as server:
        for wrong in ("/no/such/directory", file, "/", tmp_path, workspace / "way-out", f"{inside}/../.."):
            for method in ("message/send", "message/stream"):
                error = await server.error(method, prompt("hello", wrong))
                assert error["code"] == -32602
                assert "workspace_path" in error["message"]
        assert await engine.tasks() == []
        task = await server.result("message/send", prompt("hello", inside))
        other = prompt("more", workspace, contextId=task["contextId"])
        error = await server.error("message/send", other)
        assert error["code"] == -32602
        assert "workspace_path" in error["message"]
        assert len(await engine.tasks()) == 1


async def test_an_unknown_option_is_refused_by_the_valid_ones_and_the_question_stays(
    server: RawClient, workspace: Path
) -> None:
    task = await waiting_task(server, workspace)
    wrong = {"tool_call_id": "call-1", "selected_option_id": "maybe"}
    error = await server.error("message/stream", answer(task["id"], wrong))
    assert error["code"] == -32602
    assert "proceed_once, cancel" in error["message"]
    still = await server.result("tasks/get", {"id": task["id"]})
    assert still["status"] == task["status"]
    assert (await server.stream("message/stream", answer(task["id"], allow())))[-1].state == "completed"


async def test_a_question_answered_twice_is_refused_the_second_time(server: RawClient, workspace: Path) -> None:
    task = await waiting_task(server, workspace)
    both = await asyncio.gather(
        *(server.call("message/send", answer(task["id"], allow())) for _ in range(2)),
    )
    assert sorted("error" in item for item in both) == [False, True]
    (refused,) = [item["error"] for item in both if "error" in item]
    assert refused["code"] == -32602
    assert "already answered" in refused["message"]


async def test_answers_of_which_one_is_wrong_are_all_refused(server: RawClient, workspace: Path) -> None:
    task = await waiting_task(server, workspace)
    error = await server.error("message/stream", answer(task["id"], allow(), allow("other")))
    assert error["code"] == -32602
    assert "other" in error["message"]
    assert (await server.result("tasks/get", {"id": task["id"]}))["status"] == task["status"]


@pytest.mark.requirement("A2A-098", "A2A-099")
async def test_a_wrong_session_is_refused(server: RawClient, workspace: Path) -> None:
    task = await waiting_task(server, workspace)
    for params in (answer(task["id"], allow(), contextId="x"), prompt("more", taskId=task["id"], contextId="x")):
        error = await server.error("message/stream", params)
        assert error["code"] == -32602
        assert "contextId" in error["message"]
    right = answer(task["id"], allow(), contextId=task["contextId"])
    assert (await server.stream("message/stream", right))[-1].state == "completed"


async def test_a_finished_task_cannot_be_canceled_and_a_canceled_one_not_continued(
    server: RawClient, workspace: Path
) -> None:
    done = await server.result("message/send", prompt("hello", workspace))
    assert (await server.error("tasks/cancel", {"id": done["id"]}))["code"] == -32002
    task = await waiting_task(server, workspace)
    assert (await server.result("tasks/cancel", {"id": task["id"]}))["status"]["state"] == "canceled"
    assert (await server.error("tasks/cancel", {"id": task["id"]}))["code"] == -32002
    assert (await server.error("message/send", prompt("more", taskId=task["id"])))["code"] == -32004


async def test_a_completed_task_is_final_for_a_plain_client(workspace: Path) -> None:
    async with serving(MemoryAgent(default_workspace=str(workspace))) as server:
        task = await server.result("message/send", prompt("hello"), {})
        assert (await server.error("message/send", prompt("more", taskId=task["id"]), {}))["code"] == -32004


@pytest.mark.parametrize("version", ["1", "2.3", "1.0.0"])
async def test_a_version_that_does_not_fit_is_refused_by_naming_both(server: RawClient, version: str) -> None:
    uri = URI.replace("/v0/", f"/v{version}/")
    error = await server.error("message/send", prompt("hello"), {"A2A-Extensions": f"https://example.org/x, {uri}"})
    assert error["code"] == -32600
    assert "version 0 " in error["message"]
    assert f"version {version}," in error["message"]


async def test_a_strict_server_refuses_messages_without_the_extension(workspace: Path) -> None:
    options = ServerOptions(TOKEN, strict_extension=True)
    async with serving(MemoryAgent(), options) as server:
        for method in ("message/send", "message/stream"):
            error = await server.error(method, prompt("hello"), {})
            assert (error["code"], error["data"]) == (-32600, {"uri": URI})
        await server.result("message/send", prompt("hello", workspace))


async def test_a_last_event_id_that_is_none_is_refused(server: RawClient, workspace: Path) -> None:
    task = await waiting_task(server, workspace)
    for value in ("x", "-1", "1.5", "9" * 19):
        error = await server.error("tasks/resubscribe", {"id": task["id"]}, {**EXTENSION, "Last-Event-ID": value})
        assert error["code"] == -32602
        assert "Last-Event-ID" in error["message"]


async def test_a_client_that_reads_only_event_streams_gets_the_error_as_one(server: RawClient) -> None:
    response = await server.http.post(
        server.url, json=rpc("message/stream", {}), headers={"Accept": "text/event-stream"}
    )
    assert response.headers["content-type"].startswith("text/event-stream")
    assert json.loads(response.text.removeprefix("data: "))["error"]["code"] == -32602


class BrokenAgent(MemoryAgent):
    """An agent with a bug."""

    async def tasks(self, limit: int = 100) -> Sequence[TaskSnapshot]:
        raise KeyError("secret detail")


async def test_a_bug_is_an_internal_error_without_internals(workspace: Path, caplog: pytest.LogCaptureFixture) -> None:
    def script(_: PromptMessage) -> Sequence[Any]:
        raise AssertionError("secret detail")

    async with serving(BrokenAgent(script)) as server:
        for method, params in (("isthmus/tasks", {}), ("message/stream", prompt("hello", workspace))):
            error = await server.error(method, params)
            assert error == {"code": -32603, "message": "internal error; the server's log has the details"}
    assert caplog.text.count("because of a bug") == 2
    assert "secret detail" in caplog.text
