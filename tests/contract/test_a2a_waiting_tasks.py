"""A task that waits for a user is followed until it has ended, whoever answers; its questions are sent at once."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from isthmus.a2a import RemoteAgent
from isthmus.a2a.client.remote_agent import StreamRetryPolicy
from isthmus.a2a.protocol.extension import URI
from isthmus.events import StateChange, TaskState
from support.a2a_hosting import Everything, Hosted, hosted
from support.a2a_serving import EXTENSION, TOKEN, allow, answer, prompt
from support.turns import events_of

pytestmark = pytest.mark.anyio

V1 = {"A2A-Version": "1.0"}
STAYS = {"metadata": {URI: {"follow_until_end": True}}}


@pytest.fixture
async def client(workspace: Path) -> AsyncGenerator[Hosted]:
    async with hosted(Everything(), workspace) as served:
        yield served


async def waiting_task(client: Hosted, workspace: Path) -> str:
    seen = await client.stream("message/stream", prompt("you", workspace), EXTENSION)
    assert seen[-1].state == "input-required"
    return seen[0].result["id"]


@pytest.mark.requirement("TCK-STREAM-SUB-001", "TCK-STREAM-SUB-002")
async def test_a_1_0_subscription_hears_another_clients_answer_and_ends_with_the_task(
    client: Hosted, workspace: Path
) -> None:
    task_id = await waiting_task(client, workspace)
    async with client.opened("SubscribeToTask", {"id": task_id}, V1) as items:
        first = await anext(items)
        assert first.result["task"]["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
        await client.stream("message/stream", answer(task_id, allow()), EXTENSION)
        rest = [item.result async for item in items]
    assert rest[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"
    assert any("Pressed." in str(item) for item in rest)


async def test_a_client_of_0_3_stays_when_it_asks_for_that_and_leaves_at_a_question_else(
    client: Hosted, workspace: Path
) -> None:
    task_id = await waiting_task(client, workspace)
    plain = await client.stream("tasks/resubscribe", {"id": task_id}, EXTENSION)
    assert [item.result["kind"] for item in plain] == ["task"]
    async with client.opened("tasks/resubscribe", {"id": task_id, **STAYS}, EXTENSION) as items:
        assert (await anext(items)).result["status"]["state"] == "input-required"
        await client.stream("message/stream", answer(task_id, allow()), EXTENSION)
        rest = [item async for item in items]
    assert rest[0].kind == "TOOL_CALL_CONFIRMATION"
    assert (rest[-1].state, rest[-1].result["final"]) == ("completed", True)


@pytest.mark.slow
async def test_a_question_is_told_at_once_to_who_stays(client: Hosted, workspace: Path) -> None:
    task_id = await waiting_task(client, workspace)
    headers = {**EXTENSION, "Last-Event-ID": "1"}
    async with client.opened("tasks/resubscribe", {"id": task_id, **STAYS}, headers) as items:
        item = await anext(items)
        while item.result["kind"] != "status-update" or item.state != "input-required":
            item = await anext(items)
    assert item.result["final"] is False
    assert item.data["tool_call_id"] == "call-1"


async def test_a_subscription_to_a_waiting_task_ends_when_it_is_cancelled(client: Hosted, workspace: Path) -> None:
    task_id = await waiting_task(client, workspace)
    async with client.opened("SubscribeToTask", {"id": task_id}, V1) as items:
        await anext(items)
        await client.call("tasks/cancel", {"id": task_id})
        rest = [item.result async for item in items]
    assert rest[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_CANCELED"


@pytest.mark.slow
@pytest.mark.parametrize(("method", "headers"), [("tasks/resubscribe", EXTENSION), ("SubscribeToTask", V1)])
async def test_who_follows_from_the_beginning_is_told_what_the_user_said(
    client: Hosted, workspace: Path, method: str, headers: dict[str, str]
) -> None:
    task_id = await waiting_task(client, workspace)
    async with client.opened(method, {"id": task_id}, {**headers, "Last-Event-ID": "0"}) as items:
        first = await anext(items)
        second = await anext(items)
    task = first.result.get("task", first.result)
    assert task["status"]["state"] in ("submitted", "TASK_STATE_SUBMITTED")
    assert [message["parts"][0]["text"] for message in task["history"]] == ["you"]
    assert (first.id, second.id) == ("1", "2")


@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
async def test_a_client_of_1_0_leaves_at_a_question_without_waiting_for_the_stream_to_end(
    client: Hosted, workspace: Path, binding: str
) -> None:
    task_id = await waiting_task(client, workspace)
    retry_policy = StreamRetryPolicy(rest_seconds=3600)
    remote = await RemoteAgent.connect(client.url, TOKEN, retry_policy=retry_policy, protocol="1.0", binding=binding)
    asked = await events_of(await remote.follow(task_id, 1))
    assert asked[-1] == StateChange(TaskState.INPUT_REQUIRED)
    await client.stream("message/stream", answer(task_id, allow()), EXTENSION)
    # A question that another client has answered does not end the stream: its outcome was sent already.
    told = await events_of(await remote.follow(task_id, 1))
    assert told[: len(asked)] == asked
    assert told[-1] == StateChange(TaskState.COMPLETED)
    await remote.aclose()
