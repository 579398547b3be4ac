"""Agents of pydantic-ai behind ``host()``: what users see, what they are asked, and what outlives the process."""

import asyncio
import base64
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, ApprovalRequired, BinaryContent, ModelRetry, RunContext, ToolReturn
from pydantic_ai.exceptions import CallDeferred
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaThinkingPart, DeltaToolCall, FunctionModel
from pydantic_ai.models.test import TestModel

from isthmus.a2a.frameworks import host
from isthmus.development_tool import FileDiff, ToolCallStatus
from isthmus.events import ArtifactUpdate, MessagePart, StateChange, TaskState, TextContent, Thought, ToolCallUpdate
from isthmus.internal_events import AgentRecord, ModelUsed
from support.hosted_frameworks import (
    PNG,
    artifacts_in,
    begins,
    calls_in,
    conversation_with,
    ends,
    last_call,
    messages_in,
    of_kind,
    record_bytes,
    text_in,
)

pytestmark = pytest.mark.anyio

PENDING, EXECUTING = ToolCallStatus.PENDING, ToolCallStatus.EXECUTING
SUCCEEDED, FAILED, CANCELLED = ToolCallStatus.SUCCEEDED, ToolCallStatus.FAILED, ToolCallStatus.CANCELLED
PICTURE = MessagePart(raw=PNG, media_type="image/png", filename="dot.png")


class Model:
    """A model whose replies a test lists: texts, thoughts and calls; it remembers what it was sent."""

    def __init__(self, *replies: str | DeltaThinkingPart | ToolCallPart | Sequence[ToolCallPart]) -> None:
        self._replies = list(replies)
        self.requests: list[list[ModelMessage]] = []

    async def stream(
        self, messages: list[ModelMessage], _: AgentInfo
    ) -> AsyncIterator[str | dict[int, DeltaToolCall] | dict[int, DeltaThinkingPart]]:
        self.requests.append(list(messages))
        reply = self._replies.pop(0)
        while isinstance(reply, DeltaThinkingPart):
            yield {0: reply}
            reply = self._replies.pop(0)
        if isinstance(reply, str):
            for word in reply.split(" "):
                yield word + " "
            return
        calls = [reply] if isinstance(reply, ToolCallPart) else reply
        yield {
            number: DeltaToolCall(
                name=call.tool_name, json_args=call.args_as_json_str(), tool_call_id=call.tool_call_id
            )
            for number, call in enumerate(calls, start=1)
        }

    def model(self) -> FunctionModel:
        return FunctionModel(stream_function=self.stream)

    def results(self) -> dict[str, object]:
        """Return the results of calls in the last request."""
        parts = [part for message in self.requests[-1] for part in message.parts]
        return {part.tool_call_id: part.content for part in parts if isinstance(part, ToolReturnPart)}


def call(tool: str, call_id: str = "call_1", /, **arguments: object) -> ToolCallPart:
    return ToolCallPart(tool, arguments, call_id)


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def test_texts_thoughts_and_calls_are_shown_as_they_come(tmp_path: Path) -> None:
    model = Model(DeltaThinkingPart(content="**Sum** I add"), call("add", a=1, b=2), "It is three")
    async with conversation_with(host(Agent(model.model(), tools=[add])), tmp_path) as user:
        seen = await user.says("1 + 2?")
    assert [event.thought.subject for event in of_kind(seen, Thought)] == ["Sum"]
    assert calls_in(seen) == [("add", PENDING), ("add", EXECUTING), ("add", SUCCEEDED)]
    assert last_call(seen).input_parameters == {"a": 1, "b": 2}
    assert last_call(seen).output is not None
    assert last_call(seen).output.text == "3"  # pyright: ignore[reportOptionalMemberAccess]
    assert len(of_kind(seen, TextContent)) >= 1
    assert text_in(seen).strip() == "It is three"
    assert seen[-1] == StateChange(TaskState.COMPLETED)


