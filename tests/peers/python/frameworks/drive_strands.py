"""Drives an agent with the A2A client of AWS Strands Agents: ``agent``, or ``tool``, which is made for its models.

Both always stream, over JSON-RPC and A2A 0.3, and send no ids: each text begins a task.
"""

from typing import Any

import httpx
from a2a.client import ClientConfig
from strands.agent.a2a_agent import A2AAgent
from strands.vended_tools.a2a_client.a2a_client import A2AClientError, make_a2a_client


async def conversation(url: str, token: str, mode: str, texts: list[str]) -> list[dict[str, Any]]:
    """Return what Strands hands to its user."""
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(headers=headers, trust_env=False, timeout=30) as http:
        config = ClientConfig(httpx_client=http)
        if mode == "tool":
            tool = make_a2a_client(allowed_endpoints=[(url, config)])
            return [await tool_answer(tool, url, text) for text in texts]
        agent = A2AAgent(url, client_config=config)
        return [await agent_answer(agent, text) for text in texts]


async def agent_answer(agent: A2AAgent, text: str) -> dict[str, Any]:
    """Return the agent's answer."""
    result = await agent.invoke_async(text)
    # The text of a result is each block of its message with a newline after it.
    return {"question" if result.stop_reason == "interrupt" else "text": str(result).removesuffix("\n")}


async def tool_answer(tool: Any, url: str, text: str) -> dict[str, Any]:
    """Return the answer of the tool. A question is an error to it, with the question in its text."""
    try:
        answer = await tool(operation="send_message", endpoint=url, message=text)
    except A2AClientError as error:
        return {"question": str(error)}
    return {"text": "\n".join(block["text"] for block in answer["message"]["content"])}
