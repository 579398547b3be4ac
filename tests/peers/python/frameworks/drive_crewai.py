"""Drives an agent with CrewAI's delegation over A2A 0.3: ``streaming``, ``polling``, or ``rest``: HTTP+JSON."""

from typing import Any

from a2a.types import TaskState
from crewai.a2a.auth.client_schemes import BearerTokenAuth
from crewai.a2a.config import ClientTransportConfig
from crewai.a2a.updates import PollingConfig, StreamingConfig
from crewai.a2a.utils.delegation import aexecute_a2a_delegation


async def conversation(url: str, token: str, mode: str, texts: list[str]) -> list[dict[str, Any]]:
    """Return what CrewAI hands to its user."""
    handed: list[dict[str, Any]] = []
    history: list[Any] = []
    context_id = task_id = None
    for text in texts:
        result = await aexecute_a2a_delegation(
            endpoint=url,
            auth=BearerTokenAuth(token=token),
            timeout=30,
            task_description=text,
            context_id=context_id,
            task_id=task_id,
            conversation_history=history,
            updates=PollingConfig(interval=0.1) if mode == "polling" else StreamingConfig(),
            transport=ClientTransportConfig(preferred="HTTP+JSON" if mode == "rest" else "JSONRPC"),
        )
        # CrewAI's agents go on with the ids of the last message, and with no task id after a completed task.
        history = result["history"]
        if history and history[-1].context_id is not None:
            context_id, task_id = history[-1].context_id, history[-1].task_id
        if result["status"] is TaskState.input_required:
            handed.append({"question": result["error"]})
        else:
            task_id = None
            handed.append({"text": result["result"]} if "result" in result else {"failed": result["error"]})
    return handed
