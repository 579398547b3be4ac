"""Parts that an author of an agent may leave out, and that the engine gets nevertheless."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from isthmus.agent.hosted import HostedAgent, ask, decision, is_allowed
from isthmus.agent.session.session import Session
from isthmus.client import CommandMessage, CommandScope, PromptMessage
from isthmus.development_tool import (
    AgentSettings,
    CommandExecutionStatus,
    ConfirmationDetails,
    ExecuteDetails,
    FileDiff,
    GenericDetails,
    McpDetails,
    SlashCommand,
    ToolCall,
    ToolCallStatus,
    ToolOutput,
)
from isthmus.errors import IsthmusError
from isthmus.events import (
    AgentEvent,
    AgentMessage,
    ArtifactPart,
    ArtifactUpdate,
    Prompt,
    StateChange,
    TaskState,
    TextContent,
    ToolCallUpdate,
)
from isthmus.internal_events import AgentRecord
from support.emitting import emitted
from support.engines import engine_on, events, once
from support.turns import all_of

pytestmark = pytest.mark.anyio


class Says:
    """An agent that sends two texts with another event between them."""

    async def run(self, session: Session) -> AsyncGenerator[AgentEvent, None]:
        yield TextContent("", "one ")
        yield TextContent("", session.prompt)
        yield ArtifactUpdate("a", (ArtifactPart(text="x"),))
        yield TextContent("", "two")


@dataclass
class Asks:
    """An agent that asks before its one call, and counts its prompts."""

    details: ConfirmationDetails = field(default_factory=lambda: GenericDetails("Do it"))
    ran: list[str] = field(default_factory=list[str])

    async def run(self, session: Session) -> AsyncGenerator[AgentEvent, None]:
        count = int((session.record or {}).get("count", 0))
        answer = decision(session, f"call-{count}")
        if answer is None:
            yield AgentRecord({"count": count + 1})
            yield ask(f"call-{count + 1}", "do", {"n": count}, self.details)
            return
        call = session.calls[f"call-{count}"].call
        assert call is not None
        if not is_allowed(answer):
            yield TextContent("", "rejected")
            return
        yield ToolCallUpdate(ToolCall(call.tool_call_id, ToolCallStatus.EXECUTING, "do", {}))
        self.ran.append(call.tool_call_id)
        yield ToolCallUpdate(ToolCall(call.tool_call_id, ToolCallStatus.SUCCEEDED, "do", {}, output=ToolOutput("ok")))


async def test_states_and_ids_are_put_in(tmp_path: Path) -> None:
    async with engine_on(tmp_path, HostedAgent(Says())) as engine:
        seen = events(await all_of(await engine.prompt(PromptMessage("hello"))))
    assert [event.state for event in seen if isinstance(event, StateChange)] == [TaskState.WORKING, TaskState.COMPLETED]
    texts = [event for event in seen if isinstance(event, TextContent)]
    assert [text.text for text in texts] == ["one hello", "two"]
    assert texts[0].message_id != texts[1].message_id
    assert all(text.message_id for text in texts)


@pytest.mark.parametrize(
    "details",
    [ExecuteDetails("ls"), FileDiff("a", "/a", "new"), McpDetails("s", "t"), GenericDetails("x")],
    ids=lambda details: type(details).__name__,
)
async def test_a_question_ends_the_segment_and_its_answer_comes_back(
    tmp_path: Path, details: ConfirmationDetails
) -> None:
    agent = Asks(details)
    async with engine_on(tmp_path, HostedAgent(agent)) as engine:
        turn = await engine.prompt(PromptMessage("go"))
        assert events(await all_of(turn))[-1] == StateChange(TaskState.INPUT_REQUIRED)
        (pending,) = (await engine.get(turn.task_id)).pending
        assert pending.confirmation_request is not None
        assert pending.confirmation_request.details == details
    async with engine_on(tmp_path, HostedAgent(agent)) as engine:  # as another process would
        answered = events(await all_of(await engine.answer(turn.task_id, once("call-1"), answered_by="test")))
    assert agent.ran == ["call-1"]
    assert answered[-1] == StateChange(TaskState.COMPLETED)


async def test_a_rejection_is_told_to_the_agent(tmp_path: Path) -> None:
    agent = Asks()
    async with engine_on(tmp_path, HostedAgent(agent)) as engine:
        turn = await engine.prompt(PromptMessage("go"))
        await all_of(turn)
        seen = events(await all_of(await engine.answer(turn.task_id, once("call-1", "cancel"), answered_by="test")))
    assert agent.ran == []
    assert any(isinstance(event, TextContent) and event.text == "rejected" for event in seen)


async def test_a_call_under_way_when_the_process_ended_is_closed_and_not_repeated() -> None:
    session = Session("c")
    executing = ToolCall("call", ToolCallStatus.EXECUTING, "do", {})
    for event in (
        Prompt("m", "go", {"workspace_path": "/w"}),
        StateChange(TaskState.WORKING),
        ToolCallUpdate(executing),
    ):
        session.apply(event, "t")
    seen = await emitted(HostedAgent(Says()), session)
    assert isinstance(seen[0], ToolCallUpdate)
    assert seen[0].tool_call.status is ToolCallStatus.FAILED
    assert seen[0].tool_call.error is not None
    assert seen[0].tool_call.error.type == "interrupted"
    assert session.calls["call"].result is not None


async def test_streamed_text_is_in_the_history_of_the_task_and_of_the_session(tmp_path: Path) -> None:
    async with engine_on(tmp_path, HostedAgent(Says())) as engine:
        turn = await engine.prompt(PromptMessage("hello"))
        recorded = [event for event in events(await all_of(turn)) if isinstance(event, AgentMessage)]
        assert [(message.text, message.was_streamed) for message in recorded] == [("one hello", True), ("two", True)]
        history = (await engine.get(turn.task_id)).history
    assert [(message.role, message.text) for message in history] == [
        ("user", "hello"),
        ("agent", "one hello"),
        ("agent", "two"),
    ]


class Commanded(Says):
    async def commands(self, workspace: Path, settings: AgentSettings | None) -> Sequence[SlashCommand]:
        return (SlashCommand("shout", f"in {workspace.name}"),)

    async def run(self, session: Session) -> AsyncGenerator[AgentEvent, None]:
        assert session.command is not None
        yield TextContent("", session.command.args.upper())


async def test_an_agent_may_have_slash_commands(tmp_path: Path) -> None:
    async with engine_on(tmp_path, HostedAgent(Commanded())) as engine:
        (command,) = await engine.commands(CommandScope())
        assert command.description == f"in {tmp_path.name}"
        execution = await engine.execute(CommandMessage(("shout",), "hey"))
        assert execution.status is CommandExecutionStatus.STARTED
        assert execution.turn is not None
        seen = events(await all_of(execution.turn))
    assert any(isinstance(event, TextContent) and event.text == "HEY" for event in seen)


async def test_an_agent_without_commands_has_none(tmp_path: Path) -> None:
    async with engine_on(tmp_path, HostedAgent(Says())) as engine:
        assert await engine.commands(CommandScope()) == ()
        execution = await engine.execute(CommandMessage(("shout",)))
    assert execution.status is CommandExecutionStatus.FAILED_TO_START
    assert execution.message is not None
    assert "/shout" in execution.message


@dataclass
class Yields:
    """An agent that yields just these values."""

    things: Sequence[Any]

    async def run(self, session: Session) -> AsyncGenerator[AgentEvent, None]:
        for thing in self.things:
            yield thing


class NoGenerator:
    """An agent without a yield."""

    def run(self, session: Session) -> Any:
        return self._run()

    async def _run(self) -> str:
        return "hello"


BAD: Sequence[tuple[Any, str]] = (
    ("hello", "run() yielded 'hello' at "),
    (TextContent("", cast("str", 5)), "TextContent.text"),
    (AgentMessage("", cast("str", None)), "AgentMessage.text"),
    (ToolCallUpdate(cast("ToolCall", {"tool_call_id": "x"})), "cannot be stored"),
    (AgentRecord({"when": object()}), "not JSON serializable"),
    (ArtifactUpdate("a", (ArtifactPart(data={"x": float("nan")}),)), "not JSON compliant"),
)


@pytest.mark.parametrize(("thing", "problem"), BAD, ids=[problem for _, problem in BAD])
async def test_what_is_no_event_fails_the_task_and_the_author_reads_why(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, thing: Any, problem: str
) -> None:
    agent = Yields([TextContent("", "before"), thing])
    async with engine_on(tmp_path, HostedAgent(agent)) as engine:
        turn = await engine.prompt(PromptMessage("go"))
        end = events(await all_of(turn))[-1]
        assert isinstance(end, StateChange)
        assert end.state is TaskState.FAILED
        number = (end.error or "").removesuffix(".").rpartition(" ")[2]
        assert end.error == f"The agent failed. Its log has the details, under error {number}."
        (record,) = (each for each in caplog.records if number in each.getMessage())
        assert problem in record.getMessage()
        assert f"{__file__}, line " in record.getMessage()
        assert record.exc_info is None
        assert [message.text for message in (await engine.get(turn.task_id)).history] == ["go", "before"]
        agent.things = [TextContent("", "fine")]
        again = events(await all_of(await engine.prompt(PromptMessage("go"))))
    assert again[-1] == StateChange(TaskState.COMPLETED)


class Raises:
    """An agent that sends a text, then fails."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    async def run(self, session: Session) -> AsyncGenerator[AgentEvent, None]:
        yield TextContent("", "before")
        raise self._error


