"""Drives an agent with the client of a2a-sdk 0.3: ``stream``, or ``resubscribe`` after the first event.

Older versions take an empty line after an event's id for an event, and fail.
"""

import uuid
from typing import Any

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import Message, Part, Role, TaskIdParams, TextPart


async def conversation(url: str, token: str, mode: str, texts: list[str]) -> list[dict[str, Any]]:
    """Return the texts of the task's artifacts after the last event."""
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(headers=headers, trust_env=False, timeout=30) as http:
        card = await A2ACardResolver(http, url).get_agent_card()
        client = ClientFactory(ClientConfig(httpx_client=http)).create(card)
        return [await answer(client, mode, text) for text in texts]


async def answer(client: Any, mode: str, text: str) -> dict[str, Any]:
    """Return the answer to a text."""
    message = Message(role=Role.user, message_id=str(uuid.uuid4()), parts=[Part(root=TextPart(text=text))])
    events = client.send_message(message)
    task, _ = await anext(events)
    if mode == "resubscribe":
        await events.aclose()
        events = client.resubscribe(TaskIdParams(id=task.id))
    async for last, _ in events:
        task = last
    return {"text": "\n".join(part.root.text for artifact in task.artifacts or [] for part in artifact.parts)}
