"""A public address with a path: requests come with the path or without it, whatever the proxy does."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from isthmus.a2a.client.remote_agent import RemoteAgent
from isthmus.a2a.options import ServerOptions
from isthmus.client import PromptMessage
from isthmus.events import StateChange, TaskState
from support.a2a_serving import EXTENSION, TOKEN, RawClient, prompt, rpc, serving
from support.a2a_v1 import PLAIN, said
from support.memory_agent import MemoryAgent
from support.path_proxy import PathProxy, path_proxy

pytestmark = pytest.mark.anyio

BOTH = pytest.mark.parametrize("before", ["", "team/agent/"])
CARD = ".well-known/agent-card.json"
PUBLIC = "https://agents.example/team/agent/"


@asynccontextmanager
async def served(url: str = PUBLIC) -> AsyncGenerator[RawClient]:
    async with serving(MemoryAgent(), ServerOptions(TOKEN, public_url=url)) as server:
        yield server


@BOTH
async def test_the_card_is_served_with_the_path_and_without_it(before: str) -> None:
    async with served() as server:
        card = (await server.http.get(server.url + before + CARD)).json()
    assert card["url"] == PUBLIC
    assert {each["url"] for each in card["supportedInterfaces"]} == {PUBLIC, PUBLIC.rstrip("/")}


@BOTH
async def test_every_binding_is_served_with_the_path_and_without_it(before: str, tmp_path: Path) -> None:
    async with served() as server:
        url = server.url + before
        sent = await server.http.post(url, json=rpc("message/send", prompt("hello", tmp_path)), headers=EXTENSION)
        task = sent.json()["result"]
        assert task["status"]["state"] == "completed"
        for place, headers in ((f"v1/tasks/{task['id']}", {}), (f"tasks/{task['id']}", PLAIN)):
            assert (await server.http.get(url + place, headers=headers)).json()["id"] == task["id"]
        again = await server.http.post(url + "message:send", json=said("hello", tmp_path), headers=PLAIN)
        assert again.json()["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
        assert (await server.http.get(url + "healthz")).json() == {"status": "ok"}


async def test_the_address_itself_needs_no_slash_at_its_end(tmp_path: Path) -> None:
    async with served() as server:
        body = rpc("message/send", prompt("hello", tmp_path))
        sent = await server.http.post(server.url + "team/agent", json=body, headers=EXTENSION)
        assert sent.json()["result"]["status"]["state"] == "completed"


@pytest.mark.parametrize("path", ["team/agents/healthz", "team/healthz", "team/agent/team/agent/healthz"])
async def test_other_paths_are_not_the_servers(path: str) -> None:
    async with served() as server:
        assert (await server.http.get(server.url + path)).status_code == 404


async def test_a_path_may_have_signs_that_are_escaped() -> None:
    async with served("https://agents.example/t%C3%A4glich%20neu/") as server:
        for path in ("t%C3%A4glich%20neu/tasks/a%2Fb", "t%c3%a4glich%20neu/tasks/a%2Fb", "tasks/a%2Fb"):
            answer = await server.http.get(server.url + path, headers=PLAIN)
            assert "a/b" in answer.json()["error"]["message"]


async def test_a_path_that_begins_as_those_of_a2a_is_left_to_the_proxy() -> None:
    async with served("https://agents.example/tasks/") as server:
        answer = await server.http.get(server.url + "tasks/healthz", headers=PLAIN)
        assert "Task not found" in answer.json()["error"]["message"]
        assert (await server.http.get(server.url + "healthz")).status_code == 200


@pytest.mark.parametrize("removes_path", [True, False])
async def test_our_client_works_through_a_proxy_of_either_kind(removes_path: bool, tmp_path: Path) -> None:
    with path_proxy("/team/agent", removes_path=removes_path) as proxy:
        async with served(proxy.url) as server:
            proxy.target = _port(server)
            agent = await RemoteAgent.connect(proxy.url, TOKEN)
            try:
                turn = await agent.prompt(PromptMessage("hello", settings={"workspace_path": str(tmp_path)}))
                states = [item.event.state async for item in turn.deliveries if isinstance(item.event, StateChange)]
                assert states[-1] is TaskState.COMPLETED
                assert (await agent.get(turn.task_id)).state is TaskState.COMPLETED
            finally:
                await agent.aclose()


@pytest.mark.parametrize("removes_path", [True, False])
async def test_rest_goes_through_a_proxy_of_either_kind(removes_path: bool, tmp_path: Path) -> None:
    with path_proxy("/team/agent", removes_path=removes_path) as proxy:
        async with served(proxy.url) as server:
            proxy.target = _port(server)
            found = await _card(server, proxy)
            rest = next(each["url"] for each in found["supportedInterfaces"] if each["protocolBinding"] == "HTTP+JSON")
            sent = await server.http.post(f"{rest}/message:send", json=said("hello", tmp_path), headers=PLAIN)
            assert sent.json()["task"]["status"]["state"] == "TASK_STATE_COMPLETED"


async def _card(server: RawClient, proxy: PathProxy) -> Mapping[str, Any]:
    return (await server.http.get(proxy.url + CARD)).json()


def _port(server: RawClient) -> int:
    return int(server.url.rstrip("/").rpartition(":")[2])
