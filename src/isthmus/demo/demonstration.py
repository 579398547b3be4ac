"""One task from the prompt to the reviewed edit, by real processes: an A2A server, a companion, an editor.

The demonstration is the A2A client and the user. Between the processes stand recording relays; what they saw is what
is printed. Not a test: whatever goes wrong ends it with an error that says which process said what.
"""

import asyncio
import contextlib
import dataclasses
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isthmus.client import AgentClient, PromptMessage, TaskSnapshot, Turn
from isthmus.demo.frames import lines_of
from isthmus.demo.people import HeadlessUser, ScriptedUser, neovim
from isthmus.demo.processes import running
from isthmus.demo.relay import Frame, Relay
from isthmus.development_tool import ToolCallConfirmation
from isthmus.errors import IsthmusError
from isthmus.events import TaskState
from isthmus.models.scripted import DEMO_PROMPT

GREETING = '''\
def greet(name: str) -> str:
    """Welcome somebody."""
    return f"Hello, {name}!"


if __name__ == "__main__":
    print(greet("world"))
'''
TASK_SECONDS = 50.0
REAL_MODEL_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Demonstration:
    """``neovim_program`` is None for no editor. ``record`` keeps every frame as a JSON line. ``say`` prints a line."""

    folder: Path
    neovim_program: str | None
    model: str | None
    record: Path | None
    say: Callable[[str], None]

    async def run(self) -> Path:
        """Run it all; returns the file that was written.

        Raises:
            IsthmusError: a process failed, the task did not complete, or the edit is not there.
        """
        workspace = self.folder / "project"
        target = _make_project(workspace)
        async with contextlib.AsyncExitStack() as stack:
            user = await self._user(stack, target)
            companion = await self._companion(stack, user, workspace)
            a2a = await self._server(stack, workspace, companion)
            await self._task(a2a, user, workspace, target)
        self._conclude(target, workspace)
        return target

    async def _user(self, stack: contextlib.AsyncExitStack, target: Path) -> ScriptedUser:
        if self.neovim_program is None:
            return HeadlessUser(target, self._environment("user"), target.parent)
        return await stack.enter_async_context(
            neovim(self.neovim_program, target, self.folder, self._environment("user"))
        )

    async def _companion(self, stack: contextlib.AsyncExitStack, user: ScriptedUser, workspace: Path) -> "_Link":
        arguments = ["companion", "--json", *user.companion_arguments]
        said = await stack.enter_async_context(
            running("the companion", _isthmus(*arguments), self._environment("user"), workspace, ready="{")
        )
        ready = json.loads(said)
        discovery = _read_json(Path(ready["discovery_file"]))
        relay = await self._relay(stack, "IDE", int(ready["port"]))
        self._heading(
            f"companion of {user.editor} on port {ready['port']}, found by {Path(ready['discovery_file']).name}"
        )
        return _Link(relay, str(discovery["authToken"]))

    async def _server(self, stack: contextlib.AsyncExitStack, workspace: Path, companion: "_Link") -> "_Link":
        relay = await self._relay(stack, "A2A", 0)
        token_file = self.folder / "token"
        environment = {
            **self._environment("server"),
            "GEMINI_CLI_IDE_SERVER_PORT": str(companion.relay.port),
            "GEMINI_CLI_IDE_WORKSPACE_PATH": str(workspace),
            "GEMINI_CLI_IDE_AUTH_TOKEN": companion.token,
        }
        arguments = [
            *("serve", "--token-file", str(token_file), "--data-dir", str(self.folder / "data"), "--ide"),
            *("--workspace", str(workspace), "--public-url", f"http://127.0.0.1:{relay.port}/"),
            *("--model", self.model or "demo"),
        ]
        said = await stack.enter_async_context(
            running("the server", _isthmus(*arguments), environment, workspace, ready="A2A server ready at")
        )
        relay.target_port = int(said.rstrip("/").rsplit(":", 1)[1])
        self._heading(said)
        return _Link(relay, token_file.read_text(encoding="utf-8").strip())

    async def _relay(self, stack: contextlib.AsyncExitStack, link: str, port: int) -> Relay:
        relay = Relay(link, port, self._frame)
        await relay.start()
        stack.push_async_callback(relay.aclose)
        return relay

    async def _task(self, link: "_Link", user: ScriptedUser, workspace: Path, target: Path) -> None:
        from isthmus.a2a.client.remote_agent import RemoteAgent

        agent = await RemoteAgent.connect(f"http://127.0.0.1:{link.relay.port}/", link.token)
        seconds = TASK_SECONDS if self.model is None else REAL_MODEL_SECONDS
        try:
            async with asyncio.timeout(seconds):
                settings = {"workspace_path": str(workspace)}
                turn = await agent.prompt(PromptMessage(DEMO_PROMPT, settings=settings))
                end = await self._follow(agent, turn, user, target)
        except TimeoutError as error:
            raise IsthmusError(f"the task did not end within {seconds:g} s") from error
        finally:
            await agent.aclose()
        if end.state is not TaskState.COMPLETED:
            raise IsthmusError(f"the task ended as {end.state}: {end.error or 'no reason was given'}")

    async def _follow(self, agent: AgentClient, turn: Turn, user: ScriptedUser, target: Path) -> TaskSnapshot:
        """Read the streams of the task; commands are allowed over A2A, edits are reviewed in the editor."""
        seen = 0
        while True:
            async for delivery in turn.deliveries:
                seen = delivery.seq or seen
            task = await agent.get(turn.task_id)
            if task.state.is_terminal:
                return task
            commands = [call for call in task.pending if (asked := call.confirmation_request) and asked.execute_details]
            if commands:
                answers = [ToolCallConfirmation(call.tool_call_id, "proceed_once") for call in commands]
                turn = await agent.answer(task.task_id, answers, answered_by="demonstration")
                continue
            self._heading(f"the user changes the proposal in {user.editor} and accepts it")
            await user.change_and_accept(target, review)
            while (await agent.get(task.task_id, 0)).pending == task.pending:
                await asyncio.sleep(0.05)
            turn = await agent.follow(task.task_id, seen)

    def _conclude(self, target: Path, workspace: Path) -> None:
        text = target.read_text(encoding="utf-8")
        if review(text) != text or text == GREETING:
            raise IsthmusError(f"{target} does not hold the reviewer's change")
        self._heading("what was written, as git sees it")
        shown = subprocess.run(
            ["git", "diff", "--no-color", "--", target.name], cwd=workspace, capture_output=True, text=True, check=True
        )
        for line in shown.stdout.splitlines():
            self.say(line)

    def _frame(self, frame: Frame) -> None:
        for line in lines_of(frame):
            self.say(line)
        if self.record is not None:
            with (self.record / f"{frame.link.lower()}.jsonl").open("a", encoding="utf-8") as file:
                file.write(json.dumps(dataclasses.asdict(frame), ensure_ascii=False) + "\n")

    def _heading(self, text: str) -> None:
        self.say("")
        self.say(f"=== {text}")

    def _environment(self, side: str) -> dict[str, str]:
        """Each side has its own home and temporary folder: nothing of the user who runs this is touched or used."""
        home = self.folder / side
        (home / "tmp").mkdir(parents=True, exist_ok=True)
        kept = {name: value for name, value in os.environ.items() if name not in _HIDDEN}
        places = ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR")
        return {**kept, "HOME": str(home), "TMPDIR": str(home / "tmp"), **{name: str(home) for name in places}}


