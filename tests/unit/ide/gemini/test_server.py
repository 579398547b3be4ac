"""The state that the server of the companion protocol leaves to its next process."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from isthmus.editors.headless import HeadlessEditor
from isthmus.ide.agent_client import Client
from isthmus.ide.companion import Companion
from isthmus.ide.gemini.server import KEPT_CHARACTERS, GeminiServer
from isthmus.ide.reviews.review import DiffReview
from support.companion_recorder import Recorder
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


async def test_of_proposals_that_wait_only_so_much_is_left_to_the_next_life(workspace: Path) -> None:
    companion = Companion(HeadlessEditor((str(workspace),)))
    agent = Recorder("an agent")
    companion.attach(agent)
    server = GeminiServer(companion, lambda: None)
    known = {agent.id: {"name": "streamable-http-client", "version": "1", "protocol_version": "2025-11-25"}}
    await server.start({"port": 0, "token": "secret", "sessions": known})
    serving = asyncio.create_task(server.serve())
    await server.listening()
    for number in range(3):
        await companion.open_diff(agent, str(workspace / f"{number}.txt"), str(number) * (KEPT_CHARACTERS // 2))
    await companion.open_diff(agent, str(workspace / "last.txt"), "")
    left = server.saved_state()["waiting"][agent.id]["proposals"]
    assert [Path(each["file_path"]).name for each in left] == ["0.txt", "1.txt", "last.txt"]
    await server.stop()
    await asyncio.wait_for(serving, 30)


class SlowCompanion(Companion):
    """A companion that shows nothing until the test releases it."""

    def __init__(self, workspace: Path) -> None:
        super().__init__(HeadlessEditor((str(workspace),)))
        self.may_show = asyncio.Event()
        self.shows = 0

    async def open_diff(self, client: Client, file_path: str, proposed: str, *, tab_name: str = "") -> DiffReview:
        self.shows += 1
        await self.may_show.wait()
        return await super().open_diff(client, file_path, proposed, tab_name=tab_name)


async def test_what_a_client_has_heard_is_written_before_it_hears_more(workspace: Path) -> None:
    companion = SlowCompanion(workspace)
    written: list[dict[str, Any]] = []
    server = GeminiServer(companion, lambda: written.append(server.saved_state()["waiting"]))
    proposal = {"file_path": str(workspace / "open.txt"), "text": "new"}
    decision = {"file_path": str(workspace / "a.txt"), "event_id": "first-1", "message": "{}"}
    former = {
        "port": 0,
        "token": "secret",
        "sessions": {"s": {"name": "gemini-cli", "version": "1", "protocol_version": "2025-06-18"}},
        "waiting": {"s": {"proposals": [proposal], "decisions": [decision]}},
    }
    await server.start(former)
    serving = asyncio.create_task(server.serve())
    await server.listening()
    headers = {"authorization": "Bearer secret", "mcp-session-id": "s", "last-event-id": "first-1"}
    async with (
        httpx2.AsyncClient(base_url=f"http://127.0.0.1:{server.port}", headers=headers, trust_env=False) as http,
        http.stream("GET", "/mcp", headers={"accept": "text/event-stream"}) as response,
    ):
        async for line in response.aiter_lines():
            if line.startswith("id: "):
                break
        assert written == [{"s": {"proposals": [proposal], "decisions": []}}]
        companion.may_show.set()
        await eventually_async(lambda: len(companion.reviews) == 1, what="the proposal is shown")
    await server.stop()
    await asyncio.wait_for(serving, 30)


@asynccontextmanager
async def restarted(companion: SlowCompanion, proposal: dict[str, str]) -> AsyncGenerator[httpx2.AsyncClient]:
    """Serve after a restart with a proposal that waits; its client is back, and nothing is shown to the user yet."""
    server = GeminiServer(companion, lambda: None)
    former = {
        "port": 0,
        "token": "secret",
        "sessions": {"s": {"name": "gemini-cli", "version": "1", "protocol_version": "2025-06-18"}},
        "waiting": {"s": {"proposals": [proposal], "decisions": []}},
    }
    await server.start(former)
    serving = asyncio.create_task(server.serve())
    await server.listening()
    headers = {"authorization": "Bearer secret", "mcp-session-id": "s"}
    async with (
        httpx2.AsyncClient(base_url=f"http://127.0.0.1:{server.port}", headers=headers, trust_env=False) as http,
        http.stream("GET", "/mcp", headers={"accept": "text/event-stream"}),
    ):
        await eventually_async(lambda: companion.shows > 0, what="the proposal is about to be shown")
        yield http
    await server.stop()
    await asyncio.wait_for(serving, 30)


def call(name: str, **arguments: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}


async def test_a_proposal_that_is_settled_while_it_is_being_shown_again_stays_away(workspace: Path) -> None:
    companion, file = SlowCompanion(workspace), str(workspace / "a.txt")
    async with restarted(companion, {"file_path": file, "text": "new"}) as http:
        answer = await http.post("/mcp", json=call("closeDiff", filePath=file))
        assert "error" not in answer.json()
        companion.may_show.set()
        await http.post("/mcp", json=call("closeDiff", filePath=str(workspace / "b.txt")))  # a round through the server
        assert companion.reviews.find("s", file) is None


async def test_a_proposal_made_anew_while_the_former_is_shown_is_shown_alone(workspace: Path) -> None:
    companion, file = SlowCompanion(workspace), str(workspace / "a.txt")
    async with restarted(companion, {"file_path": file, "text": "former"}) as http:
        asking = asyncio.create_task(http.post("/mcp", json=call("openDiff", filePath=file, newContent="new")))
        await eventually_async(lambda: companion.shows > 1, what="the new proposal")
        companion.may_show.set()
        await asking
        await http.post("/mcp", json=call("closeDiff", filePath=str(workspace / "b.txt")))
        review = companion.reviews.find("s", file)
        assert review is not None
        assert review.proposed == "new"
