"""Graphs of LangGraph behind ``host()``: every kind of question, and what the graph gets as the answer."""

# LangGraph's own types are partly unknown.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import interrupt

from isthmus.a2a.frameworks import host
from isthmus.client import InvalidRequest
from isthmus.development_tool import FileDiff, ToolCallStatus
from isthmus.events import MessagePart, StateChange, TaskState
from support.hosted_frameworks import (
    PNG,
    calls_in,
    conversation_with,
    last_call,
    messages_in,
    text_in,
)
from support.langgraph_graphs import add, agent_graph, calls, one_node, replies

pytestmark = pytest.mark.anyio

PENDING, EXECUTING = ToolCallStatus.PENDING, ToolCallStatus.EXECUTING
SUCCEEDED, FAILED, CANCELLED = ToolCallStatus.SUCCEEDED, ToolCallStatus.FAILED, ToolCallStatus.CANCELLED
PICTURE = MessagePart(raw=PNG, media_type="image/png", filename="dot.png")


async def test_an_interrupt_is_a_question_in_words_and_the_answer_goes_to_the_graph(tmp_path: Path) -> None:
    def ask(state: MessagesState) -> Mapping[str, Any]:
        first = interrupt("Your name?")
        return {"messages": [AIMessage(f"{first}, {interrupt({'question': 'Your town?'})}")]}

    graph = one_node(ask)
    async with conversation_with(host(graph), tmp_path) as user:
        asked = await user.says("hello")
        assert messages_in(asked) == ["Your name?"]
        assert asked[-1] == StateChange(TaskState.INPUT_REQUIRED)
    async with conversation_with(host(graph), tmp_path, user):
        assert messages_in(await user.says("Ann", same_task=True)) == ["Your town?"]
    async with conversation_with(host(graph), tmp_path, user):
        seen = await user.says("Rome", same_task=True)
    assert text_in(seen) == "Ann, Rome"
    assert seen[-1] == StateChange(TaskState.COMPLETED)


async def test_the_data_of_a_message_is_the_answer_of_an_interrupt(tmp_path: Path) -> None:
    def ask(state: MessagesState) -> Mapping[str, Any]:
        return {"messages": [AIMessage(f"got {interrupt('Which?')['number']}")]}

    async with conversation_with(host(one_node(ask)), tmp_path) as user:
        await user.says("go")
        seen = await user.says("seven", files=[MessagePart(data={"number": 7})], same_task=True)
    assert text_in(seen) == "got 7"


@pytest.mark.parametrize(("option", "answer"), [("option_1", "red"), ("option_2", "blue")])
async def test_a_payload_with_options_offers_them(tmp_path: Path, option: str, answer: str) -> None:
    def ask(state: MessagesState) -> Mapping[str, Any]:
        chosen = interrupt({"question": "Which colour?", "options": ["red", {"label": "Blue", "value": "blue"}]})
        return {"messages": [AIMessage(chosen)]}

    async with conversation_with(host(one_node(ask)), tmp_path) as user:
        await user.says("go")
        (question,) = await user.questions()
        assert question.confirmation_request is not None
        assert [each.name for each in question.confirmation_request.options] == ["red", "Blue"]
        seen = await user.answers(option)
    assert text_in(seen) == answer
    assert last_call(seen).status is SUCCEEDED


async def test_a_schema_of_yes_or_no_offers_both(tmp_path: Path) -> None:
    def ask(state: MessagesState) -> Mapping[str, Any]:
        return {"messages": [AIMessage(repr(interrupt("Go on?", response_schema=bool)))]}

    async with conversation_with(host(one_node(ask)), tmp_path) as user:
        await user.says("go")
        (question,) = await user.questions()
        assert question.confirmation_request is not None
        assert [each.name for each in question.confirmation_request.options] == ["Yes", "No"]
        assert text_in(await user.answers("option_2")) == "False"