_HIDDEN = {"NVIM", "GEMINI_CLI_IDE_SERVER_PORT", "GEMINI_CLI_IDE_WORKSPACE_PATH", "GEMINI_CLI_IDE_AUTH_TOKEN"}


@dataclass(frozen=True, slots=True)
class _Link:
    relay: Relay
    token: str


def review(text: str) -> str:
    """Return a proposal as the user changes it."""
    if "See you soon" in text or "reviewed by a user" in text:
        return text
    changed = text.replace("Goodbye", "See you soon")
    return changed if changed != text else text.rstrip("\n") + "\n\n# reviewed by a user\n"


def _make_project(workspace: Path) -> Path:
    workspace.mkdir(parents=True)
    target = workspace / "greeting.py"
    target.write_text(GREETING, encoding="utf-8")
    if shutil.which("git") is None:
        raise IsthmusError("git is needed for the demonstration; install it and try again")
    identity = ["-c", "user.name=Demonstration", "-c", "user.email=demonstration@localhost"]
    for arguments in (["init", "--quiet"], ["add", "."], [*identity, "commit", "--quiet", "-m", "A greeting"]):
        subprocess.run(["git", *arguments], cwd=workspace, check=True, capture_output=True)
    return target


def _read_json(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def _isthmus(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "isthmus", *arguments]
