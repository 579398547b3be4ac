"""list_background_processes, read_background_output, stop_background_process: commands that run beside the work.

The first two have the names and arguments of Gemini CLI. `run_shell_command` starts such commands.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from isthmus.development_tool import ConfirmationDetails, ToolOutput
from isthmus.text.visible import printable
from isthmus.tools.port.arguments import CheckedArguments, check_arguments
from isthmus.tools.port.base import Arguments, CallContext, ToolContext, ToolKind, ToolResult, ToolSucceeded
from isthmus.tools.shell.background_commands import BackgroundCommand, BackgroundCommands

DEFAULT_LINES = 100
MAXIMUM_LINES = 2_000
MAXIMUM_DELAY_MS = 60_000
STOP_SECONDS = 10.0
"""Maximum time to wait until a command that was stopped has ended."""
_PID: Mapping[str, Any] = {"type": "integer", "description": "The pid that the start of the command returned."}


class _BackgroundTool:
    """Common part of the tools for commands in the background."""

    name = ""
    parameters: Mapping[str, Any] = {"type": "object", "properties": {}}
    kind = ToolKind.READ

    def __init__(self, commands: BackgroundCommands) -> None:
        self._commands = commands

    async def propose(self, arguments: Arguments, context: ToolContext) -> ConfirmationDetails | None:
        """Check the arguments; there is nothing to confirm."""
        self._check(arguments)
        return None

    def _check(self, arguments: Arguments) -> CheckedArguments:
        return check_arguments(self.name, self.parameters, arguments, {})

    def _find(self, arguments: Arguments, context: ToolContext) -> BackgroundCommand:
        return self._commands.find(context.session, self._check(arguments).integer("pid", 0))


class ListBackgroundProcesses(_BackgroundTool):
    """Lists the commands of the session in the background."""

    name = "list_background_processes"
    description = "Lists the commands of this session in the background: their pids and whether they still run."

    def describe(self, arguments: Arguments) -> str:
        """Return the purpose."""
        return "List the commands in the background"

    async def run(self, arguments: Arguments, context: CallContext) -> ToolResult:
        """Return a line for each command."""
        found = self._commands.of(context.session)
        text = "\n".join(f"[{item.id}] {item.state}: {printable(item.text)}" for item in found)
        return _succeeded(text or "No command runs in the background.")


class ReadBackgroundOutput(_BackgroundTool):
    """Reads the end of a command's output so far."""

    name = "read_background_output"
    description = "Returns the last lines that a command in the background has printed, and whether it still runs."
    parameters: Mapping[str, Any] = {
        "type": "object",
        "properties": {
            "pid": _PID,
            "lines": {
                "type": "integer",
                "minimum": 1,
                "maximum": MAXIMUM_LINES,
                "description": f"How many lines from the end; {DEFAULT_LINES} when left out.",
            },
            "delay_ms": {
                "type": "integer",
                "minimum": 0,
                "maximum": MAXIMUM_DELAY_MS,
                "description": "How long to wait first, in milliseconds, for example until a server is ready.",
            },
        },
        "required": ["pid"],
    }

    def describe(self, arguments: Arguments) -> str:
        """Return the pid."""
        return f"Read the output of {self._check(arguments).integer('pid', 0)}"

    async def run(self, arguments: Arguments, context: CallContext) -> ToolResult:
        """Wait if that is asked for, at most until the command ends, and return the lines."""
        checked, item = self._check(arguments), self._find(arguments, context)
        if delay := checked.integer("delay_ms", 0):
            await _wait(item, delay / 1000)
        if item.ended.is_set():
            item.is_told = True
        lines = item.output.text().rstrip("\n").split("\n")
        count = checked.integer("lines", DEFAULT_LINES)
        cut = f"[the last {count} of {len(lines)} lines]\n" if len(lines) > count else ""
        note = item.output.note()
        text = "\n".join(lines[-count:]) or "(no output yet)"
        return _succeeded("\n".join(part for part in (f"{cut}{text}", printable(note), f"State: {item.state}") if part))


class StopBackgroundProcess(_BackgroundTool):
    """Ends a command in the background."""

    name = "stop_background_process"
    description = "Ends a command in the background, with everything that it started."
    parameters: Mapping[str, Any] = {"type": "object", "properties": {"pid": _PID}, "required": ["pid"]}

    def describe(self, arguments: Arguments) -> str:
        """Return the pid."""
        return f"Stop {self._check(arguments).integer('pid', 0)}"

    async def run(self, arguments: Arguments, context: CallContext) -> ToolResult:
        """Stop it, and return its state."""
        item = self._find(arguments, context)
        item.stop("stopped by the model")
        await _wait(item, STOP_SECONDS)
        item.is_told = item.ended.is_set()
        return _succeeded(f"[{item.id}] {item.state}")


async def _wait(item: BackgroundCommand, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await item.ended.wait()
    except TimeoutError:
        pass


def _succeeded(text: str) -> ToolSucceeded:
    return ToolSucceeded(ToolOutput(text=text), text)
