"""Agents of LangGraph and pydantic-ai in two processes with one PostgreSQL: kill -9, images, metrics, audit lines."""

import base64
import json
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from isthmus.a2a import RemoteAgent
from isthmus.client import PromptMessage
from isthmus.development_tool import ToolCallConfirmation
from isthmus.events import AgentEvent, ArtifactUpdate, MessagePart, StateChange, TaskState
from support.example_program import ExampleProgram, loaded_for
from support.hosted_frameworks import PNG
from support.hosted_program import TOKEN, hosted_program
from support.metrics_page import reader_of
from support.openai_wire import OpenAIWire
from support.plain_http import plain_client
from support.postgres import Postgres, postgres
from support.remote_agents import remote_agent
from support.scripted_wire import Call, Reply, Say
from support.turns import events_of
from support.wire_server import Hold

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]

PROGRAM = Path(__file__).resolve().parents[1] / "support" / "hosted_example_program.py"
PICTURE = MessagePart(raw=PNG, media_type="image/png", filename="dot.png")
DATA_URL = f"data:image/png;base64,{PNG}"


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres() as found:
        yield found


@pytest.fixture
def wire() -> Iterator[OpenAIWire]:
    with OpenAIWire() as found:
        yield found


@asynccontextmanager
async def replicas(
    example: str, server: Postgres, wire: OpenAIWire, folder: Path, workspace: Path
) -> AsyncGenerator[tuple[ExampleProgram, ExampleProgram]]:
    """Run two processes with the agent of an example; each writes its audit log into its folder."""
    keys = {"OPENAI_API_KEY": "test-key", "OPENAI_BASE_URL": wire.base_url, "MODEL": "openai-chat:test"}
    journal = server.database()
    async with AsyncExitStack() as stack:
        programs: list[ExampleProgram] = []
        for name in ("a", "b"):
            running = hosted_program(
                *(folder / name, workspace, example),
                program=PROGRAM,
                loaded=loaded_for(example),
                environment=keys,
                journal=journal,
                audit_log=str(folder / f"{name}.jsonl"),
                telemetry={"metrics_users": 3},
            )
            programs.append(await stack.enter_async_context(running))
        yield programs[0], programs[1]


def picture(text: str, workspace: Path) -> PromptMessage:
    return PromptMessage(text, parts=(MessagePart(text=text), PICTURE), settings={"workspace_path": str(workspace)})


def cards_in(events: Sequence[AgentEvent]) -> list[str]:
    """Return the pictures among the artifacts, as SVG."""
    parts = [part for event in events if isinstance(event, ArtifactUpdate) for part in event.parts]
    return [base64.b64decode(part.raw or "").decode() for part in parts if part.media_type == "image/svg+xml"]


async def measured(program: ExampleProgram, folder: Path) -> tuple[float, float, list[Any]]:
    """Return the completed tasks and the replicas that metrics tell, and the audit lines of both about messages."""
    async with plain_client(headers={"Authorization": f"Bearer {TOKEN}"}) as http:
        value = reader_of((await http.get(program.url + "metrics")).text)
    lines = [json.loads(line) for name in ("a", "b") for line in (folder / f"{name}.jsonl").read_text().splitlines()]
    sent = [line["task"] for line in lines if line["method"] == "message/stream"]
    return value("tasks", state="completed", user=""), value("replicas"), sent


async def answered(agent: RemoteAgent, task_id: str) -> list[AgentEvent]:
    """Allow the call that waits."""
    (call,) = (await agent.get(task_id)).pending
    answer = [ToolCallConfirmation(call.tool_call_id, "proceed_once")]
    return await events_of(await agent.answer(task_id, answer, answered_by="test"))


async def test_a_note_that_one_process_asked_about_is_saved_by_the_other(
    tmp_path: Path, workspace: Path, server: Postgres, wire: OpenAIWire
) -> None:
    wire.add(Reply.of(Call("save_note", {"text": "buy milk"}, id="call_1")), Reply.of(Say("Noted.")))
    async with replicas("pydantic_ai_agent", server, wire, tmp_path, workspace) as (first, second):
        async with first.client() as agent:
            turn = await agent.prompt(picture("Remember this.", workspace))
            assert (await events_of(turn))[-1] == StateChange(TaskState.INPUT_REQUIRED)
        await first.kill()
        async with remote_agent(second.url, TOKEN) as agent:
            seen = await answered(agent, turn.task_id)
        tasks, _, sent = await measured(second, tmp_path)
    assert seen[-1] == StateChange(TaskState.COMPLETED)
    (card,) = cards_in(seen)
    assert "buy milk</text>" in card
    assert DATA_URL in card
    assert (workspace / "notes.txt").read_text(encoding="utf-8") == "buy milk\n"
    assert DATA_URL in json.dumps(wire.model_requests[-1].json["messages"])
    assert tasks == 1
    assert sent == [turn.task_id] * 2


@pytest.mark.extended
async def test_a_title_that_one_process_asked_about_is_used_by_the_other(
    tmp_path: Path, workspace: Path, server: Postgres, wire: OpenAIWire
) -> None:
    wire.add(Reply.of(Say("A Red", " Dot")))
    async with replicas("langgraph_agent", server, wire, tmp_path, workspace) as (first, second):
        async with first.client() as agent:
            turn = await agent.prompt(picture("For the wall.", workspace))
            assert (await events_of(turn))[-1] == StateChange(TaskState.INPUT_REQUIRED)
            assert "'A Red Dot'" in (await agent.get(turn.task_id)).history[-1].text
        await first.kill()
        async with remote_agent(second.url, TOKEN) as agent:
            seen = await events_of(await agent.prompt(PromptMessage("Mars", task_id=turn.task_id)))
        tasks, _, sent = await measured(second, tmp_path)
    assert seen[-1] == StateChange(TaskState.COMPLETED)
    (card,) = cards_in(seen)
    assert "Mars</text>" in card
    assert DATA_URL in card
    assert len(wire.model_requests) == 1
    assert tasks == 1
    assert sent == [turn.task_id] * 2


async def test_the_other_process_goes_on_with_a_graph_whose_process_was_killed_in_a_node(
    tmp_path: Path, workspace: Path, server: Postgres, wire: OpenAIWire
) -> None:
    hold = Hold()
    wire.add(Reply.of(Say("A Re", "d Dot"), hold=hold, hold_after=2), Reply.of(Say("A Red Dot")))
    async with replicas("langgraph_agent", server, wire, tmp_path, workspace) as (first, second):
        async with first.client() as agent:
            turn = await agent.prompt(picture("For the wall.", workspace))
            async for delivery in turn.deliveries:
                if "A Re" in str(delivery.event):
                    break
            await first.kill()
        hold.release()
        async with second.client() as agent:
            await events_of(await agent.follow(turn.task_id, 0))
            task = await agent.get(turn.task_id)
    assert task.state is TaskState.INPUT_REQUIRED
    assert "'A Red Dot'" in task.history[-1].text
    assert len(wire.model_requests) == 2
