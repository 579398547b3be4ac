"""Our client of an A2A server, for as long as a test needs it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from isthmus.a2a import RemoteAgent


@asynccontextmanager
async def remote_agent(url: str, token: str) -> AsyncGenerator[RemoteAgent]:
    """A client of the server at `url`."""
    agent = await RemoteAgent.connect(url, token)
    try:
        yield agent
    finally:
        await agent.aclose()
