"""Graphs of LangGraph behind ``host()``: what users see, what they are asked, and what outlives the process."""

# LangGraph's own types are partly unknown.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

import asyncio
import base64
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.config import get_stream_writer
from langgraph.func import entrypoint
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import interrupt

from isthmus.a2a.frameworks import host
from isthmus.client import InvalidRequest, PromptMessage
from isthmus.development_tool import FileDiff, ToolCallStatus
from isthmus.events import MessagePart, StateChange, TaskState, TextContent, Thought
from isthmus.internal_events import ModelUsed
from support.hosted_frameworks import (
    PNG,
    Conversation,
    artifacts_in,
    calls_in,
    conversation_with,
    last_call,
    messages_in,
    of_kind,
    record_bytes,
    text_in,
)
from support.turns import SECONDS

pytestmark = pytest.mark.anyio

PENDING, EXECUTING = ToolCallStatus.PENDING, ToolCallStatus.EXECUTING
SUCCEEDED, FAILED, CANCELLED = ToolCallStatus.SUCCEEDED, ToolCallStatus.FAILED, ToolCallStatus.CANCELLED
PICTURE = MessagePart(raw=PNG, media_type="image/png", filename="dot.png")


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
    blocks = [{"type": "reasoning", "reasoning": "**Plan** First I look"}, {"type": "text", "text": "Done"}]
    async with conversation_with(host(one_node(replies(AIMessage(content=blocks)).node)), tmp_path) as user:
        seen = await user.says("go")
    assert [event.thought.subject for event in of_kind(seen, Thought)] == ["Plan"]
    assert text_in(seen) == "Done"


async def test_an_interrupt_is_a_question_in_words_and_the_answer_goes_to_the_graph(tmp_path: Path) -> None:
    def ask(_: MessagesState) -> Mapping[str, Any]:
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
    def ask(_: MessagesState) -> Mapping[str, Any]:
        return {"messages": [AIMessage(f"got {interrupt('Which?')['number']}")]}

    async with conversation_with(host(one_node(ask)), tmp_path) as user:
        await user.says("go")
        seen = await user.says("seven", files=[MessagePart(data={"number": 7})], same_task=True)
    assert text_in(seen) == "got 7"


@pytest.mark.parametrize(("option", "answer"), [("option_1", "red"), ("option_2", "blue")])
async def test_a_payload_with_options_offers_them(tmp_path: Path, option: str, answer: str) -> None:
    def ask(_: MessagesState) -> Mapping[str, Any]:
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
    def ask(_: MessagesState) -> Mapping[str, Any]:
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
        (called,) = state["messages"][-1].tool_calls
        action = {"name": called["name"], "args": called["args"], "description": "Write it?"}
        review = {"action_name": called["name"], "allowed_decisions": self._allowed}
        answer = interrupt({"action_requests": [action], "review_configs": [review]})
        self.decisions = answer["decisions"]
        (decision,) = self.decisions
        message = state["messages"][-1]
        if decision["type"] == "reject":
            return {"messages": [AIMessage(f"Not done: {decision['message']}", id="reject")]}
        if decision["type"] == "edit":
            edited = {**called, "args": decision["edited_action"]["args"]}
            return {"messages": [message.model_copy(update={"tool_calls": [edited]})]}
        return {}

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
        graph.add_conditional_edges("model", lambda state: "review" if state["messages"][-1].tool_calls else END)
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
    graph.add_node("node", lambda _: {"messages": [AIMessage("ok")], "structured_response": {"people": 3}})
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

        def end(self, _: MessagesState) -> Mapping[str, Any]:
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
    assert drawing.seen.content_blocks[0] == {"type": "text", "text": "like this"}
    assert drawing.seen.content_blocks[1]["type"] == "image"
    assert drawing.seen.content_blocks[1]["base64"] == PNG
    made = [(part.media_type, base64.b64decode(part.raw or "").decode()) for part in artifacts_in(seen)]
    assert made == [("text/csv", "of the node"), ("image/svg+xml", "of the tool"), ("image/png", "model")]
    assert text_in(seen) == "I draw. "


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


async def test_a_later_task_continues_the_state_and_a_picture_is_stored_once(tmp_path: Path) -> None:
    model = replies(AIMessage("One"), AIMessage("Two"), AIMessage("Three"))
    graph = one_node(model.node)
    large = MessagePart(raw=base64.b64encode(bytes(300_000)).decode(), media_type="image/png")
    async with conversation_with(host(graph), tmp_path) as user:
        first = await user.says("look", files=[large])
    async with conversation_with(host(graph), tmp_path, user):
        second = await user.says("and now?")
        third = await user.says("again", same_task=True)
    assert [str(message.text) for message in model.requests[-1]] == ["look", "One", "and now?", "Two", "again"]
    assert 400_000 < record_bytes(first) < 700_000
    assert record_bytes(second) < 40_000
    assert record_bytes(third) < 40_000


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


