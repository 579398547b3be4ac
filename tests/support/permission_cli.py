"""Claude Code that asks for permissions in its terminal, started by ``isthmus companion exec``: strict or real.

One scenario runs on both. The strict one is :mod:`support.permission_program`; the real one runs where ISTHMUS_CLAUDE
is its path, with a scripted model behind it.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from support import notes_mcp_server, permission_program
from support.anthropic_wire import AnthropicWire
from support.claude_code import IDLE, PROGRAM, claude_environment, claude_model, submit
from support.isthmus_program import ISTHMUS
from support.pty_program import PtyProgram, pty_program
from support.scripted_wire import Call, Reply, Say
from support.waiting import eventually_async

SECONDS = 60.0
AGAIN_SECONDS = 2.0
KINDS = ["strict", *(["real"] if PROGRAM else [])]
DONE = "All is done."
QUESTION = "Esc to cancel"


@dataclass(frozen=True, slots=True)
class Ended:
    """How a question ended: `by` is "terminal" or "hook", `message` what the model was told about a refusal."""

    is_allowed: bool
    by: str
    message: str = ""


class PermissionCli(Protocol):
    """Actions and observations at a CLI and its terminal."""

    @property
    def pid(self) -> int:
        """Its process id."""
        ...

    async def ready(self) -> None:
        """Wait until it has started."""
        ...

    async def asks(self, tool: str, given: Mapping[str, Any]) -> None:
        """Have it ask for a tool call; return when its terminal shows the question."""
        ...

    async def answers(self, *, yes: bool) -> None:
        """Answer in the terminal."""
        ...

    async def ended(self) -> Ended:
        """Wait for the end of the question, and return it."""
        ...

    def still_asks(self) -> bool:
        """Return whether the terminal shows the question."""
        ...


class StrictPermissionCli:
    """The strict CLI; `events` are those that it has printed and nobody has waited for."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._asking = 0

    @property
    def pid(self) -> int:
        return self._process.pid

    async def tell(self, **told: object) -> None:
        """Send a line."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(told).encode() + b"\n")
        await self._process.stdin.drain()

    async def event(self, name: str) -> dict[str, Any]:
        """Return the next event with this member; others are passed over."""
        assert self._process.stdout is not None
        async with asyncio.timeout(SECONDS):
            while line := await self._process.stdout.readline():
                event: dict[str, Any] = json.loads(line)
                self._asking += ("asking" in event) - ("allowed" in event)
                if name in event:
                    return event
        raise AssertionError(f"the CLI ended without {name}")

    async def ready(self) -> None:
        """Return at once: it has said so."""

    async def asks(self, tool: str, given: Mapping[str, Any]) -> None:
        await self.tell(ask={"tool_name": tool, "tool_input": dict(given)})
        await self.event("asking")

    async def answers(self, *, yes: bool) -> None:
        await self.tell(answer=yes)

    async def ended(self) -> Ended:
        event = await self.event("allowed")
        return Ended(event["allowed"], event["by"], event["message"])

    def still_asks(self) -> bool:
        return self._asking > 0


class RealPermissionCli:
    """The real CLI in its terminal."""

    def __init__(self, terminal: PtyProgram, model: AnthropicWire) -> None:
        self.terminal = terminal
        self.model = model
        self._count = 0

    @property
    def pid(self) -> int:
        return self.terminal.process.pid

    async def ready(self) -> None:
        await eventually_async(lambda: self.terminal.screen_with(IDLE), SECONDS, what="the prompt")

    async def asks(self, tool: str, given: Mapping[str, Any]) -> None:
        self._count += 1
        if tool == "Edit":
            read = Call("Read", {"file_path": given["file_path"]}, id=f"toolu_read_{self._count}")
            self.model.add(Reply.of(read))
        self.model.add(Reply.of(Call(tool, given, id=self._call_id)), Reply.of(Say(self._done)))
        await submit(self.terminal, self.model, "do it")
        await eventually_async(self.still_asks, SECONDS, what="the question in the terminal")

    @property
    def _call_id(self) -> str:
        return f"toolu_asked_{self._count}"

    @property
    def _done(self) -> str:
        return f"{DONE} {self._count}"

    async def answers(self, *, yes: bool) -> None:

        async def has_taken() -> bool:
            # Right after a question has come, a key counts as meant for something else.
            self.terminal.press("1" if yes else "\x1b")
            again = asyncio.get_running_loop().time() + AGAIN_SECONDS
            while self.still_asks() and asyncio.get_running_loop().time() < again:
                await asyncio.sleep(0.05)  # delay: pause between two looks at the screen
            return not self.still_asks()

        await eventually_async(has_taken, SECONDS, what="the answer is taken")

    async def ended(self) -> Ended:

        def has_ended() -> bool:
            screen = self.terminal.screen
            return self._done in screen or (IDLE in screen and QUESTION not in screen)

        await eventually_async(has_ended, SECONDS, what="the end of the question")
        if self._done not in self.terminal.screen:
            self.model.forget()
            return Ended(False, "terminal")
        result = next(
            part
            for message in reversed(self.model.model_requests[-1].json["messages"])
            if isinstance(message["content"], list)
            for part in message["content"]
            if part.get("tool_use_id") == self._call_id
        )
        screen = self.terminal.screen
        by = "hook" if "PermissionRequest hook" in screen[screen.rindex("do it") :] else "terminal"
        is_allowed = not result.get("is_error", False)
        return Ended(is_allowed, by, "" if is_allowed else result["content"])

    def still_asks(self) -> bool:
        return QUESTION in self.terminal.screen


@asynccontextmanager
async def permission_cli(
    kind: str, folder: Path, *options: str, variables: Mapping[str, str] | None = None
) -> AsyncGenerator[PermissionCli]:
    """Start a CLI of one `kind` by `isthmus companion exec` in `folder`, whose companion runs; end it afterwards."""
    if kind == "strict":
        async with strict_permission_cli(folder, *options, variables=variables) as strict:
            yield strict
        return
    server = {"command": sys.executable, "args": [notes_mcp_server.__file__]}
    own = ("--permission-mode", "default", "--mcp-config", json.dumps({"mcpServers": {"notes": server}}))
    command = [*ISTHMUS, "companion", "exec", *options, "--", PROGRAM, *own]
    with claude_model() as model:
        isolated = {name: value for name, value in os.environ.items() if name.startswith("XDG_")}
        environment = claude_environment(folder, model.base_url, {**isolated, **(variables or {})})
        with pty_program(command, folder=folder, environment=environment) as terminal:
            yield RealPermissionCli(terminal, model)


@asynccontextmanager
async def strict_permission_cli(
    folder: Path, *options: str, variables: Mapping[str, str] | None = None
) -> AsyncGenerator[StrictPermissionCli]:
    """Start the strict CLI, as :func:`permission_cli` does."""
    program = Path(os.environ["HOME"]) / "bin" / "claude"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{permission_program.__file__}" "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    process = await asyncio.create_subprocess_exec(
        *ISTHMUS, "companion", "exec", *options, "--", str(program),
        cwd=folder, env={**os.environ, **(variables or {})},
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    cli = StrictPermissionCli(process)
    try:
        await cli.event("started")
        yield cli
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
