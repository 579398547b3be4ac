"""Slash commands of ``isthmus serve`` as a process of its own, killed while a command waits or works."""

import json
import os
import subprocess
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from isthmus.a2a.protocol.extension import URI
from support.gemini_wire import GeminiWire
from support.isolation import IsolatedFolders
from support.isthmus_program import ISTHMUS, isthmus, read_line
from support.plain_http import NO_TLS, SECONDS
from support.scripted_wire import Reply, Say
from support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Generator

READY = "A2A server ready at "


class Served:
    """A running server, and its client."""

    def __init__(self, process: "subprocess.Popen[str]", url: str, token: str) -> None:
        self.process = process
        self._url = url
        self._headers = {"Authorization": f"Bearer {token}", "X-A2A-Extensions": URI}

    def call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        response = httpx2.post(
            self._url, json=body, headers=self._headers, timeout=SECONDS, trust_env=False, verify=NO_TLS
        )
        return response.json()["result"]

    def execute(self, *path: str, args: str = "") -> dict[str, Any]:
        return self.call("command/execute", {"command_path": list(path), "args": args})

    def task(self, task_id: str) -> dict[str, Any]:
        return self.call("tasks/get", {"id": task_id})

    def ends_in(self, task_id: str, state: str) -> None:
        eventually(lambda: self.task(task_id)["status"]["state"] == state, 30)

    def allow(self, task_id: str) -> dict[str, Any]:
        parts = self.task(task_id)["status"]["message"]["parts"]
        call_id = next(part["data"]["tool_call_id"] for part in parts if part["kind"] == "data")
        data = {"tool_call_id": call_id, "selected_option_id": "proceed_once"}
        message = {"role": "user", "messageId": "m", "taskId": task_id, "parts": [{"kind": "data", "data": data}]}
        return self.call("message/send", {"message": message, "configuration": {"blocking": False}})

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(30)


@contextmanager
def serving(folder: Path, workspace: Path, wire: GeminiWire) -> "Generator[Served]":
    environment = {**os.environ, "GEMINI_API_KEY": "test-key", "GOOGLE_GEMINI_BASE_URL": wire.base_url}
    arguments = [
        "--token-file",
        str(folder / "token"),
        "--data-dir",
        str(folder / "data"),
        "--workspace",
        str(workspace),
    ]
    with (folder / "server.log").open("a", encoding="utf-8") as log:
        process = subprocess.Popen(
            [*ISTHMUS, "serve", "--port", "0", "--no-ide", *arguments],
            cwd=folder, env=environment, text=True, encoding="utf-8", stdout=subprocess.PIPE, stderr=log,
        )  # fmt: skip
    try:
        line = read_line(process)
        assert line.startswith(READY), line + (folder / "server.log").read_text(encoding="utf-8")
        yield Served(process, line.removeprefix(READY).strip(), (folder / "token").read_text(encoding="utf-8").strip())
    finally:
        process.kill()
        process.wait(30)
        assert process.stdout is not None
        process.stdout.close()


def custom(workspace: Path, name: str, prompt: str) -> None:
    path = workspace / ".gemini" / "commands" / f"{name}.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"prompt = '''{prompt}'''\n", encoding="utf-8")


def text_of(path: Path) -> str:
    """Return the output that a command has written so far."""
    return path.read_text(encoding="utf-8") if path.exists() else ""


def fine() -> Callable[[object], Reply]:
    return lambda _: Reply.of(Say("fine"))


def test_a_command_that_waits_survives_kill_9_and_runs_its_shell_command_once(tmp_path: Path, workspace: Path) -> None:
    custom(workspace, "look", "It says !{echo x >> count; cat count}")
    with GeminiWire(fine()) as wire:
        with serving(tmp_path, workspace, wire) as server:
            response = server.execute("look")
            assert response["status"] == "AWAITING_SHELL_CONFIRMATION"
            server.kill()
        with serving(tmp_path, workspace, wire) as server:
            server.allow(response["execution_id"])
            server.ends_in(response["execution_id"], "completed")
        assert (workspace / "count").read_text(encoding="utf-8") == "x\n"
        (request,) = wire.model_requests
        assert "It says x" in json.dumps(request.json["contents"])