@pytest.mark.parametrize("kept_by", ["none", "memory", "sqlite"])
async def test_the_state_outlives_the_process_with_any_checkpointer(
    tmp_path: Path, kept_by: Literal["none", "memory", "sqlite"]
) -> None:
    def ask(state: MessagesState) -> Mapping[str, Any]:
        return {"messages": [AIMessage(f"{state['messages'][0].content} {interrupt('Your name?')}")]}

    async def says(text: str, before: Conversation | None) -> tuple[Conversation, str]:
        async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "graph.sqlite")) as saver:
            keeper: Any = {"none": None, "memory": InMemorySaver(), "sqlite": saver}[kept_by]
            graph = one_node(ask).compile(checkpointer=keeper)
            async with conversation_with(host(graph), tmp_path, before) as user:
                return user, text_in(await user.says(text, same_task=before is not None))

    user, _ = await says("hello", None)
    _, text = await says("Ann", user)
    assert text == "hello Ann"


async def test_a_conversation_goes_on_without_the_messages_of_a_deleted_task(tmp_path: Path) -> None:
    model = replies(AIMessage("One"), AIMessage("Two"), AIMessage("Three"))
    graph = one_node(model.node)
    async with conversation_with(host(graph), tmp_path) as user:
        await user.says("first")
        first = user.task_id
        await user.says("second")
        assert await user.engine._runner.retention.delete([first])  # pyright: ignore[reportPrivateUsage]
        seen = await user.says("third")
    assert text_in(seen) == "Three"
    assert [str(message.text) for message in model.requests[-1]] == ["second", "Two", "third"]


async def begins(user: Conversation, started: asyncio.Event) -> None:
    """Send a message, and wait until a tool has started."""
    turn = await user.engine.prompt(PromptMessage("go"))
    user.task_id = turn.task_id
    async with asyncio.timeout(SECONDS):
        await started.wait()


async def ends(user: Conversation) -> TaskState:
    """Follow the task to its end, and return its state."""
    async with asyncio.timeout(SECONDS):
        async for _ in (await user.engine.follow(user.task_id, 0)).deliveries:
            pass
    return (await user.engine.get(user.task_id)).state


async def test_a_tool_that_was_running_when_the_process_ended_is_not_run_again(tmp_path: Path) -> None:
    started, runs = asyncio.Event(), list[str]()

    @tool
    async def work(name: str) -> str:
        """Work."""
        runs.append(name)
        if name == "slow":
            started.set()
            await asyncio.Event().wait()
        return f"{name} done"

    model = replies(calls(("work", {"name": "fast"}, "c1"), ("work", {"name": "slow"}, "c2")), AIMessage("I go on"))
    graph = agent_graph(model, [work])
    async with conversation_with(host(graph), tmp_path) as user:
        await begins(user, started)
    async with conversation_with(host(graph), tmp_path, user):
        assert await ends(user) is TaskState.COMPLETED
    assert sorted(runs) == ["fast", "slow"]
    first, second = model.requests[-1][-2:]
    assert first.content == "fast done"
    assert "interrupted" in str(second.content)
    assert len(model.requests) == 2


async def test_one_message_never_answers_two_interrupts(tmp_path: Path) -> None:
    started = asyncio.Event()

    async def ask(_: MessagesState) -> Mapping[str, Any]:
        first = interrupt("Your name?")
        if not started.is_set():
            started.set()
            await asyncio.Event().wait()  # the process ends after the answer was taken
        return {"messages": [AIMessage(f"{first} of {interrupt('Your town?')}")]}

    graph = one_node(ask)
    async with conversation_with(host(graph), tmp_path) as user:
        await user.says("hello")
        turn = await user.engine.prompt(PromptMessage("Ann", task_id=user.task_id))
        assert turn.task_id == user.task_id
        async with asyncio.timeout(SECONDS):
            await started.wait()
    async with conversation_with(host(graph), tmp_path, user):
        assert await ends(user) is TaskState.INPUT_REQUIRED
        history = (await user.engine.get(user.task_id)).history
        assert history[-1].text == "Your town?"
        assert text_in(await user.says("Rome", same_task=True)) == "Ann of Rome"


async def test_a_tool_called_in_a_node_of_the_authors_own_is_shown(tmp_path: Path) -> None:
    def node(_: MessagesState) -> Mapping[str, Any]:
        return {"messages": [AIMessage(str(add.invoke({"a": 1, "b": 2})))]}

    async with conversation_with(host(one_node(node)), tmp_path) as user:
        seen = await user.says("go")
    assert calls_in(seen) == [("add", PENDING), ("add", EXECUTING), ("add", SUCCEEDED)]
    assert [type(event) for event in seen if isinstance(event, TextContent)] == [TextContent]


async def test_a_graph_inside_of_a_graph_asks_and_goes_on(tmp_path: Path) -> None:
    def ask(_: MessagesState) -> Mapping[str, Any]:
        return {"messages": [AIMessage(f"inner {interrupt('Inside?')}")]}

    outer = StateGraph(MessagesState)
    outer.add_node("inner", one_node(ask).compile())
    outer.add_edge(START, "inner")
    async with conversation_with(host(outer), tmp_path) as user:
        assert messages_in(await user.says("go")) == ["Inside?"]
    async with conversation_with(host(outer), tmp_path, user):
        assert text_in(await user.says("yes", same_task=True)) == "inner yes"


def test_arguments_for_the_other_framework_are_refused() -> None:
    with pytest.raises(TypeError, match="for LangGraph there are input= and context="):
        host(one_node(lambda state: state), deps=lambda session: session.prompt)