async def test_the_tokens_of_models_are_told(tmp_path: Path) -> None:
    async with conversation_with(host(Agent(TestModel(custom_output_text="ok"))), tmp_path) as user:
        seen = await user.says("go")
    (used,) = of_kind(seen, ModelUsed)
    assert (used.model, used.requests, used.output_tokens) == ("test", 1, 1)
    assert used.input_tokens > 0


async def test_the_test_model_of_pydantic_ai_is_served_to_its_end(tmp_path: Path) -> None:
    async with conversation_with(host(Agent(TestModel(), tools=[add])), tmp_path) as user:
        seen = await user.says("go")
    assert calls_in(seen)[-1] == ("add", SUCCEEDED)
    assert text_in(seen) == '{"add":0}'


def requires_approval(ran: list[str], agent: Agent[None, str]) -> None:
    @agent.tool_plain(requires_approval=True)
    def remove(path: str) -> str:  # pyright: ignore[reportUnusedFunction]
        ran.append(path)
        return f"removed {path}"


async def test_a_tool_that_requires_approval_asks_and_runs_once(tmp_path: Path) -> None:
    model, ran = Model(call("remove", path="a"), "Gone"), list[str]()
    agent = Agent(model.model())
    requires_approval(ran, agent)
    async with conversation_with(host(agent), tmp_path) as user:
        seen = await user.says("remove a")
        assert seen[-1] == StateChange(TaskState.INPUT_REQUIRED)
        (question,) = await user.questions()
        assert question.confirmation_request is not None
        assert question.confirmation_request.generic_details is not None
        assert question.confirmation_request.generic_details.description == "remove(path='a')"
        assert ran == []
    async with conversation_with(host(agent), tmp_path, user):  # as another process would
        answered = await user.answers()
    assert calls_in(answered) == [("remove", EXECUTING), ("remove", SUCCEEDED)]
    assert ran == ["a"]
    assert text_in(answered).strip() == "Gone"


async def test_a_rejected_call_does_not_run_and_the_model_is_told(tmp_path: Path) -> None:
    model, ran = Model(call("remove", path="a"), "As you like"), list[str]()
    agent = Agent(model.model())
    requires_approval(ran, agent)
    async with conversation_with(host(agent), tmp_path) as user:
        await user.says("remove a")
        answered = await user.answers("cancel")
    assert calls_in(answered) == [("remove", CANCELLED)]
    assert ran == []
    assert model.results() == {"call_1": "The user rejected it."}


async def test_a_tool_that_raises_approval_required_asks_and_then_runs(tmp_path: Path) -> None:
    ran: list[str] = []

    def publish(context: RunContext[object], text: str) -> str:
        if not context.tool_call_approved:
            raise ApprovalRequired(metadata={"description": f"Publish {text}?"})
        ran.append(text)
        return "published"

    model = Model(call("publish", text="news"), "Done")
    async with conversation_with(host(Agent(model.model(), tools=[publish])), tmp_path) as user:
        await user.says("publish news")
        (question,) = await user.questions()
        assert question.confirmation_request is not None
        assert question.confirmation_request.generic_details is not None
        assert question.confirmation_request.generic_details.description == "Publish news?"
        answered = await user.answers()
    assert ran == ["news"]
    assert calls_in(answered) == [("publish", EXECUTING), ("publish", SUCCEEDED)]


def writing(is_named: bool) -> tuple[Agent[None, str], Model, list[str]]:
    """Return an agent whose tool writes a file when it is approved; its argument is the content only if named so."""
    written: list[str] = []

    def write(context: RunContext[None], content: str) -> str:
        if not context.tool_call_approved:
            proposed = content if is_named else content.upper()
            raise ApprovalRequired(metadata={"file_path": "/w/a.txt", "new_content": proposed})
        written.append(content)
        return "written"

    model = Model(call("write", content="one"), "Done")
    return Agent(model.model(), tools=[write]), model, written


