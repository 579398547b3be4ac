"""Prepares a program for the sandbox: looks at the file system, and returns the command line and the environment.

The caller starts and ends the program and reads its output.
"""

import errno
import os
import platform
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from functools import cache
from pathlib import Path

from isthmus.record import record
from isthmus.sandbox.bubblewrap import Bubblewrap, command_line
from isthmus.sandbox.known_paths import HOME_SECRETS
from isthmus.sandbox.mounts import MAXIMUM_ENTRIES, PrivatePlaces, SandboxView, WorkspaceCopy, view_of
from isthmus.sandbox.placeholders import Placeholders, placeholders_of
from isthmus.sandbox.policy import SandboxError, SandboxPolicy
from isthmus.sandbox.system_calls import filter_of

COPY_TEMPORARY_BYTES = 512 * 1024**2
"""Maximum size in bytes of each folder in memory of a program that sees a copy of its workspace."""
PASSED = ("COLORTERM", "HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TERM", "TZ", "USER")
"""Variables that every confined program receives, besides those that begin with ``LC_``."""


@record
class Launch:
    """A program to start: its arguments, its working folder, and its whole environment."""

    command: tuple[str, ...]
    folder: Path
    environment: Mapping[str, str]
    release: Callable[[], None] = field(default=lambda: None, compare=False)
    """Function to call once the program has ended, or was not started: it removes what was made for it. Blocks."""


@record
class Confinement:
    """The sandbox of this machine: its bubblewrap and the user's private places."""

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
        """Return the launch of a program that is confined to `workspace` and what `policy` opens.

        `surrounding` is the environment from which the policy passes variables on; `readable` are further readable
        folders. Looks at the file system: call it in a thread if that may be slow.

        Raises:
            SandboxError: the policy cannot be enforced, or the program or its folder would not be visible.
            OSError: the program or its folder does not exist.
        """
        workspace = workspace.resolve()
        placeholders = placeholders_of(workspace, next(iter(self.private.own), None))
        release = placeholders.hold()
        try:
            return self._confined(launch, policy, workspace, surrounding, readable, placeholders, release)
        except BaseException:
            release()
            raise

    def require_copyable(self, workspace: Path) -> None:
        """Check that a workspace may be seen by a program about which nobody was asked.

        Raises:
            SandboxError: the home folder, its secrets or folders of Isthmus's own are in it.
        """
        home = self.private.home.resolve()
        secrets = (path for name in HOME_SECRETS if (path := home / name).exists())
        for path in (home, *self.private.own, *secrets):
            if path.resolve().is_relative_to(workspace):
                raise SandboxError(f"{path} is in the workspace")

    def confined_copy(self, launch: Launch, workspace: Path, copy: WorkspaceCopy) -> Launch:
        """Return the launch of a program that sees a copy in place of `workspace`, and can change nothing else.

        Looks at the file system: call it in a thread if that may be slow.

        Raises:
            SandboxError: the program or its folder would not be visible.
            OSError: the program or its folder does not exist.
        """
        workspace = workspace.resolve()
        environment = {**launch.environment, "TMPDIR": "/tmp"}  # noqa: S108 - the sandbox's own
        folders = _programs_of(environment)
        view = view_of(SandboxPolicy(), self.private, workspace, _Files(), programs=folders, copy=copy)
        folder = launch.folder.resolve()
        _require_seen(view, folder, "the working folder")
        words = (str(_program(launch, folders, view)), *launch.command[1:])
        return Launch(
            command_line(
                self.bubblewrap,
                view,
                words,
                folder=folder,
                has_network=False,
                system_calls=filter_file(),
                temporary_bytes=COPY_TEMPORARY_BYTES,
                around=copy.around,
                user=(os.getuid(), os.getgid()) if copy.around else None,
            ),
            Path("/"),
            environment,
        )

    def _confined(
        self,
        launch: Launch,
        policy: SandboxPolicy,
        workspace: Path,
        surrounding: Mapping[str, str],
        readable: Iterable[Path],
        placeholders: Placeholders,
        release: Callable[[], None],
    ) -> Launch:
        environment = {
            **launch.environment,
            **{name: surrounding[name] for name in policy.passed if name in surrounding},
            **dict(policy.variables),
            "TMPDIR": "/tmp",  # noqa: S108 - the sandbox's own, not shared
        }
        keep_git_at_home(workspace)
        folders = _programs_of(environment)
        view = view_of(policy, self.private, workspace, _Files(), programs=folders, readable=readable)
        missing = ((mount.path, mount.is_folder) for mount in view.missing)
        view = view.without(placeholders.make(missing, with_sockets=self.bubblewrap.can_mount_on_sockets))
        folder = launch.folder.resolve()
        _require_seen(view, folder, "the working folder")
        command = (str(_program(launch, folders, view)), *launch.command[1:])
        words = command_line(
            self.bubblewrap,
            view,
            command,
            folder=folder,
            has_network=policy.has_network,
            system_calls=filter_file(),
        )
        return Launch(words, folder, environment, release)


