"""Runs a task: a fresh repository, the program ``isthmus -p`` in it, and the check. Each has a deadline.

The agent works under the approval mode ``yolo`` with a home folder of its own; keys come from the environment. It is
confined only by ``--sandbox``: run tasks of others with it, or in a container.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.processes import program
from bench.tasks.task import Task

AGENT_SECONDS = 1800.0
"""Maximum time for the agent."""
_IDENTITY = ("-c", "user.name=bench", "-c", "user.email=bench@example.invalid", "-c", "init.defaultBranch=main")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a task; ``note`` says why a run ended early, or what the check printed last."""

    task: str
    is_solved: bool
    turns: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    note: str = ""


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million tokens: of input, of input from the provider's cache, of output."""

    input: float
    cached: float
    output: float

    def cost(self, outcome: Outcome) -> float:
        """Return the cost of a run in US dollars."""
        fresh = max(0, outcome.input_tokens - outcome.cached_tokens)
        parts = fresh * self.input + outcome.cached_tokens * self.cached + outcome.output_tokens * self.output
        return parts / 1_000_000


def run_task(task: Task, model: str, options: Sequence[str] = (), seconds: float = AGENT_SECONDS) -> Outcome:
    """Let the agent work on a task, check it, and return the outcome."""
    with tempfile.TemporaryDirectory(prefix="isthmus-task-", ignore_cleanup_errors=True) as folder:
        place = Path(folder)
        workspace = place / "work"
        (place / "home").mkdir()
        try:
            prepare(task, workspace)
        except (OSError, subprocess.CalledProcessError) as error:
            return Outcome(task.name, is_solved=False, note=f"the repository cannot be made: {error}")
        command = [program("isthmus"), "-p", task.prompt, "-m", model, "--approval-mode", "yolo", "-o", "json"]
        command += ["--no-ide", "--data-dir", str(place / "data"), *options]
        began = time.monotonic()
        status, printed = _run(command, workspace, _environment(place / "home"), seconds)
        used = _usage(printed)
        took = time.monotonic() - began
        is_solved, note = check(task, workspace)
        if status is None:
            note = f"the agent was ended after {seconds:g} s"
        elif status:
            note = f"the agent ended with status {status}: {_error(printed)}"
        return Outcome(task.name, is_solved, *used, seconds=took, note="" if is_solved else note)


def prepare(task: Task, workspace: Path) -> None:
    """Make the repository of a task.

    Raises:
        CalledProcessError, OSError: it cannot be made.
    """
    if task.repository is not None:
        _git(workspace.parent, "clone", "-q", "--no-hardlinks", str(task.repository), str(workspace))
        _git(workspace, "checkout", "-q", "--detach", task.commit)
        return
    write(task.files, workspace)
    _git(workspace, "init", "-q")
    _git(workspace, "add", "-A")
    _git(workspace, "commit", "-q", "-m", "Begin")


def check(task: Task, workspace: Path) -> tuple[bool, str]:
    """Return whether a workspace solves a task, and the last line that the check printed."""
    write(task.hidden, workspace)
    if task.patch:
        applied = subprocess.run(
            ["git", "apply", "-"], cwd=workspace, input=task.patch, text=True, capture_output=True, check=False
        )
        if applied.returncode:
            return False, f"the tests cannot be applied: {applied.stderr.strip()[:200]}"
    command = ["/bin/sh", "-c", task.check.replace("{python}", f"'{sys.executable}'")]
    status, printed = _run(command, workspace, dict(os.environ), task.check_seconds, with_errors=True)
    lines = printed.strip().splitlines()
    note = f"the check was ended after {task.check_seconds:g} s" if status is None else lines[-1] if lines else ""
    return status == 0, note[:200]


def write(files: Mapping[str, str], workspace: Path) -> None:
    """Write files into a workspace."""
    for name, content in files.items():
        path = workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")


def _environment(home: Path) -> dict[str, str]:
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
    kept = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
    return {**kept, "HOME": str(home), "PATH": path}


def _run(
    command: Sequence[str], folder: Path, environment: dict[str, str], seconds: float, *, with_errors: bool = False
) -> tuple[int | None, str]:
    """Run a command and return its status, None at the deadline, and what it printed."""
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if with_errors else subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            printed, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            printed, _ = process.communicate()
            return None, printed.decode("utf-8", "replace")
        return process.returncode, printed.decode("utf-8", "replace")


def _result(printed: str) -> dict[str, Any]:
    try:
        found: object = json.loads(printed)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def _error(printed: str) -> str:
    return str(_result(printed).get("error", {}).get("message", "no message"))[:200]


def _usage(printed: str) -> tuple[int, int, int, int]:
    """Return the requests, and the tokens of input, from the cache, and of output, over all models."""
    models: list[Any] = list(_result(printed).get("stats", {}).get("models", {}).values())
    tokens = [model["tokens"] for model in models]
    return (
        sum(model["api"]["totalRequests"] for model in models),
        sum(one["prompt"] for one in tokens),
        sum(one["cached"] for one in tokens),
        sum(one["candidates"] + one["thoughts"] for one in tokens),
    )


def _git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *_IDENTITY, *arguments], cwd=folder, check=True, capture_output=True)
