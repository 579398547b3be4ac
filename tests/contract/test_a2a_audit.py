"""The audit log of a server on a real socket: requests of users, answers to confirmations, and refusals."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from isthmus.a2a.server.application import Observers
from isthmus.a2a.server.logs.audit_file import AuditFile
from isthmus.a2a.server.users.users import Caps
from isthmus.engine.port.agents import Agent
from support.a2a_serving import EXTENSION, allow, answer, prompt, rpc
from support.a2a_users import Users, users_of
from support.agents import AskingAgent, EchoAgent, WaitingAgent
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


@dataclass(slots=True)
class Audited:
    """A server and its audit log."""

    users: Users
    path: Path

    def lines(self) -> list[dict[str, Any]]:
        """Return the lines of the log."""
        return [json.loads(line) for line in self.path.read_text(encoding="ascii").splitlines()]


@asynccontextmanager
async def audited(workspace: Path, folder: Path, agent: Agent, caps: Caps | None = None) -> AsyncGenerator[Audited]:
    path = folder / "audit.jsonl"
    file = AuditFile(path)
    try:
        async with users_of(workspace, agent, caps, observers=Observers(audit=file.record)) as users:
            yield Audited(users, path)
    finally:
        file.close()


async def test_a_request_is_in_the_log_with_its_user_and_task_and_without_its_text(
    workspace: Path, tmp_path: Path
) -> None:
    async with audited(workspace, tmp_path, EchoAgent()) as served:
        alice = await served.users.client("alice")
        task = await alice.result("message/send", prompt("a secret prompt", workspace))
        await served.users.local.error("tasks/get", {"id": task["id"]})
        await alice.result("tasks/get", {"id": task["id"]})
        await alice.http.get(f"{alice.url}healthz")
        entry = next(iter(served.users.table.entries.values()))
        sent, failed, got = served.lines()
        del sent["time"]
        assert sent == {
            "event": "request",
            "user": "alice",
            "auth": "token",
            "token_id": entry.id,
            "remote": "127.0.0.1",
            "method": "message/send",
            "task": task["id"],
            "outcome": "ok",
            "status": 200,
        }
        assert (failed["user"], failed["auth"], failed["outcome"], failed["error"]) == ("", "owner", "failed", -32001)
        assert (got["method"], got["outcome"]) == ("tasks/get", "ok")
        text = served.path.read_text(encoding="ascii")
        assert "secret" not in text
        assert str(alice.http.headers["authorization"]).removeprefix("Bearer ")[20:] not in text


@pytest.mark.parametrize("in_text", [False, True])
async def test_an_answer_is_in_the_log_with_tool_and_option(workspace: Path, tmp_path: Path, in_text: bool) -> None:
    async with audited(workspace, tmp_path, AskingAgent()) as served:
        alice = await served.users.client("alice")
        task = await alice.result("message/send", prompt("go", workspace))
        tool = task["status"]["message"]["parts"][-1]["data"]["tool_name"]
        if in_text:
            params = prompt("proceed_once", taskId=task["id"])
            done = await alice.result("message/send", params, {})
        else:
            done = await alice.result("message/send", answer(task["id"], allow("one")))
        assert done["status"]["state"] == "completed"
        _, line = served.lines()
        assert line["answers"] == [{"call": "one", "tool": tool, "option": "proceed_once"}]
        assert (line["user"], line["task"]) == ("alice", task["id"])
        late = await alice.error("message/send", answer(task["id"], allow("one")))
        *_, refused = served.lines()
        assert (refused["outcome"], refused["error"]) == ("failed", late["code"])
        assert "answers" not in refused


async def test_a_message_is_in_the_log_when_it_is_accepted_and_not_when_its_answer_ends(
    workspace: Path, tmp_path: Path
) -> None:
    agent = WaitingAgent()
    async with audited(workspace, tmp_path, agent) as served:
        alice = await served.users.client("alice")
        sending = asyncio.create_task(alice.result("message/send", prompt("go", workspace)))
        await asyncio.wait_for(agent.started.wait(), 30)
        (line,) = await eventually_async(served.lines, what="the message is in the log")
        assert line["outcome"] == "ok"
        agent.release.set()
        task = await sending
        assert served.lines() == [{**line, "task": task["id"]}]


async def test_refusals_are_in_the_log_with_their_reason(workspace: Path, tmp_path: Path) -> None:
    agent = WaitingAgent()
    async with audited(workspace, tmp_path, agent, Caps(max_open=1, max_tasks=1)) as served:
        alice = await served.users.client("alice")
        body = rpc("message/send", prompt("go", workspace))
        forged = {"Authorization": "Bearer isthmus_12345678_stolen-secret"}
        assert (await alice.http.post(alice.url, json=body, headers=forged)).status_code == 401
        assert (
            await alice.http.post(alice.url, json=body, headers={"Origin": "https://evil.example"})
        ).status_code == 403
        async with alice.opened("message/stream", prompt("go", workspace)) as items:
            await anext(items)
            assert (await alice.http.post(alice.url, json=body, headers=EXTENSION)).status_code == 429
        bob = await served.users.client("bob", Caps(max_open=2))
        async with bob.opened("message/stream", prompt("go", workspace)) as items:
            await anext(items)
            await bob.error("message/send", prompt("more", workspace))
        wrong_token, origin, _, open_requests, _, tasks = served.lines()
        assert [line["outcome"] for line in (wrong_token, origin, open_requests, tasks)] == ["refused"] * 4
        assert (wrong_token["user"], wrong_token["auth"], wrong_token["status"]) == ("", "none", 401)
        assert "not this server's token" in wrong_token["reason"]
        assert (origin["status"], origin["auth"]) == (403, "none")
        assert (open_requests["user"], open_requests["status"]) == ("alice", 429)
        assert "requests open" in open_requests["reason"]
        assert (tasks["user"], tasks["error"]) == ("bob", -32000)
        assert "stolen" not in served.path.read_text(encoding="ascii")
        agent.release.set()


async def test_what_is_no_request_is_in_the_log_as_failed(workspace: Path, tmp_path: Path) -> None:
    async with audited(workspace, tmp_path, EchoAgent()) as served:
        local = served.users.local
        await local.http.post(local.url, content=b"{", headers={"Content-Type": "application/json"})
        await local.http.post(local.url + "message:send", content=b"{", headers={"Content-Type": "application/json"})
        assert [(line["auth"], line["outcome"]) for line in served.lines()] == [("owner", "failed")] * 2
