"""Requests of one user for another's tasks, by every method of every wire: they change and reveal nothing."""

import json
from pathlib import Path
from typing import Any

import pytest

from isthmus.a2a.protocol.extension import URI
from isthmus.journal.port.pushes import PushState
from support.a2a_serving import EXTENSION, RawClient, allow, answer, prompt, rpc
from support.a2a_users import users_of
from support.agents import AskingAgent, EchoAgent, WaitingAgent
from support.waiting import eventually_async
from support.wire_server import Answer, WireServer

pytestmark = pytest.mark.anyio

NO_KEY_AND_KEY: tuple[dict[str, Any], ...] = ({}, {"coderAgent": {}})
ABSENT = "00000000-0000-0000-0000-000000000000"


def of_0_3(task: str, context: str, workspace: Path) -> list[tuple[str, dict[str, Any]]]:
    target = {"taskId": task, "pushNotificationConfig": {"url": "http://127.0.0.1:9/"}}
    scoped = {"metadata": {"taskId": task}}
    return [
        ("tasks/get", {"id": task}),
        ("tasks/cancel", {"id": task}),
        ("tasks/resubscribe", {"id": task}),
        ("message/send", answer(task, allow("one"))),
        ("message/stream", answer(task, allow("one"))),
        ("message/send", prompt("more", taskId=task)),
        ("message/stream", prompt("more", taskId=task, contextId=context)),
        ("message/send", {"message": {**prompt("x", taskId=task)["message"], "metadata": {"coderAgent": {}}}}),
        ("tasks/pushNotificationConfig/set", target),
        ("tasks/pushNotificationConfig/get", {"id": task}),
        ("tasks/pushNotificationConfig/list", {"id": task}),
        ("tasks/pushNotificationConfig/delete", {"id": task, "pushNotificationConfigId": task}),
        ("commands/get", scoped),
    ]


def of_1_0(task: str, context: str) -> list[tuple[str, dict[str, Any]]]:
    message = {"role": "ROLE_USER", "messageId": "m", "taskId": task, "parts": [{"text": "more"}]}
    return [
        ("GetTask", {"id": task}),
        ("CancelTask", {"id": task}),
        ("SubscribeToTask", {"id": task}),
        ("SendMessage", {"message": message}),
        ("SendStreamingMessage", {"message": {**message, "contextId": context}}),
        ("CreateTaskPushNotificationConfig", {"taskId": task, "url": "http://127.0.0.1:9/"}),
        ("GetTaskPushNotificationConfig", {"taskId": task, "id": task}),
        ("ListTaskPushNotificationConfigs", {"taskId": task}),
        ("DeleteTaskPushNotificationConfig", {"taskId": task, "id": task}),
    ]


def of_http(task: str) -> list[tuple[str, str, object]]:
    message = {"role": "ROLE_USER", "messageId": "m", "taskId": task}
    body, old = ({"message": {**message, parts: [{"text": "more"}]}} for parts in ("parts", "content"))
    pushes = f"tasks/{task}/pushNotificationConfigs"
    return [
        ("GET", f"tasks/{task}", None),
        ("GET", f"tasks/{task}/metadata", None),
        ("GET", f"tasks/{task}:subscribe", None),
        ("POST", f"tasks/{task}:cancel", {}),
        ("POST", "message:send", body),
        ("POST", "message:stream", body),
        ("POST", pushes, {"url": "http://127.0.0.1:9/"}),
        ("GET", pushes, None),
        ("GET", f"{pushes}/{task}", None),
        ("DELETE", f"{pushes}/{task}", None),
        ("GET", f"v1/tasks/{task}", None),
        ("GET", f"v1/tasks/{task}:subscribe", None),
        ("POST", f"v1/tasks/{task}:cancel", {}),
        ("POST", "v1/message:send", old),
        ("POST", "v1/message:stream", old),
        ("POST", f"v1/{pushes}", {"pushNotificationConfig": {"url": "http://127.0.0.1:9/"}}),
        ("GET", f"v1/{pushes}", None),
        ("GET", f"v1/{pushes}/{task}", None),
        ("DELETE", f"v1/{pushes}/{task}", None),
        ("POST", "executeCommand", {"command": "tasks", "taskId": task}),
    ]