class Reviewing:
    """A graph that asks before its tools run, in the form of LangChain's ``HumanInTheLoopMiddleware``."""

    def __init__(self, path: str, *decisions: str) -> None:
        self.ran: list[str] = []
        self.decisions: list[Any] = []
        self._allowed = list(decisions)
        self._called = calls(("write", {"file_path": path, "content": "one"}, "c1"))

    def model(self, state: MessagesState) -> Mapping[str, Any]:
        return {"messages": [AIMessage("Done") if len(state["messages"]) > 2 else self._called]}

    def review(self, state: MessagesState) -> Mapping[str, Any]:
        message = state["messages"][-1]
        assert isinstance(message, AIMessage)
        (called,) = message.tool_calls
        action = {"name": called["name"], "args": called["args"], "description": "Write it?"}
        review = {"action_name": called["name"], "allowed_decisions": self._allowed}
        answer = interrupt({"action_requests": [action], "review_configs": [review]})
        self.decisions = answer["decisions"]
        (decision,) = self.decisions
        if decision["type"] == "reject":
            return {"messages": [AIMessage(f"Not done: {decision['message']}", id="reject")]}
        if decision["type"] == "edit":
            edited = {**called, "args": decision["edited_action"]["args"]}
            return {"messages": [message.model_copy(update={"tool_calls": [edited]})]}
        return {}

    def next(self, state: MessagesState) -> str:
        message = state["messages"][-1]
        return "review" if isinstance(message, AIMessage) and message.tool_calls else END

    def graph(self) -> Any:
        @tool
        def write(file_path: str, content: str) -> str:
            """Write a file."""
            self.ran.append(content)
            return "written"

        graph = StateGraph(MessagesState)
        graph.add_node("model", self.model)
        graph.add_node("review", self.review)
        graph.add_node("tools", ToolNode([write]))
        graph.add_edge(START, "model")
        graph.add_conditional_edges("model", self.next)
        graph.add_conditional_edges("review", tools_condition)
        graph.add_edge("tools", "model")
        return graph


async def test_an_approved_action_of_the_middleware_runs_under_the_id_of_its_question(tmp_path: Path) -> None:
    review = Reviewing("/w/a.txt", "approve", "reject")
    graph = review.graph()
    async with conversation_with(host(graph), tmp_path) as user:
        await user.says("write")
        (question,) = await user.questions()
        assert (question.tool_call_id, question.tool_name) == ("c1", "write")
        assert question.confirmation_request is not None
        assert question.confirmation_request.generic_details is not None
        assert question.confirmation_request.generic_details.description == "Write it?"
        assert review.ran == []
    async with conversation_with(host(graph), tmp_path, user):
        seen = await user.answers()
    assert calls_in(seen) == [("write", EXECUTING), ("write", SUCCEEDED)]
    assert review.ran == ["one"]
    assert text_in(seen) == "Done"


async def test_a_rejected_action_of_the_middleware_does_not_run(tmp_path: Path) -> None:
    review = Reviewing("/w/a.txt", "approve", "reject")
    async with conversation_with(host(review.graph()), tmp_path) as user:
        await user.says("write")
        seen = await user.answers("cancel")
    assert calls_in(seen) == [("write", CANCELLED)]
    assert review.ran == []
    assert review.decisions == [{"type": "reject", "message": "The user rejected it."}]


async def test_words_instead_of_an_option_reject_the_action_with_them(tmp_path: Path) -> None:
    review = Reviewing("/w/a.txt", "approve", "reject")
    async with conversation_with(host(review.graph()), tmp_path) as user:
        await user.says("write")
        seen = await user.says("write to b.txt", same_task=True)
    assert review.decisions == [{"type": "reject", "message": "write to b.txt"}]
    assert text_in(seen) == "Not done: write to b.txt"
    assert seen[-1] == StateChange(TaskState.COMPLETED)


@pytest.mark.parametrize("may_edit", [True, False])
async def test_edited_arguments_are_used_where_the_middleware_allows_it(tmp_path: Path, may_edit: bool) -> None:
    review = Reviewing("/w/a.txt", "approve", "reject", *(["edit"] if may_edit else []))
    async with conversation_with(host(review.graph()), tmp_path) as user:
        await user.says("write")
        (question,) = await user.questions()
        assert question.confirmation_request is not None
        assert isinstance(question.confirmation_request.details, FileDiff) is may_edit
        if may_edit:
            await user.answers(content="two")
        else:
            with pytest.raises(InvalidRequest, match="not a file edit"):
                await user.answers(content="two")
    assert review.ran == (["two"] if may_edit else [])


