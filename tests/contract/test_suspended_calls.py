"""A call that asks during its work, in a real engine over a real journal: each way it can continue."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from isthmus.agent.approval.policy import ApprovalMode, Policy
from isthmus.agent.calls.running_call import OpenQuestion
from isthmus.development_tool import ToolCallStatus
from isthmus.events import Prompt, StateChange, TaskState
from isthmus.tools.port.base import ToolKind
from isthmus.tools.port.user_question import Chosen
from support.scripted_wire import Call
from support.suspended_calls_harness import AskingTool, harness
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

READ = ToolKind.READ
"""The kind of tools without permission, so that the tool's own question is the only one."""


async def test_the_task_waits_without_running_and_goes_on_with_the_same_call(tmp_path: Path) -> None:
    tool = AskingTool(kind=READ, questions=2)
    async with harness(tmp_path, tool) as user:
        assert await user.prompt() == StateChange(TaskState.INPUT_REQUIRED)
        assert user.states("inquire") == ["PENDING", "EXECUTING"]
        assert user.tools.count == 0
        assert user.engine.running == 0
        assert await user.answer("accept") == StateChange(TaskState.INPUT_REQUIRED)
        assert [call.tool_call_id.partition("?")[2] for call in user.calls.values()] == ["", "1", "2"]
        assert await user.answer("no") == StateChange(TaskState.COMPLETED)
        assert tool.log == ["begun", "accept", "no"]
        assert user.states("elicitation") == [
            "PENDING", "EXECUTING", "SUCCEEDED", "PENDING", "CANCELLED",
        ]  # fmt: skip
        assert user.states("inquire") == ["PENDING", "EXECUTING", "SUCCEEDED"]
        assert user.tools.count == 1
        assert "done asking" in user.told()
        assert "elicitation" not in user.told()


@pytest.mark.slow
async def test_nobody_answers_in_time_and_the_turn_goes_on_by_itself(tmp_path: Path) -> None:
    tool = AskingTool(kind=READ)
    async with harness(tmp_path, tool, seconds=0.3) as user:
        await user.prompt()
        await user.ended()
        assert user.states("elicitation") == ["PENDING", "CANCELLED"]
        assert "Nobody answered within 0.3 s" in tool.log[1]
        assert user.states("inquire")[-1] == "SUCCEEDED"
        assert user.tools.count == 1


async def test_what_asks_takes_its_question_back(tmp_path: Path) -> None:
    tool = AskingTool(kind=READ)
    async with harness(tmp_path, tool) as user:
        await user.prompt()
        tool.withdrawals[0].set_result("I know it now")
        await user.ended()
        (question,) = [call for call in user.calls.values() if call.tool_name == "elicitation"]
        assert question.error is not None
        assert question.error.message == "I know it now"
        assert tool.log[-1].endswith("reason='I know it now', is_refusal=False)")


async def test_cancelling_the_task_ends_the_call_and_what_it_used(tmp_path: Path) -> None:
    tool = AskingTool(kind=READ)
    async with harness(tmp_path, tool) as user:
        await user.prompt()
        assert (await user.engine.cancel(user.task)).state is TaskState.CANCELED
        await eventually_async(lambda: tool.log == ["begun", "left"] and user.tools.count == 1)
        await user.ended(TaskState.CANCELED)
        assert {call.status for call in user.calls.values()} == {ToolCallStatus.CANCELLED}
        assert user.agent.suspended.task_ids == ()


async def test_a_message_in_place_of_an_answer_stops_the_call_and_the_model_hears_so(tmp_path: Path) -> None:
    tool = AskingTool(kind=READ)
    async with harness(tmp_path, tool) as user:
        await user.prompt()
        assert await user.prompt("something else") == StateChange(TaskState.COMPLETED)
        assert tool.log == ["begun", "left"]
        stopped = next(call for call in user.calls.values() if call.tool_name == "inquire")
        assert stopped.error is not None
        assert stopped.error.message == "Stopped: a new message came instead of an answer"
        assert "whether it had an effect is not known" in user.told()
        assert user.tools.count == 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", [ToolKind.OTHER, READ])
