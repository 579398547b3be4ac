"""Trials of calls of the shell: what is shown of one, what is kept until the user has answered, and applying it."""

import asyncio
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from isthmus.development_tool import CommandTrial, ErrorDetails, ExecuteDetails, ToolOutput
from isthmus.files.atomic import read_regular
from isthmus.tools.port.base import ToolContext, ToolFailed, ToolResult, ToolSucceeded
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.kept_files import MAXIMUM_FOLDER_BYTES
from isthmus.tools.shell.command_result import result_of
from isthmus.tools.shell.shell_output import ShellOutput
from isthmus.tools.shell.trials.applying import ApplyError, apply_changes
from isthmus.tools.shell.trials.archive import ArchiveError, TriedCommand, packed, unpacked
from isthmus.tools.shell.trials.command_trial import CommandEffect, CommandTrials
from isthmus.tools.shell.trials.copying import TrialError
from isthmus.tools.shell.trials.effect import Kind
from isthmus.tools.shell.trials.shown import shown_changes

FAILED_NOTE = (
    "[It ran in a copy of the workspace, without network and services of this machine. If that is why it failed, call"
    " it again with outside_trial: true; the user is then asked.]"
)
"""Note to the model about a command that failed in a copy, and about which nobody was asked."""


async def try_command(
    trials: CommandTrials,
    shell: str,
    details: ExecuteDetails,
    environment: Mapping[str, str],
    context: ToolContext,
    output: ShellOutput,
) -> ExecuteDetails:
    """Return a command's details with what it did in a copy; its changes are kept, if they may be applied.

    ``changes`` of the trial are empty if it did nothing about which a user must be asked.
    """
    folder = Path(details.working_directory or context.workspace.root)
    try:
        effect = await trials.attempt((shell, details.command), folder, environment, context, output)
        trial = await asyncio.to_thread(_kept, effect, details, context, output)
    except TrialError as error:
        trial = CommandTrial("", f"What it does was not determined: {error}. A yes runs the command itself.")
    except OSError as error:
        trial = CommandTrial("", f"What it does could not be kept: {error}. A yes runs the command itself.")
    return ExecuteDetails(details.command, details.working_directory, trial)


def _kept(effect: CommandEffect, details: ExecuteDetails, context: ToolContext, output: ShellOutput) -> CommandTrial:
    judgement = effect.judgement
    if judgement.refusal:
        raise TrialError(judgement.refusal)
    text = shown_changes(judgement.shown, judgement.built, effect.found.contents, effect.exit_code)
    if text is None:
        raise TrialError("it would change more than can be shown")
    result = result_of(output, effect.exit_code, ())
    for_model = result.for_model
    if effect.exit_code and not judgement.shown:
        for_model += f"\n{FAILED_NOTE}"
    contents = {
        change.path: effect.found.contents[change.path][1]
        for change in judgement.applied
        if change.after is not None and change.after.kind is Kind.FILE
    }
    tried = TriedCommand(
        *(details.command, details.working_directory or "", result.output.text or "", for_model),
        *(judgement.applied, contents),
    )
    digest, data = packed(tried)
    _write(_archive(context, digest), data)
    files = tuple(change.path for change in judgement.shown if _is_file(change.before) or _is_file(change.after))
    return CommandTrial(digest, text if judgement.shown else "", files)


def _is_file(state: object) -> bool:
    return getattr(state, "kind", None) is Kind.FILE


async def apply_trial(trial: CommandTrial, details: ExecuteDetails, context: ToolContext) -> ToolResult:
    """Apply the changes of a tried command, and return its result; the command is not run again."""
    path = _archive(context, trial.id)
    try:
        data = await asyncio.to_thread(read_regular, path, MAXIMUM_FOLDER_BYTES)
        tried = unpacked(data, trial.id)
        if (tried.command, tried.folder) != (details.command, details.working_directory or ""):
            raise ArchiveError("it belongs to another command")
        await asyncio.to_thread(apply_changes, context.workspace.root, tried.changes, tried.contents)
    except ApplyError as error:
        message = f"{error}. Call the tool again to have it tried anew."
        return ToolFailed(ErrorDetails(message, "file_changed"), message)
    except (OSError, ArchiveError) as error:
        message = f"What the command changed in its copy is no longer kept ({error}), so nothing was applied."
        raise ToolFailure(f"{message} Call the tool again.", "file_changed") from error
    finally:
        with suppress(OSError):
            path.unlink()
    return ToolSucceeded(ToolOutput(text=tried.shown), tried.for_model)


def discard_trial(trial: CommandTrial, context: ToolContext) -> None:
    """Throw away the changes of a tried command."""
    with suppress(OSError):
        _archive(context, trial.id).unlink()


def _archive(context: ToolContext, digest: str) -> Path:
    if not digest.isalnum():
        raise ToolFailure("the trial has no usable name", "internal_error")
    return context.output_folder / f"trial-{digest}.zip"


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.unlink(missing_ok=True)  # the same trial again
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
