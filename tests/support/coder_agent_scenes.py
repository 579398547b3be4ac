"""Scenes in the dialect ``coderAgent``, played by a client that was written for gemini-cli-a2a-server.

The same scene is played to that server and to Isthmus, whose models are the same scripted wire. The messages on the
socket become a transcript (:mod:`support.coder_agent_client`). tests/peers/transcripts/coder_agent holds those of the
real server.

As a program it records them again: ``python -m support.coder_agent_scenes`` with tests/ on PYTHONPATH.
"""

import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from support.coder_agent_client import Line, Scene
from support.gemini_a2a_server import gemini_a2a_server
from support.gemini_wire import GeminiWire
from support.isolation import isolate
from support.plain_http import plain_client
from support.scripted_wire import Call, Failure, Reply, Say, Think
from support.serve_program import serve_program

FOLDER = Path(__file__).resolve().parent.parent / "peers" / "transcripts" / "coder_agent"
NOTES_SERVER = Path(__file__).resolve().parent / "notes_mcp_server.py"
MCP_SETTINGS: Mapping[str, Any] = {"mcpServers": {"notes": {"command": sys.executable, "args": [str(NOTES_SERVER)]}}}


async def text(scene: Scene) -> None:
    """Send a prompt that is answered by a thought and two pieces of text, then a second message to the same task."""
    scene.plan(Reply.of(Think("**Plan** Think about it."), Say("Hello ", "there.")), Reply.of(Say("Again.")))
    await scene.say("Hello", scene.settings)
    await scene.say("And again")
    await scene.call("tasks/get", {"id": scene.task_id})


async def send(scene: Scene) -> None:
    """Send the same without a stream."""
    scene.plan(Reply.of(Say("Hello.")))
    await scene.say("Hello", scene.settings, method="message/send")
    await scene.call("tasks/get", {"id": scene.task_id})


async def no_settings(scene: Scene) -> None:
    """Send a first message with no AgentSettings: the server has a workspace of its own."""
    scene.plan(Reply.of(Say("Hello.")))
    await scene.say("Hello", {})


async def read_file(scene: Scene) -> None:
    """Run a call that needs no permission."""
    (scene.workspace / "a.txt").write_text("old\n", encoding="utf-8")
    scene.plan(
        Reply.of(Call("read_file", {"file_path": str(scene.workspace / "a.txt")})),
        Reply.of(Say("I read it.")),
    )
    await scene.say("Read a.txt", scene.settings)


async def read_file_fails(scene: Scene) -> None:
    """Run a call that fails."""
    scene.plan(
        Reply.of(Call("read_file", {"file_path": str(scene.workspace / "missing.txt")})),
        Reply.of(Say("It is not there.")),
    )
    await scene.say("Read missing.txt", scene.settings)


def _write(scene: Scene, name: str = "b.txt") -> Call:
    return Call("write_file", {"file_path": str(scene.workspace / name), "content": "new\n"})


async def edit_once(scene: Scene) -> None:
    """Create a file, allowed once."""
    scene.plan(Reply.of(Say("I write."), _write(scene)), Reply.of(Say("Done.")))
    await scene.say("Write b.txt", scene.settings)
    await scene.call("tasks/get", {"id": scene.task_id})
    await scene.answer("proceed_once")


async def edit_always(scene: Scene) -> None:
    """Change a file, allowed for the session; the next change needs no permission."""
    (scene.workspace / "a.txt").write_text("old\n", encoding="utf-8")
    replace = {"file_path": str(scene.workspace / "a.txt"), "old_string": "old", "new_string": "new"}
    scene.plan(Reply.of(Call("replace", {**replace, "instruction": "New."})), Reply.of(Say("Done.")))
    again = {"file_path": str(scene.workspace / "a.txt"), "old_string": "new", "new_string": "newer"}
    scene.plan(Reply.of(Call("replace", {**again, "instruction": "Newer."})), Reply.of(Say("Done again.")))
    await scene.say("Change a.txt", scene.settings)
    await scene.answer("proceed_always")
    await scene.say("Change it again")


async def edit_cancel(scene: Scene) -> None:
    """Refuse a change."""
    scene.plan(Reply.of(_write(scene)), Reply.of(Say("As you like.")))
    await scene.say("Write b.txt", scene.settings)
    await scene.answer("cancel")


