"""Looks up the environment of a conversation: date, system, programs, git, and the top of the workspace.

Takes milliseconds where there is no repository; git has a deadline. The text is made in
:mod:`isthmus.agent.environment`.
"""

import os
import platform
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path

from isthmus.agent.environment import Environment, environment_text
from isthmus.parts.git_state import git_state, has_repository
from isthmus.parts.program_lookup import ProgramLookup
from isthmus.record import record
from isthmus.runtime.brief_work import briefly
from isthmus.text.visible import printable
from isthmus.tools.port.tool_set import ToolScope
from isthmus.tools.port.workspace import Workspace

SHELL = "bash"
PROGRAMS = tuple(
    "git rg python3 uv poetry node npm pnpm yarn bun deno go cargo java mvn gradle dotnet ruby bundle php composer"  # noqa: SIM905
    " make cmake gcc clang docker podman gh".split()
)
"""Programs whose presence changes what an agent would do."""


class SessionEnvironment:
    """Source of the text about a session's environment. ``environment`` is for commands."""

    def __init__(self, environment: Mapping[str, str], now: Callable[[], datetime] = datetime.now) -> None:
        self._environment = environment
        self._now = now
        self._programs = ProgramLookup((SHELL, *PROGRAMS), environment)

    async def __call__(self, scope: ToolScope) -> str:
        """Return the text for a session."""
        surroundings = await briefly(self._look, scope.workspace, is_above_allowed=not scope.user)
        git = None
        if surroundings.has_repository:
            git = await git_state(scope.workspace, self._environment, is_above_allowed=not scope.user)
        programs = dict(surroundings.programs)
        shell = programs.pop(SHELL, "/bin/sh")
        system = f"{platform.system()} {platform.release()} ({platform.machine()})"
        return environment_text(
            Environment(self._now().astimezone(), system, shell, tuple(programs), git, surroundings.entries)
        )

    def _look(self, workspace: Path, *, is_above_allowed: bool) -> "_Surroundings":
        # All in one thread: passing it work costs more than most of these looks.
        return _Surroundings(
            self._programs.found(),
            _entries(Workspace(workspace)),
            has_repository(workspace, is_above_allowed=is_above_allowed),
        )


@record
class _Surroundings:
    """The programs that are found, the names at the top of a workspace, and whether it is in a git repository."""

    programs: Mapping[str, str]
    entries: tuple[str, ...]
    has_repository: bool


def _entries(workspace: Workspace) -> tuple[str, ...]:
    """Return the names at the top of a workspace that its ignore files leave, folders first."""
    try:
        with os.scandir(workspace.root) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError:
        return ()
    visible = workspace.visibility(workspace.root).inside(
        workspace.root, "", frozenset(entry.name for entry in entries)
    )
    folders: list[str] = []
    files: list[str] = []
    for entry in entries:
        is_folder = entry.is_dir(follow_symlinks=False)
        name = f"{entry.name}/" if is_folder else entry.name
        if not visible.hides(name, name):
            (folders if is_folder else files).append(printable(name))
    return (*folders, *files)