async def test_a_human_interrupt_in_a_tool_is_a_question_about_that_call(tmp_path: Path) -> None:
    given: list[Any] = []

    @tool
    def book(hotel: str) -> str:
        """Book a hotel."""
        request = {
            "action_request": {"action": "book", "args": {"hotel": hotel}},
            "config": {"allow_accept": True, "allow_ignore": True, "allow_edit": False, "allow_respond": True},
            "description": "Book it?",
        }
        (answer,) = interrupt([request])
        given.append(answer)
        return "booked" if answer["type"] == "accept" else f"not booked: {answer['args']}"

    booked = [(calls(("book", {"hotel": "Ritz"}, "c1")), AIMessage("One")) for _ in range(3)]
    model = replies(*[message for turn in booked for message in turn])
    async with conversation_with(host(agent_graph(model, [book])), tmp_path) as user:
        await user.says("book")
        (question,) = await user.questions()
        assert question.tool_call_id == "c1"
        seen = await user.answers()
        assert calls_in(seen) == [("book", EXECUTING), ("book", SUCCEEDED)]
        await user.says("once more")
        await user.answers("cancel")
        await user.says("and again")
        await user.says("a cheaper one", same_task=True)
    assert given == [
        {"type": "accept", "args": None},
        {"type": "ignore", "args": None},
        {"type": "response", "args": "a cheaper one"},
    ]


async def test_a_breakpoint_of_the_author_asks_before_the_next_node(tmp_path: Path) -> None:
    model = replies(calls(("add", {"a": 1, "b": 2}, "c1")), AIMessage("three"))
    graph = agent_graph(model, [add]).compile(interrupt_before=["tools"])
    async with conversation_with(host(graph), tmp_path) as user:
        asked = await user.says("1 + 2?")
        assert calls_in(asked) == [("tools", PENDING)]
        seen = await user.answers()
    assert calls_in(seen)[-1] == ("add", SUCCEEDED)
    assert text_in(seen) == "three"


async def test_a_new_message_closes_calls_that_a_failed_run_left_open(tmp_path: Path) -> None:
    @tool
    def book() -> str:
        """Book."""
        return str(interrupt("Which hotel?"))

    model = replies(calls(("book", {}, "c1")), AIMessage("Another day, then"))
    graph = agent_graph(model, [book])
    async with conversation_with(host(graph), tmp_path) as user:
        await user.says("book")
        seen = await user.says("Ritz", same_task=True)
    assert calls_in(seen) == [("book", EXECUTING), ("book", SUCCEEDED)]


async def test_a_graph_that_a_node_invokes_without_await_asks_and_goes_on(tmp_path: Path) -> None:
    def ask(state: MessagesState) -> Mapping[str, Any]:
        return {"messages": [AIMessage(f"inner {interrupt('Inside?')}")]}

    inner = one_node(ask).compile()

    def outer(state: MessagesState) -> Any:
        return inner.invoke(state)

    async with conversation_with(host(one_node(outer)), tmp_path) as user:
        assert messages_in(await user.says("go")) == ["Inside?"]
    async with conversation_with(host(one_node(outer)), tmp_path, user):
        assert text_in(await user.says("yes", same_task=True)) == "inner yes"


async def test_a_graph_inside_of_a_graph_asks_and_goes_on(tmp_path: Path) -> None:
    def ask(state: MessagesState) -> Mapping[str, Any]:
        return {"messages": [AIMessage(f"inner {interrupt('Inside?')}")]}

    outer = StateGraph(MessagesState)
    outer.add_node("inner", one_node(ask).compile())
    outer.add_edge(START, "inner")
    async with conversation_with(host(outer), tmp_path) as user:
        assert messages_in(await user.says("go")) == ["Inside?"]
    async with conversation_with(host(outer), tmp_path, user):
        assert text_in(await user.says("yes", same_task=True)) == "inner yes"


async def test_a_task_whose_question_was_left_keeps_it_and_the_next_one_begins_without(tmp_path: Path) -> None:
    def ask(state: MessagesState) -> Mapping[str, Any]:
        return {"messages": [AIMessage(f"{len(state['messages'])} {interrupt('Your name?')}")]}

    async with conversation_with(host(one_node(ask)), tmp_path) as user:
        await user.says("one")
        left = user.task_id
        await user.says("two")
        assert text_in(await user.says("Bob", same_task=True)) == "1 Bob"
        user.task_id = left
        assert text_in(await user.says("Ann", same_task=True)) == "1 Ann"
