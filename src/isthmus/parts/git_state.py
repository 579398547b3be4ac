"""Asks git for the branch and the changed files of a workspace, with a deadline, and without running anything else.

A repository may be a stranger's: its configuration and attributes can name programs that git runs to look at files
(file system monitors, filters, hooks) or to fetch missing objects. All of these are switched off.
"""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

from isthmus.agent.environment import GitState
from isthmus.runtime.processes import end_process, start_process
from isthmus.text.visible import printable
from isthmus.worktrees.git_environment import NO_PROGRAMS, base_environment, configuration, find_git, without_filters

GIT_SECONDS = 2.0
"""Maximum time for git; a status of a large repository that is not cached takes longer."""
MAXIMUM_OUTPUT_BYTES = 64 * 1024
"""Maximum size of git's output that is read; a status ends there."""
_STATUS = ("status", "--porcelain=v1", "-z", "--branch", "--no-renames", "--ignore-submodules=all", "--", ".")
_CONFIG = ("config", "--list", "--name-only", "-z")


async def git_state(
    workspace: Path, environment: Mapping[str, str], *, is_above_allowed: bool = True, seconds: float = GIT_SECONDS
) -> GitState | None:
    """Return the state of the workspace's repository; None if there is none, or git cannot be used.

    Starts git twice; ask :func:`has_repository` first. ``is_above_allowed``: the repository may begin above the
    workspace.
    """
    place = find_git(environment)
    if place is None:
        return None
    git = place.program
    ceiling = {} if is_above_allowed else {"GIT_CEILING_DIRECTORIES": str(workspace.parent)}
    safe = {**base_environment(environment, place.search_path), **ceiling}
    try:
        async with asyncio.timeout(seconds):
            names = await _output(git, _CONFIG, workspace, {**safe, **configuration(NO_PROGRAMS)})
            if names is None:
                return None
            settings = {**NO_PROGRAMS, **without_filters(names.decode("utf-8", "surrogateescape").split("\0"))}
            shown = await _output(git, _STATUS, workspace, {**safe, **configuration(settings)})
    except TimeoutError:
        return GitState("a repository", None)
    return None if shown is None else state_of(shown)


def state_of(status: bytes) -> GitState:
    """Return the state that git's status shows: the branch first, then a record for each changed file."""
    is_whole = len(status) < MAXIMUM_OUTPUT_BYTES
    head, *changes = status.decode("utf-8", "surrogateescape").split("\0")
    shown = tuple(printable(change) for change in (changes if is_whole else changes[:-1]) if change)
    return GitState(f"branch {printable(head.removeprefix('## '))}", shown)


def has_repository(workspace: Path, *, is_above_allowed: bool = True) -> bool:
    """Return whether a workspace seems to be in a git repository. Blocking."""
    folders = (workspace, *workspace.parents) if is_above_allowed else (workspace,)
    return any(os.path.lexists(f"{folder}/.git") for folder in folders)


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
