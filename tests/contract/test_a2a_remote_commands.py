"""Slash commands and push targets through RemoteAgent, over a real socket, in both versions."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from isthmus.a2a.client.remote_agent import RemoteAgent
from isthmus.a2a.options import ServerOptions
from isthmus.a2a.push.sender import PushSender
from isthmus.a2a.push.service import pushing
from isthmus.a2a.push.targets import PushRule
from isthmus.a2a.wires import Wires
from isthmus.client import CommandMessage, CommandScope, InvalidRequest, PromptMessage, PushTarget, TaskNotFound
from isthmus.development_tool import CommandExecutionStatus, SlashCommandArgument, ToolCallConfirmation
from isthmus.engine import Engine, EngineOptions
from isthmus.engine.port.workspaces import WorkspaceRule
from isthmus.events import Command, StateChange, TaskState, TextContent
from isthmus.task_view import TaskView
from support.a2a_serving import TOKEN, serving
from support.agent_behind import behind
from support.agents import EchoAgent
from support.journals import journal_at
from support.memory_agent import Ask, MemoryAgent, write_file_call
from support.waiting import eventually_async
from support.wire_server import Answer, WireServer

pytestmark = pytest.mark.anyio

VERSIONS = ("0.3", "1.0")
SPOKEN = (("0.3", "JSONRPC"), ("1.0", "JSONRPC"), ("1.0", "HTTP+JSON"))
"""Every version and binding; HTTP+JSON has no commands, so they use the JSON-RPC that the card lists as well."""


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=SPOKEN, ids=" ".join)
async def remote(request: pytest.FixtureRequest) -> AsyncGenerator[RemoteAgent]:
    version, binding = request.param
    agent = MemoryAgent(
        lambda message: (
            [Ask((write_file_call(),))] if message.text == "edit" else [TextContent("t", f"You said: {message.text}")]
        )
    )
    async with serving(agent) as server:
        remote = await RemoteAgent.connect(server.url, TOKEN, protocol=version, binding=binding)
        yield remote
        await remote.aclose()


@pytest.mark.requirement("A2A-107", "A2A-108", "A2A-112", "A2A-116")
async def test_the_commands_of_the_server_are_a_tree(remote: RemoteAgent) -> None:
    (say,) = await remote.commands(CommandScope())
    assert (say.name, say.description) == ("say", "Say something")
    assert say.arguments == (SlashCommandArgument("text", "What to say", True),)


@pytest.mark.requirement("A2A-117", "A2A-121", "A2A-128", "A2A-131")
async def test_a_command_runs_as_a_task_whose_events_come_from_the_first(remote: RemoteAgent, workspace: Path) -> None:
    scope = CommandScope(settings={"workspace_path": str(workspace)})
    execution = await remote.execute(CommandMessage(("say",), "hello", scope))
    assert execution.status is CommandExecutionStatus.STARTED
    turn = execution.turn
    assert turn is not None
    assert turn.task_id
    async with asyncio.timeout(60):
        events = [delivery.event async for delivery in turn.deliveries]
    shown = [event for event in events if not isinstance(event, Command)]
    assert shown == [
        StateChange(TaskState.WORKING),
        TextContent("t", "You said: hello"),
        StateChange(TaskState.COMPLETED),
    ]


@pytest.mark.requirement("A2A-122", "A2A-125", "A2A-130")
async def test_what_a_command_asks_is_answered_like_any_question(remote: RemoteAgent, workspace: Path) -> None:
    refused = await remote.execute(CommandMessage(("nope",)))
    assert (refused.status, refused.turn) == (CommandExecutionStatus.FAILED_TO_START, None)
    assert refused.message == "There is no such command."
    scope = CommandScope(settings={"workspace_path": str(workspace)})
    turn = (await remote.execute(CommandMessage(("say",), "edit", scope))).turn
    assert turn is not None
    view = TaskView.of_snapshot(turn.snapshot)
    async with asyncio.timeout(60):
        async for delivery in turn.deliveries:
            view.apply(delivery)
        (question,) = view.questions
        confirmation = ToolCallConfirmation(question.call.tool_call_id, "proceed_once")
        answered = await remote.answer(turn.task_id, [confirmation], answered_by="test")
        async for delivery in answered.deliveries:
            view.apply(delivery)
    assert view.state is TaskState.COMPLETED


@pytest.mark.requirement("A2A-005", "A2A-006", "A2A-007")
async def test_push_targets_are_set_read_listed_and_deleted(version: str, workspace: Path) -> None:
    engine = Engine(
        behind(EchoAgent()),
        await journal_at(workspace / "journal.sqlite"),
        EngineOptions(WorkspaceRule(workspace)),
    )
    await engine.start()
    settings = {"workspace_path": str(workspace)}
    fine = Answer(204, {"content-length": "0"})
    with WireServer(lambda _: fine) as hooks:
        async with (
            pushing(engine, PushSender(PushRule.of(("127.0.0.1",))), Wires()) as push,
            serving(engine, ServerOptions(TOKEN), push=push) as server,
        ):
            remote = await RemoteAgent.connect(server.url, TOKEN, protocol=version)
            inline = PushTarget(f"{hooks.base_url}/hook", "mine", "secret", "Bearer", "credentials")
            turn = await remote.prompt(PromptMessage("hello", settings=settings), push=inline)
            async with asyncio.timeout(60):
                async for _ in turn.deliveries:
                    pass
            await eventually_async(lambda: bool(hooks.requests))
            headers = hooks.requests[0].headers
            assert headers["x-a2a-notification-token"] == "secret"
            assert headers["authorization"] == "Bearer credentials"
            found = await remote.get_push(turn.task_id, "mine")
            assert (found.url, found.id) == (inline.url, "mine")
            other = await remote.set_push(turn.task_id, PushTarget(f"{hooks.base_url}/other"))
            assert other.id
            listed = await remote.list_push(turn.task_id)
            assert {target.url for target in listed} == {inline.url, other.url}
            await remote.delete_push(turn.task_id, "mine")
            assert [target.id for target in await remote.list_push(turn.task_id)] == [other.id]
            with pytest.raises(InvalidRequest):
                await remote.set_push(turn.task_id, PushTarget("http://10.0.0.1/hook"))
            with pytest.raises(TaskNotFound):
                await remote.list_push("unknown")
            await remote.aclose()


async def test_a_server_without_push_notifications_says_so(remote: RemoteAgent, workspace: Path) -> None:
    turn = await remote.prompt(PromptMessage("hello", settings={"workspace_path": str(workspace)}))
    with pytest.raises(InvalidRequest, match="push"):
        await remote.set_push(turn.task_id, PushTarget("https://example.com/hook"))
