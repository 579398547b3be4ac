"""Drives an agent with A2AAgent of Microsoft's Agent Framework; a mode is streaming or not, and a version of A2A."""

from typing import Any

import httpx
from a2a.client import A2ACardResolver
from agent_framework import AgentSession
from agent_framework_a2a import A2AAgent
from cards import of_version


async def conversation(url: str, token: str, mode: str, texts: list[str]) -> list[dict[str, Any]]:
    """Return what Agent Framework hands to its user."""
    how, version = mode.split()
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(headers=headers, trust_env=False, timeout=30) as http:
        card = of_version(await A2ACardResolver(http, url).get_agent_card(), version)
        agent = A2AAgent(agent_card=card, http_client=http)
        session = agent.create_session()
        answer = streamed if how == "streaming" else whole
        return [await answer(agent, session, text) for text in texts]


async def streamed(agent: A2AAgent, session: AgentSession, text: str) -> dict[str, Any]:
    """Return the answer, and its pieces as they came."""
    stream = agent.run(text, session=session, stream=True)
    pieces = [update.text async for update in stream if update.text]
    return {**shown(await stream.get_final_response()), "pieces": pieces}


async def whole(agent: A2AAgent, session: AgentSession, text: str) -> dict[str, Any]:
    """Return the answer of a call without a stream."""
    return shown(await agent.run(text, session=session))


def shown(response: Any) -> dict[str, Any]:
    """Return the answer or the question of a response."""
    if response.user_input_requests:
        return {"question": "\n".join(request.text for request in response.user_input_requests)}
    return {"text": response.text}