@cache
def filter_file() -> Path | None:
    """Return the filter of system calls as a file in memory, kept open by this process; None if there is no filter."""
    content = filter_of(platform.machine())
    if content is None or not hasattr(os, "memfd_create"):
        return None
    descriptor = os.memfd_create("isthmus-system-calls")
    os.write(descriptor, content)
    return Path(f"/proc/{os.getpid()}/fd/{descriptor}")


def keep_git_at_home(workspace: Path) -> None:
    """Create the file that could redirect git to another configuration and other hooks, with a harmless content.

    ``.git/commondir`` can then be mounted read-only. A missing file cannot, and git does not accept an empty one.
    """
    git = workspace / ".git"
    if not (git / "HEAD").is_file() or git.is_symlink() or os.path.lexists(git / "commondir"):
        return
    with suppress(OSError):  # a repository that cannot be written is not written in the sandbox either
        descriptor, temporary = tempfile.mkstemp(prefix="commondir-", dir=git)
        try:
            os.write(descriptor, b".\n")
            os.fchmod(descriptor, 0o644)
            os.link(temporary, git / "commondir")
        finally:
            os.close(descriptor)
            Path(temporary).unlink()


def environment_of(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of `environment` that every confined command gets."""
    return {name: value for name, value in environment.items() if name in PASSED or name.startswith("LC_")}


def describe_policy(policy: SandboxPolicy) -> str:
    """Return a short summary for the user of what a policy opens."""
    writable = ", ".join(("the workspace", *(path.path for path in policy.paths if path.is_writable)))
    readable = ", ".join(path.path for path in policy.paths if not path.is_writable)
    parts = [f"writes in {writable}", *((f"also reads {readable}",) if readable else ())]
    parts.append("with the network" if policy.has_network else "no network")
    if names := (*policy.passed, *(name for name, _ in policy.variables)):
        parts.append(f"gets {', '.join(names)}")
    return "; ".join(parts)


def _programs_of(environment: Mapping[str, str]) -> list[Path]:
    return [Path(folder) for folder in environment.get("PATH", "").split(":") if folder.startswith("/")]


def _program(launch: Launch, folders: Sequence[Path], view: SandboxView) -> Path:
    """Return the program's absolute path as named: the first one of that name that the sandbox shows."""
    name = launch.command[0]
    found = [launch.folder / name] if "/" in name else [folder / name for folder in folders]
    usable = [path for path in found if path.is_file() and os.access(path, os.X_OK)]
    for path in usable:
        if _is_seen(view, path):
            return path
    for path in usable:
        _require_seen(view, path, "the program")
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)


def _is_seen(view: SandboxView, path: Path) -> bool:
    return view.shows(path.parent.resolve() / path.name) and view.shows(path.resolve())


def _require_seen(view: SandboxView, path: Path, what: str) -> None:
    if not path.exists():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    for seen in (path.parent.resolve() / path.name, path.resolve()):
        if not view.shows(seen):
            raise SandboxError(
                f"{what}, {seen}, is not in the sandbox: it shows of home folders only the workspace and the paths that"
                f' sandbox.paths opens. Add it or a folder around it there, such as "{seen.parent}:ro"'
            )


class _Files:
    """The real file system."""

    def resolve(self, path: Path) -> Path:
        return path.resolve()

    def is_folder(self, path: Path) -> bool | None:
        try:
            return path.is_dir() if path.exists() else None
        except OSError:
            return None

    def is_link(self, path: Path) -> bool:
        return path.is_symlink()

    def is_socket(self, path: Path) -> bool:
        return path.is_socket()

    def can_write(self, folder: Path) -> bool:
        return os.access(folder, os.W_OK)

    def entries(self, folder: Path) -> Sequence[str]:
        try:
            return sorted(path.name for path in folder.iterdir())[:MAXIMUM_ENTRIES]
        except OSError:
            return ()
