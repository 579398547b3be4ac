"""A client of an A2A server, open during a test."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from isthmus.a2a import RemoteAgent


@asynccontextmanager
async def remote_agent(url: str, token: str) -> AsyncGenerator[RemoteAgent]:
    """Yield a client of the server at `url`."""
    agent = await RemoteAgent.connect(url, token)
    try:
        yield agent
    finally:
        await agent.aclose()