async def test_an_edited_proposal_replaces_the_argument_that_holds_it(tmp_path: Path) -> None:
    agent, _, written = writing(is_named=True)
    async with conversation_with(host(agent), tmp_path) as user:
        await user.says("write")
        (question,) = await user.questions()
        assert question.confirmation_request is not None
        assert question.confirmation_request.details == FileDiff("a.txt", "/w/a.txt", "one")
        answered = await user.answers(content="two")
    assert written == ["two"]
    assert last_call(answered).input_parameters == {"content": "two"}


async def test_an_edit_that_no_argument_can_take_is_told_to_the_model_and_nothing_runs(tmp_path: Path) -> None:
    agent, model, written = writing(is_named=False)
    async with conversation_with(host(agent), tmp_path) as user:
        await user.says("write")
        answered = await user.answers(content="two")
    assert written == []
    assert calls_in(answered) == [("write", CANCELLED)]
    assert "two" in str(model.results()["call_1"])


async def test_two_calls_of_one_response_are_asked_about_and_answered_together(tmp_path: Path) -> None:
    called = [call("remove", "c1", path="a"), call("add", "c2", a=1, b=1), call("remove", "c3", path="b")]
    model, ran = Model(called, "Ok"), list[str]()
    agent = Agent(model.model(), tools=[add])
    requires_approval(ran, agent)
    async with conversation_with(host(agent), tmp_path) as user:
        await user.says("remove both")
        assert [question.tool_call_id for question in await user.questions()] == ["c1", "c3"]
        await user.answers()
    assert ran == ["a", "b"]
    assert model.results() == {"c1": "removed a", "c2": 2, "c3": "removed b"}


async def test_an_id_that_the_model_uses_again_needs_a_new_answer(tmp_path: Path) -> None:
    model, ran = Model(call("remove", path="a"), call("remove", path="b"), "Done"), list[str]()
    agent = Agent(model.model())
    requires_approval(ran, agent)
    async with conversation_with(host(agent), tmp_path) as user:
        await user.says("remove both")
        await user.answers()
        assert ran == ["a"]
        (question,) = await user.questions()
        assert (question.tool_call_id, question.input_parameters) == ("call_1.2", {"path": "b"})
        await user.answers("cancel")
    assert ran == ["a"]


async def test_a_deferred_call_takes_the_users_words_as_its_result(tmp_path: Path) -> None:
    def weather(city: str) -> str:
        raise CallDeferred(metadata={"question": f"What is the weather in {city}?"})

    model = Model(call("weather", city="Rome"), "Sunny")
    agent = Agent(model.model(), tools=[weather])
    async with conversation_with(host(agent), tmp_path) as user:
        asked = await user.says("weather?")
        assert messages_in(asked) == ["What is the weather in Rome?"]
        assert asked[-1] == StateChange(TaskState.INPUT_REQUIRED)
    async with conversation_with(host(agent), tmp_path, user):
        answered = await user.says("blue sky", same_task=True)
    assert model.results() == {"call_1": "blue sky"}
    assert calls_in(answered)[-1] == ("weather", SUCCEEDED)
    assert answered[-1] == StateChange(TaskState.COMPLETED)


async def test_a_failing_tool_is_shown_as_failed(tmp_path: Path) -> None:
    def broken(attempt: int) -> str:
        if attempt == 1:
            raise ModelRetry("Try two.")
        raise ValueError("secret of the tool")

    model = Model(call("broken", "c1", attempt=1), call("broken", "c2", attempt=2))
    async with conversation_with(host(Agent(model.model(), tools=[broken])), tmp_path) as user:
        seen = await user.says("go")
    failed = [event.tool_call for event in of_kind(seen, ToolCallUpdate) if event.tool_call.status is FAILED]
    assert [(each.tool_call_id, each.error.message if each.error else "") for each in failed] == [
        ("c1", "Try two."),
        ("c2", "The tool failed. The log of the agent has the details."),
    ]
    end = seen[-1]
    assert isinstance(end, StateChange)
    assert end.state is TaskState.FAILED
    assert "secret" not in (end.error or "")


