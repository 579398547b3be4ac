"""Limits in time of the users of a server, over real sockets: model tokens a day, requests a minute."""

from pathlib import Path

import pytest

from isthmus.a2a.client.answers import RemoteError
from isthmus.a2a.server.users.users import Caps
from isthmus.agent.session.turn import AgentTurn
from isthmus.engine.users.day_use import DayUse
from isthmus.events import StateChange
from isthmus.internal_events import ModelUsed
from support.a2a_serving import EXTENSION, allow, answer, prompt, rpc
from support.a2a_users import users_of
from support.agents import AskingAgent, EchoAgent
from support.remote_agents import remote_agent

pytestmark = pytest.mark.anyio


async def test_a_user_without_tokens_left_is_told_so_and_loses_nothing(workspace: Path) -> None:
    async with users_of(workspace, AskingAgent(), count_use=DayUse) as users:
        alice = await users.client("alice", Caps(max_tokens_a_day=5))
        asked = await alice.result("message/send", prompt("go", workspace))
        assert asked["status"]["state"] == "input-required"
        refused = await alice.error("message/send", prompt("more", workspace))
        assert refused["code"] == -32000
        assert "alice has used 5 model tokens today, and 5 are the maximum of a day" in refused["message"]
        assert "T00:00+00:00 on" in refused["message"]
        for method, params in (
            ("message/stream", prompt("more", taskId=asked["id"])),
            ("message/send", answer(asked["id"], allow("one"))),
            ("command/execute", {"command_path": ["about"], "workspace_path": str(workspace)}),
        ):
            items = await alice.http.post(alice.url, json=rpc(method, params), headers=EXTENSION)
            assert "model tokens today" in items.text, method
        message = {"role": "ROLE_USER", "messageId": "rest-1", "parts": [{"text": "more"}]}
        rest = await alice.http.post(f"{alice.url}message:send", json={"message": message})
        assert rest.status_code == 429
        assert "model tokens today" in rest.text
        found = await alice.result("tasks/get", {"id": asked["id"]})
        assert found["status"] == asked["status"]
        assert len((await alice.result("isthmus/tasks", {}))["tasks"]) == 1
        bob = await users.client("bob")
        assert (await bob.result("message/send", prompt("go", workspace)))["status"]["state"] == "input-required"
        assert (await alice.result("tasks/cancel", {"id": asked["id"]}))["status"]["state"] == "canceled"


async def test_a_new_token_does_not_give_a_user_new_model_tokens(workspace: Path) -> None:
    async with users_of(workspace, EchoAgent(), Caps(max_tokens_a_day=6), count_use=DayUse) as users:
        alice = await users.client("alice")
        assert (await alice.result("message/send", prompt("a", workspace)))["status"]["state"] == "completed"
        assert (await alice.result("message/send", prompt("b", workspace)))["status"]["state"] == "completed"
        again = await users.client("alice")
        assert (await again.error("message/send", prompt("c", workspace)))["code"] == -32000
        assert (await users.local.result("message/send", prompt("d", workspace)))["status"]["state"] == "completed"


async def test_requests_beyond_a_rate_are_refused_until_there_is_room(workspace: Path) -> None:
    async with users_of(workspace, EchoAgent(), Caps(max_requests_a_minute=3)) as users:
        alice, same, bob = [await users.client(name) for name in ("alice", "alice", "bob")]
        for client in (alice, same, alice):
            assert await client.result("isthmus/tasks", {}) == {"tasks": []}
        for client in (alice, same):
            refused = await client.http.post(client.url, json=rpc("isthmus/tasks", {}), headers=EXTENSION)
            assert refused.status_code == 429
            assert 18 <= int(refused.headers["retry-after"]) <= 20
            assert refused.json()["error"].startswith("alice has sent 3 requests in a minute")
        assert (await alice.http.get(f"{alice.url}v1/tasks")).status_code == 429
        assert await bob.result("isthmus/tasks", {}) == {"tasks": []}
        with pytest.raises(RemoteError, match=r"takes no more requests of yours for now \(429\): try again in \d+ s"):
            async with remote_agent(alice.url, alice.http.headers["authorization"].removeprefix("Bearer ")) as agent:
                await agent.tasks()
        for _ in range(10):
            assert await users.local.result("isthmus/tasks", {}) == {"tasks": []}


class CostlyAgent(EchoAgent):
    """An agent each of whose turns costs a dollar."""

    async def advance(self, turn: AgentTurn) -> StateChange:
        await turn.emit(ModelUsed("big", 1, 1, cost=10**12))
        return await super().advance(turn)


async def test_a_user_whose_day_has_cost_its_maximum_is_told_so(workspace: Path) -> None:
    async with users_of(workspace, CostlyAgent(), count_use=DayUse) as users:
        alice = await users.client("alice", Caps(max_usd_a_day=1.5))
        for _ in range(2):
            assert (await alice.result("message/send", prompt("a", workspace)))["status"]["state"] == "completed"
        refused = await alice.error("message/send", prompt("more", workspace))
        assert refused["code"] == -32000
        assert "alice has cost $2.00 today, and $1.50 is the budget of a day; nothing was changed" in refused["message"]
        bob = await users.client("bob", Caps(max_usd_a_day=2.5))
        assert (await bob.result("message/send", prompt("a", workspace)))["status"]["state"] == "completed"
