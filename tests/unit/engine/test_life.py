import asyncio
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import pytest

from isthmus.agent.session.turn import AgentTurn
from isthmus.client import InvalidRequest, PromptMessage, TaskNotFound
from isthmus.development_tool import ToolCall, ToolCallStatus
from isthmus.engine import Engine, EngineOptions
from isthmus.engine.port.placement import Placement
from isthmus.engine.port.workspaces import WorkspaceRule
from isthmus.events import AgentEvent, StateChange, TaskState, TextContent, ToolCallUpdate
from isthmus.internal_events import AgentRecord
from isthmus.journal.port.base import Journal
from support.agents import AskingAgent, EchoAgent, WaitingAgent
from support.engines import engine_on, events, once
from support.journals import journal_at
from support.turns import all_of
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


async def test_a_bug_in_the_agent_fails_the_task_and_not_the_engine(tmp_path: Path) -> None:
    class Broken:
        async def advance(self, turn: AgentTurn) -> StateChange:
            await turn.emit(StateChange(TaskState.WORKING))
            raise ZeroDivisionError("oops")

    async with engine_on(tmp_path, Broken()) as engine:
        last = events(await all_of(await engine.prompt(PromptMessage("hi"))))[-1]
        assert isinstance(last, StateChange)
        assert (last.state, last.reason) == (TaskState.FAILED, "internal_error")
        assert "ZeroDivisionError" in (last.error or "")
        assert (await engine.tasks())[0].state is TaskState.FAILED


async def test_a_bug_in_a_tool_leaves_no_call_running(tmp_path: Path) -> None:
    class Broken(AskingAgent):
        async def advance(self, turn: AgentTurn) -> StateChange:
            async def keep(event: AgentEvent) -> None:
                await turn.keep(event)
                if isinstance(event, ToolCallUpdate) and event.tool_call.status is ToolCallStatus.EXECUTING:
                    raise ZeroDivisionError("oops")

            return await super().advance(AgentTurn(turn.session, keep))

    async with engine_on(tmp_path, Broken(("one", "two"))) as engine:
        turn = await engine.prompt(PromptMessage("do both"))
        await all_of(turn)
        seen = events(await all_of(await engine.answer(turn.task_id, once("one"), answered_by="test")))
        last = {event.tool_call.tool_call_id: event.tool_call for event in seen if isinstance(event, ToolCallUpdate)}
        assert {call.status for call in last.values()} == {ToolCallStatus.FAILED}
        assert set(last) == {"one", "two"}
        assert all(call.confirmation_request is None for call in last.values())


async def test_a_working_task_whose_engine_stopped_goes_on_in_the_next(tmp_path: Path) -> None:
    first_agent = WaitingAgent()
    async with engine_on(tmp_path, first_agent) as engine:
        turn = await engine.prompt(PromptMessage("work"))
        await first_agent.started.wait()
    second_agent = WaitingAgent()
    second_agent.release.set()
    async with engine_on(tmp_path, second_agent) as engine:
        assert events(await all_of(await engine.follow(turn.task_id, 0)))[-1] == StateChange(TaskState.COMPLETED)


async def test_what_an_agent_records_outlives_the_process_before_the_agent_goes_on(tmp_path: Path) -> None:
    known: list[Sequence[AgentEvent]] = []

    class Beginning:
        async def advance(self, turn: AgentTurn) -> StateChange:
            await turn.emit(StateChange(TaskState.WORKING), AgentRecord({"sent": "1"}))
            # Another author's agent receives the prompt now; from here on the process may be killed at any moment.
            journal = await journal_at(tmp_path / "journal.sqlite")
            known.append([delivery.event for delivery in await journal.events(turn.session.task_id, 0, 100)])
            await journal.aclose()
            return StateChange(TaskState.COMPLETED)

    async with engine_on(tmp_path, Beginning()) as engine:
        await all_of(await engine.prompt(PromptMessage("work")))
    assert known[0][1:] == [StateChange(TaskState.WORKING), AgentRecord({"sent": "1"})]


async def test_an_engine_that_takes_nothing_over_goes_on_with_a_task_when_it_is_followed(tmp_path: Path) -> None:
    first_agent = WaitingAgent()
    async with engine_on(tmp_path, first_agent) as engine:
        turn = await engine.prompt(PromptMessage("work"))
        await first_agent.started.wait()
    second_agent = WaitingAgent()
    second_agent.release.set()
    async with engine_on(tmp_path, second_agent, takes_over=False) as engine:
        assert (await engine.get(turn.task_id)).state is TaskState.WORKING
        assert not second_agent.started.is_set()
        assert events(await all_of(await engine.follow(turn.task_id)))[-1] == StateChange(TaskState.COMPLETED)


