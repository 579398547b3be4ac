"""Serves an agent of a framework whose tool may be killed while it runs: ``HOSTING-AS-JSON NAME langchain|pydantic``.

LangChain's agent has the real ``HumanInTheLoopMiddleware``. The model is a test model of the framework. The tool writes
its argument into the file ``ran.txt`` of the current folder; with ``slow`` it never ends.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

from isthmus.a2a import Hosting, serve
from isthmus.a2a.frameworks import host


def work(name: str) -> str:
    """Do some work."""
    with Path("ran.txt").open("a", encoding="utf-8") as ran:
        ran.write(name + "\n")
    if name == "slow":
        time.sleep(3600)  # delay: the tool hangs until the server is killed
    return f"{name} done"


def of_langchain() -> Any:
    """Return an agent of LangChain that asks before it runs the tool."""
    from langchain.agents import create_agent
    from langchain.agents.middleware import HumanInTheLoopMiddleware
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
    from langchain_core.outputs import ChatGeneration, ChatResult
    from langchain_core.tools import tool

    class Model(BaseChatModel):
        """A model that calls the tool for each word of the user, and repeats the results."""

        @property
        def _llm_type(self) -> str:
            return "test"

        def bind_tools(self, tools: Any, **options: Any) -> Any:
            return self

        def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **options: Any) -> ChatResult:
            asked = max(at for at, message in enumerate(messages) if isinstance(message, HumanMessage))
            results = [str(each.content) for each in messages[asked:] if isinstance(each, ToolMessage)]
            words = str(messages[asked].content).split()
            called = [{"name": "work", "args": {"name": word}, "id": f"call-{at}"} for at, word in enumerate(words)]
            reply = AIMessage("; ".join(results)) if results else AIMessage("", tool_calls=called)
            return ChatResult(generations=[ChatGeneration(message=reply)])

    middleware = [HumanInTheLoopMiddleware(interrupt_on={"work": True})]
    return create_agent(Model(), tools=[tool(work)], middleware=middleware)


def of_pydantic() -> Any:
    """Return an agent of pydantic-ai that asks before it runs the tool."""
    from pydantic_ai import Agent, Tool
    from pydantic_ai.messages import ModelRequest, ToolReturnPart, UserPromptPart
    from pydantic_ai.models.function import DeltaToolCall, FunctionModel

    async def reply(messages: Any, _: Any) -> Any:
        parts = [part for message in messages if isinstance(message, ModelRequest) for part in message.parts]
        asked = max(at for at, part in enumerate(parts) if isinstance(part, UserPromptPart))
        results = [str(part.content) for part in parts[asked:] if isinstance(part, ToolReturnPart)]
        if results:
            yield "; ".join(results)
            return
        for at, word in enumerate(str(parts[asked].content).split()):
            yield {at: DeltaToolCall(name="work", json_args=json.dumps({"name": word}), tool_call_id=f"call-{at}")}

    return Agent(FunctionModel(stream_function=reply), tools=[Tool(work, requires_approval=True)])


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    hosting = Hosting(sys.argv[3], folder=Path(given["folder"]), token=given["token"])
    serve(host({"langchain": of_langchain, "pydantic": of_pydantic}[sys.argv[3]]()), hosting)
