"""The state of a git repository: read with a deadline, and without running what a stranger's repository names."""

import subprocess
from pathlib import Path

import pytest

from isthmus.agent.environment import GitState
from isthmus.parts.git_state import MAXIMUM_OUTPUT_BYTES, git_state, state_of

pytestmark = pytest.mark.anyio

ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/nonexistent"}


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "house"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "kept.txt").write_text("one\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    return folder


async def test_branch_and_changes_are_as_in_git_status(repository: Path) -> None:
    assert await git_state(repository, ENVIRONMENT) == GitState("branch main")
    (repository / "kept.txt").write_text("another length\n")
    (repository / "new\nname.txt").write_text("")
    state = await git_state(repository, ENVIRONMENT)
    assert state == GitState("branch main", (" M kept.txt", "?? new\\nname.txt"))


async def test_a_folder_inside_a_repository_has_its_own_changes_alone(
    repository: Path,
) -> None:
    inner = repository / "inner"
    inner.mkdir()
    (inner / "a.txt").write_text("")
    (repository / "b.txt").write_text("")
    assert await git_state(inner, ENVIRONMENT) == GitState("branch main", ("?? inner/",))
    assert await git_state(inner, ENVIRONMENT, is_above_allowed=False) is None


async def test_without_a_repository_or_git_there_is_no_state(repository: Path, tmp_path: Path) -> None:
    assert await git_state(tmp_path, ENVIRONMENT) is None
    assert await git_state(repository, {"PATH": ".:"}) is None
    (repository / ".git" / "config").write_text("[broken")
    assert await git_state(repository, ENVIRONMENT) is None


async def test_programs_that_a_strangers_repository_names_are_not_run(repository: Path, tmp_path: Path) -> None:
    program = tmp_path / "program"
    trace = tmp_path / "trace"
    program.write_text(f'#!/bin/sh\necho "$0 $*" >> {trace}\ncat\n')
    program.chmod(0o755)
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    (hooks / "post-index-change").symlink_to(program)
    git(repository, "config", "core.fsmonitor", str(program))
    git(repository, "config", "core.hooksPath", str(hooks))
    for name in ("in.ner", "other"):
        git(repository, "config", f"filter.{name}.clean", f"{program} clean")
        git(repository, "config", f"filter.{name}.process", f"{program} process")
        git(repository, "config", f"filter.{name}.required", "true")
    (repository / ".git" / "info" / "attributes").write_text("*.txt filter=in.ner\n")
    (repository / ".gitattributes").write_text("*.txt filter=other\n")
    trace.unlink(missing_ok=True)  # git's own commands above may have run the program

    def changed() -> None:
        (repository / "kept.txt").unlink()
        (repository / "kept.txt").write_text("two\n")

    changed()
    state = await git_state(repository, ENVIRONMENT)
    assert not trace.exists()
    assert state == GitState("branch main", (" M kept.txt", "?? .gitattributes"))
    changed()
    subprocess.run(["git", "status"], cwd=repository, env=ENVIRONMENT, capture_output=True, check=False)
    assert trace.exists(), "this repository would run the program"


async def test_a_git_that_does_not_answer_is_ended_at_the_deadline(repository: Path, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "git").write_text("#!/bin/sh\nexec sleep 60\n")
    (programs / "git").chmod(0o755)
    environment = {**ENVIRONMENT, "PATH": f"{programs}:/usr/bin:/bin"}
    assert await git_state(repository, environment, seconds=0.05) == GitState("a repository", None)


def test_a_status_that_was_cut_leaves_out_its_last_record() -> None:
    record = "?? " + "x" * 96 + "\0"
    status = ("## main\0" + record * 1000).encode()[:MAXIMUM_OUTPUT_BYTES]
    changes = state_of(status).changes
    assert changes is not None
    assert set(changes) == {record[:-1]}
