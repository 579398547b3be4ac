"""MCP servers in the whole program: over A2A with confirmations, in a headless turn, and the rest at its end."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import psutil
import pytest

from isthmus.client import PromptMessage
from isthmus.development_tool import McpDetails, ToolCall, ToolCallConfirmation, ToolCallStatus
from isthmus.events import AgentEvent, StateChange, TaskState, ToolCallUpdate
from support.isolation import IsolatedFolders
from support.isthmus_program import ISTHMUS, InProcess, process_ends
from support.loaded_program import LoadedProgram
from support.mcp_hosting import scripted, write_servers
from support.process_families import is_alive
from support.programs import node_package, require
from support.shared_serve import SharedServe, shared_serve
from support.turns import events_of
from support.waiting import eventually

pytestmark = pytest.mark.anyio

TWO_CALLS = """
name: mcp
scenarios:
  - prompt: '.'
    replies:
      - call: {name: ok, arguments: {x: one}}
      - call: {name: ok, arguments: {x: two}}
      - text: done
"""


@pytest.fixture(scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[SharedServe]:
    servers = {"helper": scripted("plain"), "hanging": scripted("hangs", timeout=1000)}
    async with shared_serve(tmp_path_factory.mktemp("serve"), TWO_CALLS, servers=servers) as serve:
        yield serve


def last_calls(events: list[AgentEvent]) -> dict[str, ToolCall]:
    return {event.tool_call.tool_call_id: event.tool_call for event in events if isinstance(event, ToolCallUpdate)}


def script(tmp_path: Path) -> str:
    path = tmp_path / "script.yaml"
    path.write_text(TWO_CALLS, encoding="utf-8")
    return f"scripted:{path}"


@pytest.mark.requirement("MCP-009", "MCP-104", "MCP-106", "MCP-122")
async def test_a_client_is_asked_with_mcp_details_and_may_allow_the_whole_server(shared: SharedServe) -> None:
    settings = {"workspace_path": str(shared.workspace("allowed"))}
    turn = await shared.agent.prompt(PromptMessage("go", settings=settings))
    events = await events_of(turn)
    assert events[-1] == StateChange(TaskState.INPUT_REQUIRED)
    (call,) = last_calls(events).values()
    assert call.confirmation_request is not None
    assert call.confirmation_request.mcp_details == McpDetails("helper", "ok")
    options = [option.id for option in call.confirmation_request.options]
    assert options == ["proceed_once", "proceed_always_tool", "proceed_always_server", "cancel"]
    answer = [ToolCallConfirmation(call.tool_call_id, "proceed_always_server")]
    events = await events_of(await shared.agent.answer(turn.snapshot.task_id, answer, answered_by="test"))
    done = last_calls(events)
    assert [item.status for item in done.values()] == [ToolCallStatus.SUCCEEDED] * 2
    texts = [item.output.text for item in done.values() if item.output is not None]
    assert texts == ["ok one", "ok two"]
    assert events[-1] == StateChange(TaskState.COMPLETED)


async def test_agent_settings_that_name_a_server_that_is_not_configured_are_refused(shared: SharedServe) -> None:
    for wanted, words in (
        ("other", "no MCP server is named 'other' here; configured are: helper, hanging"),
        ({"name": "mine", "url": "http://127.0.0.1:9/mcp"}, "leads to a loopback address"),
    ):
        settings = {"workspace_path": str(shared.workspace("refused")), "mcp_servers": [wanted]}
        with pytest.raises(Exception, match=words):
            await shared.agent.prompt(PromptMessage("go", settings=settings))


@pytest.mark.requirement("MCP-031", "MCP-101")
def test_a_headless_turn_uses_a_trusted_server_unasked_and_leaves_nothing_behind(
    isolated_folders: IsolatedFolders, tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    pid_file = tmp_path / "pid"
    servers = {
        "helper": scripted("ignores-end", str(pid_file), trust=True),
        "dead": {"command": "no-such-program"},
        "hanging": scripted("hangs", timeout=1500),
    }
    write_servers(isolated_folders.home, servers)
    command = ("-p", "go", "-o", "json", "-m", script(tmp_path), "--no-ide", "--data-dir", str(tmp_path / "data"))
    ended = loaded_isthmus.run(*command, folder=workspace)
    assert ended.returncode == 0
    (line,) = ended.stderr.splitlines()
    assert line.startswith(
        "isthmus: running without the tools of these MCP servers: dead (the program 'no-such-program' was"
    )
    assert "hanging (no answer to initialize: none came within 1.5 s)" in line
    answer = json.loads(ended.stdout)
    assert answer["response"] == "done"
    assert [(found["name"], found["status"]) for found in answer["mcp_servers"]] == [
        ("helper", "connected"),
        ("dead", "disconnected"),
        ("hanging", "disconnected"),
    ]
    process_ends(int(pid_file.read_text()))


def test_a_headless_run_names_the_tools_that_its_model_is_not_offered(
    isolated_folders: IsolatedFolders, tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    write_servers(isolated_folders.home, {"helper": scripted("plain"), "reads": scripted("bad-structured")})
    (tmp_path / "quiet.yaml").write_text("{name: quiet, scenarios: [{prompt: '.', replies: [{text: done}]}]}")
    command = ("-p", "go", "--no-ide", "--data-dir", str(tmp_path / "data"))

    def errors(status: int, *options: str) -> str:
        ended = loaded_isthmus.run(*command, *options, folder=workspace)
        assert ended.returncode == status, ended.stderr
        return ended.stderr

    quiet = f"scripted:{tmp_path / 'quiet.yaml'}"
    (line,) = errors(0, "-m", quiet).splitlines()
    assert line.startswith("isthmus: the model is not offered these tools of MCP servers")
    assert "Allow them with --allowed-tools 'helper,reads', by" in line
    assert "here: helper, reads.ok, reads.twice. Allow" in errors(0, "-m", quiet, "--allowed-tools", "loop")
    assert errors(0, "-m", quiet, "--allowed-tools", "helper,reads") == ""
    assert errors(0, "-m", quiet, "--approval-mode", "plan") == ""
    # The script calls it all the same; the advice names no other server's tool.
    refused = errors(57, "-m", script(tmp_path))
    assert "--allowed-tools 'helper.ok'" in refused


def test_a_headless_run_ends_with_45_where_a_server_is_missing_that_must_be_there(
    isolated_folders: IsolatedFolders, tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    write_servers(isolated_folders.home, {"good": scripted("plain"), "dead": {"command": "no-such-program"}})
    command = ("-p", "go", "-m", script(tmp_path), "--no-ide", "--data-dir", str(tmp_path / "data"))
    ended = loaded_isthmus.run(*command, "-o", "stream-json", "--strict-mcp", folder=workspace)
    assert ended.returncode == 45
    assert "required MCP servers are not connected: dead: the program 'no-such-program' was not found" in ended.stderr
    lines = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [found["status"] for found in lines[0]["mcp_servers"]] == ["connected", "disconnected"]
    assert lines[-1]["status"] == "error"
    assert lines[-1]["error"]["type"] == "RequiredServerMissing"


THREE_SERVERS = """
name: mcp
scenarios:
  - prompt: '.'
    replies:
      - call: {name: ok, arguments: {x: one}}
      - call: {name: b__ok, arguments: {x: two}}
      - call: {name: c__ok, arguments: {x: three}}
      - text: done
