"""CPU quotas of processes, by control groups of Linux (version 1 or 2), where this user may make them."""

import contextlib
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
PERIOD_MICROSECONDS = 50_000
REMOVE_SECONDS = 5.0
_V1 = ("cpu", "cpu,cpuacct")


@dataclass(frozen=True, slots=True)
class Quota:
    """A control group whose processes together get a share of one core."""

    folder: Path
    share: float
    """Processor time per second, 1.0 for a whole core."""

    def add(self, pid: int) -> None:
        """Move a process, with its threads, into the group."""
        (self.folder / "cgroup.procs").write_text(f"{pid}\n", "ascii")


class QuotaUnavailable(Exception):
    """Control groups cannot be made here; the text is the reason."""


@contextmanager
def quota(share: float, cgroups: Path = CGROUPS) -> Generator[Quota]:
    """Make a control group with a quota; remove it afterwards, when its processes have ended.

    Raises:
        QuotaUnavailable: this machine or user has no control groups with quotas.
    """
    name = f"isthmus-bench-{os.getpid()}-{time.monotonic_ns()}"
    first = next((cgroups / name for name in _V1 if (cgroups / name / "cgroup.procs").exists()), None)
    folder = (first or cgroups) / name
    limit = str(round(share * PERIOD_MICROSECONDS))
    try:
        try:
            if first is None:
                _allow_quotas(cgroups)
            folder.mkdir()
            if first is None:
                (folder / "cpu.max").write_text(f"{limit} {PERIOD_MICROSECONDS}\n", "ascii")
            else:
                (folder / "cpu.cfs_period_us").write_text(f"{PERIOD_MICROSECONDS}\n", "ascii")
                (folder / "cpu.cfs_quota_us").write_text(f"{limit}\n", "ascii")
        except OSError as error:
            raise QuotaUnavailable(f"{error.strerror or error}: {error.filename}") from error
        yield Quota(folder, share)
    finally:
        _remove(folder)


def _allow_quotas(cgroups: Path) -> None:
    """Let groups of version 2 have quotas."""
    controllers = cgroups / "cgroup.subtree_control"
    if "cpu" not in controllers.read_text("ascii").split():
        controllers.write_text("+cpu\n", "ascii")


def _remove(folder: Path) -> None:
    """Remove a group; a process that has just ended may keep it busy for a moment."""
    end = time.monotonic() + REMOVE_SECONDS
    while folder.exists() and time.monotonic() < end:
        with contextlib.suppress(OSError):
            folder.rmdir()
            return
        time.sleep(0.05)
