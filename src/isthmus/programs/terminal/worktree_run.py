"""Runs a conversation or a prompt in a worktree of the user's repository, and says at the end what became of it."""

import os
import secrets
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from isthmus.errors import IsthmusError
from isthmus.mcp_host.config.folder_trust import stated_trust
from isthmus.programs.process.event_loop import run_loop
from isthmus.programs.setup.setup import BadInputError, GivenOptions
from isthmus.programs.terminal.run_request import RunRequest
from isthmus.settings.trust.first_sight import inherit_record
from isthmus.text.visible import visible_line
from isthmus.worktrees.errors import WorktreeError
from isthmus.worktrees.local_worktree import LocalWorktree, begin_worktree, worktree_names
from isthmus.worktrees.names import slug
from isthmus.worktrees.worktree_end import end_worktree


def run_in_worktree(options: GivenOptions, request: RunRequest, run: Callable[[GivenOptions, RunRequest], int]) -> int:
    """Call ``run`` with the options and the request for the worktree, and return its exit status.

    Raises:
        BadInputError: there is no repository, or the name cannot be used.
    """
    workspace = (options.workspace or Path.cwd()).resolve()
    if not workspace.is_dir():
        raise BadInputError(f"--workspace {options.workspace} is not a folder")
    with ExitStack() as stack:
        name = request.worktree or _new_name(workspace, request)
        try:
            begin = begin_worktree(workspace, name, os.environ, stack, goes_on=request.resume is not None)
            worktree = run_loop(begin)
        except WorktreeError as error:
            raise BadInputError(f"--worktree: {error}") from error
        _say(worktree.notices)
        if stated_trust(Path.home(), workspace):
            inherit_record(workspace, worktree.workspace, Path.home())
        try:
            folders = tuple(_further_folders(options.include_directories, workspace, worktree.top))
            inside = replace(options, workspace=worktree.workspace, include_directories=folders)
            return run(inside, replace(request, worktree=name))
        finally:
            _finish(worktree, request)


def _further_folders(given: Sequence[str], workspace: Path, top: Path) -> Iterator[str]:
    """Return ``--include-directories`` for the worktree: those outside of the repository are where they were."""
    for name in (part.strip() for option in given for part in option.split(",") if part.strip()):
        place = (workspace / name).resolve()
        yield name if place.is_relative_to(top) or name.startswith("~") else str(place)


def _new_name(workspace: Path, request: RunRequest) -> str:
    """Return a name that no worktree has, with words of the prompt."""
    if request.resume is not None:
        try:
            names = run_loop(worktree_names(workspace, os.environ))
        except WorktreeError as error:
            raise BadInputError(f"--worktree: {error}") from error
        known = f"there are {', '.join(names[:20])}" if names else "there are none"
        raise BadInputError(f"--worktree needs the name of a worktree to go on in: {known}")
    words = slug(request.prompt or request.first_prompt or "")[:30].rstrip("-") or "session"
    return f"{words}-{secrets.token_hex(3)}"


def _finish(worktree: LocalWorktree, request: RunRequest) -> None:
    title = (request.prompt or request.first_prompt or "").strip().partition("\n")[0]
    try:
        _say(run_loop(end_worktree(worktree, title)).lines)
    except (IsthmusError, OSError) as error:
        _say((f"the worktree {worktree.folder} stays as it is: {error}",))


def _say(lines: tuple[str, ...]) -> None:
    for line in lines:
        sys.stderr.write(f"isthmus: {visible_line(line)}\n")
    sys.stderr.flush()
