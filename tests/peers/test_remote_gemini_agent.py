"""RemoteAgent against the real gemini-cli-a2a-server, which speaks the dialect coderAgent; its model is scripted."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from isthmus.a2a.client.discovery import ClientDialect
from isthmus.a2a.client.remote_agent import RemoteAgent
from isthmus.client import CommandMessage, CommandScope, InvalidRequest, PromptMessage, Turn
from isthmus.development_tool import (
    AgentThought,
    CommandExecutionStatus,
    ModifiedFileDetails,
    ToolCall,
    ToolCallConfirmation,
    ToolCallStatus,
)
from isthmus.events import AgentEvent, AgentMessage, StateChange, TaskState, TextContent, Thought, ToolCallUpdate
from support.gemini_a2a_server import GeminiA2aServer, gemini_a2a_server
from support.gemini_wire import GeminiWire
from support.isolation import isolate
from support.scripted_wire import Call, Failure, Reply, Say, Think
from support.turns import view_of

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300), pytest.mark.shares_connections]


@dataclass(frozen=True, slots=True)
class Peer:
    """A client of the server, and the server's model."""

    agent: RemoteAgent
    wire: GeminiWire
    workspace: Path

    async def prompt(self, text: str, context_id: str | None = None) -> Turn:
        """Send a prompt, with the settings of a new session."""
        settings = {"workspace_path": str(self.workspace)} if context_id is None else None
        return await self.agent.prompt(PromptMessage(text, context_id=context_id, settings=settings))

    async def question(self, turn: Turn) -> ToolCall:
        """Read the turn to its question, and return the call."""
        view = await view_of(turn)
        assert view.state is TaskState.INPUT_REQUIRED
        (question,) = view.questions
        snapshot = await self.agent.get(turn.task_id)
        assert snapshot.state is TaskState.INPUT_REQUIRED
        assert snapshot.pending == (question.call,)
        return question.call

    async def answer(self, turn: Turn, call: ToolCall, option: str) -> Sequence[AgentEvent]:
        """Answer a question; return the following events."""
        confirmation = ToolCallConfirmation(call.tool_call_id, option)
        return await events(await self.agent.answer(turn.task_id, [confirmation], answered_by="test"))


async def events(turn: Turn) -> list[AgentEvent]:
    """Return the events of a turn."""
    async with asyncio.timeout(60):
        return [delivery.event async for delivery in turn.deliveries]


def statuses(found: Sequence[AgentEvent]) -> list[ToolCallStatus]:
    """Return the statuses that a call went through, without progress."""
    updates = [event for event in found if isinstance(event, ToolCallUpdate) and not event.is_ephemeral]
    return [update.tool_call.status for update in updates]


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[GeminiA2aServer]:
    """Start a server for all tests: each has tasks of its own."""
    folder = tmp_path_factory.mktemp("server").resolve()
    workspace = folder / "workspace"
    workspace.mkdir()
    async with AsyncExitStack() as stack:
        wire = stack.enter_context(GeminiWire())
        with pytest.MonkeyPatch.context() as patch:
            stack.enter_context(isolate(patch))
            server = await stack.enter_async_context(gemini_a2a_server(folder, workspace, wire))
        yield server


@pytest.fixture
async def peer(server: GeminiA2aServer) -> AsyncGenerator[Peer]:
    agent = await RemoteAgent.connect(server.url)
    try:
        yield Peer(agent, server.wire, server.workspace)
    finally:
        await agent.aclose()
        server.wire.forget()


