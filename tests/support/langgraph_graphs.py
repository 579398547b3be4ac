"""Graphs of LangGraph for tests, with the test models of LangChain."""

# LangGraph's own types are partly unknown.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

import base64
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition


def calls(*called: tuple[str, Mapping[str, Any], str]) -> AIMessage:
    return AIMessage(
        "", tool_calls=[{"name": name, "args": dict(args), "id": call_id} for name, args, call_id in called]
    )


class Recorder:
    """Nodes of a graph around a model; it remembers what the model was sent."""

    def __init__(self, model: BaseChatModel) -> None:
        self._model = model
        self.requests: list[list[BaseMessage]] = []

    async def node(self, state: MessagesState) -> Mapping[str, Any]:
        self.requests.append(list(state["messages"]))
        return {"messages": [await self._model.ainvoke(state["messages"])]}


def replies(*messages: BaseMessage) -> Recorder:
    return Recorder(FakeMessagesListChatModel(responses=list(messages)))


def agent_graph(recorder: Recorder, tools: Sequence[Any], **options: Any) -> Any:
    """Return the usual loop of a model and its tools, as in LangGraph's documentation."""
    graph = StateGraph(MessagesState)
    graph.add_node("model", recorder.node)
    graph.add_node("tools", ToolNode(list(tools), **options))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    return graph


def one_node(node: Callable[..., Any]) -> Any:
    graph = StateGraph(MessagesState)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    graph.add_edge("node", END)
    return graph


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
