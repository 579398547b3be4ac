"""From inside the sandbox no file that starts programs outside can be made or changed, whether it exists or not."""

import asyncio
import shlex
import subprocess
from pathlib import Path, PurePath

import pytest

from isthmus.mcp_host.config.workspace_config import load_configuration
from isthmus.sandbox.guarded_paths import starting_files, starting_files_at_home
from isthmus.sandbox.policy import OpenPath
from isthmus.settings.trust.forms import CLAUDE_SETTINGS, MCP_FILE, SETTINGS
from isthmus.settings.trust.reading import COMMANDS, SKILL_FOLDERS, SUBAGENT_FOLDERS
from isthmus.tools.shell.run_shell_command import RunShellCommand
from support.programs import require
from support.sandboxing import confined_shell, shell_environment
from support.tool_calls import success_of, tool_context
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

OURS = (SETTINGS, *CLAUDE_SETTINGS, MCP_FILE, f"{COMMANDS}/x.toml", *SKILL_FOLDERS, *SUBAGENT_FOLDERS)
"""Files and folders of a project that Isthmus itself reads in a trusted folder."""
FILES = [str(name / "made" if is_folder else name) for name, is_folder in starting_files()]
AT_TOP = [str(name / "made" if is_folder else name) for name, is_folder in starting_files() if len(name.parts) == 1]
"""Files in the workspace's own folder. Deeper ones are protected where their folder exists."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "user"
    folder.mkdir()
    return folder


def attempts(path: str) -> str:
    """Return a command that tries to make or replace a file in several ways."""
    quoted, top = shlex.quote(path), shlex.quote(PurePath(path).parts[0])
    return (
        f"mkdir -p $(dirname {quoted}); echo pwned > {quoted}; ln -sf /etc/hostname {quoted}; rm -rf {top}; "
        f"mv {top} gone; echo pwned > new; mv -f new {quoted}; mkdir -p beside/{top} && mv -T beside/{top} {top}; "
        f"cp -r beside {top}/; umount {top}; true"
    )


def content(folder: Path) -> dict[str, bytes | None]:
    """Return the files of a folder with their content, links and folders with None."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() and not path.is_symlink() else None
        for path in sorted(folder.rglob("*"))
        if {"beside", "new"}.isdisjoint(path.relative_to(folder).parts)
    }


async def ran(shell: RunShellCommand, home: Path, workspace: Path, command: str) -> str:
    context = tool_context(workspace, shell_environment(home))
    return (await success_of(shell, context, command=command)).for_model


async def test_none_can_be_made_where_it_is_missing_and_nothing_is_left_behind(home: Path, workspace: Path) -> None:
    command = "; ".join((*map(attempts, (*AT_TOP, *OURS)), "echo made > ok"))
    said = await ran(confined_shell(home), home, workspace, command)
    assert content(workspace) == {"ok": b"made\n"}, said


async def test_none_can_be_changed_where_it_exists(home: Path, workspace: Path) -> None:
    for path in (*FILES, *OURS):
        place = workspace / path
        if path.startswith(".git/"):
            continue
        if not place.exists() and not any(parent.is_file() for parent in place.parents):
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text("as it was", encoding="utf-8")
    before = content(workspace)
    said = await ran(confined_shell(home), home, workspace, "; ".join(map(attempts, (*FILES, *OURS))))
    assert content(workspace) == before, said


async def test_none_can_be_made_in_a_repository_and_git_goes_on(home: Path, workspace: Path) -> None:
    git = require("git")
    subprocess.run([git, "init", "--quiet", workspace], check=True)
    config, hooks = (workspace / ".git" / name for name in ("config", "hooks"))
    for hook in hooks.iterdir():
        hook.unlink()
    hooks.rmdir()
    before = config.read_bytes()
    tries = (".git/hooks/pre-commit", ".git/config", ".git/config.worktree", ".git/commondir")
    command = "; ".join(f"mkdir -p .git/hooks; echo pwned > {path}; mv ok {path}" for path in tries)
    commit = "git -c user.name=x -c user.email=x@x commit -qm one"
    said = await ran(confined_shell(home), home, workspace, f"echo 1 > ok; git add ok && {commit}; {command}")
    assert config.read_bytes() == before, said
    assert not hooks.exists()
    assert (workspace / ".git" / "commondir").read_text("utf-8") == ".\n"
    log = subprocess.run([git, "-C", workspace, "log", "--oneline"], check=True, capture_output=True, text=True)
    assert log.stdout.endswith(" one\n")


async def test_git_takes_no_notice_of_what_stands_for_missing_files(home: Path, workspace: Path) -> None:
    git = require("git")
    subprocess.run([git, "init", "--quiet", workspace], check=True)
    said = await ran(
        confined_shell(home), home, workspace, "touch begun; git add -A; git status --porcelain; sleep 0.1"
    )
    assert said == "Output: A  begun"
    begun = asyncio.create_task(ran(confined_shell(home), home, workspace, "until [ -e end ]; do sleep 0.05; done"))
    await eventually_async((workspace / ".envrc").exists)
    outside = subprocess.run(
        [git, "-C", workspace, "status", "--porcelain"], check=True, capture_output=True, text=True
    )
    assert outside.stdout == "A  begun\n"
    (workspace / "end").touch()
    await asyncio.wait_for(begun, 30)


async def test_what_stands_for_a_missing_file_is_no_settings_file(home: Path, workspace: Path) -> None:
    call = asyncio.create_task(ran(confined_shell(home), home, workspace, "until [ -e end ]; do sleep 0.05; done"))
    await eventually_async((workspace / MCP_FILE).exists)
    configuration = load_configuration(workspace, home, {}, lambda _: True)
    assert (configuration.servers, configuration.problems) == ((), ())
    (workspace / "end").touch()
    await asyncio.wait_for(call, 30)
    assert content(workspace) == {"end": b""}


async def test_a_login_of_the_user_starts_nothing_that_was_made_in_an_opened_home(home: Path, workspace: Path) -> None:
    files = [str(name / "made" if is_folder else name) for name, is_folder in starting_files_at_home()]
    tries = "; ".join(f"mkdir -p $(dirname ~/{path}); echo pwned > ~/{path}" for path in files)
    shell = confined_shell(home, paths=(OpenPath("~", is_writable=True),))
    said = await ran(shell, home, workspace, f"{tries}; echo made > ~/ok")
    made = {path for path, text in content(home).items() if text is not None}
    nested = {path for path in files if len(PurePath(path).parts) > 2}  # their folders were missing
    assert made - nested == {"ok"}, said


async def test_placeholders_stay_while_another_command_runs(home: Path, workspace: Path) -> None:
    begun, end = workspace / "begun", workspace / "end"
    waiting = "touch begun; until [ -e end ]; do sleep 0.05; done; echo pwned > .mcp.json; mkdir .claude/hooks"
    call = asyncio.create_task(ran(confined_shell(home), home, workspace, waiting))
    await eventually_async(begun.exists)
    said = await ran(confined_shell(home), home, workspace, "cat .mcp.json .npmrc && echo empty")
    assert said == "Output: empty"  # what stands for them elsewhere reads as empty here, too
    assert (workspace / ".mcp.json").is_socket()
    end.touch()
    await asyncio.wait_for(call, 30)
    assert content(workspace) == {"begun": b"", "end": b""}
