"""Repositories whose content, and what an agent adds to it, would run programs or lead elsewhere. With real git."""

import os
from pathlib import Path

import pytest

from isthmus.worktrees.session_worktree import SessionWorktree
from support.git_repositories import SharedRepository, git

pytestmark = pytest.mark.anyio

ATTRIBUTES = "* text=auto eol=crlf ident working-tree-encoding=UTF-16\n*.txt filter=named diff=named merge=named\n"
FILES = {"a.txt": "one\n$Id$\n", ".gitattributes": ATTRIBUTES}


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return tmp_path / "trace"


@pytest.fixture
def program(tmp_path: Path, trace: Path) -> Path:
    """Return a program that leaves a trace."""
    path = tmp_path / "program"
    path.write_text(f"#!/bin/sh\necho \"$0 $*\" >> '{trace}'\ncat\n", "utf-8")
    path.chmod(0o755)
    return path


@pytest.fixture
async def worktree(tmp_path: Path, program: Path) -> SessionWorktree:
    """Return a worktree of a user whose own configuration knows the filters that the repository names, and more."""
    home = Path(os.environ["HOME"])
    shared = SharedRepository(tmp_path, SharedRepository.make_template(tmp_path / "template", {"b.txt": "b"}))
    for name, text in FILES.items():  # not by git add, which would apply the attributes
        blob = git(shared.user, "hash-object", "-w", "--no-filters", "--stdin", given=text)
        git(shared.user, "update-index", "--add", "--cacheinfo", f"100644,{blob},{name}")
    commit = git(shared.user, "commit-tree", "-m", "content", git(shared.user, "write-tree"))
    git(shared.user, "push", "-qf", "origin", f"{commit}:refs/heads/main")
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("post-checkout", "pre-push", "post-index-change", "pre-commit"):
        (hooks / name).symlink_to(program)
    (home / "ignore").write_text("*.bin\n", "utf-8")
    (home / ".gitconfig").write_text(
        f"[core]\n\thooksPath = {hooks}\n\tfsmonitor = {program}\n\tautocrlf = true\n\texcludesFile = {home}/ignore\n"
        f'[filter "named"]\n\tclean = {program}\n\tsmudge = {program}\n\trequired = true\n'
        f'[diff "named"]\n\ttextconv = {program}\n\tcommand = {program}\n[diff]\n\texternal = {program}\n'
        f"[commit]\n\tgpgSign = true\n[gpg]\n\tprogram = {program}\n",
        "utf-8",
    )
    opened = await shared.machine("one").open(shared.url(), "session-1")
    return opened.worktree


async def test_no_program_runs_and_every_byte_is_as_it_was(worktree: SessionWorktree, trace: Path) -> None:
    assert not trace.exists()
    assert (worktree.folder / "a.txt").read_bytes() == FILES["a.txt"].encode()
    (worktree.folder / "a.txt").write_bytes(b"two\r\n\xff")
    (worktree.folder / "kept.bin").write_bytes(b"x")
    kept = await worktree.checkpoint()
    await worktree.restore(kept.commit)
    assert (worktree.folder / "a.txt").read_bytes() == b"two\r\n\xff"
    result = await worktree.result("Two")
    assert result is not None
    assert "kept.bin" in (result.patch or "")
    assert not trace.exists(), trace.read_text("utf-8")


async def test_repositories_that_an_agent_makes_inside_run_nothing(
    worktree: SessionWorktree, program: Path, trace: Path
) -> None:
    (Path(os.environ["HOME"]) / ".gitconfig").unlink()
    for name in ("inner", "linked"):
        inner = worktree.folder / name
        inner.mkdir()
        git(inner, "init", "-q")
        (inner / "file").write_text("x", "utf-8")
        git(inner, "add", "file")
        git(inner, "commit", "-qm", "x")
        git(inner, "config", "core.fsmonitor", str(program))
    commit = git(worktree.folder / "linked", "rev-parse", "HEAD")
    index = {"GIT_INDEX_FILE": str(worktree.mirror.folder / "indexes" / "session-1")}
    await worktree.mirror.git.text(
        f"--git-dir={worktree.mirror.path}",
        *("update-index", "--add", "--cacheinfo", f"160000,{commit},linked"),
        folder=worktree.folder,
        variables=index,
    )
    (worktree.folder / "linked/file").write_text("changed", "utf-8")
    trace.unlink(missing_ok=True)
    kept = await worktree.checkpoint()
    assert kept.left_out == ("inner/ (a repository of its own)",)
    assert await worktree.result("x") is not None
    await worktree.restore()
    assert not trace.exists()


async def test_a_git_file_that_leads_elsewhere_is_not_followed(
    worktree: SessionWorktree, tmp_path: Path, program: Path, trace: Path
) -> None:
    (Path(os.environ["HOME"]) / ".gitconfig").unlink()
    forged = tmp_path / "forged"
    git(tmp_path, "init", "-q", str(forged))
    git(forged, "config", "core.fsmonitor", str(program))
    trace.unlink(missing_ok=True)
    (worktree.folder / ".git").write_text(f"gitdir: {forged}/.git\n", "utf-8")
    (worktree.folder / "b").write_text("x", "utf-8")
    assert (await worktree.checkpoint()).is_new
    await worktree.restore()
    assert not trace.exists()


async def test_links_of_a_repository_lead_no_file_out_of_the_worktree(tmp_path: Path) -> None:
    shared = SharedRepository(tmp_path, SharedRepository.make_template(tmp_path / "template", {"a": ""}))
    first = (await shared.machine("one").open(shared.url(), "session-1")).worktree
    outside = tmp_path / "outside"
    outside.mkdir()
    (first.folder / "folder").mkdir()
    (first.folder / "folder/file").write_text("inside", "utf-8")
    kept = await first.checkpoint()
    (first.folder / "folder/file").unlink()
    (first.folder / "folder").rmdir()
    (first.folder / "folder").symlink_to(outside)
    (outside / "file").write_text("of somebody else", "utf-8")
    await first.checkpoint()
    await first.restore(kept.commit)
    assert (first.folder / "folder/file").read_text("utf-8") == "inside"
    assert (outside / "file").read_text("utf-8") == "of somebody else"