async def test_arguments_that_do_not_fit_are_shown_as_a_failed_call(tmp_path: Path) -> None:
    model = Model(call("add", "c1", a="x", b=1), "Sorry")
    async with conversation_with(host(Agent(model.model(), tools=[add])), tmp_path) as user:
        seen = await user.says("go")
    assert calls_in(seen) == [("add", PENDING), ("add", FAILED)]
    assert seen[-1] == StateChange(TaskState.COMPLETED)


class City(BaseModel):
    name: str
    people: int


async def test_structured_output_is_a_data_artifact(tmp_path: Path) -> None:
    model = Model(call("final_result", name="Rome", people=3), call("final_result", "c2", name="Oslo", people=1))
    async with conversation_with(host(Agent(model.model(), output_type=City)), tmp_path) as user:
        seen = await user.says("a city?")
        (part,) = artifacts_in(seen)
        assert part.data == {"name": "Rome", "people": 3}
        assert calls_in(seen) == []
        assert seen[-1] == StateChange(TaskState.COMPLETED)
        (part,) = artifacts_in(await user.says("another?"))
    assert part.data == {"name": "Oslo", "people": 1}


async def test_a_text_that_a_validator_changed_replaces_the_streamed_one(tmp_path: Path) -> None:
    agent = Agent(Model("it is me").model())

    @agent.output_validator
    def louder(output: str) -> str:  # pyright: ignore[reportUnusedFunction]
        return output.upper()

    async with conversation_with(host(agent), tmp_path) as user:
        seen = await user.says("who?")
        (answer,) = [each for each in (await user.engine.get(user.task_id)).history if each.role == "agent"]
    assert answer.text == "IT IS ME "
    first, *_, last = of_kind(seen, TextContent)
    assert last.replaces == first.message_id


async def test_pictures_reach_the_model_and_files_of_tools_become_artifacts(tmp_path: Path) -> None:
    def draw() -> ToolReturn[list[str | BinaryContent]]:
        seen = BinaryContent(b"for both", media_type="image/png", identifier="both.png")
        return ToolReturn(["here", seen], metadata=[BinaryContent(b"for the user", media_type="image/svg+xml")])

    model = Model(call("draw"), "Drawn")
    async with conversation_with(host(Agent(model.model(), tools=[draw])), tmp_path) as user:
        seen = await user.says("like this", files=[PICTURE])
    prompts = [part for message in model.requests[0] for part in message.parts if isinstance(part, UserPromptPart)]
    assert [item.data for item in prompts[0].content if isinstance(item, BinaryContent)] == [base64.b64decode(PNG)]
    both, own = artifacts_in(seen)
    assert (both.media_type, both.filename, base64.b64decode(both.raw or "")) == ("image/png", "both.png", b"for both")
    assert (own.media_type, own.filename) == ("image/svg+xml", None)
    kinds = [type(event) for event in seen]
    assert kinds.index(ArtifactUpdate) < max(at for at, event in enumerate(seen) if isinstance(event, ToolCallUpdate))
    assert model.results() == {"call_1": ["here", BinaryContent(b"for both", media_type="image/png")]}
    assert "Zm9yIHRoZSB1c2Vy" not in str(of_kind(seen, AgentRecord))  # the artifact has it, once


async def test_a_later_task_continues_the_conversation_and_a_picture_is_stored_once(tmp_path: Path) -> None:
    model = Model("One", "Two", "Three")
    agent = Agent(model.model())
    large = MessagePart(raw=base64.b64encode(bytes(300_000)).decode(), media_type="image/png")
    async with conversation_with(host(agent), tmp_path) as user:
        first = await user.says("look", files=[large])
    async with conversation_with(host(agent), tmp_path, user):
        second = await user.says("and now?")
        third = await user.says("again", same_task=True)
    assert [type(message).__name__ for message in model.requests[-1]] == ["ModelRequest", "ModelResponse"] * 2 + [
        "ModelRequest"
    ]
    assert record_bytes(first) > 400_000
    assert record_bytes(second) < 20_000
    assert record_bytes(third) < 20_000


