"""The tasks for models: each can be solved and is not solved already, and what is not a task is named."""

import json
import subprocess
from pathlib import Path

import pytest
from bench.tasks.__main__ import row
from bench.tasks.running import Outcome, Price, check, prepare, write
from bench.tasks.task import OWN_TASKS, Task, TaskError, read_tasks

TASKS = read_tasks(OWN_TASKS)


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_a_task_is_solved_by_its_solution_alone(task: Task, tmp_path: Path) -> None:
    prepare(task, tmp_path / "begun")
    assert check(task, tmp_path / "begun")[0] is False
    prepare(task, tmp_path / "solved")
    write(task.solution, tmp_path / "solved")
    is_solved, printed = check(task, tmp_path / "solved")
    assert is_solved, printed


def test_there_are_ten_tasks_and_no_prompt_names_the_check() -> None:
    assert len(TASKS) == 10
    assert not [task.name for task in TASKS if "check.py" in task.prompt or set(task.hidden) <= set(task.solution)]


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "init.defaultBranch=main"]
    return subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.mark.slow
def test_a_task_of_swe_bench_is_prepared_from_a_clone_and_checked_with_its_tests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # of the task's pytest, which starts in half of the time
    clone = tmp_path / "clones" / "some__project"
    write({"one.py": "ONE = 2\n", "test_one.py": "def test_other() -> None:\n    pass\n"}, clone)
    git(clone, "init", "-q")
    git(clone, "add", "-A")
    git(clone, "commit", "-qm", "Begin")
    base = git(clone, "rev-parse", "HEAD").strip()
    (clone / "test_one.py").write_text(
        "from one import ONE\n\n\ndef test_other():\n    pass\n\n\ndef test_one():\n    assert ONE == 1\n"
    )
    patch = git(clone, "diff")
    git(clone, "commit", "-qam", "Later")
    line = {
        "instance_id": "some__project-1",
        "repo": "some/project",
        "base_commit": base,
        "problem_statement": "ONE is wrong.",
        "test_patch": patch,
        "FAIL_TO_PASS": json.dumps(["test_one.py::test_one"]),
        "PASS_TO_PASS": ["test_one.py::test_other"],
    }
    file = tmp_path / "tasks.jsonl"
    file.write_text(json.dumps(line) + "\n\n")
    (task,) = read_tasks(file, tmp_path / "clones")
    assert (task.name, task.prompt) == ("some__project-1", "ONE is wrong.")
    for folder, content, is_solved in (("begun", "ONE = 2\n", False), ("solved", "ONE = 1\n", True)):
        prepare(task, tmp_path / folder)
        (tmp_path / folder / "one.py").write_text(content)
        assert check(task, tmp_path / folder)[0] is is_solved


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.toml", "prompt = 'x'", "a.toml: expected prompt, check and [files] in TOML"),
        ("a.toml", "[", "a.toml: expected prompt"),
        ("a.jsonl", "{}", "a.jsonl, line 1: expected a task of SWE-bench"),
        ("a.jsonl", "[1]", "a.jsonl, line 1: expected a task of SWE-bench"),
    ],
)
def test_what_is_not_a_task_is_named(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(TaskError) as caught:
        read_tasks(tmp_path / name, tmp_path)
    assert message in str(caught.value)


def test_a_row_has_the_cost_with_cheaper_tokens_from_the_cache() -> None:
    outcome = Outcome("last_page", True, 7, 1_000_000, 800_000, 10_000, 12.34)
    assert Price(3, 0.3, 15).cost(outcome) == pytest.approx(0.2 * 3 + 0.8 * 0.3 + 0.15)
    assert row(outcome, Price(3, 0.3, 15)).split() == (
        ["last_page", "yes", "7", "1,000,000", "800,000", "10,000", "$0.990", "12.3"]
    )
    assert row(Outcome("x", False, note="no"), None).split() == ["x", "no", "0", "0", "0", "0", "-", "0.0", "no"]
