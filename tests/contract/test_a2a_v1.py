"""A2A 1.0 over a real socket, in both bindings: the extension's flow, replay, lists, and errors with their details."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from isthmus.a2a.options import ServerOptions
from isthmus.a2a.protocol.extension import URI
from isthmus.client import PromptMessage
from isthmus.development_tool import ToolCall, ToolCallStatus
from isthmus.events import ArtifactPart, ArtifactUpdate, ToolCallUpdate
from support.a2a_serving import TOKEN, allow, prompt, rpc
from support.a2a_v1 import ACTIVE, PLAIN, Client, chosen, said
from support.memory_agent import Step, conversation
from support.script_agent import Serve, serve_with

pytestmark = pytest.mark.anyio

LARGE = 2**53 + 1


def script(message: PromptMessage) -> Sequence[Step]:
    """Return the usual conversation, or a script for artifacts or numbers."""
    if message.text == "artifact":
        parts = (ArtifactPart(text="a"), ArtifactPart(data={"n": 1}), ArtifactPart(raw="AA==", media_type="image/png"))
        return (ArtifactUpdate("r", parts, name="Report"), ArtifactUpdate("r", (ArtifactPart(text="b"),), append=True))
    if message.text == "numbers":
        call = ToolCall("n", ToolCallStatus.SUCCEEDED, "count", {"z": LARGE, "a": 1, "f": 1.5})
        return (ToolCallUpdate(call),)
    return conversation(message)


@pytest.fixture(params=["memory", "engine"])
def serve(request: pytest.FixtureRequest, tmp_path: Path) -> Serve:
    return serve_with(request.param, tmp_path)


@pytest.fixture(params=["JSONRPC", "HTTP+JSON"])
async def client(request: pytest.FixtureRequest, serve: Serve) -> AsyncIterator[Client]:
    async with serve(script) as raw:
        yield Client(raw, request.param)


def kind_of(item: Mapping[str, Any]) -> str:
    """Return the extension's kind of a status update."""
    return item["statusUpdate"]["metadata"][URI]["kind"]


def state_of(item: Mapping[str, Any]) -> str:
    """Return the state of a status update."""
    return item["statusUpdate"]["status"]["state"]


@pytest.mark.requirement("TCK-CORE-STREAM-001", "TCK-CORE-STREAM-003", "TCK-JSONRPC-SSE-001", "TCK-HTTP_JSON-SSE-001")
async def test_appendix_a_runs_in_the_form_of_1_0(client: Client, workspace: Path) -> None:
    (_, first), *rest = await client.stream("SendStreamingMessage", said("edit", workspace))
    task = first["task"]
    assert task["status"]["state"] == "TASK_STATE_SUBMITTED"
    assert [kind_of(item) for _, item in rest] == ["STATE_CHANGE", "THOUGHT", "TOOL_CALL_UPDATE", "STATE_CHANGE"]
    assert state_of(rest[-1][1]) == "TASK_STATE_INPUT_REQUIRED"
    (part,) = rest[-1][1]["statusUpdate"]["status"]["message"]["parts"]
    assert part["data"]["status"] == "PENDING"
    for _, item in rest:
        assert "final" not in item["statusUpdate"]
        assert "kind" not in item["statusUpdate"]["status"]["message"]
        assert item["statusUpdate"]["status"]["message"]["role"] == "ROLE_AGENT"
    answered = await client.stream("SendStreamingMessage", chosen(task["id"], allow()))
    assert [item["statusUpdate"]["status"]["message"]["parts"][0]["data"]["status"] for _, item in answered[:2]] == [
        "EXECUTING",
        "SUCCEEDED",
    ]
    assert state_of(answered[-1][1]) == "TASK_STATE_COMPLETED"
    found = await client.call("GetTask", {"id": task["id"]})
    assert found["status"]["message"]["parts"] == [{"text": "I changed the file."}]


