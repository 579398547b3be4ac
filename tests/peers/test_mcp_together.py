"""Every transport and the servers that people use, in one settings.json, called by one agent in `isthmus serve`.

The requests use A2A 0.3, 1.0 and the dialect coderAgent. Its model is Gemini, over its wire: the model gets the same
bytes as the real provider.
"""

import asyncio
import base64
import contextlib
import json
import os
import re
import subprocess
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from isthmus.a2a.client.remote_agent import RemoteAgent
from isthmus.client import PromptMessage, Turn
from isthmus.development_tool import McpDetails, ToolCall, ToolCallConfirmation, ToolCallStatus
from isthmus.events import AgentEvent, StateChange, TaskState, ToolCallUpdate
from support.gemini_wire import GeminiWire
from support.isolation import IsolatedFolders
from support.isthmus_program import ISTHMUS
from support.mcp_hosting import everything_over, node_server, write_servers
from support.mcp_tools import are_connected
from support.plain_http import plain_client
from support.programs import require
from support.pty_program import pty_program
from support.scripted_wire import Call, Reply, Say
from support.serve_program import ServeProgram, serve_program
from support.waiting import eventually_async
from support.wire_server import Answer, Hold, WireRequest, WireServer

pytestmark = pytest.mark.anyio

PROMPT = r"(?m)^\u203a ?$"
PAGE = b"<html><body><p>The page of this machine.</p></body></html>"


@dataclass(frozen=True)
class Together:
    """The agent, its model's replies and requests, and a web site."""

    server: ServeProgram
    wire: GeminiWire
    site: WireServer
    workspace: Path

    def results(self, request: int = -1) -> dict[str, str]:
        """Return the results of calls in the model's request, by the names of their tools; the last ones."""
        found: dict[str, str] = {}
        for part in self.parts(request):
            if (response := part.get("functionResponse")) is not None:
                found[response["name"]] = next(iter(response["response"].values()))
        return found

    def parts(self, request: int = -1) -> list[dict[str, Any]]:
        """Return the parts of the last content of a model's request."""
        return self.wire.model_requests[request].json["contents"][-1]["parts"]


@contextlib.asynccontextmanager
async def together(isolated_folders: IsolatedFolders, folder: Path, workspace: Path) -> AsyncGenerator[Together]:
    """Start the agent with eight servers of three transports, none of them trusted."""
    hold = Hold()

    def answer(request: WireRequest) -> Answer:
        slow = (hold,) if request.path == "/slow" else ()
        return Answer(200, {"content-type": "text/html"}, (PAGE, *slow))

    with (
        everything_over("sse") as sse,
        everything_over("streamableHttp") as http,
        WireServer(answer) as site,
        GeminiWire() as wire,
    ):
        write_servers(
            isolated_folders.home,
            {
                "everything": node_server("server-everything", "stdio"),
                "sse": {"url": f"http://127.0.0.1:{sse}/sse"},
                "http": {"httpUrl": f"http://127.0.0.1:{http}/mcp"},
                "files": node_server("server-filesystem", str(workspace)),
                "memory": {**node_server("server-memory"), "env": {"MEMORY_FILE_PATH": str(folder / "memory.json")}},
                "git": {"command": str(require("mcp-server-git")), "args": ["--repository", str(workspace)]},
                "time": {"command": str(require("mcp-server-time")), "args": ["--local-timezone", "UTC"]},
                "fetch": {
                    "command": str(require("mcp-server-fetch")),
                    "args": ["--ignore-robots-txt", "--allow-private-ips"],
                },
            },
        )
        environment = {"GEMINI_API_KEY": "test-key", "GOOGLE_GEMINI_BASE_URL": wire.base_url}
        model = ("-m", "gemini:gemini-2.5-flash")
        async with serve_program(folder, workspace, *model, environment=environment) as server:
            yield Together(server, wire, site, workspace)
        hold.release()


async def events_of(turn: Turn) -> list[AgentEvent]:
    return [delivery.event async for delivery in turn.deliveries]


def calls_of(events: Sequence[AgentEvent]) -> dict[str, ToolCall]:
    """Return the last state of each call, by the name of its tool."""
    return {event.tool_call.tool_name: event.tool_call for event in events if isinstance(event, ToolCallUpdate)}