async def http_answers(client: RawClient, task: str) -> list[tuple[str, int, str]]:
    """Return the requests about a task by path, and the response to each."""
    answers: list[tuple[str, int, str]] = []
    for method, path, body in of_http(task):
        response = await client.http.request(method, f"{client.url}{path}", json=body)
        answers.append((path.replace(task, ABSENT), response.status_code, response.text.replace(task, ABSENT)))
    return answers


@pytest.mark.slow
@pytest.mark.requirement("TCK-AUTH-SCOPE-001", "TCK-AUTH-SCOPE-002", "TCK-AUTH-SCOPE-003", "TCK-CORE-LIST-001")
async def test_no_method_of_any_wire_reaches_or_betrays_a_task_of_somebody_else(workspace: Path) -> None:
    async with users_of(workspace, AskingAgent()) as users:
        bob, alice = await users.client("bob"), await users.client("alice")
        task = await bob.result("message/send", prompt("go", workspace))
        context = task["contextId"]
        for stranger in (alice, users.local):
            theirs = [*of_0_3(task["id"], context, workspace), *of_1_0(task["id"], context)]
            nobodys = [*of_0_3(ABSENT, context, workspace), *of_1_0(ABSENT, context)]
            for (method, about), (_, absent) in zip(theirs, nobodys, strict=True):
                refused, expected = await stranger.error(method, about), await stranger.error(method, absent)
                assert refused["code"] == -32001, method
                assert refused["message"].replace(task["id"], ABSENT) == expected["message"], method
            asked = {"command_path": ["tasks"], "metadata": {URI: {"taskId": task["id"]}}}
            execution = await stranger.result("command/execute", asked)
            assert execution["status"] == "FAILED_TO_START"
            assert await http_answers(stranger, task["id"]) == await http_answers(stranger, ABSENT)
            assert all(status >= 400 for _, status, _ in await http_answers(stranger, task["id"]))
            for method in ("isthmus/tasks", "ListTasks"):
                assert (await stranger.result(method, {"contextId": context}))["tasks"] == []
            assert (await stranger.http.get(f"{stranger.url}tasks/metadata")).status_code == 204
            assert (await stranger.http.get(f"{stranger.url}tasks?contextId={context}")).json()["tasks"] == []
        assert (await bob.result("tasks/get", {"id": task["id"]}))["status"] == task["status"]
        assert await bob.result("tasks/pushNotificationConfig/list", {"id": task["id"]}) == []
        done = await bob.result("message/send", answer(task["id"], allow("one")))
        assert done["status"]["state"] == "completed"


async def reserved(client: RawClient, workspace: Path, **more: object) -> str:
    """Return a task that a client of ``coderAgent`` makes before its first message."""
    settings = {"agentSettings": {"kind": "agent-settings", "workspacePath": str(workspace)}, **more}
    response = await client.http.post(f"{client.url}tasks", json=settings)
    assert response.status_code == 201
    return response.json()


async def test_a_reserved_task_is_begun_by_its_own_user_alone(workspace: Path) -> None:
    async with users_of(workspace, EchoAgent()) as users:
        bob, alice = await users.client("bob"), await users.client("alice")
        task_id = await reserved(bob, workspace)
        first = prompt("hello", taskId=task_id)
        for metadata in NO_KEY_AND_KEY:
            params = {"message": {**first["message"], "metadata": metadata}}
            for stranger in (alice, users.local):
                assert (await stranger.error("message/send", params, {}))["code"] == -32001
        begun = await bob.stream("message/stream", first, {})
        assert begun[-1].result["taskId"] == task_id
        assert begun[-1].state == "input-required"  # as gemini-cli-a2a-server ends a turn


