import asyncio
from contextlib import nullcontext
from pathlib import Path

import pytest

from isthmus.agent.session.turn import AgentTurn
from isthmus.client import InvalidRequest, PromptMessage, Turn
from isthmus.development_tool import (
    ConfirmationOption,
    ConfirmationRequest,
    GenericDetails,
    ModifiedFileDetails,
    ToolCall,
    ToolCallConfirmation,
    ToolCallStatus,
)
from isthmus.engine.requests.asking import check_answers
from isthmus.events import AgentEvent, ConfirmationAccepted, Prompt, StateChange, TaskState, ToolCallUpdate
from isthmus.journal.port.task_rows import TaskRow
from support.agents import AskingAgent
from support.engines import engine_on, events, once
from support.turns import all_of
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

ROW = TaskRow("t1", "c1", "", "", TaskState.INPUT_REQUIRED, 1, None, 1, 0.0, 0.0, 0.0)
NAMES = ("one", "two", "three", "four")


async def test_answers_to_several_questions_at_the_same_moment_are_all_taken(tmp_path: Path) -> None:
    agent = AskingAgent(NAMES)
    async with engine_on(tmp_path, agent) as engine:
        for _ in range(5):
            turn = await engine.prompt(PromptMessage("do all"))
            await all_of(turn)
            answers = [engine.answer(turn.task_id, once(name), answered_by=name) for name in NAMES]
            for answered in await asyncio.gather(*answers):
                await all_of(answered)
            assert (await engine.get(turn.task_id)).state is TaskState.COMPLETED
            assert sorted(agent.ran) == sorted(NAMES)
            agent.ran.clear()


async def test_while_a_call_runs_another_is_answered_once_only(tmp_path: Path) -> None:
    agent = AskingAgent(NAMES)
    async with engine_on(tmp_path, agent) as engine:
        turn = await engine.prompt(PromptMessage("do all"))
        await all_of(turn)
        answers = [engine.answer(turn.task_id, once(name), answered_by="test") for name in (*NAMES, *NAMES)]
        results = await asyncio.gather(*answers, return_exceptions=True)
        assert len([item for item in results if isinstance(item, Turn)]) == len(NAMES)
        assert len([item for item in results if isinstance(item, InvalidRequest)]) == len(NAMES)
        kept = events(await all_of(await engine.follow(turn.task_id, 0)))
        assert len([event for event in kept if isinstance(event, ConfirmationAccepted)]) == len(NAMES)
        assert sorted(agent.ran) == sorted(NAMES)


async def test_while_a_call_runs_the_task_tells_what_else_waits(tmp_path: Path) -> None:
    running, release = asyncio.Event(), asyncio.Event()

    class Slow(AskingAgent):
        async def advance(self, turn: AgentTurn) -> StateChange:
            async def keep(event: AgentEvent) -> None:
                await turn.keep(event)
                if isinstance(event, ToolCallUpdate) and event.tool_call.status is ToolCallStatus.EXECUTING:
                    running.set()
                    await release.wait()

            return await super().advance(AgentTurn(turn.session, keep))

    async with engine_on(tmp_path, Slow(("one", "two"))) as engine:
        turn = await engine.prompt(PromptMessage("do both"))
        await all_of(turn)
        answered = await engine.answer(turn.task_id, once("one"), answered_by="test")
        await running.wait()
        snapshot = await engine.get(turn.task_id)
        assert (snapshot.state, [call.tool_call_id for call in snapshot.pending]) == (TaskState.WORKING, ["two"])
        release.set()
        await all_of(answered)


async def test_two_answers_to_one_question_in_one_message_are_refused(tmp_path: Path) -> None:
    agent = AskingAgent()
    async with engine_on(tmp_path, agent) as engine:
        turn = await engine.prompt(PromptMessage("do it"))
        await all_of(turn)
        with pytest.raises(InvalidRequest, match="several for one"):
            await engine.answer(turn.task_id, [*once("one", "cancel"), *once("one")], answered_by="test")
        assert (await engine.get(turn.task_id)).state is TaskState.INPUT_REQUIRED
        assert agent.ran == []


async def test_a_question_stays_open_while_a_newer_task_of_its_session_works(tmp_path: Path) -> None:
    agent = AskingAgent()
    async with engine_on(tmp_path, agent) as engine:
        older = await engine.prompt(PromptMessage("do it"))
        await all_of(older)
        newer = await engine.prompt(PromptMessage("do it too", context_id=older.context_id))
        calls = [event.tool_call for event in events(await all_of(newer)) if isinstance(event, ToolCallUpdate)]
        assert [call.status for call in calls] == [ToolCallStatus.PENDING]
        for number, turn in enumerate((older, newer), 1):
            seen = events(await all_of(await engine.answer(turn.task_id, once("one"), answered_by="test")))
            assert seen[-1] == StateChange(TaskState.COMPLETED)
            assert agent.ran == ["one"] * number


async def test_a_call_that_was_allowed_before_a_message_came_runs_first(tmp_path: Path) -> None:
    running, release = asyncio.Event(), asyncio.Event()

    class Slow(AskingAgent):
        async def advance(self, turn: AgentTurn) -> StateChange:
            async def keep(event: AgentEvent) -> None:
                await turn.keep(event)
                if isinstance(event, ToolCallUpdate) and event.tool_call.status is ToolCallStatus.EXECUTING:
                    running.set()
                    await release.wait()

            return await super().advance(AgentTurn(turn.session, keep))

    agent = Slow(("one", "two"))
    async with engine_on(tmp_path, agent) as engine:
        turn = await engine.prompt(PromptMessage("do both"))
        await all_of(turn)
        await engine.answer(turn.task_id, once("one"), answered_by="test")
        await running.wait()
        await engine.answer(turn.task_id, once("two"), answered_by="test")
        said = await engine.prompt(PromptMessage("and then this", task_id=turn.task_id))
        release.set()
        await all_of(said)
        await eventually_async(lambda: engine.running == 0)
        assert agent.ran == ["one", "two"]
        kept = events(await engine.journal.events(turn.task_id, 0, 100))
        assert [event.text for event in kept if isinstance(event, Prompt)] == ["do both", "and then this"]
        assert list(await engine.journal.inbox(turn.task_id)) == []


@pytest.mark.parametrize(
    ("words", "answer", "problem"),
    [
        ("words", ToolCallConfirmation("1", "words", ModifiedFileDetails("mine")), ""),
        ("words", ToolCallConfirmation("1", "words"), "expected them in file_details.new_content"),
        ("words", ToolCallConfirmation("1", "choice_1", ModifiedFileDetails("mine")), "is not a file edit"),
        (None, ToolCallConfirmation("1", "words", ModifiedFileDetails("mine")), "is not an option"),
    ],
)
def test_words_answer_a_question_that_takes_them(words: str | None, answer: ToolCallConfirmation, problem: str) -> None:
    options = (ConfirmationOption("choice_1", "One"),)
    request = ConfirmationRequest(options, generic_details=GenericDetails("?"), words_option=words)
    call = ToolCall("1", ToolCallStatus.PENDING, "ask_user", {}, confirmation_request=request)
    with pytest.raises(InvalidRequest, match=problem) if problem else nullcontext():
        check_answers(ROW, [call], [answer])