def details_of(call: ToolCall) -> McpDetails | None:
    return call.confirmation_request.mcp_details if call.confirmation_request is not None else None


async def prompted(agent: RemoteAgent, workspace: Path, text: str) -> Turn:
    return await agent.prompt(PromptMessage(text, settings={"workspace_path": str(workspace)}))


@pytest.mark.requirement("MCP-002", "MCP-005", "MCP-008", "MCP-011")
async def test_an_agent_uses_servers_of_every_transport_at_once_whoever_asks_it(
    isolated_folders: IsolatedFolders, tmp_path: Path, workspace: Path
) -> None:
    (workspace / "a.txt").write_text("content of a")
    subprocess.run([str(require("git")), "init", "-q", str(workspace)], check=True)
    async with together(isolated_folders, tmp_path, workspace) as at:
        await a_turn_with_all_servers_over_0_3(at)
        await a_question_over_1_0(at)
        await a_question_in_the_dialect_coder_agent(at)
        await a_cancelled_call_is_cancelled_at_the_server(at)


async def a_turn_with_all_servers_over_0_3(at: Together) -> None:
    path, page = str(at.workspace / "a.txt"), f"{at.site.base_url}/page"
    entity = {"name": "Ada", "entityType": "user", "observations": ["wrote programs"]}
    each = {
        "echo": ("everything", "echo", {"message": "over stdio"}),
        "sse__echo": ("sse", "echo", {"message": "over sse"}),
        "http__echo": ("http", "echo", {"message": "over http"}),
        "files__read_file": ("files", "read_file", {"path": path}),
        "create_entities": ("memory", "create_entities", {"entities": [entity]}),
        "git_status": ("git", "git_status", {"repo_path": str(at.workspace)}),
        "get_current_time": ("time", "get_current_time", {"timezone": "UTC"}),
        "fetch": ("fetch", "fetch", {"url": page, "raw": True}),
    }
    rich = (
        Call("get-tiny-image"),
        Call("get-annotated-message", {"messageType": "success", "includeImage": True}),
        Call("get-resource-links", {"count": 2}),
        Call("get-resource-reference", {"resourceType": "Blob", "resourceId": 1}),
        Call("get-structured-content", {"location": "Chicago"}),
        Call("trigger-long-running-operation", {"duration": 1, "steps": 4}),
    )
    at.wire.add(
        Reply.of(*(Call(name, arguments) for name, (_, _, arguments) in each.items())),
        Reply.of(*rich),
        Reply.of(Say("All of them answered.")),
    )
    agent = await RemoteAgent.connect(at.server.url, at.server.token, protocol="0.3")
    await are_connected(agent, at.workspace, "everything", "sse", "http", "files", "memory", "git", "time", "fetch")
    turn = await prompted(agent, at.workspace, "use all of them")
    events = await events_of(turn)
    assert events[-1] == StateChange(TaskState.INPUT_REQUIRED), events[-3:]
    asked = calls_of(events)
    assert {name: details_of(call) for name, call in asked.items()} == {
        name: McpDetails(server, tool) for name, (server, tool, _) in each.items()
    }
    # The whole server each time: the model's later calls of it need no permission.
    answers = [ToolCallConfirmation(call.tool_call_id, "proceed_always_server") for call in asked.values()]
    events = await events_of(await agent.answer(turn.snapshot.task_id, answers, answered_by="test"))
    await agent.aclose()
    assert events[-1] == StateChange(TaskState.COMPLETED), events[-3:]
    done = calls_of(events)
    assert {name: call.error for name, call in done.items() if call.error is not None} == {}
    assert {call.status for call in done.values()} == {ToolCallStatus.SUCCEEDED}
    _the_model_was_told_what_each_server_said(at)
    _the_model_was_given_rich_content(at)
    _the_user_read_a_summary(done)
    progress = [event.tool_call.live_content for event in events if isinstance(event, ToolCallUpdate)]
    assert "50% (2 of 4)" in progress


