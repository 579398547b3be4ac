"""Large requests: as many at once as there is room for, while the server answers all others."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import Response
from typing_extensions import override

from isthmus.a2a.options import ServerOptions
from isthmus.a2a.server.application import BodyOf, Identify, Pages
from isthmus.a2a.server.http.http_request import HttpRequest
from isthmus.a2a.server.users.users import UserTable
from isthmus.agent.session.turn import AgentTurn
from isthmus.events import StateChange, TaskState
from support.a2a_serving import EXTENSION, TOKEN, RawClient, prompt, rpc, serving
from support.a2a_users import Users, users_of
from support.agents import EchoAgent
from support.memory_agent import MemoryAgent
from support.waiting import eventually_async

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

SIZE = 1_000_000


class GateAgent:
    """An agent that waits, for prompts that begin with "wait", until ``gate`` is set."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.waiting = 0

    async def advance(self, turn: AgentTurn) -> StateChange:
        if turn.session.prompt.startswith("wait"):
            self.waiting += 1
            await self.gate.wait()
        return await EchoAgent().advance(turn)


def large(text: str, workspace: Path) -> bytes:
    """Return a request of about a million bytes."""
    return json.dumps(rpc("message/send", prompt(f"{text} {'x' * SIZE}", workspace))).encode()


@asynccontextmanager
async def served(
    workspace: Path, agent: Any = None, *, seconds: float = 60, total: int = SIZE + 1000
) -> AsyncGenerator[Users]:
    """Serve with room for one large request; ``seconds`` is the time in which it must arrive."""
    options = ServerOptions(TOKEN, bytes_in_flight=total, user_bytes_in_flight=SIZE + 1000, body_deadline=seconds)
    async with users_of(workspace, agent or EchoAgent(), options=options) as users:
        yield users


