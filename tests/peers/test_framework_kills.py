"""Agents of LangChain, with its own middleware, and of pydantic-ai: kill -9 in a tool, and while a question waits."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from pathlib import Path
from typing import cast

import pytest

from isthmus.a2a import RemoteAgent
from isthmus.client import Delivery, PromptMessage, Turn
from isthmus.development_tool import ToolCallConfirmation, ToolCallStatus
from isthmus.events import AgentEvent, StateChange, TaskState, TextContent, ToolCallUpdate
from support.example_program import ExampleProgram, loaded_for
from support.extended import first_of
from support.hosted_frameworks import calls_in, text_in
from support.hosted_program import hosted_program
from support.programs import PYTHON_PEERS, python_peer
from support.turns import SECONDS, events_of
from support.waiting import eventually_async

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]

PROGRAM = PYTHON_PEERS / "frameworks" / "serve_agents.py"
SOURCE = Path(__file__).resolve().parents[2] / "src"
FRAMEWORKS = ("langchain", "pydantic")
EXECUTING, SUCCEEDED = ToolCallStatus.EXECUTING, ToolCallStatus.SUCCEEDED


def serving(framework: str, folder: Path, workspace: Path) -> AbstractAsyncContextManager[ExampleProgram]:
    """Serve the agent; LangChain is in an environment of its own."""
    python = str(python_peer()) if framework == "langchain" else sys.executable
    loaded = loaded_for(framework, python, str(SOURCE))
    return hosted_program(folder, workspace, framework, program=PROGRAM, loaded=loaded)


async def begun(agent: RemoteAgent, text: str) -> str:
    """Begin a task that asks; return its id."""
    turn = await agent.prompt(PromptMessage(text))
    assert (await events_of(turn))[-1] == StateChange(TaskState.INPUT_REQUIRED)
    return turn.task_id


async def answer(agent: RemoteAgent, task_id: str, option: str) -> Sequence[AgentEvent]:
    """Answer all questions alike; read to the end."""
    given = [ToolCallConfirmation(call.tool_call_id, option) for call in (await agent.get(task_id)).pending]
    return await events_of(await agent.answer(task_id, given, answered_by="test"))


async def one_ends(turn: Turn) -> None:
    """Read until a call has succeeded."""
    async with aclosing(cast("AsyncGenerator[Delivery]", turn.deliveries)) as deliveries, asyncio.timeout(SECONDS):
        async for delivery in deliveries:
            match delivery.event:
                case ToolCallUpdate(call) if call.status is SUCCEEDED:
                    return
                case _:
                    pass
    raise AssertionError("no call has succeeded")


def lines_of(file: Path) -> list[str]:
    """Return the lines of a file; none if there is no file."""
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []


async def answered_after_kill(framework: str, data: Path, workspace: Path, option: str) -> Sequence[AgentEvent]:
    """Have a call asked about, kill the process, answer the next one, and return the events from then on."""
    async with serving(framework, data, workspace) as program, program.client() as agent:
        task_id = await begun(agent, "quick")
        await program.kill()
    async with serving(framework, data, workspace) as program, program.client() as agent:
        return await answer(agent, task_id, option)


@pytest.mark.parametrize("framework", FRAMEWORKS)
async def test_an_answer_after_kill_9_runs_the_tool_once(tmp_path: Path, workspace: Path, framework: str) -> None:
    seen = await answered_after_kill(framework, tmp_path / "data", workspace, "proceed_once")
    assert calls_in(seen) == [("work", EXECUTING), ("work", SUCCEEDED)]
    assert text_in(seen) == "quick done"
    assert lines_of(workspace / "ran.txt") == ["quick"]


@pytest.mark.parametrize("framework", first_of(FRAMEWORKS))
async def test_a_no_after_kill_9_is_told_to_the_model(tmp_path: Path, workspace: Path, framework: str) -> None:
    seen = await answered_after_kill(framework, tmp_path / "data", workspace, "cancel")
    assert calls_in(seen) == [("work", ToolCallStatus.CANCELLED)]
    assert "The user rejected it." in text_in(seen)
    assert not (workspace / "ran.txt").exists()


@pytest.mark.parametrize("framework", FRAMEWORKS)
async def test_a_tool_that_ran_at_kill_9_is_not_run_again(tmp_path: Path, workspace: Path, framework: str) -> None:
    ran = workspace / "ran.txt"
    async with serving(framework, tmp_path / "data", workspace) as program, program.client() as agent:
        task_id = await begun(agent, "quick slow")
        given = [ToolCallConfirmation(call.tool_call_id, "proceed_once") for call in (await agent.get(task_id)).pending]
        await one_ends(await agent.answer(task_id, given, answered_by="test"))
        await eventually_async(lambda: len(lines_of(ran)) == 2, 60, what="the other call runs")
        await program.kill()
    async with serving(framework, tmp_path / "data", workspace) as program, program.client() as agent:
        seen = await events_of(await agent.follow(task_id, 0))
        task = await agent.get(task_id)
    assert task.state is TaskState.COMPLETED
    assert sorted(lines_of(ran)) == ["quick", "slow"]
    answers = "".join(event.text for event in seen if isinstance(event, TextContent))
    assert "quick done" in answers
    assert "was interrupted" in answers