def _the_model_was_told_what_each_server_said(at: Together) -> None:
    told = at.results(1)
    for name, words in {
        "echo": "Echo: over stdio",
        "sse__echo": "Echo: over sse",
        "http__echo": "Echo: over http",
        "files__read_file": "content of a",
        "create_entities": "wrote programs",
        "git_status": "a.txt",
        "get_current_time": '"timezone": "UTC"',
        "fetch": "The page of this machine.",
    }.items():
        assert words in told[name], (name, told[name])
        assert told[name].startswith("<untrusted_context>\n"), told[name]


def _the_model_was_given_rich_content(at: Together) -> None:
    told, parts = at.results(2), at.parts(2)
    kinds = [next(iter(part)) for part in parts]
    # One response for each call; images follow their response. The annotated one is for the user.
    assert kinds == ["functionResponse", "inlineData", *["functionResponse"] * 5]
    image = parts[1]["inlineData"]
    assert image["mimeType"] == "image/png"
    assert base64.b64decode(image["data"]).startswith(b"\x89PNG")
    assert "Here's the image you requested:" in told["get-tiny-image"]
    assert "[image image/png, " in told["get-tiny-image"]
    assert told["get-annotated-message"] == "[2 parts for the user alone, who sees it]"
    assert told["get-resource-links"].count("[link to the resource demo://resource/dynamic/") == 2
    assert "[resource text/plain, " in told["get-resource-reference"]
    assert '"conditions":"Light rain / drizzle"' in told["get-structured-content"]
    assert told["get-structured-content"].count("drizzle") == 1
    assert "Long running operation completed." in told["trigger-long-running-operation"]


def _the_user_read_a_summary(done: Mapping[str, ToolCall]) -> None:
    shown = {name: (call.output.text or "") for name, call in done.items() if call.output is not None}
    assert shown["echo"] == "Echo: over stdio"
    assert shown["get-tiny-image"].splitlines()[0].startswith("text (2 lines) + image/png (")
    annotated = shown["get-annotated-message"].splitlines()
    assert annotated[0].startswith("text (1 line) + image/png (")
    assert annotated[1] == "Operation completed successfully"
    assert shown["get-structured-content"].startswith('```json\n{"temperature":36')
    assert "<untrusted_context>" not in json.dumps(shown)


async def a_question_over_1_0(at: Together) -> None:
    at.wire.add(Reply.of(Call("http__echo", {"message": "1.0"})), Reply.of(Say("done")))
    agent = await RemoteAgent.connect(at.server.url, at.server.token, protocol="1.0")
    turn = await prompted(agent, at.workspace, "over 1.0")
    (call,) = calls_of(await events_of(turn)).values()
    assert details_of(call) == McpDetails("http", "echo")
    answer = [ToolCallConfirmation(call.tool_call_id, "proceed_once")]
    (done,) = calls_of(await events_of(await agent.answer(turn.snapshot.task_id, answer, answered_by="test"))).values()
    await agent.aclose()
    assert done.output is not None
    assert done.output.text == "Echo: 1.0"
    assert "Echo: 1.0" in at.results()["http__echo"]


async def a_question_in_the_dialect_coder_agent(at: Together) -> None:
    at.wire.add(Reply.of(Call("get-tiny-image")), Reply.of(Say("done")))
    settings = {"kind": "agent-settings", "workspacePath": str(at.workspace)}
    first = await coder_agent(at.server, {"kind": "text", "text": "hello"}, metadata={"coderAgent": settings})
    asked = _tool_calls(first)[-1]
    assert asked["confirmationDetails"]["type"] == "mcp"
    assert asked["confirmationDetails"]["serverName"] == "everything"
    assert asked["confirmationDetails"]["toolName"] == "get-tiny-image"
    answer = {"callId": asked["request"]["callId"], "outcome": "proceed_once"}
    task = first[-1]["taskId"]
    second = await coder_agent(at.server, {"kind": "data", "data": answer}, taskId=task)
    done = _tool_calls(second)[-1]
    assert done["status"] == "success"
    assert "text (2 lines) + image/png (" in json.dumps(done["response"])