async def test_dependencies_are_made_from_the_session(tmp_path: Path) -> None:
    def where(context: RunContext[Path]) -> str:
        return str(context.deps)

    agent = Agent(Model(call("where"), "There").model(), deps_type=Path, tools=[where])
    async with conversation_with(host(agent, deps=lambda session: Path(session.workspace)), tmp_path) as user:
        seen = await user.says("where?")
    assert last_call(seen).output is not None
    assert last_call(seen).output.text == str(tmp_path)  # pyright: ignore[reportOptionalMemberAccess]


async def test_a_conversation_goes_on_without_the_messages_of_a_deleted_task(tmp_path: Path) -> None:
    model = Model("One", "Two", "Three")
    async with conversation_with(host(Agent(model.model())), tmp_path) as user:
        await user.says("first")
        first = user.task_id
        await user.says("second")
        assert await user.engine.runner.retention.delete([first])
        seen = await user.says("third")
    assert text_in(seen).strip() == "Three"
    assert "first" not in str(model.requests[-1])
    assert "second" in str(model.requests[-1])


async def test_a_tool_that_was_running_when_the_process_ended_is_not_run_again(tmp_path: Path) -> None:
    started, runs = asyncio.Event(), list[str]()

    async def slow(name: str) -> str:
        runs.append(name)
        if name == "slow":
            started.set()
            await asyncio.Event().wait()
        return name

    model = Model([call("slow", "c1", name="fast"), call("slow", "c2", name="slow")], "I go on")
    agent = Agent(model.model(), tools=[slow])
    async with conversation_with(host(agent), tmp_path) as user:
        await begins(user, started)
    async with conversation_with(host(agent), tmp_path, user):
        assert await ends(user) is TaskState.COMPLETED
    assert sorted(runs) == ["fast", "slow"]
    assert model.results()["c1"] == "fast"
    assert "interrupted" in str(model.results()["c2"])


async def test_a_response_with_calls_is_not_asked_for_again(tmp_path: Path) -> None:
    started = asyncio.Event()

    def response(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        if isinstance(messages[-1].parts[-1], ToolReturnPart):
            return ModelResponse([TextPart("done")])
        assert not started.is_set()
        return ModelResponse([call("stop")])

    async def stop() -> str:
        started.set()
        await asyncio.Event().wait()
        return ""

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | dict[int, DeltaToolCall]]:
        for number, part in enumerate(response(messages, info).parts):
            if isinstance(part, TextPart):
                yield part.content
            elif isinstance(part, ToolCallPart):
                yield {number: DeltaToolCall(name=part.tool_name, json_args="{}", tool_call_id=part.tool_call_id)}

    agent = Agent(FunctionModel(stream_function=stream), tools=[stop], instructions="Be brief.")
    async with conversation_with(host(agent), tmp_path) as user:
        await begins(user, started)
    async with conversation_with(host(agent), tmp_path, user):
        assert await ends(user) is TaskState.COMPLETED


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("openai:gpt-5", "isthmus[pydantic-ai]"),
        (Agent, "call it first"),
        (object(), "isthmus[langgraph]"),
    ],
    ids=["text", "class", "object"],
)
def test_a_wrong_object_is_refused_with_what_is_expected(wrong: object, words: str) -> None:
    with pytest.raises(TypeError) as refused:
        host(wrong)
    assert words in str(refused.value)
    assert "expected an agent of pydantic-ai" in str(refused.value)


def test_arguments_for_the_other_framework_are_refused() -> None:
    with pytest.raises(TypeError, match="for pydantic-ai there is deps="):
        host(Agent(TestModel()), input=lambda session: session.prompt)
