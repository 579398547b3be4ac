"""Drives an agent with langchain-remote-a2a-agent, a runnable for LangChain and LangGraph: ``streaming``, ``blocking``.

It speaks A2A 1.0, and sends the id of the session alone: an answer to a question is a message of the session.
"""

from typing import Any

from langchain_remote_a2a_agent import RemoteAgent


async def conversation(url: str, token: str, mode: str, texts: list[str]) -> list[dict[str, Any]]:
    """Return what the runnable hands to its user."""
    agent = RemoteAgent(
        name="remote",
        agent_card_url=f"{url.rstrip('/')}/.well-known/agent-card.json",
        headers={"Authorization": f"Bearer {token}"},
        use_streaming=mode == "streaming",
    )
    config: Any = {"configurable": {"thread_id": "one"}}
    handed: list[dict[str, Any]] = []
    try:
        for text in texts:
            if mode == "streaming":
                states = [state async for state in agent.astream(text, config)]
                pieces = [chunk.content for state in states for chunk in state["messages"] if chunk.content]
                handed.append({"text": "".join(pieces), "pieces": pieces})
            else:
                handed.append({"text": (await agent.ainvoke(text, config))["messages"][-1].content})
    finally:
        await agent.aclose()
    return handed
