"""Drives an agent with AG2, for which it is a model: ``streaming`` and ``polling``, over A2A 1.0 and JSON-RPC.

A question calls AG2's hook for people, which answers with the next text.
"""

from typing import Any

from ag2 import Agent
from ag2.a2a import A2AConfig


async def conversation(url: str, token: str, mode: str, texts: list[str]) -> list[dict[str, Any]]:
    """Return what AG2 hands to its user."""
    config = A2AConfig(
        url,
        prefer="jsonrpc",
        streaming=mode == "streaming",
        headers={"Authorization": f"Bearer {token}"},
        polling_interval=0.1,
    )
    handed: list[dict[str, Any]] = []
    waiting = list(texts)

    async def asked(event: Any) -> str:
        handed.append({"question": event.content})
        return waiting.pop(0)

    agent = Agent("remote", config=config, hitl_hook=asked)
    reply: Any = None
    while waiting:
        text = waiting.pop(0)
        reply = await (agent.ask(text) if reply is None else reply.ask(text))
        handed.append({"text": reply.body or ""})
    return handed