@pytest.mark.slow
async def test_many_reservations_of_one_user_take_none_from_another(workspace: Path) -> None:
    async with users_of(workspace, EchoAgent()) as users:
        bob, alice = await users.client("bob"), await users.client("alice")
        task_id = await reserved(bob, workspace)
        for _ in range(1001):
            await reserved(alice, workspace)
        assert (await bob.http.get(f"{bob.url}tasks/{task_id}/metadata")).status_code == 200
        assert len((await alice.http.get(f"{alice.url}tasks/metadata")).json()) == 1000


async def test_an_id_that_a_client_chooses_is_not_longer_than_ids_are(workspace: Path) -> None:
    async with users_of(workspace, EchoAgent()) as users:
        alice, long = await users.client("alice"), "x" * 1001
        for name in ("messageId", "contextId", "taskId"):
            error = await alice.error("message/send", prompt("go", workspace, **{name: long}))
            assert (error["code"], f"message.{name}" in error["message"]) == (-32602, True)
        assert (await alice.http.post(f"{alice.url}tasks", json={"contextId": long})).status_code == 400


async def test_what_is_pushed_to_a_user_ends_with_his_last_token_until_he_sets_it_again(workspace: Path) -> None:
    gate = WaitingAgent()
    with WireServer(lambda _: Answer(204, {"content-length": "0"})) as receiver:
        async with users_of(workspace, gate) as users:
            bob, alice = await users.client("bob"), await users.client("alice")
            pushes = {"pushNotificationConfig": {"id": "p", "url": f"{receiver.base_url}/"}, "blocking": False}
            asked = {**prompt("go", workspace), "configuration": pushes}
            task = await bob.result("message/send", asked)
            hers = await alice.result("message/send", asked)
            await eventually_async(lambda: len(receiver.requests) == 2)
            users.table, _ = users.table.revoked("bob")
            gate.release.set()

            async def is_given_up() -> bool:
                (row,) = await users.engine.journal.pushes.of_task(task["id"])
                return row.state is PushState.GIVEN_UP and "bob no longer has a valid token" in (row.error or "")

            await eventually_async(is_given_up)
            await eventually_async(lambda: len(receiver.requests) == 3)
            assert receiver.requests[-1].json["id"] == hers["id"]
            again = await users.client("bob")
            target = {"taskId": task["id"], "pushNotificationConfig": pushes["pushNotificationConfig"]}
            await again.result("tasks/pushNotificationConfig/set", target)
            await eventually_async(lambda: len(receiver.requests) == 4)
            assert receiver.requests[-1].json["id"] == task["id"]


async def test_requests_of_many_tiny_things_are_refused_before_they_cost_much(workspace: Path) -> None:
    async with users_of(workspace, EchoAgent()) as users:
        alice = await users.client("alice")
        every_path = ("", "message:send", "tasks", "executeCommand")
        for value, paths in ((b"{},", every_path), (b"1,", ("",)), (b'"a":1,', ("",))):
            many = b'[{"text": "' + value.replace(b'"', b'\\"') * 300_000 + b'"},' + value * 600_000 + b"{}]"
            for path in paths:
                response = await alice.http.post(f"{alice.url}{path}", content=many)
                assert "more than 500,000 JSON values" in response.text, (path, value)
        # Brackets in a text do not count as values. The agent repeats each word in an event; this is one word.
        code = json.dumps(rpc("message/send", prompt("if(a){b[0]=[1,2];}" * 250_000, workspace)))
        assert (await alice.http.post(alice.url, content=code, headers=EXTENSION)).json()["result"]["kind"] == "task"
        params = prompt("go", workspace, parts=[{"kind": "text", "text": "a"}] * 10_001)
        error = await alice.error("message/send", params)
        assert (error["code"], "at most 10000 parts" in error["message"]) == (-32602, True)