async def edit_modified(scene: Scene) -> None:
    """Accept a change that the user has edited."""
    scene.plan(Reply.of(_write(scene)), Reply.of(Say("Done.")))
    await scene.say("Write b.txt", scene.settings)
    # 0.25.2 does not show the new proposal, and takes no second answer: its stream does not end.
    await scene.silent(scene.answer("proceed_once", newContent="mine\n"))
    await scene.call("tasks/get", {"id": scene.task_id})


async def shell_once(scene: Scene) -> None:
    """Run a command with output while it runs."""
    command = "echo one; sleep 1.5; echo two"
    scene.plan(Reply.of(Call("run_shell_command", {"command": command})), Reply.of(Say("Ran.")))
    await scene.say("Run it", scene.settings)
    await scene.answer("proceed_once")


async def auto_execute(scene: Scene) -> None:
    """Run a call with ``autoExecute``, which needs no permission."""
    scene.plan(Reply.of(_write(scene)), Reply.of(Say("Done.")))
    await scene.say("Write b.txt", {**scene.settings, "autoExecute": True})


async def two_calls(scene: Scene) -> None:
    """Ask for two calls in one reply of the model."""
    scene.plan(Reply.of(_write(scene), _write(scene, "c.txt")), Reply.of(Say("Both done.")))
    await scene.say("Write both", scene.settings)
    await scene.answer("proceed_once", scene.call_ids[0])
    await scene.answer("proceed_once", scene.call_ids[1])


async def mcp(scene: Scene) -> None:
    """Call a tool of an MCP server."""
    scene.plan(Reply.of(Call("keep", {"note": "milk"})), Reply.of(Say("Kept.")))
    await scene.say("Keep it", scene.settings)
    await scene.answer("proceed_always_tool")


async def info(scene: Scene) -> None:
    """Ask a question of the general kind: a web fetch."""
    scene.plan(Reply.of(Call("web_fetch", {"prompt": "Summarize http://127.0.0.1:9/a"})), Reply.of(Say("No.")))
    await scene.say("Fetch it", scene.settings)
    await scene.answer("cancel")


async def canceled(scene: Scene) -> None:
    """Cancel a task while it asks, then send messages to it."""
    scene.plan(Reply.of(_write(scene)))
    await scene.say("Write b.txt", scene.settings)
    await scene.call("tasks/cancel", {"id": scene.task_id})
    await scene.call("tasks/get", {"id": scene.task_id})
    await scene.call("tasks/cancel", {"id": scene.task_id})
    await scene.say("Go on", method="message/send")


async def model_fails(scene: Scene) -> None:
    """Send a prompt that the model's provider refuses."""
    scene.plan(Failure(400, kind="wrong_key"), Failure(400, kind="wrong_key"), Failure(400, kind="wrong_key"))
    await scene.say("Hello", scene.settings)


async def refusals(scene: Scene) -> None:
    """Send requests that are refused."""
    await scene.call("tasks/get", {"id": "unknown"})
    await scene.call("tasks/cancel", {"id": "unknown"})
    await scene.call("commands/get", {})
    await scene.call("tasks/pushNotificationConfig/list", {"id": "unknown"})


async def resubscribe(scene: Scene) -> None:
    """Resubscribe to a task that waits."""
    scene.plan(Reply.of(_write(scene)))
    await scene.say("Write b.txt", scene.settings)
    await scene.stream("tasks/resubscribe", {"id": scene.task_id})


async def commands(scene: Scene) -> None:
    """List and run commands by the routes beside JSON-RPC."""
    (scene.workspace / "GEMINI.md").write_text("Be brief.\n", encoding="utf-8")
    await scene.http("GET", "/listCommands")
    await scene.http("POST", "/executeCommand", {"command": "memory show", "args": []})
    await scene.http("POST", "/executeCommand", {"command": "memory add", "args": ["likes", "tea"]})
    await scene.http("POST", "/executeCommand", {"command": "memory list"})
    await scene.http("POST", "/executeCommand", {"command": "memory refresh"})
    await scene.http("POST", "/executeCommand", {"command": "restore list", "args": []})
    await scene.http("POST", "/executeCommand", {"command": "restore", "args": ["none"]})
    await scene.http("POST", "/executeCommand", {"command": "restore", "args": []})
    await scene.http("POST", "/executeCommand", {"command": "extensions list", "args": []})
    await scene.http("POST", "/executeCommand", {"command": "init", "args": []})
    await scene.http("POST", "/executeCommand", {"command": "nonsense", "args": []})
    await scene.http("POST", "/executeCommand", {"command": 7})
    await scene.http("POST", "/executeCommand", {"command": "memory show", "args": "text"})
    await scene.http("POST", "/executeCommand", {})


