"""Graphs of LangGraph behind ``host()``: what users see."""

# LangGraph's own types are partly unknown.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.tools import tool
from langgraph.config import get_stream_writer
from langgraph.func import entrypoint
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import interrupt

from isthmus.a2a.frameworks import host
from isthmus.development_tool import ToolCallStatus
from isthmus.events import MessagePart, StateChange, TaskState, TextContent, Thought
from isthmus.internal_events import ModelUsed
from support.hosted_frameworks import (
    PNG,
    artifacts_in,
    calls_in,
    conversation_with,
    last_call,
    messages_in,
    of_kind,
    text_in,
)
from support.langgraph_graphs import Recorder, add, agent_graph, calls, encoded, one_node, replies

pytestmark = pytest.mark.anyio

PENDING, EXECUTING = ToolCallStatus.PENDING, ToolCallStatus.EXECUTING
SUCCEEDED, FAILED, CANCELLED = ToolCallStatus.SUCCEEDED, ToolCallStatus.FAILED, ToolCallStatus.CANCELLED
PICTURE = MessagePart(raw=PNG, media_type="image/png", filename="dot.png")


async def test_texts_of_a_model_are_streamed_word_by_word(tmp_path: Path) -> None:
    model = GenericFakeChatModel(messages=iter([AIMessage("one two three")]))
    async with conversation_with(host(one_node(Recorder(model).node)), tmp_path) as user:
        seen = await user.says("count")
    assert text_in(seen) == "one two three"
    assert seen[-1] == StateChange(TaskState.COMPLETED)


async def test_calls_are_shown_with_arguments_and_output(tmp_path: Path) -> None:
    model = replies(calls(("add", {"a": 1, "b": 2}, "c1")), AIMessage("three"))
    async with conversation_with(host(agent_graph(model, [add])), tmp_path) as user:
        seen = await user.says("1 + 2?")
    assert calls_in(seen) == [("add", PENDING), ("add", EXECUTING), ("add", SUCCEEDED)]
    assert last_call(seen).input_parameters == {"a": 1, "b": 2}
    assert last_call(seen).output is not None
    assert last_call(seen).output.text == "3"  # pyright: ignore[reportOptionalMemberAccess]
    assert text_in(seen) == "three"


async def test_the_tokens_of_models_are_told(tmp_path: Path) -> None:
    usage: Any = {"input_tokens": 9, "output_tokens": 3, "total_tokens": 12, "input_token_details": {"cache_read": 4}}
    message = AIMessage("ok", usage_metadata=usage, response_metadata={"model_name": "m"})
    async with conversation_with(host(one_node(replies(message).node)), tmp_path) as user:
        seen = await user.says("go")
    assert of_kind(seen, ModelUsed) == [ModelUsed("m", 9, 3, 4)]


async def test_reasoning_blocks_are_thoughts(tmp_path: Path) -> None:
    blocks: list[str | dict[Any, Any]] = [
        {"type": "reasoning", "reasoning": "**Plan** First I look"},
        {"type": "text", "text": "Done"},
    ]
    async with conversation_with(host(one_node(replies(AIMessage(content=blocks)).node)), tmp_path) as user:
        seen = await user.says("go")
    assert [event.thought.subject for event in of_kind(seen, Thought)] == ["Plan"]
    assert text_in(seen) == "Done"


async def test_a_failing_tool_is_shown_as_failed_without_its_text(tmp_path: Path) -> None:
    @tool
    def broken() -> str:
        """Fail."""
        raise ValueError("secret of the tool")

    model = replies(calls(("broken", {}, "c1")), AIMessage("It failed"))
    async with conversation_with(host(agent_graph(model, [broken], handle_tool_errors=True)), tmp_path) as user:
        seen = await user.says("go")
        assert calls_in(seen)[-1] == ("broken", FAILED)
        assert last_call(seen).error is not None
        assert "secret" not in str(last_call(seen).error)
        assert seen[-1] == StateChange(TaskState.COMPLETED)
    model = replies(calls(("broken", {}, "c1")))
    async with conversation_with(host(agent_graph(model, [broken])), tmp_path) as user:
        end = (await user.says("go"))[-1]
    assert isinstance(end, StateChange)
    assert end.state is TaskState.FAILED
    assert "secret" not in (end.error or "")


class Town(TypedDict):
    question: str
    name: str
    people: int


