"""A call that asks in the middle of its work, in a real engine over a real journal: each way that can go on."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from isthmus.agent.approval.policy import ApprovalMode, Policy
from isthmus.agent.calls.running_call import OpenQuestion
from isthmus.development_tool import ToolCallStatus
from isthmus.events import StateChange, TaskState
from isthmus.tools.base import ToolKind
from isthmus.tools.user_question import Chosen
from support.scripted_wire import Call
from support.suspended_calls_desk import AskingTool, desk
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

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
        tool.withdrawals[0].set_result("I know it now")
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
        await eventually_async(lambda: tool.log == ["begun", "left"] and person.tools.count == 1)
        await person.ended(TaskState.CANCELED)
        assert {call.status for call in person.calls.values()} == {ToolCallStatus.CANCELLED}
        assert person.agent.suspended.task_ids == ()


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


def ended_process() -> str:
    """What names a process that was there."""
    program = "from isthmus.engine.owner import new_owner; print(new_owner())"
    return subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.parametrize("is_opened", [False, True], ids=["at the next start", "when it is opened"])
async def test_a_question_whose_process_is_gone_is_closed_and_the_model_goes_on(
    tmp_path: Path, is_opened: bool
) -> None:
    tool = AskingTool()
    policy = Policy(ApprovalMode.YOLO)
    async with desk(tmp_path, tool, policy=policy) as person:
        person.agent.suspended.process = await asyncio.to_thread(ended_process)
        await person.prompt()
        task = person.task
    async with desk(tmp_path, tool, policy=policy, replies=["over"], takes_over=not is_opened) as person:
        person.task = task
        if is_opened:
            assert (await person.engine.get(task)).state is TaskState.INPUT_REQUIRED
            await person.engine.follow(task)
        await person.ended()
        assert person.states("elicitation") == ["PENDING", "CANCELLED"]
        assert person.states("inquire")[-1] == "FAILED"
        assert tool.log == ["begun", "left"]
        assert "interrupted" in person.told()


async def test_a_question_of_a_process_that_lives_stays_open_beside_others(tmp_path: Path) -> None:
    tool = AskingTool(kind=READ)
    async with desk(tmp_path, tool) as here:
        await here.prompt()
        async with desk(tmp_path, AskingTool(kind=READ), replies=[]) as there:
            await there.engine.follow(here.task)
            assert (await there.engine.get(here.task)).state is TaskState.INPUT_REQUIRED
            assert await here.answer("accept") == StateChange(TaskState.COMPLETED)
        assert tool.log == ["begun", "accept"]


async def test_a_task_that_another_process_takes_ends_the_call_here(tmp_path: Path) -> None:
    tool = AskingTool(kind=READ)
    async with desk(tmp_path, tool) as here:
        await here.prompt()
        async with desk(tmp_path, AskingTool(kind=READ), replies=["over"]) as there:
            there.task = here.task
            await there.answer("accept", here.question)
            await eventually_async(lambda: tool.log == ["begun", "left"])
            assert here.agent.suspended.task_ids == ()
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
    question = OpenQuestion(AskingTool()._question(0))  # pyright: ignore[reportPrivateUsage]
    question.answer(Chosen("accept"))
    question.answer(Chosen("no"))
    question.withdraw("late")
    assert await question.wait() == Chosen("accept")
    assert question.withdrawn == ""
