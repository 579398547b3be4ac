"""A hosted agent under a plain uvicorn, and a raw client that shows every response and event."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import uvicorn
from typing_extensions import override

from isthmus.a2a import Hosting
from isthmus.a2a.hosting import HostedApplication
from isthmus.a2a.server.listen import bind
from isthmus.agent.hosted import AgentPort, ask, decision
from isthmus.agent.session.session import Session
from isthmus.development_tool import GenericDetails, ToolCall, ToolCallStatus, ToolOutput
from isthmus.engine.port.agents import Agent
from isthmus.events import AgentEvent, AgentMessage, ArtifactPart, ArtifactUpdate, TextContent, ToolCallUpdate
from support.a2a_serving import TOKEN, StreamItem, items_of, rpc
from support.agent_behind import behind, close_behind
from support.journals import journal_url
from support.plain_http import plain_client


class Everything:
    """An agent that sends text, an artifact, a whole message, and a call that a user must allow."""

    async def run(self, session: Session) -> AsyncGenerator[AgentEvent, None]:
        if decision(session, "call-1") is None:
            yield TextContent("", "Hello ")
            yield TextContent("", session.prompt)
            yield ArtifactUpdate("report", (ArtifactPart(text="all is well"),), "Report")
            yield ask("call-1", "press", {"button": 9007199254740993}, GenericDetails("Press the button"))
            return
        yield ToolCallUpdate(ToolCall("call-1", ToolCallStatus.EXECUTING, "press", {}))
        done = ToolCall("call-1", ToolCallStatus.SUCCEEDED, "press", {}, output=ToolOutput("pressed"))
        yield ToolCallUpdate(done)
        yield AgentMessage("", "Pressed.")


@dataclass(frozen=True, slots=True)
class Hosted:
    url: str
    http: httpx2.AsyncClient

    async def post(
        self, method: str, params: object, headers: Mapping[str, str], timeout: float = 60
    ) -> httpx2.Response:
        return await self.http.post(self.url, json=rpc(method, params), headers=headers, timeout=timeout)

    async def call(self, method: str, params: object, **headers: str) -> Any:
        """Return the result of a request that succeeds."""
        answer = (await self.post(method, params, headers)).json()
        assert "error" not in answer, answer
        return answer["result"]

    async def stream(self, method: str, params: object, headers: Mapping[str, str]) -> Sequence[StreamItem]:
        """Return every event of a stream that ends by itself."""
        async with self.http.stream("POST", self.url, json=rpc(method, params), headers=headers) as response:
            return [item async for item in items_of(response)]

    @asynccontextmanager
    async def opened(
        self, method: str, params: object, headers: Mapping[str, str]
    ) -> AsyncGenerator[AsyncIterator[StreamItem]]:
        """Open a stream that the test reads, and closes, when it likes."""
        async with self.http.stream("POST", self.url, json=rpc(method, params), headers=headers) as response:
            yield items_of(response)


class SuiteApplication(HostedApplication):
    """The application of a hosted agent, whose engine runs it as the suite wants."""

    @override
    def engine_agent(self) -> Agent:
        return behind(super().engine_agent())


@asynccontextmanager
async def hosted(agent: AgentPort, folder: Path, **more: Any) -> AsyncGenerator[Hosted]:
    """Serve the agent under a plain uvicorn, which sends the ASGI startup and shutdown events."""
    state = folder / "state"
    more = {"journal": journal_url(state / "journal.sqlite"), **more}
    hosting = Hosting("Button", "Presses it.", "3", folder=state, workspace=folder, token=TOKEN, **more)
    listener = bind("127.0.0.1", 0)
    config = uvicorn.Config(SuiteApplication(agent, hosting), lifespan="on", log_config=None, access_log=False)
    server = uvicorn.Server(config)
    running = asyncio.create_task(server.serve([listener]))
    try:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        async with plain_client(headers={"Authorization": f"Bearer {TOKEN}"}) as http:
            yield Hosted(url, http)
    finally:
        server.should_exit = True
        await running
        await close_behind()
        listener.close()
