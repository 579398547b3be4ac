"""The bubblewrap of this machine, and its command line for a view and a policy. Pure.

The command line never contains values of variables: bubblewrap passes on its own environment, which its caller keeps
small. Start it without a controlling terminal, in a session of its own: bubblewrap's --new-session would take the
program out of the process group by which it is ended.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import assert_never

from isthmus.record import record
from isthmus.sandbox.mounts import Mount, MountKind, SandboxView

MAXIMUM_TEMPORARY_BYTES = 4 * 1024**3
"""Maximum size in bytes of each folder in memory: /tmp, the home folder."""

_ISOLATION = (
    "--unshare-user",
    "--unshare-ipc",
    "--unshare-pid",
    "--unshare-uts",
    "--unshare-cgroup-try",
    "--die-with-parent",
    "--cap-drop",
    "ALL",
)
_FILTER_DESCRIPTOR = "9"
_WITH_FILTER = f'exec "$@" {_FILTER_DESCRIPTOR}<"$0"'
"""Shell command that opens the filter: bubblewrap takes it from an open file, which callers do not pass on."""
_NOWHERE = "/dev/null"
"""Device bound over a closed file and a missing one; bound without its device, it cannot be opened."""


@record
class Bubblewrap:
    """A bubblewrap that works on this machine."""

    program: Path
    version: tuple[int, int, int]

    def __str__(self) -> str:
        return f"bubblewrap {'.'.join(map(str, self.version))}"

    @property
    def can_forbid_namespaces(self) -> bool:
        """Whether it can keep programs from creating user namespaces of their own."""
        return self.version >= (0, 8, 0)

    @property
    def can_mount_on_sockets(self) -> bool:
        """Whether a file can be mounted on a socket; older versions expect a regular file."""
        return self.version >= (0, 8, 0)

    @property
    def can_limit_memory(self) -> bool:
        """Whether it can limit the size of its folders in memory."""
        return self.version >= (0, 7, 0)


def command_line(
    bubblewrap: Bubblewrap,
    view: SandboxView,
    command: Sequence[str],
    *,
    folder: Path,
    has_network: bool,
    system_calls: Path | None = None,
    temporary_bytes: int = MAXIMUM_TEMPORARY_BYTES,
    around: Sequence[str] = (),
    user: tuple[int, int] | None = None,
) -> tuple[str, ...]:
    """Return the command line that runs `command` in `folder`; `system_calls` is a file with a seccomp filter.

    `temporary_bytes` is the maximum size in bytes of each folder in memory. `around` are words before bubblewrap, after
    which the filter is no longer readable, and `user` the ids of user and group in the sandbox, None for those outside.
    """
    return (
        *(() if system_calls is None else ("/bin/sh", "-c", _WITH_FILTER, str(system_calls))),
        *around,
        str(bubblewrap.program),
        *(() if system_calls is None else ("--seccomp", _FILTER_DESCRIPTOR)),
        *_ISOLATION,
        *(() if user is None else ("--uid", str(user[0]), "--gid", str(user[1]))),
        *(() if has_network else ("--unshare-net",)),
        *(("--disable-userns",) if bubblewrap.can_forbid_namespaces else ()),
        *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"),
        *(word for mount in view.mounts for word in _words(mount, bubblewrap, temporary_bytes)),
        *_sealed(view),
        *("--chdir", str(folder), "--"),
        *command,
    )


def _words(mount: Mount, bubblewrap: Bubblewrap, temporary_bytes: int) -> tuple[str, ...]:
    path = str(mount.path)
    match mount.kind:
        case MountKind.EMPTY:
            size = ("--size", str(temporary_bytes)) if bubblewrap.can_limit_memory else ()
            return (*size, "--tmpfs", path)
        case MountKind.CLOSED:
            return ("--tmpfs", path) if mount.is_folder else ("--ro-bind", _NOWHERE, path)
        case MountKind.PROTECTED if mount.is_missing and not mount.is_folder:
            # Reads as empty, and git takes no notice of a device. What is written to it is lost.
            return ("--dev-bind", _NOWHERE, path)
        case MountKind.READ_ONLY | MountKind.PROTECTED | MountKind.LISTED_READ_ONLY:
            return ("--ro-bind", str(mount.source or mount.path), path)
        case MountKind.WRITABLE | MountKind.LISTED_WRITABLE:
            return ("--bind", str(mount.source or mount.path), path)
        case MountKind.LINK:
            return ("--symlink", str(mount.target), path)
        case _:
            assert_never(mount.kind)


def _sealed(view: SandboxView) -> Iterator[str]:
    """Yield the options that make closed folders read-only, after the mounts in them."""
    for mount in view.mounts:
        if mount.kind is MountKind.CLOSED and mount.is_folder:
            yield from ("--remount-ro", str(mount.path))
