"""Several users of one server, over a real socket: users see only their own tasks, and have limits of their own."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from isthmus.a2a.server.users.users import Caps
from isthmus.agent.session.turn import AgentTurn
from isthmus.events import StateChange, TaskState
from isthmus.models.port.base import Text
from support.a2a_serving import EXTENSION, StreamItem, allow, answer, prompt, rpc
from support.a2a_users import users_of
from support.agents import AskingAgent, EchoAgent, WaitingAgent, reply
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


class TellingAgent:
    """An agent that replies with all messages of its session."""

    async def advance(self, turn: AgentTurn) -> StateChange:
        await turn.emit(StateChange(TaskState.WORKING))
        said = [part.text for message in turn.session.messages for part in message.parts if isinstance(part, Text)]
        await turn.emit(reply("m", Text(" / ".join(said))))
        return StateChange(TaskState.COMPLETED)


def state_of(items: Sequence[Any]) -> str:
    return items[-1].state


def requests_about(task_id: str, context_id: str, workspace: Path) -> Mapping[str, tuple[str, dict[str, Any]]]:
    target = {"taskId": task_id, "pushNotificationConfig": {"url": "http://127.0.0.1:9/"}}
    return {
        "get": ("tasks/get", {"id": task_id}),
        "cancel": ("tasks/cancel", {"id": task_id}),
        "answer": ("message/send", answer(task_id, allow("one"))),
        "continue": ("message/send", prompt("more", taskId=task_id)),
        "continue with context": ("message/send", prompt("more", taskId=task_id, contextId=context_id)),
        "resubscribe": ("tasks/resubscribe", {"id": task_id}),
        "push set": ("tasks/pushNotificationConfig/set", target),
        "push get": ("tasks/pushNotificationConfig/get", {"id": task_id}),
        "push list": ("tasks/pushNotificationConfig/list", {"id": task_id}),
        "push delete": ("tasks/pushNotificationConfig/delete", {"id": task_id, "pushNotificationConfigId": task_id}),
    }


async def test_a_task_of_another_user_is_not_there_whatever_is_asked_of_it(workspace: Path) -> None:
    async with users_of(workspace, AskingAgent()) as users:
        alice, bob = await users.client("alice"), await users.client("bob")
        task = await alice.result("message/send", prompt("go", workspace))
        assert task["status"]["state"] == "input-required"
        about = requests_about(task["id"], task["contextId"], workspace)
        for stranger in (bob, users.local):
            for name, (method, params) in about.items():
                error = await stranger.error(method, params)
                assert (name, error["code"]) == (name, -32001)
                assert "alice" not in error["message"]
        assert (await alice.result("tasks/get", {"id": task["id"]}))["status"] == task["status"]
        done = await alice.stream("message/stream", answer(task["id"], allow("one")))
        assert state_of(done) == "completed"


async def test_an_unknown_task_and_one_of_another_user_are_told_in_the_same_words(workspace: Path) -> None:
    async with users_of(workspace, EchoAgent()) as users:
        alice, bob = await users.client("alice"), await users.client("bob")
        task = await alice.result("message/send", prompt("go", workspace))
        unknown = "00000000-0000-0000-0000-000000000000"
        theirs = await bob.error("tasks/get", {"id": task["id"]})
        nobodys = await bob.error("tasks/get", {"id": unknown})
        assert theirs == {**nobodys, "message": nobodys["message"].replace(unknown, task["id"])}


async def test_a_session_of_another_user_is_not_continued(workspace: Path) -> None:
    async with users_of(workspace, TellingAgent()) as users:
        alice, bob = await users.client("alice"), await users.client("bob")
        task = await alice.result("message/send", prompt("the word is mellon", workspace))
        same = prompt("what is the word?", workspace, contextId=task["contextId"])
        other = await bob.result("message/send", same)
        assert other["status"]["message"]["parts"][0]["text"] == "what is the word?"
        assert "mellon" not in str(await bob.result("tasks/get", {"id": other["id"]}))
        own = await alice.result("message/send", same)
        assert "mellon" in own["status"]["message"]["parts"][0]["text"]
        assert [item["id"] for item in (await bob.result("isthmus/tasks", {}))["tasks"]] == [other["id"]]
        listed = {item["id"] for item in (await alice.result("isthmus/tasks", {}))["tasks"]}
        assert listed == {task["id"], own["id"]}


async def test_two_tokens_of_one_user_see_the_same_tasks(workspace: Path) -> None:
    async with users_of(workspace, EchoAgent()) as users:
        desk, phone = await users.client("alice"), await users.client("alice")
        task = await desk.result("message/send", prompt("go", workspace))
        assert (await phone.result("tasks/get", {"id": task["id"]}))["id"] == task["id"]


async def test_a_user_works_in_the_allowed_folders_alone(workspace: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (workspace / "link").symlink_to(outside)
    async with users_of(workspace, EchoAgent()) as users:
        alice = await users.client("alice")
        # The answer does not reveal whether the folder exists.
        for folder in (outside, workspace / "..", workspace / "link", workspace / "link" / "none", "/", "/no/where"):
            error = await alice.error("message/send", prompt("go", folder))
            assert error["code"] == -32602
            assert "workspace_path" in error["message"]
            assert "not allowed" in error["message"]


async def test_a_workspace_that_became_a_link_out_of_the_allowed_folders_is_refused(
    workspace: Path, tmp_path: Path
) -> None:
    outside, project = tmp_path / "outside", workspace / "project"
    outside.mkdir()
    project.mkdir()
    async with users_of(workspace, AskingAgent()) as users:
        alice = await users.client("alice")
        task = await alice.result("message/send", prompt("go", project))
        project.rmdir()
        project.symlink_to(outside)
        same = prompt("go on", contextId=task["contextId"])
        for refused in (answer(task["id"], allow("one")), prompt("more", taskId=task["id"]), same):
            error = await alice.error("message/send", refused)
            assert (error["code"], "now leads to a folder that is not allowed" in error["message"]) == (-32602, True)
        assert (await alice.result("tasks/get", {"id": task["id"]}))["status"] == task["status"]
        project.unlink()
        project.mkdir()
        done = await alice.result("message/send", answer(task["id"], allow("one")))
        assert done["status"]["state"] == "completed"


async def test_a_user_has_so_many_tasks_working_and_unfinished_and_no_more(workspace: Path) -> None:
    gate = WaitingAgent()
    async with users_of(workspace, gate, Caps(max_tasks=3, max_running=2)) as users:
        alice, bob = await users.client("alice"), await users.client("bob", Caps(max_running=1))
        background = {"configuration": {"blocking": False}}
        for _ in range(2):
            await alice.result("message/send", {**prompt("go", workspace), **background})
        refused = await alice.error("message/send", {**prompt("go", workspace), **background})
        assert refused["code"] == -32000
        assert "2" in refused["message"]
        await bob.result("message/send", {**prompt("go", workspace), **background})
        assert (await bob.error("message/send", {**prompt("go", workspace), **background}))["code"] == -32000
        await users.local.result("message/send", {**prompt("go", workspace), **background})
        gate.release.set()

        async def has_room() -> bool:
            answered = await alice.call("message/send", {**prompt("go", workspace), **background})
            return "result" in answered

        await eventually_async(has_room)


async def test_a_user_has_so_many_requests_open_and_no_more(workspace: Path) -> None:
    gate = WaitingAgent()
    async with users_of(workspace, gate, Caps(max_open=2)) as users:
        alice, bob = await users.client("alice"), await users.client("bob")
        async with AsyncExitStack() as streams:
            items: list[AsyncIterator[StreamItem]] = []  # one that nobody holds is closed, and its stream with it
            for _ in range(2):
                opened = alice.opened("message/stream", prompt("go", workspace))
                items.append(await streams.enter_async_context(opened))
                assert (await anext(items[-1])).state == "submitted"
            response = await alice.http.post(alice.url, json=rpc("isthmus/tasks", {}))
            assert response.status_code == 429
            assert "alice has 2 requests open" in response.json()["error"]
            assert response.headers["retry-after"] == "1"
            another = await users.client("alice")
            assert (await another.http.post(alice.url, json=rpc("isthmus/tasks", {}))).status_code == 429
            assert (await bob.result("isthmus/tasks", {}))["tasks"] == []
            assert len((await users.local.result("isthmus/tasks", {}))["tasks"]) == 0
        gate.release.set()

        async def is_free() -> bool:
            return (await alice.http.post(alice.url, json=rpc("isthmus/tasks", {}))).status_code == 200

        await eventually_async(is_free)


async def test_a_users_request_has_a_size(workspace: Path) -> None:
    async with users_of(workspace, EchoAgent(), Caps(max_request=5000)) as users:
        alice, bob = await users.client("alice"), await users.client("bob", Caps(max_request=50_000))
        large = rpc("message/send", prompt("x" * 10_000, workspace))
        response = await alice.http.post(alice.url, json=large, headers=EXTENSION)
        assert (response.status_code, response.json()) == (413, {"error": "the request is larger than 5000 bytes"})
        assert (await bob.http.post(bob.url, json=large, headers=EXTENSION)).status_code == 200


@pytest.mark.slow
async def test_a_revoked_or_expired_token_is_refused_and_its_streams_end(workspace: Path) -> None:
    gate = WaitingAgent()
    async with users_of(workspace, gate) as users:
        alice, bob = await users.client("alice"), await users.client("bob")
        expired = await users.client("carol", expires=1)
        response = await expired.http.post(expired.url, json=rpc("isthmus/tasks", {}))
        assert response.status_code == 401
        assert "expired at 1970-01-01T00:00" in response.json()["error"]
        async with alice.opened("message/stream", prompt("go", workspace)) as items:
            first = await anext(items)
            users.table, _ = users.table.revoked("alice")
            assert (await alice.http.post(alice.url, json=rpc("isthmus/tasks", {}))).status_code == 401
            assert (await bob.http.post(bob.url, json=rpc("isthmus/tasks", {}))).status_code == 200
            async with asyncio.timeout(60):
                *_, last = [item.answer async for item in items]
            assert last["error"]["code"] == -32000
            assert "token is no longer valid" in last["error"]["message"]
        gate.release.set()
        again = await users.client("alice")

        async def completed() -> bool:
            task = await again.result("tasks/get", {"id": first.result["id"]})
            return task["status"]["state"] == "completed"

        await eventually_async(completed)
