"""The servers of a2a-sdk beside which ours is measured, each with its budgets.

Budgets are set for 1.3.0, which serves A2A 0.3 by its adapter and has its own environment (``bench/peers.txt``). 0.3.26
in the checkout's environment, which is leaner, is measured without a budget. Both record spans for OpenTelemetry as
soon as its API is installed, which a dependency of theirs does, although nothing reads them. That is switched off for
the budgets, which makes them harder, and also measured as it is after a bare pip install.
"""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench.processes import ROOT, python_program

FOLDER = ROOT / ".cache" / "bench-peers"
"""Virtual environment of ``bench/peers.txt``."""
INSTALLED = FOLDER / ".installed"
"""File that exists once the environment is complete."""
UNTRACED = {"OTEL_INSTRUMENTATION_A2A_SDK_ENABLED": "false"}
OF_1_3 = "none: it is set for 1.3"
OF_UNTRACED = "none: spans nobody reads"

TURNS: Mapping[int, float] = {1: 4.4, 32: 4.1}
"""Ratios of the first version whose turns were measured; later versions do more in a turn, and need no more."""


@dataclass(frozen=True, slots=True)
class SdkPeer:
    """A server of a2a-sdk: its command, and the budgets of our server beside it.

    Budgets are ratios of our value to the peer's. ``budget`` is the reason in the table if there is none.
    """

    name: str
    command: list[str]
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    cpu_at_most: float | None = None
    rate_at_least: float | None = None
    budget: str = ""
    few_tasks: bool = False
    """Whether it is so slow that it gets only few tasks."""
    streams: bool = True
    """Whether it also gets long streams; not on SQLite, where each event writes the whole history again."""
    turns_at_most: Mapping[int, float] = field(default_factory=dict[int, float])
    """Maximum ratio of our coding agent's turn to this server's task, by the number of clients."""
    tells_at_once: bool = True
    """Whether a client that follows a task again receives its state at once; 0.3.26 waits for the next event."""


def sdk_peers(database: Path) -> Iterator[SdkPeer]:
    """Yield the installed peers; one of them keeps its tasks in `database`."""
    if INSTALLED.is_file():
        python = str(FOLDER / "bin" / "python")
        command = [python, "-m", "bench.programs.sdk_a2a_1"]
        path = {"PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"}
        name = f"a2a-sdk {version(python)}"
        yield SdkPeer(f"{name} in memory", command, path | UNTRACED, cpu_at_most=0.35, rate_at_least=4)
        yield SdkPeer(f"{name} in memory, traced", command, path, budget=OF_UNTRACED, streams=False)
        yield SdkPeer(
            f"{name} on SQLite",
            [*command, str(database)],
            path | UNTRACED,
            cpu_at_most=1 / 15,
            few_tasks=True,
            streams=False,
        )
    name = f"a2a-sdk {version(sys.executable)} in memory"
    command = python_program("bench.programs.sdk_a2a")
    yield SdkPeer(name, command, UNTRACED, budget=OF_1_3, turns_at_most=TURNS, tells_at_once=False)
    yield SdkPeer(f"{name}, traced", command, budget=OF_1_3, streams=False, tells_at_once=False)


def version(python: str) -> str:
    """Return the version of the SDK that an interpreter imports, so that the table names the version that ran."""
    code = "import importlib.metadata; print(importlib.metadata.version('a2a-sdk'))"
    asked = subprocess.run([python, "-c", code], capture_output=True, text=True, encoding="utf-8", timeout=60)
    if asked.returncode != 0:
        raise RuntimeError(f"{python} has no a2a-sdk ({asked.stderr[-500:]}); `make bench` installs it")
    return asked.stdout.strip()