async def test_after_the_process_has_ended_the_call_is_interrupted_or_read_again(
    tmp_path: Path, kind: ToolKind
) -> None:
    tool = AskingTool(kind=kind)
    policy = Policy(ApprovalMode.YOLO)
    async with harness(tmp_path, tool, policy=policy) as user:
        await user.prompt()
        task, question = user.task, user.question
    assert tool.log == ["begun", "left"]
    async with harness(tmp_path, tool, policy=policy, replies=["over"]) as user:
        user.task = task
        last = await user.answer("accept", question)
        assert user.calls[question.tool_call_id].status is ToolCallStatus.CANCELLED
        call = next(call for call in user.calls.values() if call.tool_name == "inquire")
        if kind is READ:
            assert last == StateChange(TaskState.INPUT_REQUIRED)
            assert tool.log == ["begun", "left", "begun"]
            assert user.question.tool_call_id == f"{call.tool_call_id}?2"
        else:
            assert last == StateChange(TaskState.COMPLETED)
            assert call.error is not None
            assert call.error.type == "interrupted"
            assert tool.log == ["begun", "left"]


def ended_process() -> str:
    """Return the name of a process that has ended."""
    program = "from isthmus.journal.port.lease_owner import new_owner; print(new_owner())"
    return subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.slow
@pytest.mark.parametrize("is_opened", [False, True], ids=["at the next start", "when it is opened"])
async def test_a_question_whose_process_is_gone_is_closed_and_the_model_goes_on(
    tmp_path: Path, is_opened: bool
) -> None:
    tool = AskingTool()
    policy = Policy(ApprovalMode.YOLO)
    async with harness(tmp_path, tool, policy=policy) as user:
        user.agent.suspended.process = await asyncio.to_thread(ended_process)
        await user.prompt()
        task = user.task
    async with harness(tmp_path, tool, policy=policy, replies=["over"], takes_over=not is_opened) as user:
        user.task = task
        if is_opened:
            assert (await user.engine.get(task)).state is TaskState.INPUT_REQUIRED
            await user.engine.follow(task)
        await user.ended()
        assert user.states("elicitation") == ["PENDING", "CANCELLED"]
        assert user.states("inquire")[-1] == "FAILED"
        assert tool.log == ["begun", "left"]
        assert "interrupted" in user.told()


async def test_a_question_of_a_process_that_lives_stays_open_beside_others(tmp_path: Path) -> None:
    tool = AskingTool(kind=READ)
    async with harness(tmp_path, tool) as here:
        await here.prompt()
        async with harness(tmp_path, AskingTool(kind=READ), replies=[]) as there:
            await there.engine.follow(here.task)
            assert (await there.engine.get(here.task)).state is TaskState.INPUT_REQUIRED
            assert await here.answer("accept") == StateChange(TaskState.COMPLETED)
        assert tool.log == ["begun", "accept"]


@pytest.mark.slow
async def test_a_task_that_another_process_takes_ends_the_call_here(tmp_path: Path) -> None:
    tool = AskingTool(kind=READ)
    async with harness(tmp_path, tool) as here:
        await here.prompt()
        row = await here.engine.journal.task(here.task)
        assert row is not None
        assert await here.engine.journal.claim(row, [Prompt("m", "Leave it")], "another", 60) is not None
        await eventually_async(lambda: tool.log == ["begun", "left"])
        await eventually_async(lambda: here.agent.suspended.task_ids == ())
        assert here.tools.count == 1


async def test_an_answer_that_another_process_receives_reaches_the_call_here(tmp_path: Path) -> None:
    tool, idle = AskingTool(kind=READ), AskingTool(kind=READ)
    async with harness(tmp_path, tool) as here, harness(tmp_path, idle) as there:
        await here.prompt()
        there.task = here.task
        assert await there.answer("accept", here.question) == StateChange(TaskState.COMPLETED)
        assert (tool.log, idle.log) == (["begun", "accept"], [])


