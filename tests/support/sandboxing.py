"""Helpers of sandbox tests: the sandbox of this machine, and the paths that every confined program needs."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from isthmus.sandbox.confinement import Confinement
from isthmus.sandbox.finding import SandboxFinder
from isthmus.sandbox.mounts import PrivatePlaces
from isthmus.sandbox.policy import SandboxPolicy
from isthmus.sandbox.support import NoSandbox
from isthmus.tools.shell.run_shell_command import RunShellCommand
from isthmus.tools.shell.shell_sandbox import ShellSandbox
from support.programs import bubblewrap, require

REPOSITORY = Path(__file__).resolve().parents[2]


def with_bubblewrap(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the environment with bubblewrap on PATH."""
    return {**environment, "PATH": f"{bubblewrap()}{os.pathsep}{environment['PATH']}"}


def confinement(home: Path, *own: Path) -> Confinement:
    """Return the sandbox of a user with this home folder, whose agent has the folders `own`."""
    found = SandboxFinder(PrivatePlaces(home, own), with_bubblewrap()).find()
    assert not isinstance(found, NoSandbox)
    return found


def machine_paths() -> list[str]:
    """Return the paths in the real home folder that some machines need: this checkout, and the interpreters."""
    node = require("node").resolve().parent.parent
    folders = {REPOSITORY, Path(sys.prefix), Path(sys.base_prefix), Path(sys.base_prefix).resolve(), node}
    return [f"{folder}:ro" for folder in sorted(folders) if folder != Path("/usr")]


def confined_shell(home: Path, *own: Path, grace_seconds: float = 2, **opened: Any) -> RunShellCommand:
    """Return the shell tool in the sandbox of a user; `opened` is added to the usual policy."""
    sandbox = ShellSandbox(confinement(home, *own), SandboxPolicy(**opened))
    return RunShellCommand(sandbox=sandbox, grace_seconds=grace_seconds)


def shell_environment(home: Path, **more: str) -> dict[str, str]:
    """Return the environment of a task's commands."""
    return {"PATH": os.environ["PATH"], "HOME": str(home), **more}
