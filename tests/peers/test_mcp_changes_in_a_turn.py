"""Servers that change their tools, or connect late, during a turn: the model's next step has the new ones."""

import os
import shlex
from pathlib import Path
from typing import Any

import pytest

from isthmus.mcp_host.host import McpHost
from isthmus.tools.port.servers import ServerState
from isthmus.tools.port.tool_set import CALL_TOOL, SEARCH_TOOL, ToolScope, ToolSet
from support.gemini_wire import GeminiWire
from support.isolation import IsolatedFolders
from support.isthmus_program import ISTHMUS
from support.loaded_program import LoadedProgram
from support.mcp_hosting import hosting, scripted, status_when, write_servers
from support.pty_program import pty_program
from support.scripted_wire import Call, Reply, Say
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

NEW_1 = Call(CALL_TOOL, {"name": "new_1", "arguments": {}})
PROMPT = r"(?m)^\u203a ?$"


def declared(body: Any) -> list[str]:
    return [item["name"] for group in body["tools"] for item in group["functionDeclarations"]]


def told(body: Any) -> str:
    """Return what a request tells the model behind its last results."""
    return "".join(part.get("text", "") for part in body["contents"][-1]["parts"])


def run(loaded: LoadedProgram, wire: GeminiWire, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Run one headless turn; return the requests to the model."""
    monkeypatch.setenv("GEMINI_API_KEY", "test-key")
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", wire.base_url)
    ran = loaded.run("-m", "gemini:test-model", "-p", "go", folder=folder)
    assert (ran.returncode, ran.stdout.strip()) == (0, "Done."), ran.stderr
    return [request.json for request in wire.model_requests]


@pytest.mark.parametrize("server", ["changing", "changing-late"])  # reports the change before or after the result
def test_the_models_next_step_has_the_tools_that_a_call_made_the_server_list(
    isolated_folders: IsolatedFolders,
    workspace: Path,
    monkeypatch: pytest.MonkeyPatch,
    loaded_isthmus: LoadedProgram,
    server: str,
) -> None:
    write_servers(isolated_folders.home, {"s": scripted(server, trust=True), "other": scripted("plain")})
    with GeminiWire([Reply.of(Call("ok")), Reply.of(NEW_1), Reply.of(Say("Done."))]) as wire:
        first, second, third = run(loaded_isthmus, wire, workspace, monkeypatch)
    before = declared(first)
    assert "ok" in before
    assert not [name for name in before if name.startswith("new_")]
    assert declared(second) == declared(third) == before
    assert '{"name":"new_1"' in told(second)
    assert third["contents"][-1]["parts"][0]["functionResponse"]["name"] == CALL_TOOL
    assert "changed" in str(third["contents"][-1])
    assert '{"name":"new_2"' in told(third)
    assert "These tools cannot be called now: new_1." in told(third)


def test_a_tool_that_came_within_a_turn_is_found_by_the_search_of_the_same_turn(
    isolated_folders: IsolatedFolders, workspace: Path, monkeypatch: pytest.MonkeyPatch, loaded_isthmus: LoadedProgram
) -> None:
    write_servers(isolated_folders.home, {"s": scripted("changing", trust=True)})
    path = isolated_folders.home / ".gemini" / "settings.json"
    path.write_text(path.read_text()[:-1] + ', "isthmus": {"toolSearch": "always"}}', encoding="utf-8")
    replies = [Call("ok"), Call(SEARCH_TOOL, {"query": "select:new_1"}), Say("Done.")]
    with GeminiWire([Reply.of(reply) for reply in replies]) as wire:
        first, second, third = run(loaded_isthmus, wire, workspace, monkeypatch)
    assert SEARCH_TOOL in declared(first)
    assert declared(first) == declared(second) == declared(third)
    assert '{"name":"new_1"' in str(third["contents"][-1]["parts"][0]["functionResponse"]["response"])


async def test_a_late_server_is_there_at_the_next_step_and_unchanged_tools_are_kept(
    isolated_folders: IsolatedFolders, workspace: Path, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    late = _starts_with(gate)
    scope = ToolScope(workspace, "context", "task")
    async with hosting(isolated_folders.home, {"late": late, "there": scripted("read-only")}, wait_seconds=0.0) as host:
        await status_when(host, scope, "there", ServerState.CONNECTED)
        began = await host.tools(scope)
        assert [server.name for server in began.servers if server.tools] == ["there"]
        assert await host.renewed(scope, began) is began
        gate.touch()
        after = await _another(host, scope, began)
        assert [server.name for server in after.servers if server.tools] == ["late", "there"]
        assert await host.renewed(scope, after) is after
        await host.refresh(scope, "there")  # as it was
        assert await host.renewed(scope, after) is after


def test_in_the_terminal_the_first_turn_names_whom_it_awaits_and_leaves_no_line(
    isolated_folders: IsolatedFolders, workspace: Path, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    # Required, since other servers are awaited for 5 s from the start: on a loaded machine these end before the turn.
    write_servers(isolated_folders.home, {"late": {**_starts_with(gate), "required": True, "timeout": 60_000}})
    with GeminiWire([Reply.of(Say("Here I am."))]) as wire:
        keys = {**os.environ, "GEMINI_API_KEY": "test-key", "GOOGLE_GEMINI_BASE_URL": wire.base_url}
        with pty_program([*ISTHMUS, "-m", "gemini:test-model"], folder=workspace, environment=keys) as terminal:
            terminal.wait_for(PROMPT, 60).press("hello\r").wait_for("waiting for MCP servers: late", 60)
            gate.touch()
            terminal.wait_for("Here I am", 60).wait_for(PROMPT, 60)
            assert "waiting for MCP" not in terminal.screen


def _starts_with(gate: Path) -> dict[str, Any]:
    """Return the settings of a server that starts once the file `gate` is there."""
    plain = scripted("plain")
    program = shlex.join([plain["command"], *plain["args"]])
    waits = f"until [ -e {shlex.quote(str(gate))} ]; do sleep 0.05; done; exec {program}"
    return {"command": "/bin/sh", "args": ["-c", waits], "env": {"PATH": os.environ["PATH"]}}


async def _another(host: McpHost, scope: ToolScope, tools: ToolSet) -> ToolSet:
    found: list[ToolSet] = []

    async def changed() -> bool:
        found[:] = [await host.renewed(scope, tools)]
        return found[0] is not tools

    await eventually_async(changed, 40)
    return found[0]