@pytest.mark.requirement("TCK-CORE-SEND-001", "TCK-CORE-EXECUTION-MODE-001")
async def test_a_send_waits_unless_it_shall_return_at_once(client: Client, workspace: Path) -> None:
    done = (await client.call("SendMessage", said("hello", workspace)))["task"]
    assert done["status"]["state"] == "TASK_STATE_COMPLETED"
    assert [message["role"] for message in done["history"]] == ["ROLE_USER", "ROLE_AGENT"]
    short = {**said("hello", workspace), "configuration": {"historyLength": 0}}
    assert "history" not in (await client.call("SendMessage", short))["task"]
    begun = {**said("hello", workspace), "configuration": {"returnImmediately": True}}
    assert (await client.call("SendMessage", begun))["task"]["status"]["state"] in (
        "TASK_STATE_SUBMITTED",
        "TASK_STATE_WORKING",
        "TASK_STATE_COMPLETED",
    )


async def test_whole_numbers_stay_whole(client: Client, workspace: Path) -> None:
    items = await client.stream("SendStreamingMessage", said("numbers", workspace))
    (call,) = [item for _, item in items if "statusUpdate" in item and kind_of(item) == "TOOL_CALL_UPDATE"]
    arguments = call["statusUpdate"]["status"]["message"]["parts"][0]["data"]["input_parameters"]
    assert list(arguments.items()) == [("z", LARGE), ("a", 1), ("f", 1.5)]
    assert [type(value) for value in arguments.values()] == [int, int, float]


async def test_artifacts_are_updates_of_their_own(client: Client, workspace: Path) -> None:
    items = await client.stream("SendStreamingMessage", said("artifact", workspace))
    whole, more = [item["artifactUpdate"] for _, item in items if "artifactUpdate" in item]
    assert whole["artifact"] == {
        "artifactId": "r",
        "name": "Report",
        "parts": [{"text": "a"}, {"data": {"n": 1}}, {"raw": "AA==", "mediaType": "image/png"}],
    }
    assert (whole["append"], whole["lastChunk"], more["append"]) == (False, True, True)


async def test_a_replay_brings_exactly_what_was_missed(client: Client, workspace: Path) -> None:
    sent = await client.stream("SendStreamingMessage", said("edit", workspace))
    task_id = sent[0][1]["task"]["id"]
    await client.stream("SendStreamingMessage", chosen(task_id, allow()))
    everything = await client.stream("SubscribeToTask", {"id": task_id}, {**ACTIVE, "Last-Event-ID": "0"})
    assert [item[0] for item in everything] == sorted({item[0] for item in everything}, key=lambda at: int(at or 0))
    for index in range(len(everything) - 1):
        headers = {**ACTIVE, "Last-Event-ID": everything[index][0] or ""}
        assert await client.stream("SubscribeToTask", {"id": task_id}, headers) == everything[index + 1 :]


@pytest.mark.requirement("TCK-STREAM-SUB-003")
async def test_what_has_ended_cannot_be_subscribed_to_without_a_place_to_go_on_from(
    client: Client, workspace: Path
) -> None:
    done = (await client.call("SendMessage", said("hello", workspace)))["task"]
    refused = await client.fails("SubscribeToTask", {"id": done["id"]})
    assert (refused.reason, refused.status) == ("UNSUPPORTED_OPERATION", 200 if client.binding == "JSONRPC" else 400)


@pytest.mark.requirement("TCK-CORE-LIST-002", "TCK-CORE-LIST-003", "TCK-CORE-LIST-004")
async def test_lists_are_paged_and_filtered(client: Client, workspace: Path) -> None:
    tasks = [(await client.call("SendMessage", said(text, workspace)))["task"] for text in ("a", "edit", "b", "c", "d")]
    newest_first = [task["id"] for task in reversed(tasks)]
    seen: list[str] = []
    token = ""
    for size in (2, 2, 1):
        page = await client.call("ListTasks", {"pageSize": 2, **({"pageToken": token} if token else {})})
        assert (len(page["tasks"]), page["pageSize"], page["totalSize"]) == (size, 2, 5)
        seen += [task["id"] for task in page["tasks"]]
        token = page["nextPageToken"]
    assert (seen, token) == (newest_first, "")
    assert all("history" not in task for task in page["tasks"])
    waiting = await client.call("ListTasks", {"status": "TASK_STATE_INPUT_REQUIRED"})
    assert [task["id"] for task in waiting["tasks"]] == [tasks[1]["id"]]
    of_context = await client.call("ListTasks", {"contextId": tasks[0]["contextId"], "historyLength": 1})
    assert [task["id"] for task in of_context["tasks"]] == [tasks[0]["id"]]
    assert len(of_context["tasks"][0]["history"]) == 1
    none = await client.call("ListTasks", {"statusTimestampAfter": "2999-01-01T00:00:00Z"})
    assert (none["tasks"], none["totalSize"], none["nextPageToken"]) == ([], 0, "")
    everything = await client.call("ListTasks", {"statusTimestampAfter": "2020-01-01T00:00:00Z"})
    assert everything["totalSize"] == 5