async def init(scene: Scene) -> None:
    """Run the command that streams."""
    scene.plan(Reply.of(Say("Nothing to say of it.")))
    await scene.http("POST", "/executeCommand", {"command": "init", "args": []})


async def tasks(scene: Scene) -> None:
    """Create and describe tasks by the routes beside JSON-RPC."""
    made = await scene.http("POST", "/tasks", {"agentSettings": scene.settings, "contextId": "context-of-the-client"})
    scene.task_id = made
    await scene.http("GET", f"/tasks/{made}/metadata")
    await scene.http("GET", "/tasks/unknown/metadata")
    await scene.http("GET", "/tasks/metadata")
    scene.plan(Reply.of(Say("Hello.")))
    await scene.say("Hello")


SCENES: Mapping[str, Callable[[Scene], Awaitable[None]]] = {
    scene.__name__: scene
    for scene in (
        text,
        send,
        no_settings,
        read_file,
        read_file_fails,
        edit_once,
        edit_always,
        edit_cancel,
        edit_modified,
        shell_once,
        auto_execute,
        two_calls,
        mcp,
        info,
        canceled,
        model_fails,
        refusals,
        resubscribe,
        commands,
        init,
        tasks,
    )
}
"""Scenes by name; the name is also that of the transcript's file."""


def recorded(name: str) -> list[Line]:
    """Return the transcript of the real server in a scene."""
    lines = (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if not line.startswith("//")]


@dataclass(frozen=True, slots=True)
class Stage:
    """A server that scenes are played to, one after the other; each gets a new task in its one workspace."""

    url: str
    token: str
    http: httpx2.AsyncClient
    model: GeminiWire
    workspace: Path

    async def play(self, name: str) -> list[Line]:
        """Play a scene and return its transcript, without files and model replies of the scene before."""
        self.clear()
        scene = Scene(self.url, self.http, self.model, self.workspace)
        await SCENES[name](scene)
        return scene.transcript()

    def clear(self) -> None:
        """Remove what the last scene has written."""
        self.model.forget()
        for file in self.workspace.glob("*.txt"):
            file.unlink()


@asynccontextmanager
async def real_server(folder: Path, *, script: Path | None = None) -> AsyncGenerator[Stage]:
    """Start the real gemini-cli-a2a-server."""
    workspace = folder / "workspace"
    workspace.mkdir(parents=True)
    with GeminiWire() as wire:
        server = gemini_a2a_server(folder, workspace, wire, settings=MCP_SETTINGS, script=script)
        async with server as running, plain_client() as http:
            yield Stage(running.url, "", http, wire, workspace)


@asynccontextmanager
async def our_server(folder: Path) -> AsyncGenerator[Stage]:
    """Start ``isthmus serve``, with the same model on the same wire."""
    workspace = folder / "workspace"
    workspace.mkdir(parents=True)
    with GeminiWire() as wire:
        environment = {
            "GEMINI_API_KEY": "unused",
            "GOOGLE_GEMINI_BASE_URL": wire.base_url,
            "HOME": str(folder / "home"),
            "XDG_CONFIG_HOME": str(folder / "home" / "config"),
        }
        server = serve_program(folder, workspace, "-m", "gemini-2.5-pro", environment=environment)
        async with server as running:
            headers = {"Authorization": f"Bearer {running.token}"}
            async with plain_client(headers=headers) as http:
                yield Stage(running.url, running.token, http, wire, workspace)


@asynccontextmanager
async def shared(server: AbstractAsyncContextManager[Stage]) -> AsyncGenerator[Stage]:
    """Start one server for all tests of a file, in an environment of its own."""
    async with AsyncExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:
            stack.enter_context(isolate(patch))
            stage = await stack.enter_async_context(server)
        yield stage


async def _record(names: Sequence[str], script: Path | None) -> None:
    for name in names:
        # A server for each scene: leftovers of one (waiting calls, grants, memory) do not reach the next.
        with tempfile.TemporaryDirectory() as folder:
            async with real_server(Path(folder), script=script) as stage:
                lines = [json.dumps(line, ensure_ascii=False) for line in await stage.play(name)]
        (FOLDER / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    chosen = [item for item in sys.argv[1:] if item in SCENES]
    paths = [Path(item) for item in sys.argv[1:] if item.endswith(".mjs")]
    asyncio.run(_record(chosen or list(SCENES), paths[0] if paths else None))