async def test_a_graph_without_messages_takes_an_input_and_gives_data(tmp_path: Path) -> None:
    def find(state: Town) -> Mapping[str, Any]:
        return {"name": state["question"].upper(), "people": 3}

    graph = StateGraph(Town)
    graph.add_node("find", find)
    graph.add_edge(START, "find")
    with pytest.raises(TypeError, match="no `messages`; expected input="):
        host(graph)
    agent = host(graph, input=lambda session: {"question": session.prompt})
    async with conversation_with(agent, tmp_path) as user:
        seen = await user.says("rome")
    (part,) = artifacts_in(seen)
    assert part.data == {"question": "rome", "name": "ROME", "people": 3}


class Structured(MessagesState):
    structured_response: Mapping[str, Any]


async def test_a_structured_response_is_a_data_artifact(tmp_path: Path) -> None:
    graph = StateGraph(Structured)
    graph.add_node("node", lambda state: {"messages": [AIMessage("ok")], "structured_response": {"people": 3}})
    graph.add_edge(START, "node")
    async with conversation_with(host(graph), tmp_path) as user:
        seen = await user.says("go")
    assert [part.data for part in artifacts_in(seen)] == [{"people": 3}]
    assert text_in(seen) == "ok"


async def test_an_entrypoint_of_the_functional_api_is_served(tmp_path: Path) -> None:
    @entrypoint()
    async def work(text: str) -> str:
        return f"{text} {interrupt('More?')}"

    async with conversation_with(host(work, input=lambda session: session.prompt), tmp_path) as user:
        assert messages_in(await user.says("one")) == ["More?"]
        seen = await user.says("two", same_task=True)
    assert messages_in(seen) == ["one two"]


async def test_pictures_reach_the_graph_and_its_files_become_artifacts(tmp_path: Path) -> None:
    @tool(response_format="content_and_artifact")
    def draw() -> tuple[str, Mapping[str, Any]]:
        """Draw."""
        return "drawn", {"type": "image", "mime_type": "image/svg+xml", "base64": encoded("of the tool")}

    class Drawing:
        seen: AnyMessage

        def begin(self, state: MessagesState) -> Mapping[str, Any]:
            self.seen = state["messages"][-1]
            get_stream_writer()("I draw. ")
            get_stream_writer()({"type": "file", "mime_type": "text/csv", "base64": encoded("of the node")})
            return {"messages": [calls(("draw", {}, "c1"))]}

        def end(self, state: MessagesState) -> Mapping[str, Any]:
            return {"messages": [AIMessage([{"type": "image", "mime_type": "image/png", "base64": encoded("model")}])]}

    drawing = Drawing()
    graph = StateGraph(MessagesState)
    graph.add_node("begin", drawing.begin)
    graph.add_node("tools", ToolNode([draw]))
    graph.add_node("end", drawing.end)
    graph.add_edge(START, "begin")
    graph.add_edge("begin", "tools")
    graph.add_edge("tools", "end")
    async with conversation_with(host(graph), tmp_path) as user:
        seen = await user.says("like this", files=[PICTURE])
    image = {"type": "image", "mime_type": "image/png", "base64": PNG}
    assert drawing.seen.content == [{"type": "text", "text": "like this"}, image]
    made = [(part.media_type, base64.b64decode(part.raw or "").decode()) for part in artifacts_in(seen)]
    assert made == [("text/csv", "of the node"), ("image/svg+xml", "of the tool"), ("image/png", "model")]
    assert text_in(seen) == "I draw. "


async def test_a_tool_called_in_a_node_of_the_authors_own_is_shown(tmp_path: Path) -> None:
    def node(state: MessagesState) -> Mapping[str, Any]:
        return {"messages": [AIMessage(str(add.invoke({"a": 1, "b": 2})))]}

    async with conversation_with(host(one_node(node)), tmp_path) as user:
        seen = await user.says("go")
    assert calls_in(seen) == [("add", PENDING), ("add", EXECUTING), ("add", SUCCEEDED)]
    assert [type(event) for event in seen if isinstance(event, TextContent)] == [TextContent]


def test_arguments_for_the_other_framework_are_refused() -> None:
    with pytest.raises(TypeError, match="for LangGraph there are input= and context="):
        host(one_node(replies().node), deps=lambda session: session.prompt)