"""


@pytest.mark.requirement("MCP-032", "MCP-102", "MCP-103")
def test_without_trust_a_headless_turn_refuses_the_call_and_says_how_to_allow_it(
    isolated_folders: IsolatedFolders, tmp_path: Path, isthmus_here: InProcess
) -> None:
    write_servers(isolated_folders.home, {name: scripted("plain") for name in "abc"})
    (tmp_path / "script.yaml").write_text(THREE_SERVERS, encoding="utf-8")
    command = ["-p", "go", "-o", "stream-json", "-m", f"scripted:{tmp_path / 'script.yaml'}", "--no-ide"]
    command += ["--data-dir", str(tmp_path / "data")]

    def outputs(*allowed: str) -> list[str]:
        _, out, _ = isthmus_here(*command, *(word for entry in allowed for word in ("--allowed-tools", entry)))
        lines = [json.loads(line) for line in out.splitlines()]
        return [str(line.get("output") or line.get("error")) for line in lines if line["type"] == "tool_result"]

    refused, *allowed = outputs("b", "c.ok")
    assert "no user can be asked" in refused
    assert allowed == ["ok two", "ok three"]
    assert outputs("ok", "b__ok", "c__ok") == ["ok one", "ok two", "ok three"]


NODE_SERVER = """
const { Server } = require(SDK + "/server/index.js");
const { StdioServerTransport } = require(SDK + "/server/stdio.js");
const { CallToolRequestSchema, ListToolsRequestSchema } = require(SDK + "/types.js");
const server = new Server({ name: "node-server", version: "1.0.0" }, { capabilities: { tools: {} } });
const ok = { name: "ok", description: "Where it runs.", inputSchema: { type: "object", properties: { x: {} } } };
server.setRequestHandler(ListToolsRequestSchema, async () => ({ tools: [ok] }));
server.setRequestHandler(CallToolRequestSchema, async () => ({
  content: [{ type: "text", text: `${process.argv.slice(2)} in ${process.cwd()}` }],
}));
server.connect(new StdioServerTransport());
"""


@pytest.mark.requirement("MCP-072", "MCP-020", "MCP-023", "MCP-028")
def test_the_documents_node_server_runs_where_and_as_it_says_and_is_trusted(
    isolated_folders: IsolatedFolders, tmp_path: Path, workspace: Path, isthmus_here: InProcess
) -> None:
    require("node")
    sdk = node_package("@modelcontextprotocol/sdk") / "dist" / "cjs"
    program = workspace / "mcp-servers" / "node" / "dist" / "server.js"
    program.parent.mkdir(parents=True)
    program.write_text(NODE_SERVER.replace("SDK", json.dumps(str(sdk))), encoding="utf-8")
    (isolated_folders.home / ".gemini").mkdir()
    (isolated_folders.home / ".gemini" / "settings.json").write_text(
        """{
  "mcpServers": {
    "nodeServer": {
      "command": "node",
      "args": ["dist/server.js", "--verbose"],
      "cwd": "./mcp-servers/node",
      "trust": true, // as the document has it
    }
  }
}""",
        encoding="utf-8",
    )
    command = ["-p", "go", "-o", "stream-json", "-m", script(tmp_path), "--no-ide"]
    _, out, problem = isthmus_here(*command, "--data-dir", str(tmp_path / "data"))
    lines = [json.loads(line) for line in out.splitlines()]
    outputs = [line.get("output") or line.get("error") for line in lines if line["type"] == "tool_result"]
    assert outputs == [f"--verbose in {program.parent.parent.resolve()}"] * 2, problem


def test_servers_end_with_an_agent_that_is_killed(
    isolated_folders: IsolatedFolders, tmp_path: Path, workspace: Path
) -> None:
    pid_file = tmp_path / "pid"
    write_servers(isolated_folders.home, {"helper": scripted("silent", str(pid_file), trust=True)})
    process = subprocess.Popen(
        [*ISTHMUS, "-p", "go", "-m", script(tmp_path), "--no-ide", "--data-dir", str(tmp_path / "data")],
        cwd=workspace, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        pid = int(eventually(lambda: pid_file.exists() and pid_file.read_text(), 60))
        server = psutil.Process(pid)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    eventually(lambda: not is_alive(server))


def test_a_projects_servers_start_only_in_a_folder_that_the_user_trusts(
    isolated_folders: IsolatedFolders, tmp_path: Path, workspace: Path, isthmus_here: InProcess
) -> None:
    write_servers(workspace, {"theirs": scripted("plain", str(tmp_path / "started"))})
    command = ["-p", "go", "-m", script(tmp_path), "--no-ide", "--data-dir", str(tmp_path / "data")]
    command += ["--approval-mode", "yolo"]
    status, _, problem = isthmus_here(*command)
    assert status == 0, problem
    assert not (tmp_path / "started").exists()
    (isolated_folders.home / ".gemini").mkdir()
    rules = json.dumps({str(workspace): "TRUST_FOLDER"})
    (isolated_folders.home / ".gemini" / "trustedFolders.json").write_text(rules, encoding="utf-8")
    isthmus_here(*command)
    assert (tmp_path / "started").exists()


HEADLESS = """
import json, sys
import isthmus.__main__
sys.argv = ["isthmus", "-p", "hi", "-m", "demo", "--no-ide", "--data-dir", sys.argv[1]]
try:
    status = isthmus.__main__.main()
except SystemExit as end:
    status = end.code
assert not status, status
print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))
"""


def test_without_servers_a_turn_does_not_import_the_sdk(tmp_path: Path, workspace: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", HEADLESS, str(tmp_path / "data")],
        cwd=workspace, capture_output=True, text=True, encoding="utf-8", timeout=100, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert {"mcp", "mcp_types", "jsonschema"}.isdisjoint(json.loads(ended.stdout.splitlines()[-1]))
