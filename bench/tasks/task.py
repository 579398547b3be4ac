"""A task: the files of a repository, a prompt, and a command that passes when it is solved. Reads two forms.

Our own form is a TOML file with everything in it, a solution too, which the tests of the tasks use and the agent never
sees. The other form is SWE-bench's: a file of JSON lines, with the repositories as local clones.
"""

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

OWN_TASKS = Path(__file__).with_name("own")
CHECK_SECONDS = 120.0
"""Maximum time for the command that checks a task of ours."""
SWE_BENCH_CHECK_SECONDS = 1800.0


@dataclass(frozen=True, slots=True)
class Task:
    """A task. ``check`` is a command for ``/bin/sh``, in which ``{python}`` stands for this interpreter.

    The repository is made of ``files``, or is the clone ``repository`` at ``commit``. Before the check ``hidden`` files
    are written, and ``patch`` is applied, so that the agent cannot see or change what judges it.
    """

    name: str
    prompt: str
    check: str
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    hidden: Mapping[str, str] = field(default_factory=dict[str, str])
    solution: Mapping[str, str] = field(default_factory=dict[str, str])
    repository: Path | None = None
    commit: str = ""
    patch: str = ""
    check_seconds: float = CHECK_SECONDS


class TaskError(Exception):
    """A file of tasks that cannot be read; the text names it."""


def read_tasks(path: Path, clones: Path | None = None) -> list[Task]:
    """Return the tasks of a folder of TOML files, of one such file, or of a file of SWE-bench (``.jsonl``).

    Raises:
        TaskError: a file is not one of tasks.
    """
    if path.is_dir():
        files = sorted(path.glob("*.toml"))
        if not files:
            raise TaskError(f"{path}: expected files *.toml")
        return [_own_task(file) for file in files]
    if path.suffix == ".toml":
        return [_own_task(path)]
    if clones is None:
        raise TaskError(f"{path}: tasks of SWE-bench need --clones, the folder with clones named OWNER__NAME")
    return [_swe_task(line, path, number, clones) for number, line in enumerate(_lines(path), 1) if line.strip()]


def _lines(path: Path) -> Sequence[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise TaskError(f"{path}: cannot be read: {error}") from error


def _own_task(path: Path) -> Task:
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        return Task(
            path.stem, data["prompt"], data["check"], data["files"], data.get("hidden", {}), data.get("solution", {})
        )
    except (OSError, ValueError, KeyError) as error:
        raise TaskError(f"{path}: expected prompt, check and [files] in TOML: {error!r}") from error


def _swe_task(line: str, path: Path, number: int, clones: Path) -> Task:
    try:
        data: dict[str, Any] = json.loads(line)
        tests = [*_names(data["FAIL_TO_PASS"]), *_names(data.get("PASS_TO_PASS", []))]
        repository = clones / str(data["repo"]).replace("/", "__")
        return Task(
            data["instance_id"],
            data["problem_statement"],
            "{python} -m pytest -q " + " ".join(_quoted(test) for test in tests),
            repository=repository,
            commit=data["base_commit"],
            patch=data["test_patch"],
            check_seconds=SWE_BENCH_CHECK_SECONDS,
        )
    except (ValueError, KeyError, TypeError) as error:
        raise TaskError(f"{path}, line {number}: expected a task of SWE-bench: {error!r}") from error


def _names(value: object) -> list[str]:
    """Return names of tests; the data set has lists as JSON in a text."""
    names: object = json.loads(value) if isinstance(value, str) else value
    if not isinstance(names, list):
        raise TypeError("expected a list of tests")
    return [str(name) for name in names]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
