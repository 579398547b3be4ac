"""Clauses of A2A 1.0 that the official kit tests servers for, one after the other and in both bindings."""

import re
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from support.a2a_hosting import Hosted, hosted
from support.a2a_v1 import PLAIN, Client, said, task_of
from support.obedient_agent import Obedient
from support.waiting import eventually_async
from support.wire_server import Answer, WireServer

pytestmark = pytest.mark.anyio

NAMES = "SUBMITTED WORKING COMPLETED FAILED CANCELED REJECTED INPUT_REQUIRED AUTH_REQUIRED"
STATES = {f"TASK_STATE_{name}" for name in NAMES.split()}


@pytest.fixture
def agent() -> Obedient:
    return Obedient()


@pytest.fixture
async def served(agent: Obedient, workspace: Path) -> AsyncGenerator[Hosted]:
    async with hosted(agent, workspace, pushes_to=("127.0.0.1",)) as client:
        yield client


@pytest.fixture(params=["JSONRPC", "HTTP+JSON"])
def client(request: pytest.FixtureRequest, served: Hosted) -> Client:
    return Client(served, request.param)


def objects(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every object in a JSON value, itself included."""
    members: list[Any] = []
    if isinstance(value, dict):
        found = cast("dict[str, Any]", value)
        yield found
        members = list(found.values())
    elif isinstance(value, list):
        members = cast("list[Any]", value)
    for member in members:
        yield from objects(member)


async def everything(client: Client) -> list[dict[str, Any]]:
    """Return every object in responses to messages with all features of the agent, and to requests for their tasks."""
    found: list[Any] = []
    for text in ("hello", "make"):
        found += [item for _, item in await client.stream("SendStreamingMessage", said(text), PLAIN)]
    found += [await client.call("SendMessage", said(text), PLAIN) for text in ("ask", "login", "make", "say")]
    found.append(await client.call("ListTasks", {"includeArtifacts": True, "historyLength": 9}, PLAIN))
    return list(objects(found))


@pytest.mark.requirement("TCK-DM-TASK-001", "TCK-DM-TASK-002", "TCK-DM-STATUS-001", "TCK-DM-MSG-001")
async def test_tasks_statuses_and_messages_have_what_they_must(client: Client) -> None:
    for each in await everything(client):
        if "status" in each:
            assert each["status"]["state"] in STATES
            assert (each.get("id") or each["taskId"], each["contextId"]) > ("", "")
        if "role" in each:
            assert each["role"] in ("ROLE_USER", "ROLE_AGENT")
            assert each["messageId"]
            assert each["parts"]


@pytest.mark.requirement("TCK-DM-MSG-002", "TCK-DM-PART-001", "TCK-DM-ART-001", "TCK-DM-SERIAL-002")
async def test_parts_and_artifacts_have_what_they_must_and_enums_their_names(client: Client) -> None:
    found = await everything(client)
    parts = [part for each in found for part in each.get("parts", ())]
    assert {name for part in parts for name in part} >= {"text", "data", "url"}
    assert all(len(part.keys() & {"text", "data", "raw", "url"}) == 1 for part in parts)
    artifacts = [each for each in found if "artifactId" in each]
    assert len(artifacts) >= 3
    assert all(each["parts"] for each in artifacts)
    assert {each["role"] for each in found if "role" in each} == {"ROLE_USER", "ROLE_AGENT"}


@pytest.mark.requirement("TCK-DM-SERIAL-001", "TCK-DM-SERIAL-003")
async def test_names_are_in_camel_case_and_times_in_utc(client: Client) -> None:
    for each in await everything(client):
        assert not [name for name in each if "_" in name or name[0].isupper()]
        if "timestamp" in each:
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", each["timestamp"])


@pytest.mark.requirement("TCK-CORE-GET-001", "TCK-CORE-HIST-002", "TCK-CORE-LIST-005")
async def test_a_task_is_found_with_as_much_as_is_asked_for(client: Client) -> None:
    task = await task_of(client, "make")
    assert await client.call("GetTask", {"id": task["id"]}, PLAIN) == task
    for length in (0, 1, 2):
        found = await client.call("GetTask", {"id": task["id"], "historyLength": length}, PLAIN)
        assert len(found.get("history", [])) <= length
    (listed,) = (await client.call("ListTasks", {}, PLAIN))["tasks"]
    (whole,) = (await client.call("ListTasks", {"includeArtifacts": True}, PLAIN))["tasks"]
    assert "artifacts" not in listed
    assert whole["artifacts"] == task["artifacts"]


@pytest.mark.requirement("TCK-CORE-SEND-002", "TCK-CORE-MULTI-004", "TCK-CORE-MULTI-006")
async def test_messages_to_ended_missing_or_foreign_tasks_are_refused(client: Client) -> None:
    done, waiting = await task_of(client, "hello"), await task_of(client, "ask")
    for params, reason, status in (
        (said("more", taskId=done["id"]), "UNSUPPORTED_OPERATION", 400),
        (said("more", taskId="unknown"), "TASK_NOT_FOUND", 404),
        (said("more", taskId=waiting["id"], contextId=done["contextId"]), "INVALID_PARAMS", 400),
    ):
        for method in ("SendMessage", "SendStreamingMessage"):
            refused = await client.fails(method, params, PLAIN)
            assert (refused.reason, refused.status) == (reason, 200 if client.binding == "JSONRPC" else status)
    assert (await client.call("ListTasks", {}, PLAIN))["totalSize"] == 2


@pytest.mark.requirement("TCK-CORE-MULTI-001a", "TCK-CORE-MULTI-002a", "TCK-CORE-MULTI-003", "TCK-CORE-MULTI-005")
async def test_ids_of_tasks_are_new_and_contexts_are_made_kept_or_found(client: Client) -> None:
    one, other = await task_of(client, "ask"), await task_of(client, "hello", contextId="of-the-client")
    assert one["id"] != other["id"]
    assert one["contextId"]
    assert other["contextId"] == "of-the-client"
    assert (await task_of(client, "more", taskId=one["id"]))["contextId"] == one["contextId"]
    message = (await client.call("SendMessage", said("say"), PLAIN))["message"]
    assert message["contextId"] not in ("", one["contextId"])


@pytest.mark.requirement("TCK-CORE-STREAM-002")
async def test_a_stream_is_of_a_task_from_its_first_item_or_of_one_message_never_of_both(client: Client) -> None:
    items = [next(iter(item)) for _, item in await client.stream("SendStreamingMessage", said("say"), PLAIN)]
    assert (items[0], set(items[1:])) == ("task", {"statusUpdate", "artifactUpdate"})


@pytest.mark.requirement("TCK-CORE-EXECUTION-MODE-002")
async def test_a_message_that_does_not_wait_is_answered_while_the_work_goes_on(client: Client, agent: Obedient) -> None:
    params = {**said("wait"), "configuration": {"returnImmediately": True}}
    task = (await client.call("SendMessage", params, PLAIN))["task"]
    assert task["status"]["state"] in ("TASK_STATE_SUBMITTED", "TASK_STATE_WORKING")
    agent.gate.set()


@pytest.mark.requirement("TCK-STREAM-ORDER-001", "TCK-STREAM-ORDER-002", "TCK-STREAM-ORDER-003", "TCK-STREAM-ORDER-004")
async def test_all_who_follow_a_task_are_told_the_same_in_the_same_order(served: Hosted, agent: Obedient) -> None:
    params = {**said("wait"), "configuration": {"returnImmediately": True}}
    task = (await served.call("SendMessage", params, **PLAIN))["task"]
    about = {"id": task["id"]}
    async with (
        served.opened("SubscribeToTask", about, PLAIN) as one,
        served.opened("SubscribeToTask", about, PLAIN) as other,
    ):
        async with served.opened("SubscribeToTask", about, PLAIN) as leaving:
            await anext(leaving)
        firsts = [await anext(one), await anext(other)]
        assert [first.result["task"]["id"] for first in firsts] == [task["id"]] * 2
        agent.gate.set()
        seen = [[item async for item in items] for items in (one, other)]
    last = [items[-1].result["statusUpdate"]["status"]["state"] for items in seen]
    assert last == ["TASK_STATE_COMPLETED"] * 2
    begun = max(int(first.id or 0) for first in firsts)
    after = [[(item.id, item.result) for item in items if int(item.id or 0) > begun] for items in seen]
    assert after[0] == after[1]
    numbers = [int(item.id) for item in seen[0] if item.id is not None]  # of the items of one event the last has it
    assert numbers == sorted(set(numbers))


@pytest.mark.requirement("TCK-PUSH-CREATE-001", "TCK-PUSH-GET-001", "TCK-PUSH-GET-002", "TCK-PUSH-LIST-001")
async def test_push_configs_are_created_found_and_listed(client: Client) -> None:
    task = await task_of(client, "ask")
    kept = [{"id": name, "taskId": task["id"], "url": f"http://127.0.0.1:9/{name}", "token": "t"} for name in "ab"]
    for config in kept:
        assert await client.call("CreateTaskPushNotificationConfig", config, PLAIN) == config
        about = {"taskId": task["id"], "id": config["id"]}
        assert await client.call("GetTaskPushNotificationConfig", about, PLAIN) == config
    listed = await client.call("ListTaskPushNotificationConfigs", {"taskId": task["id"]}, PLAIN)
    assert listed["configs"] == kept
    missing = await client.fails("GetTaskPushNotificationConfig", {"taskId": task["id"], "id": "c"}, PLAIN)
    assert missing.reason == "TASK_NOT_FOUND"


@pytest.mark.requirement("TCK-PUSH-CREATE-002", "TCK-PUSH-DEL-001", "TCK-PUSH-DEL-002")
async def test_a_push_config_stays_until_it_is_deleted_which_may_be_done_twice(client: Client) -> None:
    task = await task_of(client, "ask")
    config = {"id": "a", "taskId": task["id"], "url": "http://127.0.0.1:9/a"}
    await client.call("CreateTaskPushNotificationConfig", config, PLAIN)
    await task_of(client, "ask again", taskId=task["id"])
    about = {"taskId": task["id"], "id": "a"}
    assert await client.call("GetTaskPushNotificationConfig", about, PLAIN) == config
    for _ in range(2):
        assert await client.call("DeleteTaskPushNotificationConfig", about, PLAIN) == {}
    assert (await client.fails("GetTaskPushNotificationConfig", about, PLAIN)).reason == "TASK_NOT_FOUND"


@pytest.mark.requirement("TCK-PUSH-DELIVER-001", "TCK-PUSH-DELIVER-002", "TCK-PUSH-DELIVER-003")
async def test_each_config_is_told_with_its_credentials_and_a_stream_response(client: Client) -> None:
    with WireServer(lambda _: Answer(204, {"content-length": "0"})) as hooks:
        task = await task_of(client, "ask")
        for name in ("a", "b"):
            authentication = {"scheme": "Bearer", "credentials": f"secret-{name}"}
            config = {"id": name, "url": f"{hooks.base_url}/{name}", "authentication": authentication}
            await client.call("CreateTaskPushNotificationConfig", {"taskId": task["id"], **config}, PLAIN)
        await eventually_async(lambda: len(hooks.requests) == 2)
        told = {request.path: (request.headers["authorization"], request.json) for request in hooks.requests}
    for name in ("a", "b"):
        authorization, body = told[f"/{name}"]
        assert authorization == f"Bearer secret-{name}"
        assert (list(body), body["task"]["id"]) == (["task"], task["id"])


@pytest.mark.requirement("TCK-AUTH-INTASK-001", "TCK-AUTH-INTASK-002", "TCK-AUTH-INTASK-003")
async def test_a_login_that_is_wanted_is_a_state_of_the_task_with_a_text(client: Client) -> None:
    task = await task_of(client, "login")
    assert task["status"]["state"] == "TASK_STATE_AUTH_REQUIRED"
    assert task["status"]["message"]["parts"] == [{"text": "open https://login.example/"}]
