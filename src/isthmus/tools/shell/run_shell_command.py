"""run_shell_command: run a command with bash and show its output as it comes."""

import asyncio
import math
import secrets
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from isthmus.development_tool import ConfirmationDetails, ErrorDetails, ExecuteDetails, ToolOutput
from isthmus.encoding.codec import JsonObject
from isthmus.text.visible import printable
from isthmus.tools.edits.patch_text import APPLY_PATCH, PATCH_ARGUMENTS, in_folder
from isthmus.tools.port.arguments import INVALID_ARGUMENTS, CheckedArguments, check_arguments, path_parameter
from isthmus.tools.port.base import (
    Arguments,
    CallContext,
    ToolContext,
    ToolFailed,
    ToolKind,
    ToolResult,
    ToolSucceeded,
)
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.kept_files import stem_of
from isthmus.tools.port.workspace import Workspace
from isthmus.tools.shell.background_commands import BackgroundCommand, BackgroundCommands, BackgroundLaunch
from isthmus.tools.shell.command_result import result_of
from isthmus.tools.shell.patch_command import is_patch_command, patch_of_command
from isthmus.tools.shell.process_group import GRACE_SECONDS, ProcessGroup, process_group
from isthmus.tools.shell.shell_output import ShellOutput
from isthmus.tools.shell.shell_sandbox import ShellSandbox
from isthmus.tools.shell.trials.command_trial import CommandTrials
from isthmus.tools.shell.trials.tried_calls import apply_trial, discard_trial, try_command

MINIMUM_TIMEOUT_MS = 1_000
"""Least timeout of a call: a smaller number is one in seconds, which some models send."""
MAXIMUM_TIMEOUT_MS = 4 * 3600 * 1000
"""Greatest timeout of a call."""
INACTIVITY_SECONDS = 600.0
"""Maximum time without output after which a command is ended."""
MAXIMUM_OUTPUT_BYTES = 1024**3
"""Maximum size of the output; a command that prints more is ended."""
UPDATE_SECONDS = 0.05
LINGER_SECONDS = 0.25
"""Maximum wait for output from processes that outlive the command."""

PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "command": {"type": "string", "minLength": 1, "description": "The command, as for `bash -c`."},
        "description": {"type": "string", "description": "One sentence for the user: what the command does and why."},
        "dir_path": path_parameter("The folder to run it in; the workspace when left out."),
        "timeout": {
            "type": "integer",
            "minimum": MINIMUM_TIMEOUT_MS,
            "maximum": MAXIMUM_TIMEOUT_MS,
            "description": (
                "The longest time in milliseconds that it may run, 1000 or more; then it is ended. For commands that "
                "could hang, and for those that print nothing for longer than ten minutes."
            ),
        },
    },
    "required": ["command"],
}
IN_BACKGROUND: Mapping[str, Any] = {
    "is_background": {
        "type": "boolean",
        "description": (
            "True starts it in the background, for servers and watchers: the call returns after a moment with the pid "
            "for read_background_output and stop_background_process. It ends with this session's program."
        ),
    },
}
"""Parameter of an agent that can run commands in the background."""
OUTSIDE_TRIAL: Mapping[str, Any] = {
    "outside_trial": {
        "type": "boolean",
        "description": (
            "True asks the user at once to run it on the machine itself. Commands are first tried in a copy of the "
            "workspace, without network; use this for one that needs more, or failed there because of it."
        ),
    },
}
"""Parameter of an agent that tries commands in a copy."""
EARLY_SECONDS = 1.0
"""Time in which a command in the background may fail at once, or print its first lines."""
_NOT_A_COMMAND = (
    "run_shell_command: apply_patch is not a command here, so nothing was run. Call the tool for edits that you have; a"
    " command is understood only as apply_patch <<'EOF', with the quotation marks, and with nothing before or behind it"
)
_ALIASES = {"directory": "dir_path", "timeout_ms": "timeout"}