async def test_an_exception_is_in_the_log_and_the_client_reads_its_number(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    agent = Raises(RuntimeError("postgres://user:secret@db"))
    async with engine_on(tmp_path, HostedAgent(agent)) as engine:
        end = events(await all_of(await engine.prompt(PromptMessage("go"))))[-1]
    assert isinstance(end, StateChange)
    text = end.error or ""
    assert "secret" not in text
    assert "RuntimeError" not in text
    number = text.removesuffix(".").rpartition(" ")[2]
    assert len(number) == 8
    assert number in caplog.text
    assert "postgres://user:secret@db" in caplog.text


async def test_an_error_meant_for_the_client_is_sent_as_it_is(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    agent = Raises(IsthmusError("The repository has no tests."))
    async with engine_on(tmp_path, HostedAgent(agent)) as engine:
        end = events(await all_of(await engine.prompt(PromptMessage("go"))))[-1]
    assert end == StateChange(TaskState.FAILED, "The repository has no tests.", "internal_error")
    (record,) = (each for each in caplog.records if each.levelname == "ERROR")
    assert record.getMessage().endswith(": The repository has no tests.")
    assert record.exc_info is None


async def test_an_agent_that_is_no_generator_is_told_what_is_expected(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with engine_on(tmp_path, HostedAgent(NoGenerator())) as engine:
        end = events(await all_of(await engine.prompt(PromptMessage("go"))))[-1]
    assert isinstance(end, StateChange)
    assert "Its log has the details" in (end.error or "")
    assert "expected an async generator" in caplog.text


async def test_an_agent_that_says_nothing_completes(tmp_path: Path) -> None:
    async with engine_on(tmp_path, HostedAgent(Yields([]))) as engine:
        seen = events(await all_of(await engine.prompt(PromptMessage("go"))))
    assert seen == [StateChange(TaskState.WORKING), StateChange(TaskState.COMPLETED)]


@pytest.mark.parametrize("end", [[], [StateChange(TaskState.COMPLETED)], [StateChange(TaskState.FAILED, "no")]])
async def test_no_call_is_left_open_by_the_end_of_the_work(tmp_path: Path, end: Sequence[AgentEvent]) -> None:
    executing = ToolCallUpdate(ToolCall("one", ToolCallStatus.EXECUTING, "do", {}))
    asked = [ask("two", "do", {}, GenericDetails("Do it"))] if end else []
    async with engine_on(tmp_path, HostedAgent(Yields([executing, *asked, *end]))) as engine:
        turn = await engine.prompt(PromptMessage("go"))
        seen = events(await all_of(turn))
        assert (await engine.get(turn.task_id)).pending == ()
    last = {event.tool_call.tool_call_id: event.tool_call.status for event in seen if isinstance(event, ToolCallUpdate)}
    assert set(last.values()) == {ToolCallStatus.FAILED}


async def test_nothing_comes_after_a_question_in_plain_text(tmp_path: Path) -> None:
    agent = Yields([TextContent("", "Which?"), StateChange(TaskState.INPUT_REQUIRED), TextContent("", "lost")])
    async with engine_on(tmp_path, HostedAgent(agent)) as engine:
        seen = events(await all_of(await engine.prompt(PromptMessage("go"))))
    assert seen[-1] == StateChange(TaskState.INPUT_REQUIRED)
    assert not any(isinstance(event, TextContent) and event.text == "lost" for event in seen)


async def test_half_characters_are_replaced_and_long_texts_are_whole(tmp_path: Path) -> None:
    long = "x" * 3_000_000
    async with engine_on(
        tmp_path, HostedAgent(Yields([AgentMessage("", "a\ud800b"), AgentMessage("", long)]))
    ) as engine:
        turn = await engine.prompt(PromptMessage("go"))
        await all_of(turn)
        texts = [message.text for message in (await engine.get(turn.task_id)).history]
    assert texts == ["go", "a\ufffdb", long]