async def test_the_server_of_gemini_cli_is_driven_like_our_own(peer: Peer) -> None:
    agent, wire, workspace = peer.agent, peer.wire, peer.workspace
    assert agent.dialect is ClientDialect.CODER_AGENT
    # A prompt: thought, text that streams, the end of a turn as completed.
    wire.add(Reply.of(Think("**Plan** think of it"), Say("Hello ", "there.")))
    first = await peer.prompt("Hello")
    found = await events(first)
    assert Thought(AgentThought("Plan", "think of it")) in found
    texts = [event for event in found if isinstance(event, TextContent)]
    assert "".join(event.text for event in texts) == "Hello there."
    assert len({event.message_id for event in texts}) == 1
    assert [event.state for event in found if isinstance(event, StateChange)] == [
        TaskState.WORKING,
        TaskState.COMPLETED,
    ]
    context = first.context_id
    # An edit: the conversation is the task's, so the session continues in it.
    write = Call("write_file", {"file_path": str(workspace / "b.txt"), "content": "new\n"})
    wire.add(Reply.of(write), Reply.of(Say("Done.")))
    turn = await peer.prompt("Write b.txt", context)
    assert turn.task_id == first.task_id
    call = await peer.question(turn)
    assert call.confirmation_request is not None
    diff = call.confirmation_request.file_edit_details
    assert diff is not None
    assert (diff.file_name, diff.file_path, diff.new_content) == ("b.txt", str(workspace / "b.txt"), "new\n")
    assert [option.id for option in call.confirmation_request.options] == ["proceed_once", "proceed_always", "cancel"]
    changed = ToolCallConfirmation(call.tool_call_id, "proceed_once", ModifiedFileDetails("mine\n"))
    with pytest.raises(InvalidRequest, match="does not take a changed edit"):
        await agent.answer(turn.task_id, [changed], answered_by="test")
    found = await peer.answer(turn, call, "proceed_once")
    assert statuses(found) == [ToolCallStatus.PENDING, ToolCallStatus.EXECUTING, ToolCallStatus.SUCCEEDED]
    assert found[-1] == StateChange(TaskState.COMPLETED)
    assert (workspace / "b.txt").read_text(encoding="utf-8") == "new\n"
    done = [event.tool_call for event in found if isinstance(event, ToolCallUpdate)][-1]
    assert done.output is not None
    assert done.output.diff is not None
    # A refused edit is not written.
    wire.add(Reply.of(Call("write_file", {"file_path": str(workspace / "c.txt"), "content": "new\n"})))
    turn = await peer.prompt("Write c.txt", context)
    found = await peer.answer(turn, await peer.question(turn), "cancel")
    assert statuses(found) == [ToolCallStatus.CANCELLED]
    assert not (workspace / "c.txt").exists()
    # A command of the shell, with its live output.
    wire.add(Reply.of(Call("run_shell_command", {"command": "echo one; sleep 1.2; echo two"})), Reply.of(Say("Ran.")))
    turn = await peer.prompt("Run it", context)
    call = await peer.question(turn)
    assert call.confirmation_request is not None
    assert call.confirmation_request.execute_details is not None
    assert call.confirmation_request.execute_details.command == "echo one; sleep 1.2; echo two"
    found = await peer.answer(turn, call, "proceed_once")
    updates = [event for event in found if isinstance(event, ToolCallUpdate) and event.is_ephemeral]
    lives = [update.tool_call.live_content for update in updates]
    assert lives
    # It sends output once a second at most: the last line is there only if it came late enough.
    assert (lives[-1] or "").splitlines() in (["one"], ["one", "two"])
    assert found[-1] == StateChange(TaskState.COMPLETED)
    with pytest.raises(InvalidRequest, match="no open question"):
        await peer.answer(turn, call, "proceed_once")
    assert [event.text for event in found if isinstance(event, TextContent)] == ["Ran."]


async def test_a_task_is_cancelled_and_the_next_prompt_begins_another(peer: Peer) -> None:
    peer.wire.add(Reply.of(Call("run_shell_command", {"command": "echo one"})))
    turn = await peer.prompt("Run it")
    await peer.question(turn)
    assert (await peer.agent.cancel(turn.task_id)).state is TaskState.CANCELED
    peer.wire.add(Reply.of(Say("Hello.")))
    after = await peer.prompt("Hello", turn.context_id)
    assert after.task_id != turn.task_id
    assert (await view_of(after)).final_text == "Hello."


async def test_a_model_that_fails_is_said_so(peer: Peer) -> None:
    peer.wire.add(*[Failure(400, "no such model")] * 3)
    view = await view_of(await peer.prompt("Hello"))
    assert view.state is TaskState.FAILED
    assert view.error


async def test_its_commands_run_and_tell_what_they_did(peer: Peer) -> None:
    tree = {item.name: [sub.name for sub in item.sub_commands] for item in await peer.agent.commands(CommandScope())}
    assert tree["memory"] == ["show", "refresh", "list", "add"]
    added = await peer.agent.execute(CommandMessage(("memory", "add"), "Tabs, never spaces"))
    assert added.status is CommandExecutionStatus.STARTED
    assert added.turn is not None
    assert await events(added.turn) == [
        AgentMessage("command", 'Added memory: "Tabs, never spaces"'),
        StateChange(TaskState.COMPLETED),
    ]
    shown = await peer.agent.execute(CommandMessage(("memory", "show")))
    assert shown.turn is not None
    assert "Tabs, never spaces" in (await view_of(shown.turn)).final_text
    unknown = await peer.agent.execute(CommandMessage(("nope",)))
    assert (unknown.status, unknown.turn) == (CommandExecutionStatus.FAILED_TO_START, None)
    assert unknown.message == "Command not found: nope"
    # A command that is a whole task of the agent.
    peer.wire.add(Reply.of(Say("I wrote it.")))
    init = await peer.agent.execute(CommandMessage(("init",)))
    assert init.turn is not None
    view = await view_of(init.turn)
    assert (view.state, view.final_text) == (TaskState.COMPLETED, "I wrote it.")
