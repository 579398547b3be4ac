"""Determines whether bubblewrap works here, by running it once, with advice if it does not.

Versions and system files are not sufficient: user namespaces can be disabled in many ways.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from isthmus.record import record
from isthmus.sandbox.bubblewrap import Bubblewrap, command_line
from isthmus.sandbox.confinement import filter_file
from isthmus.sandbox.known_paths import KERNEL_SETTINGS
from isthmus.sandbox.mounts import Mount, MountKind, SandboxView

OLDEST = (0, 4, 0)
"""Oldest supported version; older ones lack options that are used."""
_INSTALL = (
    "install it (Debian, Ubuntu: apt install bubblewrap; Fedora: dnf install bubblewrap; Arch: pacman -S bubblewrap)"
)
_NAMESPACES = (
    "it needs unprivileged user namespaces. Allow them (sysctl user.max_user_namespaces and"
    " kernel.unprivileged_userns_clone; on Ubuntu kernel.apparmor_restrict_unprivileged_userns=0, or a profile for"
    " bwrap); in a container, its runtime must permit them"
)


@record
class NoSandbox:
    """A machine without a usable sandbox; ``reason`` contains the cause and advice."""

    reason: str


Support: TypeAlias = Bubblewrap | NoSandbox


def find_support(environment: Mapping[str, str] = os.environ, *, seconds: float = 10.0) -> Support:
    """Run bubblewrap, found by PATH, once.

    Takes about 20 ms, and at most ``seconds``. Blocking; call it in a thread if that is too long.
    """
    if sys.platform != "linux":
        return NoSandbox("the sandbox is bubblewrap, which exists on Linux only")
    found = shutil.which("bwrap", path=environment.get("PATH"))
    if found is None:
        return NoSandbox(f"bubblewrap (bwrap) is not on PATH; {_INSTALL}")
    program = Path(found).absolute()
    try:
        printed = _run((str(program), "--version"), seconds)
        numbers = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", printed.stdout)
        if printed.returncode or numbers is None:
            return NoSandbox(f"{program} --version printed an unknown format: {_short(printed)}; {_INSTALL}")
        version = (int(numbers[1]), int(numbers[2]), int(numbers[3] or 0))
        if version < OLDEST:
            oldest = ".".join(map(str, OLDEST))
            return NoSandbox(f"{program} is version {numbers[0]}, expected {oldest} or newer; {_INSTALL}")
        bubblewrap = Bubblewrap(program, version)
        tried = _run(_trial(bubblewrap), seconds)
    except (OSError, subprocess.TimeoutExpired) as error:
        return NoSandbox(f"{program} cannot be run: {error}; {_INSTALL}")
    if tried.returncode:
        return NoSandbox(f"{program} does not work here: {_short(tried)}; {_NAMESPACES}")
    return bubblewrap


def _trial(bubblewrap: Bubblewrap) -> tuple[str, ...]:
    """Return a command line that isolates everything and shows the least."""
    settings = [Mount(path, MountKind.READ_ONLY) for path in map(Path, KERNEL_SETTINGS) if path.exists()]
    view = SandboxView((Mount(Path("/tmp"), MountKind.EMPTY), *settings))  # noqa: S108 - the sandbox's own
    return command_line(
        bubblewrap, view, ("/bin/sh", "-c", ":"), folder=Path("/"), has_network=False, system_calls=filter_file()
    )


def _run(command: tuple[str, ...], seconds: float) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=seconds,
        check=False,
        env={},
        cwd="/",
        start_new_session=True,
    )


def _short(ended: "subprocess.CompletedProcess[str]") -> str:
    printed = " ".join((ended.stderr or ended.stdout).split())[:300]
    return printed or f"exit code {ended.returncode}"
