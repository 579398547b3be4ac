"""A call that asks in the middle of its work, in a real engine over a real journal: each way that can go on."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from isthmus.agent.approval import ApprovalMode, Policy
from isthmus.agent.options import AgentOptions
from isthmus.agent.resources import AgentResources
from isthmus.agent.turn import CodingAgent
from isthmus.client import PromptMessage
from isthmus.development_tool import (
    ConfirmationDetails,
    ConfirmationOption,
    GenericDetails,
    ToolCall,
    ToolCallStatus,
    ToolOutput,
)
from isthmus.engine import Engine
from isthmus.events import AgentEvent, StateChange, TaskState, ToolCallUpdate
from isthmus.models.base import ChatModel
from isthmus.models.choose import choose, open_model
from isthmus.tools.asking import AskModel, AskPerson, Chosen, ModelPrompt, PersonQuestion
from isthmus.tools.asking import PromptMessage as Prompt
from isthmus.tools.base import (
    Approved,
    Arguments,
    LiveContent,
    ToolContext,
    ToolItem,
    ToolKind,
    ToolScope,
    ToolSet,
    ToolSucceeded,
)
from support.engines import all_of, engine_on, events, once
from support.gemini_wire import GeminiWire
from support.scripted_wire import Call, Reply, Say
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

OPTIONS = (ConfirmationOption("accept", "Yes"), ConfirmationOption("always", "Always"), ConfirmationOption("no", "No"))


@dataclass
class AskingTool:
    """Asks ``questions`` times, one after the other; ``log`` says what happened to each of its calls."""

    name: str = "inquire"
    kind: ToolKind = ToolKind.OTHER
    questions: int = 1
    asks_model: bool = False
    log: list[str] = field(default_factory=list[str])
    asked: list[AskPerson] = field(default_factory=list[AskPerson])
    description: str = "Asks."
    parameters: Mapping[str, Any] = field(default_factory=lambda: {"type": "object"})

    def describe(self, arguments: Arguments) -> str:
        return "Ask"

    async def propose(self, arguments: Arguments, context: ToolContext) -> ConfirmationDetails | None:
        return None

    async def run(self, arguments: Arguments, context: ToolContext, approved: Approved) -> AsyncIterator[ToolItem]:
        self.log.append("begun")
        try:
            yield LiveContent("begun")
            for number in range(self.questions):
                ask = self._ask(number)
                self.asked.append(ask)
                yield ask
                reply = await ask.reply()
                self.log.append(str(getattr(reply, "option_id", None) or getattr(reply, "text", None) or reply))
        except GeneratorExit:
            self.log.append("left")
            raise
        yield ToolSucceeded(ToolOutput(text="done"), "done asking")

    def _ask(self, number: int) -> AskPerson:
        about = {"server": "s", "number": number}
        question = PersonQuestion(
            "sampling" if self.asks_model else "elicitation", "s", "s asks", GenericDetails(f"number {number}"),
            OPTIONS, frozenset({"accept", "always"}), about, "always",
        )  # fmt: skip
        if self.asks_model:
            return AskModel(question, ModelPrompt("be brief", (Prompt("user", "what is it?"),), 9))
        return AskPerson(question)


@dataclass
class Released:
    """Tools that note how often they were released."""

    tool_set: ToolSet
    count: int = 0

    async def tools(self, scope: ToolScope) -> ToolSet:
        return self.tool_set

    async def release(self, scope: ToolScope) -> None:
        self.count += 1


@dataclass
class Desk:
    engine: Engine
    agent: CodingAgent
    tools: Released
    wire: GeminiWire
    task: str = ""
    seen: list[AgentEvent] = field(default_factory=list[AgentEvent])

    async def prompt(self, text: str = "go") -> StateChange:
        turn = await self.engine.prompt(PromptMessage(text, task_id=self.task or None))
        self.task = turn.task_id
        return self.take(events(await all_of(turn)))

    async def answer(self, option: str, call: ToolCall | None = None) -> StateChange:
        found = call or self.question
        turn = await self.engine.answer(self.task, once(found.tool_call_id, option), answered_by="test")
        return self.take(events(await all_of(turn)))

    async def ended(self, state: TaskState = TaskState.COMPLETED) -> None:
        """Wait until the task came to a state by itself."""

        async def has_ended() -> bool:
            return (await self.engine.get(self.task)).state is state

        await eventually_async(has_ended, 20)
        self.seen.clear()
        self.take(events(await all_of(await self.engine.follow(self.task, 0))))

    def take(self, found: list[AgentEvent]) -> StateChange:
        self.seen += found
        last = found[-1]
        assert isinstance(last, StateChange)
        return last

    @property
    def calls(self) -> dict[str, ToolCall]:
        return {e.tool_call.tool_call_id: e.tool_call for e in self.seen if isinstance(e, ToolCallUpdate)}

    def states(self, name: str) -> list[str]:
        found = [event for event in self.seen if isinstance(event, ToolCallUpdate) and not event.is_ephemeral]
        return [event.tool_call.status.name for event in found if event.tool_call.tool_name == name]

    @property
    def question(self) -> ToolCall:
        (found,) = [call for call in self.calls.values() if call.confirmation_request is not None]
        return found

    def told(self) -> str:
        return str(self.wire.model_requests[-1].json["contents"])


@asynccontextmanager
async def desk(
    path: Path,
    *tools: Any,
    seconds: float = 600,
    policy: Policy | None = None,
    replies: list[list[Call] | str] | None = None,
) -> AsyncGenerator[Desk]:
    """An agent in an engine whose model calls the tools and then ends its turn."""
    called = [*(Call(tool.name, {}) for tool in tools)]
    script = [
        Reply.of(*(item if isinstance(item, list) else [Say(item)])) for item in replies or [called, "over", "over"]
    ]
    with GeminiWire(script) as wire:
        environment = {"GEMINI_API_KEY": "test-key", "GOOGLE_GEMINI_BASE_URL": wire.base_url}
        model = await asyncio.to_thread(open_model, choose("gemini:test", None, environment), environment)

        async def opened(_: str | None) -> ChatModel:
            return model

        released = Released(ToolSet.of(*tools))
        mode = policy or Policy(grants=frozenset())
        agent = CodingAgent(AgentResources(opened, released), AgentOptions(path / "outputs", {}, mode))
        agent.parked.seconds = seconds
        try:
            async with engine_on(path, agent, lease_seconds=1) as engine:
                yield Desk(engine, agent, released, wire)
        finally:
            await model.aclose()


READ = ToolKind.READ
"""Of this kind a tool needs no permission, so that its own question is the only one."""


async def test_the_task_waits_without_running_and_goes_on_with_the_same_call(tmp_path: Path) -> None:
    tool = AskingTool(kind=READ, questions=2)
    async with desk(tmp_path, tool) as person:
        assert await person.prompt() == StateChange(TaskState.INPUT_REQUIRED)
        assert person.states("inquire") == ["PENDING", "EXECUTING"]
        assert person.tools.count == 0
        assert person.engine._runner._running == {}  # pyright: ignore[reportPrivateUsage]
        assert await person.answer("accept") == StateChange(TaskState.INPUT_REQUIRED)
        assert [call.tool_call_id.partition("?")[2] for call in person.calls.values()] == ["", "1", "2"]
        assert await person.answer("no") == StateChange(TaskState.COMPLETED)
        assert tool.log == ["begun", "accept", "no"]
        assert person.states("elicitation") == [
            "PENDING", "EXECUTING", "SUCCEEDED", "PENDING", "CANCELLED",
        ]  # fmt: skip
        assert person.states("inquire") == ["PENDING", "EXECUTING", "SUCCEEDED"]
        assert person.tools.count == 1
        assert "done asking" in person.told()
        assert "elicitation" not in person.told()


async def test_nobody_answers_in_time_and_the_turn_goes_on_by_itself(tmp_path: Path) -> None:
    tool = AskingTool(kind=READ)
    async with desk(tmp_path, tool, seconds=0.3) as person:
        await person.prompt()
        await person.ended()
        assert person.states("elicitation") == ["PENDING", "CANCELLED"]
        assert "Nobody answered within 0.3 s" in tool.log[1]
        assert person.states("inquire")[-1] == "SUCCEEDED"
        assert person.tools.count == 1


async def test_what_asks_takes_its_question_back(tmp_path: Path) -> None:
    tool = AskingTool(kind=READ)
    async with desk(tmp_path, tool) as person:
        await person.prompt()
        tool.asked[0].withdraw("I know it now")
        await person.ended()
        (question,) = [call for call in person.calls.values() if call.tool_name == "elicitation"]
        assert question.error is not None
        assert question.error.message == "I know it now"
        assert tool.log[-1].endswith("reason='I know it now', is_refusal=False)")


async def test_cancelling_the_task_ends_the_call_and_what_it_used(tmp_path: Path) -> None:
    tool = AskingTool(kind=READ)
    async with desk(tmp_path, tool) as person:
        await person.prompt()
        assert (await person.engine.cancel(person.task)).state is TaskState.CANCELED
        await eventually_async(lambda: tool.log == ["begun", "left"] and person.tools.count == 1, 20)
        await person.ended(TaskState.CANCELED)
        assert {call.status for call in person.calls.values()} == {ToolCallStatus.CANCELLED}
        assert person.agent.parked.task_ids == ()


async def test_a_message_in_place_of_an_answer_stops_the_call_and_the_model_hears_so(tmp_path: Path) -> None:
    tool = AskingTool(kind=READ)
    async with desk(tmp_path, tool) as person:
        await person.prompt()
        assert await person.prompt("something else") == StateChange(TaskState.COMPLETED)
        assert tool.log == ["begun", "left"]
        stopped = next(call for call in person.calls.values() if call.tool_name == "inquire")
        assert stopped.error is not None
        assert stopped.error.message == "Stopped: a new message came instead of an answer"
        assert "whether it had an effect is not known" in person.told()
        assert person.tools.count == 1


@pytest.mark.parametrize("kind", [ToolKind.OTHER, READ])
async def test_after_the_process_has_ended_the_call_is_interrupted_or_read_again(
    tmp_path: Path, kind: ToolKind
) -> None:
    tool = AskingTool(kind=kind)
    policy = Policy(ApprovalMode.YOLO)
    async with desk(tmp_path, tool, policy=policy) as person:
        await person.prompt()
        task, question = person.task, person.question
    assert tool.log == ["begun", "left"]
    async with desk(tmp_path, tool, policy=policy, replies=["over"]) as person:
        person.task = task
        last = await person.answer("accept", question)
        assert person.calls[question.tool_call_id].status is ToolCallStatus.CANCELLED
        call = next(call for call in person.calls.values() if call.tool_name == "inquire")
        if kind is READ:
            assert last == StateChange(TaskState.INPUT_REQUIRED)
            assert tool.log == ["begun", "left", "begun"]
            assert person.question.tool_call_id == f"{call.tool_call_id}?2"
        else:
            assert last == StateChange(TaskState.COMPLETED)
            assert call.error is not None
            assert call.error.type == "interrupted"
            assert tool.log == ["begun", "left"]


async def test_a_task_that_another_process_takes_ends_the_call_here(tmp_path: Path) -> None:
    tool = AskingTool(kind=READ)
    async with desk(tmp_path, tool) as here:
        await here.prompt()
        async with desk(tmp_path, AskingTool(kind=READ), replies=["over"]) as there:
            there.task = here.task
            await there.answer("accept", here.question)
            await eventually_async(lambda: tool.log == ["begun", "left"], 20)
            assert here.agent.parked.task_ids == ()
            assert here.tools.count == 1


async def test_other_calls_are_asked_and_answered_while_one_waits_in_its_middle(tmp_path: Path) -> None:
    first, second = AskingTool(kind=READ), AskingTool("consult", questions=0)
    async with desk(tmp_path, first, second) as person:
        assert await person.prompt() == StateChange(TaskState.INPUT_REQUIRED)
        waiting = {call.tool_name: call for call in person.calls.values() if call.confirmation_request is not None}
        assert set(waiting) == {"elicitation", "consult"}
        assert await person.answer("proceed_once", waiting["consult"]) == StateChange(TaskState.INPUT_REQUIRED)
        assert second.log == ["begun"]
        assert await person.answer("accept", waiting["elicitation"]) == StateChange(TaskState.COMPLETED)
        assert first.log == ["begun", "accept"]


@pytest.mark.parametrize("mode", [ApprovalMode.DEFAULT, ApprovalMode.YOLO])
async def test_where_nobody_can_be_asked_a_persons_answer_is_never_made_up(tmp_path: Path, mode: ApprovalMode) -> None:
    tool = AskingTool(kind=READ)
    async with desk(tmp_path, tool, policy=Policy(mode, may_ask=False)) as person:
        assert await person.prompt() == StateChange(TaskState.COMPLETED)
        assert "nobody can be asked here" in tool.log[1]
        assert "is_refusal=True" in tool.log[1]
        assert person.states("elicitation") == ["PENDING", "FAILED"]


async def test_the_model_is_asked_with_consent_and_its_tokens_count(tmp_path: Path) -> None:
    tool = AskingTool(kind=READ, asks_model=True, questions=2)
    replies: list[list[Call] | str] = [[Call("inquire", {})], "a bird", "a fish", "over"]
    async with desk(tmp_path, tool, replies=replies) as person:
        await person.prompt()
        assert await person.answer("always") == StateChange(TaskState.COMPLETED)
        assert tool.log == ["begun", "a bird", "a fish"]
        requests = [request.json for request in person.wire.model_requests]
        assert "be brief" in str(requests[1]["systemInstruction"])
        assert "what is it?" in str(requests[1]["contents"])
        assert "go" not in str(requests[1]["contents"])
        assert "tools" not in requests[1]
        assert requests[1]["generationConfig"]["maxOutputTokens"] == 9
        outputs = [call.output.text for call in person.calls.values() if call.tool_name == "sampling" and call.output]
        assert outputs == ["a bird", "a fish"]


@pytest.mark.parametrize(("mode", "allowed"), [(ApprovalMode.DEFAULT, False), (ApprovalMode.YOLO, True)])
async def test_without_a_person_the_model_is_asked_in_yolo_mode_alone(
    tmp_path: Path, mode: ApprovalMode, allowed: bool
) -> None:
    tool = AskingTool(kind=READ, asks_model=True)
    replies: list[list[Call] | str] = [[Call("inquire", {})], *(["a bird"] if allowed else []), "over"]
    async with desk(tmp_path, tool, policy=Policy(mode, may_ask=False), replies=replies) as person:
        assert await person.prompt() == StateChange(TaskState.COMPLETED)
        assert (tool.log[1] == "a bird") is allowed
        assert ("Allow it with --approval-mode yolo" in tool.log[1]) is not allowed


async def test_the_first_answer_to_a_question_counts() -> None:
    ask = AskingTool()._ask(0)  # pyright: ignore[reportPrivateUsage]
    ask.give(Chosen("accept"))
    ask.give(Chosen("no"))
    ask.withdraw("late")
    assert await ask.reply() == Chosen("accept")
    assert ask.withdrawn == ""
