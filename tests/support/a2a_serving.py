"""An A2A server on a real socket inside the test's event loop, and a raw client that shows every response and event."""

import asyncio
import itertools
import json
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx2

from isthmus.a2a.options import ServerOptions
from isthmus.a2a.protocol.extension import URI
from isthmus.a2a.server.application import Application, application
from isthmus.a2a.server.listen import LIMITS, A2AServer, bind
from isthmus.client import AgentClient, PromptMessage
from isthmus.engine.port.workspaces import WorkspaceRule
from isthmus.listeners.limits import ServerLimits
from support.agent_behind import CHOICE, close_behind
from support.memory_agent import MemoryAgent, Step
from support.plain_http import plain_client

TOKEN = "test-token"
EXTENSION = {"X-A2A-Extensions": URI}
_NUMBERS = itertools.count(1)
"""Numbers of messages: a server takes each message id only once."""


@dataclass(frozen=True, slots=True)
class StreamItem:
    """One event of a stream: its id (None if it has none) and the JSON-RPC response in it."""

    id: str | None
    answer: dict[str, Any]

    @property
    def result(self) -> dict[str, Any]:
        """The A2A object."""
        return self.answer["result"]

    @property
    def kind(self) -> str | None:
        """The extension's kind of a status-update."""
        return self.result.get("metadata", {}).get(URI, {}).get("kind")

    @property
    def state(self) -> str:
        """The task state that the status-update carries."""
        return self.result["status"]["state"]

    @property
    def data(self) -> dict[str, Any]:
        """The data of the first part."""
        return self.result["status"]["message"]["parts"][0]["data"]

    @property
    def text(self) -> str:
        """The text of the first part."""
        return self.result["status"]["message"]["parts"][0]["text"]


@dataclass(frozen=True, slots=True)
class RawClient:
    """A client that posts JSON-RPC requests and reads streams to their end."""

    url: str
    application: Application
    server: A2AServer
    http: httpx2.AsyncClient

    async def call(self, method: str, params: object, headers: Mapping[str, str] = EXTENSION) -> dict[str, Any]:
        """Return the JSON-RPC response, a result or an error."""
        response = await self.http.post(self.url, json=rpc(method, params), headers=headers)
        assert response.status_code == 200, response.text
        assert response.headers["content-type"] == "application/json"
        answer: dict[str, Any] = response.json()
        assert answer["jsonrpc"] == "2.0"
        assert answer["id"] == 7
        return answer

    async def result(self, method: str, params: object, headers: Mapping[str, str] = EXTENSION) -> dict[str, Any]:
        """Return the result of a request that succeeds."""
        return (await self.call(method, params, headers))["result"]

    async def error(self, method: str, params: object, headers: Mapping[str, str] = EXTENSION) -> dict[str, Any]:
        """Return the error of a request that is refused."""
        return (await self.call(method, params, headers))["error"]

    async def stream(self, method: str, params: object, headers: Mapping[str, str] = EXTENSION) -> Sequence[StreamItem]:
        """Return every event of a stream that ends by itself."""
        async with self.opened(method, params, headers) as items:
            return [item async for item in items]

    @asynccontextmanager
    async def opened(
        self, method: str, params: object, headers: Mapping[str, str] = EXTENSION
    ) -> AsyncGenerator[AsyncIterator[StreamItem]]:
        """Open a stream that the test reads, and closes, when it likes."""
        async with self.http.stream("POST", self.url, json=rpc(method, params), headers=headers) as response:
            assert response.status_code == 200
            assert response.headers["content-type"].startswith("text/event-stream")
            yield items_of(response)


async def items_of(response: httpx2.Response) -> AsyncIterator[StreamItem]:
    """Yield the events of an event stream; every frame is one data line with at most an id before it."""
    buffer = ""
    async for text in response.aiter_text():
        buffer += text
        *frames, buffer = buffer.split("\n\n")
        for frame in frames:
            fields = dict(line.split(": ", 1) for line in frame.split("\n") if not line.startswith(":"))
            if fields:
                assert fields.keys() <= {"id", "data"}
                yield StreamItem(fields.get("id"), json.loads(fields["data"]))
    assert buffer == ""


def rpc(method: str, params: object) -> dict[str, Any]:
    """Return a JSON-RPC request with the id 7."""
    return {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}


def prompt(text: str, workspace: object = None, **more: Any) -> dict[str, Any]:
    """Return parameters of message/send and message/stream: a text, with AgentSettings if a workspace is given."""
    message: dict[str, Any] = {
        "kind": "message",
        "role": "user",
        "messageId": f"message-{next(_NUMBERS)}",
        "parts": [{"kind": "text", "text": text}],
        **more,
    }
    if workspace is not None:
        message["metadata"] = {URI: {"workspace_path": str(workspace)}}
    return {"message": message}


def answer(task_id: str, *confirmations: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Return parameters of message/send and message/stream: answers to questions, as Appendix A, step 6, has them."""
    parts = [{"kind": "data", "data": dict(confirmation)} for confirmation in confirmations]
    return {
        "message": {"role": "user", "messageId": f"answer-{next(_NUMBERS)}", "taskId": task_id, "parts": parts, **more}
    }


def allow(call_id: str = "call-1", **more: Any) -> dict[str, Any]:
    """Return a ToolCallConfirmation that allows a call once."""
    return {"tool_call_id": call_id, "selected_option_id": "proceed_once", **more}


@asynccontextmanager
async def serving(
    agent: AgentClient,
    options: ServerOptions | None = None,
    limits: ServerLimits = LIMITS,
    **more: Any,
) -> AsyncGenerator[RawClient]:
    """Serve an agent on a free port; the client sends the right token. ``more`` goes to :func:`application`."""
    options = options or ServerOptions(TOKEN)
    if CHOICE.is_acp and isinstance(agent, MemoryAgent):
        agent = await _as_acp_agent(agent)
    listener = bind("127.0.0.1", 0)
    app = application(agent, replace(options, hosts=(*options.hosts, "127.0.0.1")), **more)
    server = A2AServer(app, listener, limits=replace(limits, grace_seconds=2))
    running = asyncio.create_task(server.run_until_stopped())
    headers = {"Authorization": f"Bearer {options.token}"}
    try:
        async with plain_client(headers=headers) as http:
            yield RawClient(server.url, app, server, http)
    finally:
        server.stop()
        await asyncio.wait_for(running, 30)
        await agent.aclose()
        await close_behind()


async def _as_acp_agent(agent: MemoryAgent) -> AgentClient:
    """Return a real engine that plays the script of an agent in memory as an ACP agent."""
    from support.script_agent import engine_for  # which serves with this module

    workspace = None if agent.default_workspace is None else Path(agent.default_workspace)

    def script(message: PromptMessage) -> Sequence[Step]:
        agent.prompts.append(message)
        return agent.script(message)

    return await engine_for(script, Path(tempfile.mkdtemp()), WorkspaceRule(workspace))
