"""Puts a program into the sandbox: looks at the file system, and makes the command line and environment to start.

Starting, ending and listening are up to whoever runs the program.
"""

import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from isthmus.sandbox.bubblewrap import command_line
from isthmus.sandbox.mounts import PrivatePlaces, View, view_of
from isthmus.sandbox.policy import SandboxError, SandboxPolicy
from isthmus.sandbox.support import Bubblewrap

PASSED = ("COLORTERM", "HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TERM", "TZ", "USER")
"""Variables that every confined program gets; those that begin with ``LC_`` too."""


@dataclass(frozen=True, slots=True)
class Launch:
    """A program to start: its words, the folder that it works in, and its whole environment."""

    command: tuple[str, ...]
    folder: Path
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Confinement:
    """The sandbox on this machine: by what it is made, and around whom."""

    bubblewrap: Bubblewrap
    private: PrivatePlaces

    def confined(
        self,
        launch: Launch,
        policy: SandboxPolicy,
        workspace: Path,
        *,
        surrounding: Mapping[str, str],
        readable: Iterable[Path] = (),
    ) -> Launch:
        """How to start a program so that it is confined to `workspace` and what `policy` opens.

        `surrounding` is the environment that the policy lets variables through from; `readable` are folders that it
        may read besides. Looks at the file system, so it is for a thread where that may be slow.

        Raises:
            SandboxError: the policy cannot be held, or the program or its folder would not be there.
        """
        environment = {
            **launch.environment,
            **{name: surrounding[name] for name in policy.passed if name in surrounding},
            **dict(policy.variables),
            "TMPDIR": "/tmp",  # noqa: S108 - the one in the sandbox, which nobody shares
        }
        path = environment.get("PATH", "")
        folders = [Path(folder) for folder in path.split(":") if folder.startswith("/")]
        view = view_of(policy, self.private, workspace, _Files(), programs=folders, readable=readable)
        folder = launch.folder.resolve()
        _require_seen(view, folder, "the folder it works in")
        program = _program(launch, path)
        if program is not None:
            _require_seen(view, program, "the program")
        command = (str(program) if program is not None else launch.command[0], *launch.command[1:])
        words = command_line(self.bubblewrap, view, command, folder=folder, has_network=policy.has_network)
        return Launch(words, folder, environment)


def environment_of(environment: Mapping[str, str]) -> dict[str, str]:
    """What a confined command gets of an environment without being declared."""
    return {name: value for name, value in environment.items() if name in PASSED or name.startswith("LC_")}


def told(policy: SandboxPolicy) -> str:
    """What a policy opens, in a few words for the person."""
    writable = ", ".join(("the workspace", *(path.path for path in policy.paths if path.is_writable)))
    readable = ", ".join(path.path for path in policy.paths if not path.is_writable)
    parts = [f"writes in {writable}", *((f"also reads {readable}",) if readable else ())]
    parts.append("with the network" if policy.has_network else "no network")
    if names := (*policy.passed, *(name for name, _ in policy.variables)):
        parts.append(f"gets {', '.join(names)}")
    return "; ".join(parts)


def _program(launch: Launch, path: str) -> Path | None:
    """The program's absolute path, as it is named; None when there is none, which bubblewrap then says."""
    name = launch.command[0]
    if "/" in name:
        return launch.folder / name
    found = shutil.which(name, path=path)
    return None if found is None else Path(found).absolute()


def _require_seen(view: View, path: Path, what: str) -> None:
    for seen in (path, path.resolve()):
        if not view.shows(seen) and seen.exists():
            raise SandboxError(
                f"{what}, {seen}, is not in the sandbox, which has no home folder but for the workspace and what"
                f' sandbox.paths opens; add it or a folder around it there, such as "{seen.parent}:ro"'
            )


class _Files:
    """The file system as it is."""

    def resolve(self, path: Path) -> Path:
        return path.resolve()

    def is_folder(self, path: Path) -> bool | None:
        try:
            return path.is_dir() if path.exists() else None
        except OSError:
            return None

    def can_write(self, folder: Path) -> bool:
        return os.access(folder, os.W_OK)