def test_a_shell_command_that_was_under_way_is_not_run_again_and_the_command_fails(
    tmp_path: Path, workspace: Path
) -> None:
    custom(workspace, "look", "It says !{echo x >> count; sleep 20}")
    with GeminiWire(fine()) as wire:
        with serving(tmp_path, workspace, wire) as server:
            response = server.execute("look")
            server.allow(response["execution_id"])
            eventually(lambda: text_of(workspace / "count") == "x\n")
            server.kill()
        with serving(tmp_path, workspace, wire) as server:
            server.ends_in(response["execution_id"], "failed")
        assert (workspace / "count").read_text(encoding="utf-8") == "x\n"
        assert wire.model_requests == []


def test_what_was_remembered_is_in_the_next_request_of_another_process(
    tmp_path: Path, workspace: Path, isolated_folders: IsolatedFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    with GeminiWire(fine()) as wire:
        with serving(tmp_path, workspace, wire) as server:
            response = server.execute("memory", "add", args="I like tea")
            server.ends_in(response["execution_id"], "completed")
            server.kill()
        own = isolated_folders.home / ".gemini" / "GEMINI.md"
        assert own.read_text(encoding="utf-8") == "## Gemini Added Memories\n- I like tea\n"
        monkeypatch.setenv("GEMINI_API_KEY", "test-key")
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", wire.base_url)
        done = isthmus("-p", "hello", "--no-ide", folder=workspace)
        assert done.stdout == "fine\n", done.stderr
        assert "- I like tea" in json.dumps(wire.model_requests[-1].json["systemInstruction"])


MCP_SERVER = """
import pathlib, sys
from mcp.server.mcpserver import MCPServer
server = MCPServer("growing")
for name in pathlib.Path(sys.argv[1]).read_text().split():
    server.add_tool(lambda: "done", name=name, description=f"Does {name}.")
server.run()
"""


def test_mcp_refresh_shows_a_tool_that_was_added_and_the_next_request_offers_it(
    tmp_path: Path, workspace: Path, isolated_folders: IsolatedFolders
) -> None:
    (tmp_path / "growing.py").write_text(MCP_SERVER, encoding="utf-8")
    tools = tmp_path / "tools.txt"
    tools.write_text("first_tool", encoding="utf-8")
    command = {"command": ISTHMUS[0], "args": [str(tmp_path / "growing.py"), str(tools)]}
    settings = isolated_folders.home / ".gemini" / "settings.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text(json.dumps({"mcpServers": {"growing": command}}), encoding="utf-8")
    with GeminiWire(fine()) as wire, serving(tmp_path, workspace, wire) as server:

        def said(*path: str, args: str = "") -> str:
            task_id = server.execute(*path, args=args)["execution_id"]
            server.ends_in(task_id, "completed")
            return json.dumps(server.task(task_id)["history"][-1])

        eventually(lambda: "growing (CONNECTED)" in said("mcp", "list"), 30)
        tools.write_text("first_tool second_tool", encoding="utf-8")
        refreshed = said("mcp", "refresh", args="growing")
        assert "growing: + second_tool" in refreshed
        assert "first_tool" in refreshed
        assert "Does second_tool." in said("mcp", "desc")
        message: dict[str, Any] = {"role": "user", "messageId": "p", "parts": [{"kind": "text", "text": "hello"}]}
        message["metadata"] = {URI: {"workspace_path": str(workspace)}}
        server.call("message/send", {"message": message, "configuration": {"blocking": True}})
        offered = json.dumps(wire.model_requests[-1].json["tools"])
        assert "first_tool" in offered
        assert "second_tool" in offered