def _tool_calls(items: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    kinds = ("tool-call-update", "tool-call-confirmation")
    told = [item for item in items if item.get("metadata", {}).get("coderAgent", {}).get("kind") in kinds]
    return [item["status"]["message"]["parts"][0]["data"] for item in told]


async def coder_agent(server: ServeProgram, part: Mapping[str, Any], **more: Any) -> list[dict[str, Any]]:
    """Return the events that the server streams to a message of a client of gemini-cli-a2a-server."""
    message = {"kind": "message", "role": "user", "messageId": "m", "parts": [part], **more}
    request = {"jsonrpc": "2.0", "id": 1, "method": "message/stream", "params": {"message": message}}
    headers = {"Authorization": f"Bearer {server.token}"}
    found: list[dict[str, Any]] = []
    async with (
        plain_client() as client,
        client.stream("POST", server.url, json=request, headers=headers) as response,
    ):
        async for line in response.aiter_lines():
            if line.startswith("data:"):
                found.append(json.loads(line.removeprefix("data:"))["result"])
    return found


async def a_cancelled_call_is_cancelled_at_the_server(at: Together) -> None:
    at.wire.add(Reply.of(Call("fetch", {"url": f"{at.site.base_url}/slow", "raw": True})))
    agent = await RemoteAgent.connect(at.server.url, at.server.token)
    turn = await prompted(agent, at.workspace, "fetch it")
    (call,) = calls_of(await events_of(turn)).values()
    answer = [ToolCallConfirmation(call.tool_call_id, "proceed_once")]
    running = asyncio.create_task(_answered(agent, turn, answer))

    async def is_fetching() -> bool:
        return any(request.path == "/slow" for request in at.site.requests)

    await eventually_async(is_fetching)
    await agent.cancel(turn.snapshot.task_id)
    events = await running
    assert calls_of(events)["fetch"].status is ToolCallStatus.CANCELLED
    (request,) = [request for request in at.site.requests if request.path == "/slow"]

    async def has_left() -> bool:
        return request.disconnected.is_set()

    # The fetch server was notified: it cancelled its own request, and still runs.
    await eventually_async(has_left)
    await agent.aclose()


async def _answered(agent: RemoteAgent, turn: Turn, answer: list[ToolCallConfirmation]) -> list[AgentEvent]:
    return await events_of(await agent.answer(turn.snapshot.task_id, answer, answered_by="test"))


@pytest.mark.extended
def test_a_user_is_asked_in_the_terminal_and_reads_a_harmless_summary(
    isolated_folders: IsolatedFolders, tmp_path: Path, workspace: Path
) -> None:
    write_servers(isolated_folders.home, {"everything": node_server("server-everything", "stdio")})
    hostile = "\x1b]0;stolen\x07\x1b[2J\x1b[31mred\x1b[0m"
    replies = (
        Reply.of(Call("get-tiny-image"), Call("echo", {"message": hostile})),
        Reply.of(Say("I have seen the picture.")),
    )
    with GeminiWire(replies) as wire:
        environment = {**os.environ, "TERM": "xterm-256color", "GEMINI_API_KEY": "k"}
        environment["GOOGLE_GEMINI_BASE_URL"] = wire.base_url
        command = [*ISTHMUS, "-m", "gemini:gemini-3-pro-preview", "--no-ide", "--data-dir", str(tmp_path / "data")]
        with pty_program(command, folder=workspace, environment=environment, columns=120, rows=50) as terminal:
            terminal.wait_for(PROMPT, 60)
            for _ in range(8):
                with contextlib.suppress(AssertionError):
                    terminal.press("/mcp\r").wait_for(r"everything \(CONNECTED\)", 10).wait_for(PROMPT, 60)
                    break
            terminal.press("show me\r").wait_for("4. ", 60)
            question = terminal.screen
            assert "get-tiny-image" in question
            assert "everything" in question
            # This server's tools, from now on.
            terminal.press("3").wait_for(r"I have seen the picture\.", 60)
            screen, title = terminal.screen, terminal.title
    assert re.search(r"text \(2 lines\) \+ image/png \(\d+ (KB|bytes)\)", screen), screen
    assert "Echo: red" in screen
    assert "stolen" not in title
    inside = wire.model_requests[-1].json["contents"][-1]["parts"][0]["functionResponse"]["parts"]
    assert [part["inlineData"]["mimeType"] for part in inside] == ["image/png"]