@pytest.mark.requirement("TCK-CORE-CANCEL-001", "TCK-CORE-CANCEL-002")
async def test_a_waiting_task_is_canceled_once(client: Client, workspace: Path) -> None:
    task_id = (await client.call("SendMessage", said("edit", workspace)))["task"]["id"]
    assert (await client.call("CancelTask", {"id": task_id}))["status"]["state"] == "TASK_STATE_CANCELED"
    again = await client.fails("CancelTask", {"id": task_id})
    assert again.reason == "TASK_NOT_CANCELABLE"


async def test_a_plain_client_is_asked_in_text_and_may_answer_so(client: Client) -> None:
    task = (await client.call("SendMessage", said("edit"), PLAIN))["task"]
    text, data = task["status"]["message"]["parts"]
    assert "proceed_once" in text["text"]
    assert data["data"]["status"] == "PENDING"
    assert "metadata" not in task
    done = (await client.call("SendMessage", said("Allow once", taskId=task["id"]), PLAIN))["task"]
    assert done["status"]["state"] == "TASK_STATE_COMPLETED"
    over = await client.fails("SendMessage", said("more", taskId=task["id"]), PLAIN)
    assert over.reason == "UNSUPPORTED_OPERATION"


def message(**changes: Any) -> dict[str, Any]:
    """Return parameters whose message has other members; None removes one."""
    params = said("hello", "/")
    params["message"] = {key: value for key, value in {**params["message"], **changes}.items() if value is not None}
    return params


def extended(value: object) -> dict[str, Any]:
    """Return parameters with this object of the extension."""
    return message(metadata={URI: value})


SETTINGS = f'params.message.metadata["{URI}"]'


@pytest.mark.requirement("TCK-CORE-ERR-002", "TCK-DM-SERIAL-004")
@pytest.mark.parametrize(
    ("method", "params", "field"),
    [
        ("SendMessage", {}, "params.message"),
        ("SendMessage", message(role="user"), "params.message.role"),
        ("SendMessage", message(role="ROLE_AGENT"), "params.message.role"),
        ("SendMessage", message(role=7), "params.message.role"),
        ("SendMessage", message(messageId=None), "params.message.messageId"),
        ("SendMessage", message(taskId=5), "params.message.taskId"),
        ("SendMessage", message(parts=[]), "params.message.parts"),
        ("SendMessage", message(parts=["x"]), "params.message.parts[0]"),
        ("SendMessage", message(parts=[{"kind": "text"}]), "params.message.parts[0]"),
        ("SendMessage", message(parts=[{"text": "a", "url": "b"}]), "params.message.parts[0]"),
        ("SendMessage", message(parts=[{"text": 5}]), "params.message.parts[0].text"),
        ("SendMessage", message(parts=[{"raw": "?"}]), "params.message.parts[0].raw"),
        ("SendMessage", message(metadata="x"), "params.message.metadata"),
        ("SendMessage", extended("x"), SETTINGS),
        ("SendMessage", extended({}), f"{SETTINGS}.workspace_path"),
        ("SendMessage", extended({"workspace_path": "here"}), f"{SETTINGS}.workspace_path"),
        ("SendMessage", extended({"workspace_path": "/", "allowed_tools": "x"}), f"{SETTINGS}.allowed_tools"),
        ("SendMessage", extended({"workspacePath": "/", "mcpServers": [5]}), f"{SETTINGS}.mcp_servers[0]"),
        ("SendMessage", extended({"workspace_path": "/", "model": 5}), f"{SETTINGS}.model"),
        ("SendMessage", extended({"workspace_path": "/", "approval_mode": []}), f"{SETTINGS}.approval_mode"),
        ("SendMessage", {**message(), "configuration": 5}, "params.configuration"),
        (
            "SendMessage",
            {**message(), "configuration": {"returnImmediately": "no"}},
            "params.configuration.returnImmediately",
        ),
        ("SendMessage", {**message(), "configuration": {"historyLength": -1}}, "params.configuration.historyLength"),
        ("ListTasks", {"pageSize": 0}, "params.pageSize"),
        ("ListTasks", {"pageSize": 101}, "params.pageSize"),
        ("ListTasks", {"pageToken": "zzz"}, "params.pageToken"),
        ("ListTasks", {"status": "TASK_STATE_TIRED"}, "params.status"),
        ("ListTasks", {"status": 99}, "params.status"),
        ("ListTasks", {"statusTimestampAfter": "yesterday"}, "params.statusTimestampAfter"),
        ("GetTask", {"id": "x", "historyLength": "many"}, "params.historyLength"),
        ("SendMessage", chosen("t", {"tool_call_id": 5, "selected_option_id": "x"}), "tool_call_id"),
        ("SendMessage", chosen("t", allow(modified_details={"other": {}})), "modified_details"),
        ("SendMessage", chosen("t", allow(file_details={"new_content": 5})), "file_details.new_content"),
    ],
)
async def test_a_parameter_that_does_not_fit_is_named(
    client: Client, method: str, params: dict[str, Any], field: str
) -> None:
    found = await client.fails(method, params)
    assert (found.reason, found.status) == ("INVALID_PARAMS", 200 if client.binding == "JSONRPC" else 400)
    assert field in found.message
    assert field in found.details[1]["fieldViolations"][0]["field"]
    assert (await client.call("ListTasks", {}))["totalSize"] == 0