async def test_a_task_of_a_workspace_that_is_not_allowed_is_not_seen_nor_touched(tmp_path: Path) -> None:
    mine, others = tmp_path / "mine", tmp_path / "others"
    mine.mkdir()
    others.mkdir()
    agent = AskingAgent()
    async with engine_on(tmp_path, agent, workspace=others) as engine:
        turn = await engine.prompt(PromptMessage("do it"))
        await all_of(turn)
    async with engine_on(tmp_path, agent, workspace=mine) as engine:
        assert await engine.tasks() == []
        for attempt in (
            engine.get(turn.task_id),
            engine.follow(turn.task_id),
            engine.cancel(turn.task_id),
            engine.answer(turn.task_id, once("one"), answered_by="test"),
            engine.prompt(PromptMessage("go on", task_id=turn.task_id)),
        ):
            with pytest.raises(TaskNotFound):
                await attempt
    assert agent.ran == []


@pytest.mark.slow
async def test_a_task_that_another_process_runs_is_cancelled_there(tmp_path: Path) -> None:
    agent = WaitingAgent()
    # Long enough that it does not expire on a busy machine: the other engine would continue the task.
    options = EngineOptions(WorkspaceRule(default=tmp_path), placement=Placement(lease_seconds=4))
    owner = Engine(agent, await journal_at(tmp_path / "journal.sqlite"), options)
    await owner.start()
    async with engine_on(tmp_path, EchoAgent()) as other:
        turn = await owner.prompt(PromptMessage("work"))
        await agent.started.wait()
        assert (await other.cancel(turn.task_id)).state is TaskState.CANCELED
        assert agent.stopped.is_set()
    await owner.aclose()


async def test_a_question_outlives_the_engine_and_is_answered_in_the_next(tmp_path: Path) -> None:
    async with engine_on(tmp_path, AskingAgent()) as engine:
        turn = await engine.prompt(PromptMessage("do it"))
        await all_of(turn)
    agent = AskingAgent()
    async with engine_on(tmp_path, agent) as engine:
        snapshot = await engine.get(turn.task_id)
        assert [call.tool_call_id for call in snapshot.pending] == ["one"]
        await all_of(await engine.answer(turn.task_id, once("one"), answered_by="test"))
        assert agent.ran == ["one"]


async def test_an_empty_prompt_is_refused(tmp_path: Path) -> None:
    async with engine_on(tmp_path, EchoAgent()) as engine:
        with pytest.raises(InvalidRequest, match="no text"):
            await engine.prompt(PromptMessage("  \n"))


async def test_text_that_is_no_unicode_is_mended_and_the_task_goes_on(tmp_path: Path) -> None:
    async with engine_on(tmp_path, EchoAgent()) as engine:
        turn = await engine.prompt(PromptMessage("one \ud800 two", settings={"workspace_path": str(tmp_path)}))
        text = "".join(item.text for item in events(await all_of(turn)) if isinstance(item, TextContent))
        assert text == "one \ufffd two "
        assert [item.text for item in (await engine.get(turn.task_id)).history] == ["one \ufffd two"] * 2


async def test_a_model_that_says_no_unicode_is_kept_and_followed(tmp_path: Path) -> None:
    class Strange:
        async def advance(self, turn: AgentTurn) -> StateChange:
            for number in (0xD800, 0xDFFF):
                await turn.emit(TextContent("m", chr(number)))
            call = ToolCall("c", ToolCallStatus.FAILED, "shell", {"key\udfff": ["\udc00", {"n": 1}]})
            await turn.emit(ToolCallUpdate(call))
            return StateChange(TaskState.COMPLETED)

    async with engine_on(tmp_path, Strange()) as engine:
        seen = events(await all_of(await engine.prompt(PromptMessage("go"))))
        assert seen[-1] == StateChange(TaskState.COMPLETED)
        (update,) = [event for event in seen if isinstance(event, ToolCallUpdate)]
        assert update.tool_call.input_parameters == {"key\ufffd": ["\ufffd", {"n": 1}]}


def setting_event(journal: Journal, monkeypatch: pytest.MonkeyPatch, *methods: str) -> asyncio.Event:
    """Return an event that is set when a task is created or taken, before that is written."""
    taking = asyncio.Event()

    def setting(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*values: Any) -> Any:
            taking.set()
            return method(*values)

        return call

    for name in methods:
        monkeypatch.setattr(journal, name, setting(getattr(journal, name)))
    return taking


async def test_what_was_asked_for_runs_also_when_the_asker_is_gone_before_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = AskingAgent()
    journal = await journal_at(tmp_path / "journal.sqlite")
    taking = setting_event(journal, monkeypatch, "create", "claim")
    engine = Engine(agent, journal, EngineOptions(WorkspaceRule(default=tmp_path)))
    await engine.start()
    await leave_while_taking(taking, engine.prompt(PromptMessage("do it")))
    (task,) = await eventually_async(engine.tasks)
    await eventually_async(lambda: is_(engine, task.task_id, TaskState.INPUT_REQUIRED))
    await leave_while_taking(taking, engine.answer(task.task_id, once("one"), answered_by="test"))
    await eventually_async(lambda: is_(engine, task.task_id, TaskState.COMPLETED))
    assert agent.ran == ["one"]
    await engine.aclose()


async def leave_while_taking(taking: asyncio.Event, asking: Coroutine[Any, Any, object]) -> None:
    taking.clear()
    asked = asyncio.create_task(asking)
    await taking.wait()
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked


async def is_(engine: Engine, task_id: str, state: TaskState) -> bool:
    return (await engine.get(task_id)).state is state