async def test_an_answer_reaches_the_call_of_a_process_that_takes_no_other_tasks(tmp_path: Path) -> None:
    tool, idle = AskingTool(kind=READ), AskingTool(kind=READ)
    async with harness(tmp_path, tool, takes_over=False) as here, harness(tmp_path, idle) as there:
        await here.prompt()
        there.task = here.task
        assert await there.answer("accept", here.question) == StateChange(TaskState.COMPLETED)
        assert (tool.log, idle.log) == (["begun", "accept"], [])


async def test_other_calls_are_asked_and_answered_while_one_waits_in_its_middle(tmp_path: Path) -> None:
    first, second = AskingTool(kind=READ), AskingTool("consult", questions=0)
    async with harness(tmp_path, first, second) as user:
        assert await user.prompt() == StateChange(TaskState.INPUT_REQUIRED)
        waiting = {call.tool_name: call for call in user.calls.values() if call.confirmation_request is not None}
        assert set(waiting) == {"elicitation", "consult"}
        assert await user.answer("proceed_once", waiting["consult"]) == StateChange(TaskState.INPUT_REQUIRED)
        assert second.log == ["begun"]
        assert await user.answer("accept", waiting["elicitation"]) == StateChange(TaskState.COMPLETED)
        assert first.log == ["begun", "accept"]


@pytest.mark.parametrize("mode", [ApprovalMode.DEFAULT, ApprovalMode.YOLO])
async def test_where_nobody_can_be_asked_a_users_answer_is_never_made_up(tmp_path: Path, mode: ApprovalMode) -> None:
    tool = AskingTool(kind=READ)
    async with harness(tmp_path, tool, policy=Policy(mode, may_ask=False)) as user:
        assert await user.prompt() == StateChange(TaskState.COMPLETED)
        assert "no user can be asked here" in tool.log[1]
        assert "is_refusal=True" in tool.log[1]
        assert user.states("elicitation") == ["PENDING", "FAILED"]


@pytest.mark.slow
async def test_the_model_is_asked_with_consent_and_its_tokens_count(tmp_path: Path) -> None:
    tool = AskingTool(kind=READ, asks_model=True, questions=2)
    replies: list[list[Call] | str] = [[Call("inquire", {})], "a bird", "a fish", "over"]
    async with harness(tmp_path, tool, replies=replies) as user:
        await user.prompt()
        assert await user.answer("always") == StateChange(TaskState.COMPLETED)
        assert tool.log == ["begun", "a bird", "a fish"]
        requests = [request.json for request in user.wire.model_requests]
        assert "be brief" in str(requests[1]["systemInstruction"])
        assert "what is it?" in str(requests[1]["contents"])
        assert "go" not in str(requests[1]["contents"])
        assert "tools" not in requests[1]
        assert requests[1]["generationConfig"]["maxOutputTokens"] == 9
        outputs = [call.output.text for call in user.calls.values() if call.tool_name == "sampling" and call.output]
        assert outputs == ["a bird", "a fish"]


@pytest.mark.parametrize(("mode", "allowed"), [(ApprovalMode.DEFAULT, False), (ApprovalMode.YOLO, True)])
async def test_without_a_user_the_model_is_asked_in_yolo_mode_alone(
    tmp_path: Path, mode: ApprovalMode, allowed: bool
) -> None:
    tool = AskingTool(kind=READ, asks_model=True)
    replies: list[list[Call] | str] = [[Call("inquire", {})], *(["a bird"] if allowed else []), "over"]
    async with harness(tmp_path, tool, policy=Policy(mode, may_ask=False), replies=replies) as user:
        assert await user.prompt() == StateChange(TaskState.COMPLETED)
        assert (tool.log[1] == "a bird") is allowed
        assert ("Allow it with --approval-mode yolo" in tool.log[1]) is not allowed


async def test_the_first_answer_to_a_question_counts() -> None:
    question = OpenQuestion(AskingTool()._question(0))  # pyright: ignore[reportPrivateUsage]
    question.answer(Chosen("accept"))
    question.answer(Chosen("no"))
    question.withdraw("late")
    assert await question.wait() == Chosen("accept")
    assert question.withdrawn == ""
