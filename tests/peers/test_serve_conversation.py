"""Compaction and restore over a real server, through crashes: the model's next request, and the content of files."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from isthmus.a2a.client.remote_agent import RemoteAgent
from isthmus.client import CommandMessage, CommandScope, Execution, PromptMessage, Turn
from isthmus.development_tool import CommandExecutionStatus, ToolCallConfirmation, ToolCallStatus
from isthmus.events import AgentEvent, TaskState, TextContent, ToolCallUpdate
from support.gemini_wire import GeminiWire
from support.loaded_program import LoadedProgram
from support.scripted_wire import Call, Reply, Say, WireUsage
from support.serve_program import ServeProgram, serve_program
from support.turns import events_of, events_of_command
from support.waiting import eventually, eventually_async
from support.wire_server import WireRequest

pytestmark = pytest.mark.anyio


def served(loaded: LoadedProgram, folder: Path, workspace: Path, wire: GeminiWire, *options: str) -> Any:
    environment = {"GEMINI_API_KEY": "test-key", "GOOGLE_GEMINI_BASE_URL": wire.base_url}
    return serve_program(folder, workspace, "-m", "gemini:test", *options, environment=environment, loaded=loaded)


async def client_of(program: ServeProgram) -> RemoteAgent:
    return await RemoteAgent.connect(program.url, program.token)


async def said(agent: RemoteAgent, workspace: Path, text: str, context_id: str | None = None) -> Turn:
    settings = {"workspace_path": str(workspace), "approval_mode": "auto_edit"}
    turn = await agent.prompt(PromptMessage(text, context_id=context_id, settings=settings))
    await events_of(turn)
    return turn


async def command(agent: RemoteAgent, context_id: str, name: str, args: str = "") -> Execution:
    return await agent.execute(CommandMessage((name,), args, CommandScope(context_id=context_id)))


def text_of(events: list[AgentEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextContent))


def edit(path: Path, old: str, new: str) -> Call:
    return Call("replace", {"file_path": str(path), "old_string": old, "new_string": new})


async def test_a_waiting_restore_survives_kill_9_and_brings_bytes_and_conversation_back(
    tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    path, new = workspace / "a.txt", workspace / "new.txt"
    path.write_bytes(b"one\r\n")
    replies = [
        Reply.of(edit(path, "one", "two"), Call("write_file", {"file_path": str(new), "content": "new"})),
        Reply.of(Say("the edits are made")),
        Reply.of(Say("as before")),
    ]
    with GeminiWire(replies) as wire:
        async with served(loaded_isthmus, tmp_path, workspace, wire) as program:
            agent = await client_of(program)
            turn = await said(agent, workspace, "change it")
            assert (path.read_bytes(), new.exists()) == (b"two\r\n", True)
            listed = text_of(await events_of_command(await command(agent, turn.context_id, "restore")))
            ids = [line.split()[0] for line in listed.splitlines() if "change it" in line]
            assert len(ids) == 2
            execution = await command(agent, turn.context_id, "restore", ids[-1])
            assert execution.status is CommandExecutionStatus.AWAITING_ACTION_CONFIRMATION
            await agent.aclose()
            await program.end(signal.SIGKILL)
        assert path.read_bytes() == b"two\r\n"
        async with served(loaded_isthmus, tmp_path, workspace, wire) as program:
            agent = await client_of(program)
            assert execution.turn is not None
            (call,) = (await agent.get(execution.turn.task_id)).pending
            assert call.confirmation_request is not None
            details = call.confirmation_request.generic_details
            assert details is not None
            assert str(path) in details.description
            assert str(new) in details.description
            answer = [ToolCallConfirmation(call.tool_call_id, "proceed_once")]
            events = await events_of(await agent.answer(execution.turn.task_id, answer, answered_by="test"))
            states = [event.tool_call.status for event in events if isinstance(event, ToolCallUpdate)]
            assert states[-1] is ToolCallStatus.SUCCEEDED
            assert (path.read_bytes(), new.exists()) == (b"one\r\n", False)
            await said(agent, workspace, "go on", turn.context_id)
            told = json.dumps(wire.model_requests[-1].json["contents"])
            assert "change it" in told
            assert "go on" in told
            assert "the edits are made" not in told
            assert "functionCall" not in told
            await agent.aclose()


async def test_a_crash_while_summarizing_leaves_one_compaction_and_the_last_turn(
    tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    summaries = 0

    def replies(request: WireRequest) -> Reply:
        nonlocal summaries
        if "Write the summary of the conversation above" in json.dumps(request.json["contents"]):
            summaries += 1
            return Reply((Say("what was wanted"),), delay=30 if summaries == 1 else 0)
        contents = json.dumps(request.json["contents"])
        return Reply((Say("an answer"),), usage=WireUsage(input=110_000 if "second prompt" in contents else 10))

    with GeminiWire(replies) as wire:
        async with served(loaded_isthmus, tmp_path, workspace, wire) as program:
            agent = await client_of(program)
            turn = await said(agent, workspace, "first " * 3000)
            await said(agent, workspace, "second prompt", turn.context_id)
            settings = {"workspace_path": str(workspace)}
            third = await agent.prompt(PromptMessage("third", context_id=turn.context_id, settings=settings))
            await eventually_async(lambda: summaries == 1, what="the summary to be asked for")
            await agent.aclose()
            await program.end(signal.SIGKILL)
        async with served(loaded_isthmus, tmp_path, workspace, wire) as program:
            agent = await client_of(program)

            async def completed() -> bool:
                return (await agent.get(third.task_id)).state is TaskState.COMPLETED

            await eventually_async(completed)
            assert summaries == 2
            told = json.dumps(wire.model_requests[-1].json["contents"])
            assert told.count("what was wanted") == 1
            assert "second prompt" in told
            assert "first first" not in told
            await agent.aclose()


async def test_compress_shrinks_the_next_request_and_restore_brings_all_of_it_back(
    tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    path = workspace / "a.txt"
    replies = [
        Reply.of(Say("the first answer: " + " ".join(map(str, range(1000))))),
        Reply.of(Call("write_file", {"file_path": str(path), "content": "x"})),
        Reply.of(Say("written")),
        Reply.of(Say("the third answer")),
        Reply.of(Say("the summary of it all")),
        Reply.of(Say("the fourth answer")),
        Reply.of(Say("the fifth answer")),
    ]
    with GeminiWire(replies) as wire:
        async with served(loaded_isthmus, tmp_path, workspace, wire, "--approval-mode", "yolo") as program:
            agent = await client_of(program)
            context_id = (await said(agent, workspace, "first prompt")).context_id
            for text in ("write it", "third prompt"):
                await said(agent, workspace, text, context_id)
            before = len(json.dumps(wire.model_requests[-1].json["contents"]))
            await events_of_command(await command(agent, context_id, "compress"))
            await said(agent, workspace, "fourth prompt", context_id)
            told = json.dumps(wire.model_requests[-1].json["contents"])
            assert "the summary of it all" in told
            assert "third prompt" in told
            assert len(told) < before / 2
            listed = text_of(await events_of_command(await command(agent, context_id, "restore")))
            checkpoint_id = next(line.split()[0] for line in listed.splitlines() if "write it" in line)
            turn = (await command(agent, context_id, "restore", checkpoint_id)).turn
            assert turn is not None
            await events_of(turn)
            for call in (await agent.get(turn.task_id)).pending:
                answer = [ToolCallConfirmation(call.tool_call_id, "proceed_once")]
                await events_of(await agent.answer(turn.task_id, answer, answered_by="test"))
            eventually(lambda: not path.exists())
            await said(agent, workspace, "fifth prompt", context_id)
            told = json.dumps(wire.model_requests[-1].json["contents"])
            assert "the first answer" in told
            assert "write it" in told
            assert "the summary of it all" not in told
            await agent.aclose()