@pytest.mark.requirement("TCK-CORE-GET-002", "TCK-CORE-CANCEL-003", "TCK-STREAM-SUB-004", "TCK-CORE-ERR-001")
async def test_an_unknown_task_is_not_found(client: Client) -> None:
    for method in ("GetTask", "CancelTask", "SubscribeToTask"):
        found = await client.fails(method, {"id": "unknown"})
        assert (found.reason, found.status) == ("TASK_NOT_FOUND", 200 if client.binding == "JSONRPC" else 404)
        assert found.code == (-32001 if client.binding == "JSONRPC" else 404)


@pytest.mark.requirement("TCK-CORE-CAP-001")
async def test_without_push_notifications_their_methods_say_so(client: Client, workspace: Path) -> None:
    config = {"taskId": "t", "url": "https://example.org/"}
    assert (await client.fails("CreateTaskPushNotificationConfig", config)).reason == "PUSH_NOTIFICATION_NOT_SUPPORTED"
    inline = {**said("hello", workspace), "configuration": {"taskPushNotificationConfig": {"url": "https://x.org/"}}}
    assert (await client.fails("SendMessage", inline)).reason == "PUSH_NOTIFICATION_NOT_SUPPORTED"
    assert (await client.call("ListTasks", {}))["totalSize"] == 0


async def test_the_extended_card_tells_the_commands_and_limits(client: Client) -> None:
    (extension,) = (await client.call("GetExtendedAgentCard", {}))["capabilities"]["extensions"]
    assert extension["params"]["limits"]["request_bytes"] > 0


async def test_the_extension_is_echoed(client: Client, workspace: Path) -> None:
    url = client.raw.url + "message:send"
    response = await client.raw.http.post(url, json=said("hello", workspace), headers=PLAIN)
    assert response.headers["a2a-extensions"] == URI


@pytest.mark.requirement("TCK-VER-SERVER-001", "TCK-VER-SERVER-002", "TCK-VER-CLIENT-002")
@pytest.mark.parametrize(
    ("version", "method", "code"),
    [
        ("1.0", "message/send", -32601),
        ("0.3", "SendMessage", -32009),
        ("0.3.0", "SendMessage", -32009),
        ("2.0", "SendMessage", -32009),
        ("2.0", "message/send", -32009),
        ("latest", "GetTask", -32009),
        ("1.0", "NoSuchMethod", -32601),
        ("1.0.7", "SendMessage", -32602),
        ("0.3", "message/send", -32602),
    ],
)
async def test_the_version_header_is_held_to(serve: Serve, version: str, method: str, code: int) -> None:
    async with serve() as raw:
        response = await raw.http.post(raw.url, json=rpc(method, {}), headers={"A2A-Version": version})
        assert response.json()["error"]["code"] == code


