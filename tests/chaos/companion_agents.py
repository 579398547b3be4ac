"""An agent that continues after its companion died, as Gemini CLI's connection does: one session, one stream at a time.

It never writes a file, so any change of a file comes from a program that must not write it.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from support.companion import BareAgent
from support.waiting import eventually_async

DECIDED = ("ide/diffAccepted", "ide/diffRejected")
PAUSE_SECONDS = 0.05
"""Seconds between two attempts to open the stream; the real CLI waits one second."""


@dataclass(slots=True)
class GeminiAgent:
    """The agent, made by :func:`gemini_agent`. ``received`` holds the decisions in order, ``kept`` the texts of
    closeDiff; ``streams`` counts how often the stream was opened."""

    bare: BareAgent
    received: list[tuple[str, str, str | None]] = field(default_factory=list[tuple[str, str, str | None]])
    kept: list[str] = field(default_factory=list[str])
    streams: int = 0
    refusals: list[int] = field(default_factory=list[int])
    contexts: int = 0
    _last_event: str | None = None
    _response: httpx2.Response | None = None

    async def listen(self) -> None:
        """Read the stream, and open it again with the last event's id whenever it ends, in any way."""
        while True:
            with contextlib.suppress(httpx2.HTTPError):
                headers = {"accept": "text/event-stream", **self.bare.session}
                if self._last_event is not None:
                    headers["last-event-id"] = self._last_event
                async with self.bare.http.stream("GET", "/mcp", headers=headers, timeout=None) as response:
                    if response.status_code != 200:
                        self.refusals.append(response.status_code)
                    else:
                        self.streams += 1
                        self._response = response
                        await self._read(response)
            await asyncio.sleep(PAUSE_SECONDS)  # delay: the agent's own pause before it connects again

    async def _read(self, response: httpx2.Response) -> None:
        async for line in response.aiter_lines():
            if line.startswith("id: "):
                self._last_event = line[4:]
            elif line.startswith("data: "):
                message: dict[str, Any] = json.loads(line[6:])
                if message["method"] in DECIDED:
                    params = message["params"]
                    self.received.append((message["method"], params["filePath"], params.get("content")))
                else:
                    self.contexts += 1

    async def drop(self) -> None:
        """Lose the stream without a message."""
        if self._response is not None:
            await self._response.aclose()

    async def propose(self, file: Path, content: str) -> bool:
        """Call openDiff; return whether it was accepted."""
        result = await self._call("openDiff", {"filePath": str(file), "newContent": content})
        return result is not None and not result.get("isError")

    async def take_back(self, file: Path) -> bool:
        """Call closeDiff, as the CLI does after an answer in its terminal; return whether it got the view's text."""
        result = await self._call("closeDiff", {"filePath": str(file), "suppressNotification": True})
        if result is None or result.get("isError"):
            return False
        with contextlib.suppress(ValueError):
            text = json.loads(result["content"][0]["text"]).get("content") if result["content"] else None
            if isinstance(text, str):
                self.kept.append(text)
        return True

    async def _call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any] | None:
        with contextlib.suppress(httpx2.HTTPError, ValueError):
            answer = await self.bare.request("tools/call", {"name": name, "arguments": arguments})
            result: dict[str, Any] | None = answer.get("result")
            return result
        return None

    def decisions(self, file: Path) -> list[tuple[str, str | None]]:
        """Return the decisions about a file that it received."""
        return [(method, content) for method, path, content in self.received if path == str(file)]


@asynccontextmanager
async def gemini_agent(port: int, token: str) -> AsyncGenerator[GeminiAgent]:
    """Attach an agent with a stream."""
    headers = {"authorization": f"Bearer {token}"}
    base = f"http://127.0.0.1:{port}"
    async with httpx2.AsyncClient(base_url=base, headers=headers, timeout=30, trust_env=False) as http:
        agent = GeminiAgent(BareAgent(http))
        await agent.bare.initialize()
        listening = asyncio.create_task(agent.listen())
        try:
            await eventually_async(lambda: agent.contexts > 0, what="the first context")
            yield agent
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