@asynccontextmanager
async def half_sent(client: RawClient, body: bytes) -> AsyncGenerator[asyncio.StreamWriter]:
    """Send half of a request, which has room from then on."""
    port = int(client.url.rstrip("/").rpartition(":")[2])
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    token = client.http.headers["authorization"]
    head = f"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: {token}\r\nContent-Length: {len(body)}\r\n\r\n"
    try:
        writer.write(head.encode() + body[: len(body) // 2])
        await eventually_async(lambda: client.application.in_flight.used > 0)
        yield writer
    finally:
        writer.transport.abort()


class ReadingPages(Pages):
    """Pages that read the body of a request, and refuse it."""

    @override
    def serves(self, path: str, method: str) -> bool:
        return path.startswith("/ui/")

    @override
    async def respond(self, request: HttpRequest, identify: Identify, body_of: BodyOf) -> Response:
        body = await body_of(request, 2 * SIZE)
        return Response(status_code=400 if isinstance(body, bytes) else body.status)

    @override
    def close_streams(self) -> None:
        """Do nothing, as none is open."""

    @override
    def keep(self, users: UserTable, now: float) -> None:
        """Do nothing: no user has a task here."""


async def posted(client: RawClient, body: bytes) -> tuple[int, str | None, Any]:
    response = await client.http.post(client.url, content=body, headers=EXTENSION)
    return response.status_code, response.headers.get("retry-after"), response.json()


async def test_a_large_request_waits_for_room_while_small_ones_are_answered(workspace: Path) -> None:
    async with served(workspace) as users:
        first = large("one", workspace)
        async with half_sent(users.local, first) as writer:
            second = asyncio.create_task(posted(users.local, large("two", workspace)))
            small = await users.local.result("message/send", prompt("small", workspace))
            assert small["status"]["state"] == "completed"
            assert not second.done()
            writer.write(first[len(first) // 2 :])
            status, _, answer = await second
        assert (status, answer["result"]["status"]["state"]) == (200, "completed")
        await eventually_async(lambda: users.local.application.in_flight.used == 0)


async def test_a_client_that_leaves_gives_its_room_back(workspace: Path) -> None:
    async with served(workspace) as users:
        async with half_sent(users.local, large("one", workspace)):
            second = asyncio.create_task(posted(users.local, large("two", workspace)))
            await asyncio.sleep(0)
        assert (await second)[0] == 200


async def test_without_room_in_time_a_request_is_refused_and_told_when_to_come_again(workspace: Path) -> None:
    body = large("one", workspace)
    async with served(workspace, seconds=2) as users, half_sent(users.local, body):
        other, in_flight = await users.client("alice"), users.local.application.in_flight
        async with half_sent(users.local, body):  # this one has the room when the first one's time is over
            await eventually_async(lambda: in_flight.waiting == 1)
            own, others = await asyncio.gather(
                posted(users.local, large("two", workspace)), posted(other, large("two", workspace))
            )
    assert own[:2] == (429, "2")
    assert "you have as many large requests under way" in own[2]["error"]
    assert others[:2] == (503, "2")
    assert "the server has as many large requests under way" in others[2]["error"]


async def test_one_user_leaves_room_to_the_others(workspace: Path) -> None:
    async with served(workspace, total=2 * SIZE + 2000) as users, half_sent(users.local, large("one", workspace)):
        other = await users.client("alice")
        waiting = asyncio.create_task(posted(users.local, large("two", workspace)))
        assert (await posted(other, large("two", workspace)))[0] == 200
        assert not waiting.done()
        waiting.cancel()


async def test_a_body_of_unknown_length_is_counted_once_it_is_large(workspace: Path) -> None:
    async with served(workspace) as users, half_sent(users.local, large("one", workspace)) as writer:
        body = large("two", workspace)
        sent: list[int] = []

        async def chunks() -> AsyncGenerator[bytes]:
            for start in range(0, len(body), 50_000):
                sent.append(start)
                yield body[start : start + 50_000]

        request = users.local.http.post(users.local.url, content=chunks(), headers=EXTENSION)
        second = asyncio.create_task(request)
        small = [await users.local.result("message/send", prompt("small", workspace)) for _ in range(3)]
        assert [each["status"]["state"] for each in small] == ["completed"] * 3
        assert not second.done()
        writer.transport.abort()
        assert (await second).json()["result"]["status"]["state"] == "completed"


@pytest.mark.parametrize("method", ["message/send", "message/stream"])
async def test_a_message_has_room_only_until_its_task_has_begun(workspace: Path, method: str) -> None:
    agent = GateAgent()
    async with served(workspace, agent) as users:
        body = json.dumps(rpc(method, prompt(f"wait {'x' * SIZE}", workspace))).encode()
        first = asyncio.create_task(users.local.http.post(users.local.url, content=body, headers=EXTENSION))
        await eventually_async(lambda: agent.waiting == 1)
        await eventually_async(lambda: users.local.application.in_flight.used == 0)
        assert (await posted(users.local, large("two", workspace)))[0] == 200
        assert not first.done()
        agent.gate.set()
        assert TaskState.COMPLETED in (await first).text


async def test_a_large_answer_arrives_whole(workspace: Path) -> None:
    async with served(workspace) as users:
        text = "".join(chr(0x4E00 + number % 5000) for number in range(200_000))
        task = await users.local.result("message/send", prompt(text, workspace))
        assert task["history"][0]["parts"][0]["text"] == text
        again = await users.local.result("tasks/get", {"id": task["id"]})
        assert again["history"][0]["parts"][0]["text"] == text


async def test_a_large_body_that_the_pages_read_gives_its_room_back() -> None:
    options = ServerOptions(TOKEN, bytes_in_flight=SIZE + 1000, user_bytes_in_flight=SIZE + 1000, body_deadline=60)
    async with serving(MemoryAgent(), options, pages=ReadingPages()) as client:
        for _ in range(3):
            refused = await client.http.post(f"{client.url}ui/api/reviews/one.two", content=b"x" * SIZE)
            assert refused.status_code == 400
        assert client.application.in_flight.used == 0