@pytest.mark.parametrize("method", ["SendMessage", "message/send"])
async def test_without_a_version_header_the_name_of_the_method_tells_the_version(
    serve: Serve, method: str, workspace: Path
) -> None:
    async with serve() as raw:
        params = said("hello", workspace) if method == "SendMessage" else prompt("hello", workspace)
        assert "result" in await raw.call(method, params)


@pytest.mark.requirement("TCK-CORE-CAP-004")
async def test_a_strict_server_requires_the_extension(serve: Serve) -> None:
    async with serve(options=ServerOptions(TOKEN, strict_extension=True)) as raw:
        for binding, status in (("JSONRPC", 200), ("HTTP+JSON", 400)):
            found = await Client(raw, binding).fails("SendMessage", said("hello"), PLAIN)
            assert (found.reason, found.status) == ("EXTENSION_SUPPORT_REQUIRED", status)
            assert found.details[0]["metadata"] == {"uri": URI}


async def test_an_extension_of_another_version_is_refused_with_both(client: Client, workspace: Path) -> None:
    other = URI.replace("/v0/", "/v9/")
    params = message(metadata={other: {"workspace_path": str(workspace)}})
    found = await client.fails("SendMessage", params, {**PLAIN, "A2A-Extensions": other})
    assert found.reason == "EXTENSION_SUPPORT_REQUIRED"
    assert "version 0 of" in found.message
    assert "version 9" in found.message


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"{", "PARSE_ERROR"),
        (b"\xff", "PARSE_ERROR"),
        (b"[" * 200_000, "PARSE_ERROR"),
        (b'{"a":' * 101 + b"1" + b"}" * 101, "PARSE_ERROR"),
        (b'{"message": NaN}', "PARSE_ERROR"),
        (b"[]", "INVALID_REQUEST"),
        (b'"text"', "INVALID_REQUEST"),
    ],
)
async def test_a_body_that_is_no_object_is_refused(serve: Serve, body: bytes, reason: str) -> None:
    async with serve() as raw:
        response = await raw.http.post(raw.url + "message:send", content=body, headers=PLAIN)
        assert response.status_code == 400
        error = response.json()["error"]
        assert (error["status"], error["details"][0]["reason"]) == ("INVALID_ARGUMENT", reason)


async def test_paths_and_methods_that_are_none_are_refused(serve: Serve) -> None:
    async with serve(options=ServerOptions(TOKEN, body_limit=1000)) as raw:
        assert (await raw.http.get(raw.url + "nothing")).status_code == 404
        assert (await raw.http.post(raw.url + "tasks/x/y")).status_code == 404
        refused = await raw.http.put(raw.url + "tasks/x")
        assert (refused.status_code, refused.headers["allow"]) == (405, "GET")
        assert (await raw.http.post(raw.url + "message:send", content=b"x" * 2000)).status_code == 413
        nobody = {"Authorization": "Bearer wrong"}
        assert (await raw.http.get(raw.url + "tasks", headers=nobody)).status_code == 401


async def test_many_watch_one_task_and_the_first_answer_wins(client: Client, workspace: Path) -> None:
    task_id = (await client.call("SendMessage", said("edit", workspace)))["task"]["id"]
    answers = [client.stream("SendStreamingMessage", chosen(task_id, allow())) for _ in range(3)]
    results = await asyncio.gather(*answers, return_exceptions=True)
    assert sum(not isinstance(result, BaseException) for result in results) == 1
    again = await client.fails("SendStreamingMessage", chosen(task_id, allow()))
    assert again.reason == "INVALID_PARAMS"


async def test_data_of_any_shape_is_a_part(client: Client, workspace: Path) -> None:
    params = message(parts=[{"data": [1, {"a": 2}]}], metadata={URI: {"workspace_path": str(workspace)}})
    task = (await client.call("SendMessage", params))["task"]
    assert '[1,{"a":2}]' in task["history"][0]["parts"][0]["text"]


async def test_names_as_in_the_proto_are_read_too(serve: Serve, workspace: Path) -> None:
    async with serve() as raw:
        params: dict[str, Any] = {
            "message": {
                "role": 1,
                "message_id": "m",
                "parts": [{"text": "hello", "media_type": "text/plain"}],
                "metadata": {URI: {"workspace_path": str(workspace)}},
            },
            "configuration": {"history_length": 0},
        }
        assert "history" not in (await Client(raw, "JSONRPC").call("SendMessage", params))["task"]
