"""One task from the prompt to the reviewed edit, by real processes: an A2A server, a companion, an editor.

The demonstration is the A2A client and the user. It prints the messages of the debug log: A2A's from its own client,
the companion's from the server, which runs with ``--debug``. Any failure ends it with an error that quotes the process.
"""

import asyncio
import contextlib
import json
import logging
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping
from pathlib import Path

from typing_extensions import override

from isthmus.client import AgentClient, PromptMessage, TaskSnapshot, Turn
from isthmus.demo.messages import body_of, lines_of
from isthmus.demo.processes import running
from isthmus.demo.users import HeadlessUser, ScriptedUser, neovim
from isthmus.development_tool import ToolCallConfirmation
from isthmus.errors import IsthmusError
from isthmus.events import TaskState
from isthmus.models.scripted.scripted import DEMO_PROMPT
from isthmus.record import record
from isthmus.rpc.wire_log import WIRE_LOG, WireMessage, read_line

GREETING = '''\
def greet(name: str) -> str:
    """Welcome somebody."""
    return f"Hello, {name}!"


if __name__ == "__main__":
    print(greet("world"))
'''
TASK_SECONDS = 50.0
REAL_MODEL_SECONDS = 600.0

_HIDDEN_VARIABLES = ("NVIM", "GEMINI_CLI_IDE_SERVER_PORT", "GEMINI_CLI_IDE_WORKSPACE_PATH", "GEMINI_CLI_IDE_AUTH_TOKEN")
_FOLDER_VARIABLES = ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR")


@record
class Demonstration:
    """The demonstration in an empty ``folder``.

    ``neovim_program`` None: the edit is reviewed without an editor. ``model`` None: the built-in script answers.
    ``record`` is a folder for every message, as a JSON line. ``say`` prints a line.
    """

    folder: Path
    neovim_program: str | None
    model: str | None
    record: Path | None
    say: Callable[[str], None]

    async def run(self) -> Path:
        """Run the task and return the file that was written.

        Raises:
            IsthmusError: a process failed, the task did not complete, or the edit is not in the file.
        """
        workspace = self.folder / "project"
        target = _make_project(workspace)
        async with contextlib.AsyncExitStack() as stack:
            user = await self._user(stack, target)
            companion = await self._companion(stack, user, workspace)
            url, token = await self._server(stack, workspace, companion)
            stack.enter_context(_logged_messages(self._show))
            await self._task(url, token, user, workspace, target)
        self._conclude(target, workspace)
        return target

    async def _user(self, stack: contextlib.AsyncExitStack, target: Path) -> ScriptedUser:
        if self.neovim_program is None:
            return HeadlessUser(target, self._environment("user"))
        return await stack.enter_async_context(
            neovim(self.neovim_program, target, self.folder, self._environment("user"))
        )

    async def _companion(
        self, stack: contextlib.AsyncExitStack, user: ScriptedUser, workspace: Path
    ) -> Mapping[str, str]:
        """Start the companion of the user's editor, and return the variables by which the server finds it."""
        arguments = ["companion", "--json", *user.companion_arguments]
        line = await stack.enter_async_context(
            running("the companion", _isthmus(*arguments), self._environment("user"), workspace, ready="{")
        )
        ready = json.loads(line)
        file = Path(ready["discovery_file"])
        discovery = json.loads(file.read_text(encoding="utf-8"))  # noqa: ASYNC240 - nothing else runs here yet
        self._heading(f"companion of {user.editor} on port {ready['port']}, found by {file.name}")
        return {
            "GEMINI_CLI_IDE_SERVER_PORT": str(ready["port"]),
            "GEMINI_CLI_IDE_WORKSPACE_PATH": str(workspace),
            "GEMINI_CLI_IDE_AUTH_TOKEN": str(discovery["authToken"]),
        }

    async def _server(
        self, stack: contextlib.AsyncExitStack, workspace: Path, companion: Mapping[str, str]
    ) -> tuple[str, str]:
        """Start the server, and return its URL and its token."""
        token_file = self.folder / "token"
        arguments = [
            *("serve", "--token-file", str(token_file), "--data-dir", str(self.folder / "data"), "--ide"),
            *("--workspace", str(workspace), "--port", "0", "--model", self.model or "demo"),
            *("--debug", "--log-format", "json"),
        ]
        line = await stack.enter_async_context(
            running(
                "the server",
                _isthmus(*arguments),
                {**self._environment("server"), **companion},
                workspace,
                ready="A2A server ready at",
                takes_line=self._show_logged,
            )
        )
        self._heading(line)
        return line.rsplit(" ", 1)[1], token_file.read_text(encoding="utf-8").strip()

    async def _task(self, url: str, token: str, user: ScriptedUser, workspace: Path, target: Path) -> None:
        from isthmus.a2a.client.remote_agent import RemoteAgent

        agent = await RemoteAgent.connect(url, token)
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
        """Follow the task to its end; allow commands over A2A, and review edits in the editor."""
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
        diff = subprocess.run(
            ["git", "diff", "--no-color", "--", target.name], cwd=workspace, capture_output=True, text=True, check=True
        )
        for line in diff.stdout.splitlines():
            self.say(line)

    def _show(self, message: WireMessage) -> None:
        for line in lines_of(message):
            self.say(line)
        if self.record is not None:
            fields = {"at": time.time(), "link": message.link, "arrow": message.arrow, "head": message.head}
            with (self.record / f"{message.link.lower()}.jsonl").open("a", encoding="utf-8") as file:
                file.write(json.dumps({**fields, "body": body_of(message)}, ensure_ascii=False) + "\n")

    def _show_logged(self, line: str) -> bool:
        """Show a line of the server's log if it is a message; return whether it is one."""
        try:
            record = json.loads(line)
        except ValueError:  # an error from before the log began
            return False
        message = read_line(record["message"]) if record["logger"] == WIRE_LOG.name else None
        if message is not None:
            self._show(message)
        return message is not None

    def _heading(self, text: str) -> None:
        self.say("")
        self.say(f"=== {text}")

    def _environment(self, side: str) -> dict[str, str]:
        """Return an environment with a home and temporary folder of its own: the files of the user are not used."""
        home = self.folder / side
        (home / "tmp").mkdir(parents=True, exist_ok=True)
        kept = {name: value for name, value in os.environ.items() if name not in _HIDDEN_VARIABLES}
        folders = dict.fromkeys(_FOLDER_VARIABLES, str(home))
        return {**kept, **folders, "HOME": str(home), "TMPDIR": str(home / "tmp")}


@contextlib.contextmanager
def _logged_messages(show: Callable[[WireMessage], None]) -> Generator[None]:
    """Show each message that this process logs, as long as the block runs."""

    class Handler(logging.Handler):
        @override
        def emit(self, record: logging.LogRecord) -> None:
            if (message := read_line(record.getMessage())) is not None:
                show(message)

    handler = Handler()
    WIRE_LOG.addHandler(handler)
    WIRE_LOG.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        WIRE_LOG.setLevel(logging.NOTSET)
        WIRE_LOG.removeHandler(handler)


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


def _isthmus(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "isthmus", *arguments]
