"""A2A 0.3 over HTTP and JSON, with the ProtoJSON of its SDKs: literal requests and their responses."""

import json
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest

from isthmus.a2a.protocol.extension import URI
from support.a2a_hosting import Everything, Hosted, hosted
from support.a2a_serving import prompt

pytestmark = pytest.mark.anyio

HOOK = "http://127.0.0.1:9/hook"


@pytest.fixture
async def button(workspace: Path) -> AsyncGenerator[Hosted]:
    async with hosted(Everything(), workspace, pushes_to=("127.0.0.1",)) as client:
        yield client


def said(text: str, workspace: Path | None = None, **more: Any) -> dict[str, Any]:
    """Return a Message as the .proto defines it."""
    message = {"messageId": f"m-{text}", "role": "ROLE_USER", "content": [{"text": text}], **more}
    return message if workspace is None else {**message, "metadata": {URI: {"workspace_path": str(workspace)}}}


async def sent(button: Hosted, message: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Return the task that a message makes or continues."""
    answer = await button.http.post(f"{button.url}v1/message:send", json={"message": message, **more})
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json"), answer.text
    return answer.json()["task"]


def items(answer: httpx2.Response) -> list[tuple[str | None, dict[str, Any]]]:
    """Return every item of a stream, with its id."""
    assert answer.headers["content-type"].startswith("text/event-stream"), answer.text
    frames = [dict(line.split(": ", 1) for line in each.split("\n") if line) for each in answer.text.split("\n\n")]
    return [(frame.get("id"), json.loads(frame["data"])) for frame in frames if "data" in frame]


async def test_the_card_of_0_3_names_the_interface(button: Hosted) -> None:
    card = (await button.http.get(f"{button.url}.well-known/agent-card.json", headers={"A2A-Version": "0.3"})).json()
    assert card["additionalInterfaces"] == [
        {"url": button.url, "transport": "JSONRPC"},
        {"url": button.url.removesuffix("/"), "transport": "HTTP+JSON"},
    ]
    both = (await button.http.get(f"{button.url}.well-known/agent-card.json")).json()
    offered = [(each["protocolBinding"], each["protocolVersion"]) for each in both["supportedInterfaces"]]
    assert offered == [("JSONRPC", "1.0"), ("HTTP+JSON", "1.0"), ("JSONRPC", "0.3"), ("HTTP+JSON", "0.3")]


async def test_a_message_a_question_its_answer_and_the_task_have_the_form_of_the_proto(button: Hosted) -> None:
    task = await sent(button, said("you"))
    assert (task["status"]["state"], "kind" in task) == ("TASK_STATE_INPUT_REQUIRED", False)
    question = task["status"]["message"]
    assert (question["role"], [sorted(part) for part in question["content"]]) == ("ROLE_AGENT", [["text"], ["data"]])
    assert question["content"][1]["data"]["data"]["tool_call_id"] == "call-1"
    assert task["artifacts"][0]["parts"] == [{"text": "all is well"}]
    chosen = {"tool_call_id": "call-1", "selected_option_id": "proceed_once"}
    answered = await sent(button, said("", taskId=task["id"], content=[{"data": {"data": chosen}}]))
    assert answered["status"]["state"] == "TASK_STATE_COMPLETED"
    assert answered["artifacts"][-1]["parts"] == [{"text": "Pressed."}]
    for name in ("historyLength", "history_length"):
        found = await button.http.get(f"{button.url}v1/tasks/{task['id']}", params={name: 1})
        (last,) = found.json()["history"]
        assert (last["role"], last["content"]) == ("ROLE_AGENT", [{"text": "Pressed."}])
    listed = (await button.http.get(f"{button.url}v1/tasks")).json()["tasks"]
    assert [each["id"] for each in listed] == [task["id"]]


async def test_a_stream_and_its_resumption_have_the_items_of_the_proto(button: Hosted, workspace: Path) -> None:
    body = {"message": said("you", workspace)}
    headers = {"X-A2A-Extensions": URI}
    answer = await button.http.post(f"{button.url}v1/message:stream", json=body, headers=headers)
    assert answer.headers["x-a2a-extensions"] == URI
    seen = items(answer)
    assert [next(iter(item)) for _, item in seen[:2]] == ["task", "statusUpdate"]
    assert "artifactUpdate" in {next(iter(item)) for _, item in seen}
    task, last = seen[0][1]["task"], seen[-1][1]["statusUpdate"]
    assert (last["taskId"], last["final"], last["status"]["state"]) == (task["id"], True, "TASK_STATE_INPUT_REQUIRED")
    assert last["metadata"][URI]["kind"] == "STATE_CHANGE"
    place = f"{button.url}v1/tasks/{task['id']}:subscribe"
    for follow in (button.http.get, button.http.post):
        again = items(await follow(place, headers={**headers, "Last-Event-ID": seen[1][0] or ""}))
        assert again == seen[2:]


@pytest.mark.parametrize(
    "message",
    [
        {"message_id": "m", "role": 1, "task_id": "", "context_id": "", "content": [{"text": "you"}]},
        {"kind": "message", "messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "you"}]},
        {"messageId": "m", "role": "ROLE_USER", "content": [{"kind": "text", "text": "you"}]},
    ],
    ids=["names of the proto", "as in JSON-RPC", "parts as in JSON-RPC"],
)
async def test_a_message_may_be_written_in_every_way_that_clients_do(button: Hosted, message: dict[str, Any]) -> None:
    answer = await button.http.post(f"{button.url}v1/message:send", json={"message": message})
    assert answer.json()["task"]["history"][0]["content"] == [{"text": "you"}]


async def test_files_and_data_reach_the_agent_as_with_json_rpc(button: Hosted) -> None:
    file = {"fileWithBytes": "aGVsbG8=", "mimeType": "text/plain", "name": "a.txt"}
    link = {"file_with_uri": "https://example.org/b", "mime_type": "text/html", "name": ""}
    content = [{"text": "look"}, {"file": file}, {"file": link}, {"data": {"data": {"n": 1}}}]
    by_rest = await sent(button, said("x", content=content))
    parts = [
        {"kind": "text", "text": "look"},
        {"kind": "file", "file": {"bytes": "aGVsbG8=", "mimeType": "text/plain", "name": "a.txt"}},
        {"kind": "file", "file": {"uri": "https://example.org/b", "mimeType": "text/html"}},
        {"kind": "data", "data": {"n": 1}},
    ]
    by_rpc = await button.call("message/send", prompt("", parts=parts))
    assert by_rest["history"][0]["content"][0]["text"] == by_rpc["history"][0]["parts"][0]["text"]


async def test_what_a_configuration_leaves_out_is_as_proto_json_has_it(button: Hosted) -> None:
    whole = await sent(button, said("one"), configuration={"blocking": True, "historyLength": 0})
    assert (whole["status"]["state"], len(whole["history"])) == ("TASK_STATE_INPUT_REQUIRED", 2)
    target = {"id": "", "url": HOOK, "token": ""}
    begun = await sent(button, said("two"), configuration={"pushNotification": target})
    listed = await button.call("tasks/pushNotificationConfig/list", {"id": begun["id"]})
    assert [each["pushNotificationConfig"]["url"] for each in listed] == [HOOK]


async def test_push_configs_are_set_read_listed_and_deleted(button: Hosted) -> None:
    task_id = (await sent(button, said("you")))["id"]
    place = f"{button.url}v1/tasks/{task_id}/pushNotificationConfigs"
    push = {"url": HOOK, "token": "t", "authentication": {"schemes": ["Bearer"], "credentials": "secret"}}
    kept = {"url": HOOK, "token": "t", "authentication": {"schemes": ["Bearer"]}}
    bodies = {
        "a": {"parent": f"tasks/{task_id}", "configId": "a", "config": {"pushNotificationConfig": push}},
        "b": {"config_id": "b", "config": {"name": "x", "push_notification_config": push}},
        "c": {"name": "x", "pushNotificationConfig": {**push, "id": "c"}},
    }
    named: list[dict[str, Any]] = []
    for name, body in bodies.items():
        answer = await button.http.post(place, json=body)
        config = {"id": name, **kept}
        named.append({"name": f"tasks/{task_id}/pushNotificationConfigs/{name}", "pushNotificationConfig": config})
        assert (answer.status_code, answer.json()) == (200, named[-1])
        assert (await button.http.get(f"{place}/{name}")).json() == named[-1]
    assert (await button.http.get(place)).json() == {"configs": named, "nextPageToken": ""}
    assert (await button.http.delete(f"{place}/a")).json() == {}
    assert (await button.http.get(f"{place}/a")).status_code == 404
    refused = await button.http.post(place, json={"url": HOOK})
    assert (refused.status_code, refused.json()["code"]) == (422, -32602)


async def test_errors_have_the_code_of_json_rpc_and_a_status(button: Hosted) -> None:
    task_id = (await sent(button, said("you")))["id"]
    canceled = await button.http.post(f"{button.url}v1/tasks/{task_id}:cancel", json={"name": f"tasks/{task_id}"})
    assert canceled.json()["status"]["state"] == "TASK_STATE_CANCELLED"
    cases: list[tuple[str, str, Any, int, int]] = [
        ("GET", "v1/tasks/unknown", None, 404, -32001),
        ("GET", f"v1/tasks/{task_id}?history_length=-1", None, 422, -32602),
        ("POST", f"v1/tasks/{task_id}:cancel", None, 409, -32002),
        ("POST", "v1/tasks/unknown:subscribe", None, 404, -32001),
        ("POST", "v1/message:send", {"message": {**said("x"), "content": []}}, 422, -32602),
        ("POST", "v1/message:send", {"message": {**said("x"), "role": "ROLE_AGENT"}}, 422, -32602),
        ("POST", "v1/message:send", {"message": {**said("x"), "role": []}}, 422, -32602),
        ("POST", "v1/message:send", {"message": {**said("x"), "content": ["x"]}}, 422, -32602),
        ("POST", "v1/message:send", {"message": {**said("x"), "content": [{"data": {"data": 1}}]}}, 422, -32602),
        ("POST", "v1/message:send", {"message": {**said("x"), "content": [{"file": {}}]}}, 422, -32602),
        ("POST", "v1/message:send", {"message": said("x"), "configuration": {"blocking": "no"}}, 422, -32602),
        ("POST", "v1/message:send", {"message": said("x"), "configuration": {"historyLength": "one"}}, 422, -32602),
        ("POST", "v1/message:send", {"message": {**said("x"), "content": "x"}}, 422, -32602),
        ("POST", "v1/message:stream", {}, 422, -32602),
        ("POST", "v1/message:send", {"message": said("x", taskId=task_id)}, 501, -32004),
        ("POST", "v1/message:send", [], 400, -32600),
    ]
    for method, path, body, status, code in cases:
        answer = await button.http.request(method, button.url + path, json=body)
        found = answer.json()
        assert (answer.status_code, found["code"]) == (status, code), (path, found)
        assert isinstance(found["message"], str)
    missing = (await button.http.get(f"{button.url}v1/tasks/unknown")).json()
    assert (missing["type"], missing["message"]) == ("TaskNotFoundError", "Task not found: there is no task unknown")
    garbage = await button.http.post(f"{button.url}v1/message:send", content=b"{", headers={"Content-Type": "text/x"})
    assert (garbage.status_code, garbage.json()["code"]) == (415, -32005)
    wrong = await button.http.get(f"{button.url}v1/message:send")
    assert (wrong.status_code, wrong.headers["allow"], wrong.json()["code"]) == (405, "POST", 405)
    assert (await button.http.get(f"{button.url}v1/nothing")).status_code == 404


async def test_nobody_without_a_token_is_served(button: Hosted) -> None:
    headers = {"Authorization": "Bearer wrong"}
    answer = await button.http.post(f"{button.url}v1/message:send", json={"message": said("you")}, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (401, 401)


async def test_the_version_that_is_stated_must_be_that_of_the_path(button: Hosted) -> None:
    for stated, status in (("0.3", 404), ("0.3.0", 404), ("1.0", 404), ("9.9", 400)):
        answer = await button.http.get(f"{button.url}v1/tasks/unknown", headers={"A2A-Version": stated})
        assert answer.status_code == status
        assert answer.json()["code"] == {"1.0": -32601, "9.9": -32009}.get(stated, -32001)


async def test_the_extended_card_is_for_who_has_a_token(button: Hosted) -> None:
    card = (await button.http.get(f"{button.url}v1/card")).json()
    assert (card["protocolVersion"], card["name"]) == ("0.3.0", "Button")
    assert "commands" in card["capabilities"]["extensions"][0]["params"]
