"""Slash commands of the real agent before a session has a folder: clients ask for them at startup (section 3.3)."""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from isthmus.a2a.client.remote_agent import RemoteAgent
from isthmus.a2a.protocol.extension import URI
from isthmus.agent.commands.port.base import CommandNode
from isthmus.agent.commands.registry import BUILT_IN, YIELDING
from isthmus.client import CommandMessage, CommandScope
from isthmus.development_tool import CommandExecutionStatus
from support.a2a_serving import EXTENSION, TOKEN, RawClient, prompt, serving
from support.command_harness import CommandHarness, command_harness
from support.gemini_wire import GeminiWire
from support.scripted_wire import Reply, Say

pytestmark = pytest.mark.anyio

HEADERS: Sequence[dict[str, str]] = (EXTENSION, {}, {**EXTENSION, "A2A-Version": "1.0"}, {"A2A-Version": "1.0"})


@dataclass
class Place:
    """A served agent without a folder of its own, and its client."""

    harness: CommandHarness
    client: RawClient


@pytest.fixture
async def at(tmp_path: Path) -> AsyncGenerator[Place]:
    with GeminiWire(lambda _: Reply.of(Say("fine"))) as wire:
        async with (
            command_harness(tmp_path.resolve(), wire, has_workspace=False) as harness,
            serving(harness.engine) as client,
        ):
            yield Place(harness, client)


def command(*path: str, **metadata: Any) -> dict[str, Any]:
    return {"command_path": list(path), "args": "", **({"metadata": metadata} if metadata else {})}


def commands_of(
    nodes: Sequence[CommandNode], above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], CommandNode]]:
    """Yield each command that can be executed without an argument, with its path."""
    for node in nodes:
        path = (*above, node.name)
        if node.body is not None and not any(item.is_required for item in node.arguments):
            yield path, node
        yield from commands_of(node.sub_commands, path)


async def test_the_first_request_of_a_client_lists_the_built_in_commands(at: Place) -> None:
    for headers in HEADERS:
        found = await at.client.result("commands/get", {}, headers)
        names = {item["name"] for item in found["commands"]}
        assert names == {node.name for node in (*BUILT_IN, *YIELDING)}


async def test_a_command_that_needs_no_folder_runs_without_one(at: Place) -> None:
    ran: list[str] = []
    for headers in HEADERS:
        started = await at.client.result("command/execute", command("about"), headers)
        assert started["status"] == "STARTED"
        ran.append(started["execution_id"])
        replay = {**EXTENSION, "Last-Event-ID": "0"}
        items = await at.client.stream("tasks/resubscribe", {"id": ran[-1]}, replay)
        text = "".join(item.text for item in items if item.kind == "TEXT_CONTENT")
        assert "Model: test (gemini)" in text
        assert "Workspace: none" in text
        assert items[-1].state == "completed"
        task = await at.client.result("tasks/get", {"id": ran[-1]})
        assert "workspace_path" not in task["metadata"][URI]
    listed = await at.client.result("isthmus/tasks", {})
    assert {task["id"] for task in listed["tasks"]} == {*ran}


async def test_a_command_that_needs_a_folder_says_which_field_to_send(at: Place) -> None:
    for headers in HEADERS:
        for path in (("init",), ("memory", "show")):
            refused = await at.client.result("command/execute", command(*path), headers)
            assert (refused["status"], refused["execution_id"]) == ("FAILED_TO_START", "")
            assert f"/{' '.join(path)} " in refused["message"]
            assert "workspace_path" in refused["message"]
    unknown = await at.client.result("command/execute", command("abuot"))
    assert (unknown["status"], "/about" in unknown["message"]) == ("FAILED_TO_START", True)
    assert (await at.client.result("isthmus/tasks", {}))["tasks"] == []


async def test_each_built_in_command_runs_without_a_folder_or_says_that_it_needs_one(at: Place) -> None:
    ran: list[str] = []
    for path, node in commands_of((*BUILT_IN, *YIELDING)):
        execution = await at.harness.engine.execute(CommandMessage(path, "", CommandScope()))
        if node.needs_folder:
            assert execution.status is CommandExecutionStatus.FAILED_TO_START, path
            continue
        assert execution.turn is not None, execution.message
        async with asyncio.timeout(30):
            events = [delivery.event async for delivery in execution.turn.deliveries]
        assert str(getattr(events[-1], "state", "")) == "completed", (path, events)
        ran.append(" ".join(path))
    assert ran == ["help", "about", "model", "effort", "stats", "tasks", "tasks all", "cost"]
    assert not at.harness.wire.model_requests


async def test_the_session_of_a_command_gets_its_folder_from_the_first_prompt(at: Place) -> None:
    chosen = {**command("model"), "args": "gemini:gemini-3.8-flash"}
    started = await at.client.result("command/execute", chosen)
    task = await at.client.result("tasks/get", {"id": started["execution_id"]})
    context = {"contextId": task["contextId"]}
    await at.client.result("command/execute", {**command("effort", **context), "args": "high"})
    again = await at.client.result("command/execute", command("effort", **context))
    other = await at.client.result("tasks/get", {"id": again["execution_id"]})
    assert other["contextId"] == task["contextId"]
    assert "Effort: high" in other["status"]["message"]["parts"][0]["text"]

    nowhere = await at.client.error("message/send", prompt("hello", contextId=task["contextId"]))
    assert "workspace_path" in nowhere["message"]
    sent = await at.client.result("message/send", prompt("hello", at.harness.workspace, contextId=task["contextId"]))
    assert sent["contextId"] == task["contextId"]
    assert sent["metadata"][URI]["workspace_path"] == str(at.harness.workspace)
    shown = await at.client.result("command/execute", command("memory", "show", **context))
    assert shown["status"] == "STARTED"


async def test_a_prompt_does_not_continue_a_command_without_a_folder(at: Place) -> None:
    started = await at.client.result("command/execute", command("about"))
    refused = await at.client.error("message/send", prompt("on", at.harness.workspace, taskId=started["execution_id"]))
    assert "workspace_path" in refused["message"]


async def test_our_own_client_lists_and_runs_them(at: Place) -> None:
    for protocol in ("0.3", "1.0"):
        remote = await RemoteAgent.connect(at.client.url, TOKEN, protocol=protocol)
        try:
            assert "about" in {command.name for command in await remote.commands(CommandScope())}
            execution = await remote.execute(CommandMessage(("about",), "", CommandScope()))
            assert execution.turn is not None
            assert execution.turn.snapshot.workspace == ""
            refused = await remote.execute(CommandMessage(("init",), "", CommandScope()))
            assert refused.status is CommandExecutionStatus.FAILED_TO_START
            assert "workspace_path" in (refused.message or "")
        finally:
            await remote.aclose()
