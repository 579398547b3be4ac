"""Calls that ask during their work, when several events happen at once."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from isthmus.client import PromptMessage, TaskError
from isthmus.development_tool import ToolCall, ToolCallConfirmation, ToolCallStatus
from isthmus.events import StateChange, TaskState
from isthmus.journal.port.base import JournalError
from isthmus.tools.port.base import Arguments, CallContext, ToolKind, ToolResult
from support.engines import events
from support.scripted_wire import Call
from support.suspended_calls_harness import AskingTool, SuspendedCallsHarness, harness
from support.turns import all_of
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

READ = ToolKind.READ


def approved(calls: dict[str, ToolCall], option: str = "proceed_once") -> list[ToolCallConfirmation]:
    """Return the same answer to all questions."""
    waiting = [call for call in calls.values() if call.confirmation_request is not None]
    return [ToolCallConfirmation(call.tool_call_id, option) for call in waiting]


async def answer_all(user: SuspendedCallsHarness, option: str = "proceed_once") -> StateChange:
    turn = await user.engine.answer(user.task, approved(user.calls, option), answered_by="test")
    return user.take(events(await all_of(turn)))


@pytest.mark.parametrize("order", [(0, 1), (1, 0), (2,)], ids=["first first", "last first", "at once"])
async def test_two_calls_of_a_task_wait_at_once_and_are_answered_in_any_order(
    tmp_path: Path, order: tuple[int, ...]
) -> None:
    tools = AskingTool("first"), AskingTool("second")
    async with harness(tmp_path, *tools) as user:
        await user.prompt()
        assert await answer_all(user) == StateChange(TaskState.INPUT_REQUIRED)
        questions = [call for call in user.calls.values() if call.tool_name == "elicitation"]
        assert len(questions) == 2
        if order == (2,):
            last = await answer_all(user, "accept")
        else:
            await user.answer("accept", questions[order[0]])
            assert tools[order[0]].log == ["begun", "accept"]
            assert tools[order[1]].log == ["begun"]
            last = await user.answer("accept", questions[order[1]])
        assert last == StateChange(TaskState.COMPLETED)
        assert [tool.log for tool in tools] == [["begun", "accept"]] * 2
        assert user.agent.suspended.task_ids == ()
        assert user.tools.count == 2  # of the segment that asked for permission, and of the one that ended


@pytest.mark.slow
@pytest.mark.parametrize("is_answer_first", [True, False])
async def test_cancelling_while_an_answer_arrives_leaves_nothing_behind(tmp_path: Path, is_answer_first: bool) -> None:
    for number in range(3):
        folder = tmp_path / str(number)
        folder.mkdir()
        tool = AskingTool(kind=READ, questions=2)
        async with harness(folder, tool) as user:
            await user.prompt()
            answer, cancel = user.answer("accept"), user.engine.cancel(user.task)
            both: list[Any] = [answer, cancel] if is_answer_first else [cancel, answer]
            found = await asyncio.gather(*both, return_exceptions=True)
            assert all(isinstance(item, (TaskError, *(type(item),))) for item in found)
            await user.ended(TaskState.CANCELED)
            assert all(call.status.is_final for call in user.calls.values())
            await eventually_async(lambda harness=user: harness.agent.suspended.task_ids == ())
            await eventually_async(lambda log=tool.log: log[-1] == "left")
            await eventually_async(lambda harness=user: harness.tools.count == 1)


@pytest.mark.slow
async def test_an_answer_that_comes_when_the_question_was_taken_back_does_no_harm(tmp_path: Path) -> None:
    tool = AskingTool(kind=READ)
    async with harness(tmp_path, tool) as user:
        await user.prompt()
        question = user.question
        tool.withdrawals[0].set_result("never mind")
        try:
            await user.answer("accept", question)
        except TaskError as error:
            assert "is not waiting for an answer" in str(error)  # noqa: PT017 - both may come first
        await user.ended()
        assert "never mind" in tool.log[1]
        assert user.calls[question.tool_call_id].status is ToolCallStatus.CANCELLED


@dataclass
class StickyTool(AskingTool):
    """A tool that takes its time to end when it is left."""

    may_end: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self, arguments: Arguments, context: CallContext) -> ToolResult:
        try:
            return await super().run(arguments, context)
        finally:
            await self.may_end.wait()


@pytest.mark.slow
async def test_nothing_is_taken_up_any_more_while_the_engine_ends(tmp_path: Path) -> None:
    sticky, tool = StickyTool(kind=READ), AskingTool("consult", kind=READ)
    replies: list[list[Call] | str] = [[Call("inquire", {})], [Call("consult", {})]]
    async with harness(tmp_path, sticky, tool, replies=replies) as user:
        await user.prompt()
        turn = await user.engine.prompt(PromptMessage("again"))
        await all_of(turn)
        ending = asyncio.create_task(user.engine.aclose())
        tool.withdrawals[0].set_result("The server was ended")
        await eventually_async(lambda: len(tool.log) == 2)
        sticky.may_end.set()
        await ending
        assert user.engine.running == 0
        assert len(user.wire.model_requests) == 2
        assert user.tools.count == 2


@pytest.mark.slow
async def test_a_task_that_could_not_resume_when_its_question_was_withdrawn_is_retried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = AskingTool(kind=READ)
    async with harness(tmp_path, tool) as user:
        await user.prompt()
        journal = user.engine.runner.journal
        claim, failures = journal.claim, [JournalError("the disk is full"), JournalError("the disk is full")]

        async def full(*arguments: Any, **options: Any) -> Any:
            if failures:
                raise failures.pop()
            return await claim(*arguments, **options)

        monkeypatch.setattr(journal, "claim", full)
        tool.withdrawals[0].set_result("never mind")
        await user.ended()
        assert failures == []
        assert "never mind" in tool.log[1]


@pytest.mark.slow
async def test_another_task_of_the_session_runs_while_a_call_waits(tmp_path: Path) -> None:
    tool = AskingTool(kind=READ)
    async with harness(tmp_path, tool, replies=[[Call("inquire", {})], "meanwhile", "over"]) as user:
        await user.prompt()
        context = (await user.engine.get(user.task)).context_id
        turn = await user.engine.prompt(PromptMessage("what else?", context_id=context))
        assert events(await all_of(turn))[-1] == StateChange(TaskState.COMPLETED)
        assert turn.task_id != user.task
        assert await user.answer("accept") == StateChange(TaskState.COMPLETED)
        assert tool.log == ["begun", "accept"]
        assert "done asking" in user.told()


@pytest.mark.slow
async def test_a_call_ends_whose_task_was_deleted_while_it_waited(tmp_path: Path) -> None:
    tool = AskingTool(kind=READ)
    async with harness(tmp_path, tool) as user:
        await user.prompt()
        await user.engine.runner.retention.delete([user.task], also_waiting=True)
        await eventually_async(lambda: tool.log == ["begun", "left"] and user.tools.count == 1)
        assert user.agent.suspended.task_ids == ()