class RunShellCommand:
    """Runs shell commands, each in `sandbox` if given.

    `inactivity_seconds` is the maximum time without output, `grace_seconds` the delay between SIGTERM and SIGKILL.
    With `background` commands may run in the background; their calls return after `early_seconds`. With `trials` a
    command can be tried in a copy of its folder.
    """

    name = "run_shell_command"
    description = (
        "Runs a command with `bash -c` in the workspace and returns its output (standard output and errors together), "
        "its exit code when that is not 0, and the signal that ended it, if any. There is no terminal and no input: "
        "pass options such as --yes instead of answering questions. When the command ends, its background processes "
        "are ended too. Long output is cut in the middle; the result names the file with all of it. "
        "A command without any output is ended after some minutes."
    )
    kind = ToolKind.EXECUTE

    def __init__(
        self,
        inactivity_seconds: float = INACTIVITY_SECONDS,
        sandbox: ShellSandbox | None = None,
        grace_seconds: float = GRACE_SECONDS,
        background: BackgroundCommands | None = None,
        early_seconds: float = EARLY_SECONDS,
        trials: CommandTrials | None = None,
    ) -> None:
        properties: dict[str, Any] = dict(PARAMETERS["properties"])
        if background is not None:
            properties |= IN_BACKGROUND
        if trials is not None:
            properties |= OUTSIDE_TRIAL
        self.parameters: Mapping[str, Any] = {**PARAMETERS, "properties": properties}
        self._background = background
        self._trials = trials
        self._early_seconds = early_seconds
        self._inactivity_seconds = inactivity_seconds
        self._grace_seconds = grace_seconds
        self._sandbox = sandbox
        if sandbox is not None:
            self.description += sandbox.note()

    def meant(self, arguments: Arguments) -> tuple[str, JsonObject] | None:
        """Return the call of the tool for patches that a command means; None for any other command."""
        found = patch_of_command(arguments.get("command"))
        if found is None:
            return None
        given = next((arguments[name] for name in ("dir_path", "directory") if arguments.get(name)), "")
        if not isinstance(given, str):
            return None
        folder, patch = found
        return APPLY_PATCH, {PATCH_ARGUMENTS[0]: in_folder(in_folder(patch, folder), given)}

    def describe(self, arguments: Arguments) -> str:
        """Return the command, its folder and its purpose."""
        checked = self._check(arguments)
        where = f" [in {checked.string('dir_path')}]" if "dir_path" in checked else ""
        purpose = f" ({checked.string('description')})" if checked.string("description") else ""
        beside = " [in the background]" if checked.boolean("is_background") else ""
        return f"{checked.string('command')}{where}{beside}{purpose}"

    async def propose(self, arguments: Arguments, context: ToolContext) -> ConfirmationDetails | None:
        """Return the command and its folder."""
        checked = self._check(arguments)
        path = context.environment.get("PATH")
        if is_patch_command(checked.string("command")) and shutil.which(APPLY_PATCH, path=path) is None:
            raise ToolFailure(_NOT_A_COMMAND, INVALID_ARGUMENTS)
        return ExecuteDetails(checked.string("command"), str(_folder(context.workspace, checked)))

    async def try_out(self, arguments: Arguments, context: ToolContext) -> ConfirmationDetails | None:
        """Return the command with what it did in a copy; None if it cannot be tried there."""
        checked = self._check(arguments)
        folder = _folder(context.workspace, checked)
        if self._trials is None or checked.boolean("is_background") or checked.boolean("outside_trial"):
            return None
        if not folder.is_relative_to(context.workspace.root):
            return None
        details = ExecuteDetails(checked.string("command"), str(folder))
        output = _new_output(context)
        try:
            return await try_command(
                self._trials, _shell(context), details, _certain_environment(context.environment), context, output
            )
        finally:
            output.close()

    async def discard(self, details: ConfirmationDetails, context: ToolContext) -> None:
        """Throw away what is kept of a command that was tried and rejected."""
        if isinstance(details, ExecuteDetails) and details.trial is not None and details.trial.id:
            await asyncio.to_thread(discard_trial, details.trial, context)

    async def run(self, arguments: Arguments, context: CallContext) -> ToolResult:
        """Run the command and show its output as it comes, or apply what it did in a copy. Cancellation ends it."""
        checked = self._check(arguments)
        folder = _folder(context.workspace, checked)
        proposal = context.approved.details
        if isinstance(proposal, ExecuteDetails) and proposal.trial is not None and proposal.trial.id:
            return await apply_trial(proposal.trial, ExecuteDetails(checked.string("command"), str(folder)), context)
        if isinstance(proposal, ExecuteDetails) and proposal.working_directory not in (None, str(folder)):
            message = f"{checked.string('dir_path', '.')} is no longer the approved folder; nothing was run"
            raise ToolFailure(message, "file_changed")
        output = _new_output(context)
        environment = {**_certain_environment(context.environment), "TERM": "dumb"}
        command = (_shell(context), "-c", checked.string("command"))
        is_confined = self._sandbox is not None
        is_kept = False
        release: Callable[[], None] | None = None
        try:
            if self._sandbox is not None:
                launch = await asyncio.to_thread(self._sandbox.launch, command, folder, environment, context)
                command, environment, release = launch.command, dict(launch.environment), launch.release
            if self._background is not None and checked.boolean("is_background"):
                beside = BackgroundLaunch(command, folder, environment, is_confined, release)
                item = await self._background.start(context.session, checked.string("command"), beside, output)
                is_kept = True
                return await _early_result(item, self._early_seconds)
            async with process_group(
                command,
                folder,
                environment,
                output.feed,
                spares_leader=is_confined,
                grace_seconds=self._grace_seconds,
            ) as group:
                timeout = checked.integer("timeout", 0) / 1000
                return await self._watch(group, output, context, timeout or None)
        except OSError as error:
            raise ToolFailure(f"the command cannot be started: {error}", "shell_execute_error") from error
        finally:
            if not is_kept:
                output.close()
                if release is not None:
                    await asyncio.to_thread(release)

    async def _watch(
        self, group: ProcessGroup, output: ShellOutput, context: CallContext, timeout: float | None
    ) -> ToolResult:
        """Wait until the command has ended, or must be ended, and return its result.

        With ``timeout`` seconds a command may also be silent for as long.
        """
        silence = max(self._inactivity_seconds, timeout or 0)
        began = time.monotonic()
        ending = asyncio.ensure_future(group.wait())
        reason = ""
        shown_size = 0
        last_output = time.monotonic()
        try:
            while not ending.done() and not reason:
                quiet = time.monotonic() - last_output
                left = math.inf if timeout is None else began + timeout - time.monotonic()
                reason = (
                    _reason_to_end(quiet, silence, output) if left > 0 else f"it ran for {timeout:g} s, its timeout"
                )
                if reason:
                    break
                await _first(ending, group.changed, min(silence - quiet, left))
                if output.size != shown_size:
                    last_output, shown_size = time.monotonic(), output.size
                    if not ending.done():
                        context.progress(output.text())
                        await _first(ending, None, UPDATE_SECONDS)
            await _finish(group, ending)
        finally:
            ending.cancel()
        facts = await asyncio.to_thread(_facts_of, group)
        return result_of(output, group.exit_code, facts) if not reason else _ended(output, reason, facts)

    def _check(self, arguments: Arguments) -> CheckedArguments:
        checked = check_arguments(self.name, self.parameters, arguments, _ALIASES)
        if "\0" in checked.string("command"):
            raise ToolFailure("run_shell_command: command: expected text without NUL characters", INVALID_ARGUMENTS)
        # Not a parameter, but models that know it from other agents set it.
        if self._background is None and arguments.get("is_background") is True:
            message = (
                "run_shell_command: is_background: running in the background is not supported, nothing was run; "
                "use a command that ends by itself, or start the server and use it within one command"
            )
            raise ToolFailure(message, INVALID_ARGUMENTS)
        return checked


