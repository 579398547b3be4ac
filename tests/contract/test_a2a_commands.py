"""Slash commands of the real agent over a real socket: commands/get and command/execute (extension, section 3.3)."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from isthmus.a2a.protocol.extension import URI
from support.a2a_serving import EXTENSION, RawClient, StreamItem, allow, answer, prompt, serving
from support.command_harness import CommandHarness, command_harness
from support.gemini_wire import GeminiWire
from support.scripted_wire import Reply, Say, Think
from support.wire_server import Hold

pytestmark = pytest.mark.anyio

STREAM = {**EXTENSION, "Accept": "text/event-stream"}


@dataclass
class Place:
    """A served agent; ``harness`` records the requests to its model."""

    harness: CommandHarness
    client: RawClient

    async def execute(self, *path: str, args: str = "", **metadata: Any) -> dict[str, Any]:
        """Return the ExecuteSlashCommandResponse."""
        return await self.client.result("command/execute", self.params(*path, args=args, **metadata))

    def params(self, *path: str, args: str = "", **metadata: Any) -> dict[str, Any]:
        own = {"workspace_path": str(self.harness.workspace)}
        return {"command_path": list(path), "args": args, "metadata": metadata or {URI: own}}

    async def replay(self, execution_id: str) -> list[StreamItem]:
        """Return every event from the first one, as tasks/resubscribe sends it."""
        headers = {**EXTENSION, "Last-Event-ID": "0"}
        return list(await self.client.stream("tasks/resubscribe", {"id": execution_id}, headers))


@asynccontextmanager
async def place(folder: Path, *replies: Reply) -> AsyncGenerator[Place]:
    queue = list(replies)
    with GeminiWire(lambda _: queue.pop(0) if queue else Reply.of(Say("fine"))) as wire:
        async with command_harness(folder.resolve(), wire) as harness, serving(harness.engine) as client:
            yield Place(harness, client)


def texts(items: list[StreamItem]) -> str:
    return "".join(item.text for item in items if item.kind == "TEXT_CONTENT")


def command(harness: CommandHarness, name: str, text: str) -> None:
    path = harness.workspace / ".gemini" / "commands" / f"{name}.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"description = 'Custom.'\nprompt = '''{text}'''\n")


def named(commands: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(item for item in commands if item["name"] == name)


@pytest.mark.requirement("A2A-107", "A2A-109", "A2A-110", "A2A-111")
async def test_commands_get_lists_the_top_level_commands_with_name_and_description(tmp_path: Path) -> None:
    async with place(tmp_path) as at:
        commands = (await at.client.result("commands/get", {}))["commands"]
        assert [item["name"] for item in commands][:3] == ["help", "about", "model"]
        assert all(item["description"] for item in commands)


@pytest.mark.requirement("A2A-112", "A2A-114", "A2A-115", "A2A-116")
async def test_commands_get_describes_the_arguments(tmp_path: Path) -> None:
    async with place(tmp_path) as at:
        commands = (await at.client.result("commands/get", {}))["commands"]
        (fact,) = named(named(commands, "memory")["sub_commands"], "add")["arguments"]
        assert fact == {"name": "fact", "description": "What to remember, as one sentence", "is_required": True}
        (name,) = named(commands, "model")["arguments"]
        assert name["name"] == "name"
        assert not name.get("is_required", False)


@pytest.mark.requirement("A2A-113")
async def test_commands_get_nests_subcommands_custom_ones_too(tmp_path: Path) -> None:
    async with place(tmp_path) as at:
        command(at.harness, "git/remote/add", "Add it.")
        commands = (await at.client.result("commands/get", {"metadata": {URI: {"workspace_path": _path(at)}}}))[
            "commands"
        ]
        assert {item["name"] for item in named(commands, "mcp")["sub_commands"]} >= {"list", "refresh", "auth"}
        remote = named(named(commands, "git")["sub_commands"], "remote")
        assert named(remote["sub_commands"], "add")["description"] == "Custom."


@pytest.mark.slow
@pytest.mark.requirement("A2A-117", "A2A-118", "A2A-119", "A2A-124")
async def test_command_execute_runs_a_path_with_its_arguments_as_one_string(tmp_path: Path) -> None:
    async with place(tmp_path) as at:
        response = await at.execute("memory", "add", args="  I like   two words ")
        assert response["status"] == "STARTED"
        await at.replay(response["execution_id"])
        assert "- I like two words\n" in (at.harness.home / "GEMINI.md").read_text()
        await at.client.result("message/send", prompt("hello", at.harness.workspace))
        assert "- I like two words" in at.harness.system()


@pytest.mark.requirement("A2A-121", "A2A-122", "A2A-128", "A2A-129")
async def test_output_and_thoughts_of_a_command_come_as_status_updates_of_its_task(tmp_path: Path) -> None:
    reply = Reply.of(Think("**Looking** at it"), Say("All is well."))
    async with place(tmp_path, reply) as at:
        command(at.harness, "review", "Review {{args}}.")
        response = await at.execute("review", args="it")
        items = await at.replay(response["execution_id"])
        updates = [item for item in items if item.result["kind"] == "status-update"]
        assert {item.result["taskId"] for item in updates} == {response["execution_id"]}
        assert [item.kind for item in updates] == ["STATE_CHANGE", "THOUGHT", "TEXT_CONTENT", "STATE_CHANGE"]
        assert (updates[0].state, updates[-1].state) == ("working", "completed")
        assert texts(items) == "All is well."
        assert at.harness.last_user_text() == "Review it."


@pytest.mark.requirement("A2A-121")
async def test_a_client_that_accepts_a_stream_gets_the_response_before_the_command(tmp_path: Path) -> None:
    async with place(tmp_path) as at:
        first, task, *rest = await at.client.stream("command/execute", at.params("about"), STREAM)
        assert first.result["status"] == "STARTED"
        assert task.result["id"] == first.result["execution_id"]
        assert "Isthmus" in texts(rest)
        assert rest[-1].result["final"] is True


@pytest.mark.requirement("A2A-125", "A2A-130")
async def test_an_unknown_command_fails_to_start_and_near_ones_are_named(tmp_path: Path) -> None:
    async with place(tmp_path) as at:
        response = await at.execute("memroy", "show")
        assert response["status"] == "FAILED_TO_START"
        assert "/memory show" in response["message"]
        missing = await at.execute("memory", "add")
        assert missing["status"] == "FAILED_TO_START"
        assert "fact" in missing["message"]


@pytest.mark.requirement("A2A-122", "A2A-126")
async def test_a_command_that_wants_a_shell_command_waits_for_its_confirmation(tmp_path: Path) -> None:
    async with place(tmp_path) as at:
        command(at.harness, "look", "It says !{echo hello > made; cat made}")
        response = await at.execute("look")
        assert response["status"] == "AWAITING_SHELL_CONFIRMATION"
        items = await at.replay(response["execution_id"])
        asked = next(item for item in items if item.kind == "TOOL_CALL_UPDATE").data
        assert asked["confirmation_request"]["execute_details"]["command"] == "echo hello > made; cat made"
        assert items[-1].state == "input-required"
        confirmation = answer(response["execution_id"], allow(asked["tool_call_id"]))
        done = await at.client.stream("message/stream", confirmation)
        assert done[-1].state == "completed"
        assert at.harness.last_user_text() == "It says hello"


@pytest.mark.requirement("A2A-127")
async def test_init_waits_for_a_confirmation_before_a_file_is_overwritten(tmp_path: Path) -> None:
    async with place(tmp_path) as at:
        (at.harness.workspace / "GEMINI.md").write_text("Mine.")
        response = await at.execute("init")
        assert response["status"] == "AWAITING_ACTION_CONFIRMATION"
        task = await at.client.result("tasks/get", {"id": response["execution_id"]})
        (part,) = [part for part in task["status"]["message"]["parts"] if part["kind"] == "data"]
        assert "GEMINI.md" in part["data"]["confirmation_request"]["generic_details"]["description"]


@pytest.mark.requirement("A2A-131")
async def test_the_response_comes_while_the_command_still_works(tmp_path: Path) -> None:
    hold = Hold()
    async with place(tmp_path, Reply.of(Say("one ", "two"), hold=hold)) as at:
        command(at.harness, "slow", "Slow.")
        response = await at.execute("slow")
        assert response["status"] == "STARTED"
        task = await at.client.result("tasks/get", {"id": response["execution_id"]})
        assert task["status"]["state"] == "working"
        await asyncio.to_thread(hold.release)
        assert texts(await at.replay(response["execution_id"])) == "one two"


async def test_a_command_holds_in_the_session_that_its_metadata_names(tmp_path: Path) -> None:
    async with place(tmp_path) as at:
        task = await at.client.result("message/send", prompt("hello", at.harness.workspace))
        response = await at.execute("stats", contextId=task["contextId"])
        assert "test: 1 request" in texts(await at.replay(response["execution_id"]))
        by_task = await at.execute("stats", taskId=task["id"])
        assert "test: 1 request" in texts(await at.replay(by_task["execution_id"]))


def _path(at: Place) -> str:
    return str(at.harness.workspace)
