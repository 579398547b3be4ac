"""Asks git for the branch and the changed files of a workspace, with a deadline, and without running anything else.

A repository may be a stranger's: its configuration and attributes can name programs that git runs to look at files
(file system monitors, filters, hooks) or to fetch missing objects. All of these are switched off.
"""

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from shutil import which

from isthmus.agent.environment import GitState
from isthmus.runtime.processes import end_process, start_process
from isthmus.text.visible import printable

GIT_SECONDS = 2.0
"""Maximum time for git; a status of a large repository that is not cached takes longer."""
MAXIMUM_OUTPUT_BYTES = 64 * 1024
"""Maximum size of git's output that is read; a status ends there."""
_KEPT_VARIABLES = ("HOME", "XDG_CONFIG_HOME", "USER", "LOGNAME")
_SWITCHED_OFF = {
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "safe.bareRepository": "explicit",
    "status.submoduleSummary": "false",
}
_STATUS = ("status", "--porcelain=v1", "-z", "--branch", "--no-renames", "--ignore-submodules=all", "--", ".")
_CONFIG = ("config", "--list", "--name-only", "-z")


async def git_state(
    workspace: Path, environment: Mapping[str, str], *, is_above_allowed: bool = True, seconds: float = GIT_SECONDS
) -> GitState | None:
    """Return the state of the workspace's repository; None if there is none, or git cannot be used.

    ``is_above_allowed``: the repository may begin above the workspace.
    """
    if not _has_repository((workspace, *workspace.parents) if is_above_allowed else (workspace,)):
        return None
    path = os.pathsep.join(part for part in environment.get("PATH", "").split(os.pathsep) if Path(part).is_absolute())
    git = which("git", path=path)
    if git is None:
        return None
    kept = {name: environment[name] for name in _KEPT_VARIABLES if name in environment}
    ceiling = {} if is_above_allowed else {"GIT_CEILING_DIRECTORIES": str(workspace.parent)}
    safe = {
        **kept,
        **ceiling,
        "PATH": path,
        "LC_ALL": "C.UTF-8",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",
    }
    try:
        async with asyncio.timeout(seconds):
            names = await _output(git, _CONFIG, workspace, {**safe, **_configuration(_SWITCHED_OFF)})
            if names is None:
                return None
            settings = _SWITCHED_OFF | _without_filters(names.decode("utf-8", "surrogateescape").split("\0"))
            shown = await _output(git, _STATUS, workspace, {**safe, **_configuration(settings)})
    except TimeoutError:
        return GitState("a repository", None)
    return None if shown is None else state_of(shown)


def state_of(status: bytes) -> GitState:
    """Return the state that git's status shows: the branch first, then a record for each changed file."""
    is_whole = len(status) < MAXIMUM_OUTPUT_BYTES
    head, *changes = status.decode("utf-8", "surrogateescape").split("\0")
    shown = tuple(printable(change) for change in (changes if is_whole else changes[:-1]) if change)
    return GitState(f"branch {printable(head.removeprefix('## '))}", shown)


def _has_repository(folders: Sequence[Path]) -> bool:
    return any(os.path.lexists(folder / ".git") for folder in folders)


def _without_filters(names: list[str]) -> dict[str, str]:
    """Return settings that switch off the filters which the configuration names, by empty commands."""
    filters = {name.rpartition(".")[0] for name in names if name.startswith("filter.") and name.count(".") > 1}
    values = {"clean": "", "smudge": "", "process": "", "required": "false"}
    return {f"{one}.{key}": value for one in sorted(filters) for key, value in values.items()}


def _configuration(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that set these settings for one call of git, above every file."""
    pairs = {
        name: text
        for number, (key, value) in enumerate(settings.items())
        for name, text in ((f"GIT_CONFIG_KEY_{number}", key), (f"GIT_CONFIG_VALUE_{number}", value))
    }
    return {"GIT_CONFIG_COUNT": str(len(settings)), **pairs}


async def _output(git: str, arguments: tuple[str, ...], folder: Path, environment: dict[str, str]) -> bytes | None:
    """Return the beginning of what git prints; None if it cannot be started or fails."""
    try:
        process = await start_process(
            git,
            "--no-pager",
            *arguments,
            cwd=folder,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except (OSError, ValueError):
        return None
    read = b""
    try:
        if process.stdout is None:
            return None
        while len(read) < MAXIMUM_OUTPUT_BYTES and (chunk := await process.stdout.read(MAXIMUM_OUTPUT_BYTES)):
            read += chunk
        is_whole = len(read) < MAXIMUM_OUTPUT_BYTES
        return read[:MAXIMUM_OUTPUT_BYTES] if not is_whole or await process.wait() == 0 else None
    finally:
        await end_process(process)
