"""Drives an agent with RemoteA2aAgent of Google's ADK; a mode is streaming or not, and a version of A2A."""

import warnings
from typing import Any

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from cards import of_version
from google.adk.agents.remote_a2a_agent import RemoteA2aAgent
from google.adk.runners import InMemoryRunner
from google.genai.types import Content, Part

warnings.filterwarnings("ignore", message=".*EXPERIMENTAL.*")


async def conversation(url: str, token: str, mode: str, texts: list[str]) -> list[dict[str, Any]]:
    """Return what ADK hands to its user."""
    how, version = mode.split()
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(headers=headers, trust_env=False, timeout=30) as http:
        card = of_version(await A2ACardResolver(http, url).get_agent_card(), version)
        factory = ClientFactory(ClientConfig(httpx_client=http, streaming=how == "streaming"))
        runner = InMemoryRunner(agent=RemoteA2aAgent("remote", card, a2a_client_factory=factory), app_name="driver")
        session = await runner.session_service.create_session(app_name="driver", user_id="user")
        return [await answer(runner, session.id, text) for text in texts]


async def answer(runner: InMemoryRunner, session_id: str, text: str) -> dict[str, Any]:
    """Return the texts of all final responses, or what a function call asks: so ADK hands over a question."""
    found: dict[str, Any] = {}
    message = Content(role="user", parts=[Part(text=text)])
    async for event in runner.run_async(user_id="user", session_id=session_id, new_message=message):
        if event.error_message:
            found["failed"] = event.error_message
        for part in (event.content.parts or []) if event.content and event.is_final_response() else []:
            if part.function_call is not None:
                found["question"] = (part.function_call.args or {})["input_required"]
            elif part.text and not part.thought:
                found["text"] = found.get("text", "") + part.text
    return found