def _new_output(context: ToolContext) -> ShellOutput:
    # Never a name of another call: models reuse the ids of calls, also on other machines.
    return ShellOutput(context.output_folder / f"{stem_of(context.tool_call_id)}-{secrets.token_hex(4)}.txt")


def _shell(context: ToolContext) -> str:
    return shutil.which("bash", path=context.environment.get("PATH")) or "/bin/sh"


async def _early_result(item: BackgroundCommand, seconds: float) -> ToolResult:
    """Return the result of a command that was started in the background, after its first moment."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await item.ended.wait()
    if item.ended.is_set():
        item.is_told = True
        text = f"The command has ended already ({item.state}).\nOutput: {item.output.text().rstrip() or '(empty)'}"
    else:
        text = f"The command runs in the background as pid {item.id}.\nOutput so far: {item.output.text() or '(empty)'}"
    return ToolSucceeded(ToolOutput(text=text), text)


def _reason_to_end(quiet: float, silence: float, output: ShellOutput) -> str:
    if quiet >= silence:
        return f"it printed nothing for {silence:g} s"
    if output.size > MAXIMUM_OUTPUT_BYTES:
        return f"it printed more than {MAXIMUM_OUTPUT_BYTES} bytes"
    return ""


async def _first(ending: "asyncio.Future[int]", changed: asyncio.Event | None, seconds: float) -> None:
    """Wait for the end of the command or for output, for at most `seconds`."""
    if changed is None:
        await asyncio.wait({ending}, timeout=seconds)
        return
    coming = asyncio.ensure_future(changed.wait())
    try:
        await asyncio.wait({ending, coming}, timeout=max(seconds, 0), return_when=asyncio.FIRST_COMPLETED)
    finally:
        coming.cancel()
        changed.clear()


async def _finish(group: ProcessGroup, ending: "asyncio.Future[int]") -> None:
    """Read the last output, and end what is left."""
    if ending.done():
        deadline = time.monotonic() + LINGER_SECONDS
        while not group.has_output_ended and time.monotonic() < deadline:
            group.changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(deadline - time.monotonic()):
                    await group.changed.wait()
    await group.terminate(also_strays=not ending.done())
    group.drain()
    if not ending.done():
        await asyncio.wait({ending}, timeout=1)


def _facts_of(group: ProcessGroup) -> list[str]:
    """Return lines about the processes that outlived a command."""
    facts: list[str] = []
    if group.left:
        facts.append(f"Background processes that were still running were ended: {', '.join(map(str, group.left))}")
    if group.survived:
        named = ", ".join(f"{pid} ({_program_name(pid)})" for pid in group.survived)
        facts.append(f"Processes that the command started could not be ended, and still run: {named}")
    return facts


def _program_name(pid: int) -> str:
    import psutil

    try:
        return printable(psutil.Process(pid).name())
    except psutil.Error:
        return "unknown"


def _certain_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with git configured to ignore bare repositories inside a repository, and without CDPATH.

    A clone may contain one as ordinary files, and its configuration can name programs that any git command there runs.
    With CDPATH ``cd`` goes elsewhere than it says, and a permission holds in a folder.
    """
    count = environment.get("GIT_CONFIG_COUNT", "")
    number = int(count) if count.isascii() and count.isdecimal() else 0
    return {
        **{name: value for name, value in environment.items() if name != "CDPATH"},
        "GIT_CONFIG_COUNT": str(number + 1),
        f"GIT_CONFIG_KEY_{number}": "safe.bareRepository",
        f"GIT_CONFIG_VALUE_{number}": "explicit",
    }


def _folder(workspace: Workspace, checked: CheckedArguments) -> Path:
    shown = checked.string("dir_path", ".")
    folder = workspace.resolve(shown)
    if not folder.is_dir():
        problem = "is a file, not a folder" if folder.exists() else "does not exist"
        category = "path_is_not_a_directory" if folder.exists() else "file_not_found"
        raise ToolFailure(f"dir_path: {shown} {problem}", category)
    return folder


def _ended(output: ShellOutput, reason: str, about_processes: Sequence[str]) -> ToolFailed:
    message = f"The command was ended: {reason}."
    details = "\n".join(part for part in (output.text(), *about_processes, printable(output.note())) if part)
    shown = f"{message} Its output until then:\n{details}" if details else f"{message} It had no output."
    return ToolFailed(ErrorDetails(shown, "shell_timeout"), shown)
