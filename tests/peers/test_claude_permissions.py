"""Permission questions of Claude Code, answered elsewhere or in its terminal: the first answer counts, on each side.

The CLI is the strict one, and the real one, too, if ISTHMUS_CLAUDE is its path. It is started by `isthmus companion
exec`, and the user answers by `isthmus ide`.
"""

import asyncio
import json
import os
import signal
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from isthmus.ide import permission_hook
from support.extended import first_of
from support.isolation import IsolatedFolders
from support.isthmus_program import CompanionProgram, companion_program, isthmus, process_ends, user
from support.permission_cli import KINDS, Ended, PermissionCli, permission_cli
from support.waiting import eventually_async

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("kind", KINDS), pytest.mark.timeout(300)]

BASH = ("Bash", {"command": "echo 'one\u202e' > one.txt\n# and more", "description": "Writes a file"})
MCP = ("mcp__notes__keep", {"note": "buy milk"})


@asynccontextmanager
async def _companion(workspace: Path, *options: str) -> AsyncGenerator[CompanionProgram]:
    starting = companion_program(workspace, *options)
    companion = await asyncio.to_thread(starting.__enter__)
    try:
        yield companion
    finally:
        await asyncio.to_thread(starting.__exit__, None, None, None)


def _edit(workspace: Path) -> tuple[str, dict[str, Any]]:
    file = workspace / "a.py"
    if not file.exists():
        file.write_text("one\ntwo\n", encoding="utf-8")
    return "Edit", {"file_path": str(file), "old_string": "two", "new_string": "three", "replace_all": False}


def _call(name: str, workspace: Path) -> tuple[str, Mapping[str, Any]]:
    return {"bash": BASH, "mcp": MCP}.get(name) or _edit(workspace)


async def _question(workspace: Path) -> dict[str, Any]:
    (question,) = (await user("questions", "--wait", "30", folder=workspace))["questions"]
    return question


async def _is_withdrawn(workspace: Path) -> None:
    async def is_withdrawn() -> bool:
        return (await user("questions", folder=workspace))["questions"] == []

    await eventually_async(is_withdrawn, 30, what="the question is taken back")


async def _answer(workspace: Path, *arguments: str) -> tuple[int, str]:
    done = await asyncio.to_thread(isthmus, "ide", "answer", *arguments, folder=workspace)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("call", first_of(["edit", "bash", "mcp"]))
async def test_an_answer_elsewhere_counts_and_ends_the_question_in_the_terminal(
    kind: str, call: str, workspace: Path
) -> None:
    async with _companion(workspace, "--no-diff"), permission_cli(kind, workspace) as cli:
        tool, given = _call(call, workspace)
        await cli.asks(tool, given)
        question = await _question(workspace)
        assert question["permission"] is True
        await user("answer", question["id"], "no", "--reason", "use make", folder=workspace)
        refused = await cli.ended()
        assert (refused.is_allowed, refused.by) == (False, "hook")
        assert "The user refused this in isthmus ide: use make" in refused.message
        assert not cli.still_asks()
        await cli.asks(tool, given)
        question = await _question(workspace)
        await user("answer", question["id"], "yes", folder=workspace)
        assert await cli.ended() == Ended(True, "hook")
        status, said = await _answer(workspace, question["id"], "no")
        assert status == 1
        assert f"no question {question['id']} waits for an answer; isthmus ide answered yes" in said


@pytest.mark.parametrize("yes", [True, False], ids=["yes", "no"])
@pytest.mark.parametrize("call", first_of(["bash", "mcp", "edit"]))
async def test_an_answer_in_the_terminal_counts_and_takes_the_question_back(
    kind: str, call: str, yes: bool, workspace: Path
) -> None:
    async with _companion(workspace, "--no-diff"), permission_cli(kind, workspace) as cli:
        await cli.asks(*_call(call, workspace))
        question = await _question(workspace)
        await cli.answers(yes=yes)
        await _is_withdrawn(workspace)
        status, said = await _answer(workspace, question["id"], "no" if yes else "yes")
        assert status == 1
        assert "it was taken back by Claude Code, or answered in its own terminal" in said
        ended = await cli.ended()
        assert (ended.is_allowed, ended.by) == (yes, "terminal")


async def test_all_of_what_is_asked_is_shown_before_a_yes_counts(kind: str, workspace: Path) -> None:
    async with _companion(workspace), permission_cli(kind, workspace) as cli:
        await cli.asks(*BASH)

        found: list[dict[str, Any]] = []

        async def is_asked() -> bool:
            found[:] = (await user("status", folder=workspace))["questions"]
            return bool(found)

        await eventually_async(is_asked, what="the question")
        (question,) = found
        status, said = await _answer(workspace, question["id"], "yes")
        assert status == 1
        assert "was not shown here yet, so nothing is decided" in said
        assert "echo 'one\\u202e' > one.txt\n# and more" in said
        assert f"Folder: {workspace}\n" in said
        assert cli.still_asks()
        await user("answer", question["id"], "yes", folder=workspace)
        assert await cli.ended() == Ended(True, "hook")


async def test_a_killed_companion_leaves_the_question_to_the_terminal(kind: str, workspace: Path) -> None:
    async with _companion(workspace) as companion, permission_cli(kind, workspace) as cli:
        await cli.asks(*BASH)
        await _question(workspace)
        await asyncio.to_thread(companion.end, signal.SIGKILL)
        assert cli.still_asks()
        await cli.answers(yes=True)
        assert await cli.ended() == Ended(True, "terminal")
        async with _companion(workspace):  # the next question reaches the one that has come back
            await cli.asks(*MCP)
            await user("answer", (await _question(workspace))["id"], "yes", folder=workspace)
            assert await cli.ended() == Ended(True, "hook")


async def test_a_killed_hook_leaves_the_question_to_the_terminal(kind: str, workspace: Path) -> None:
    async with _companion(workspace), permission_cli(kind, workspace) as cli:
        await cli.asks(*BASH)
        await _question(workspace)
        os.kill(_hook_of(cli), signal.SIGKILL)
        await _is_withdrawn(workspace)
        assert cli.still_asks()
        await cli.answers(yes=False)
        assert await cli.ended() == Ended(False, "terminal")


async def test_the_question_of_a_killed_cli_is_taken_back(kind: str, workspace: Path) -> None:
    async with _companion(workspace), permission_cli(kind, workspace) as cli:
        await cli.asks(*BASH)
        await _question(workspace)
        hook = _hook_of(cli)
        os.kill(cli.pid, signal.SIGKILL)
        await _is_withdrawn(workspace)
        await asyncio.to_thread(process_ends, hook)


async def test_no_token_is_in_the_arguments_or_the_environment_of_the_cli_and_its_hook(
    kind: str, workspace: Path, isolated_folders: IsolatedFolders
) -> None:
    async with _companion(workspace), permission_cli(kind, workspace) as cli:
        await cli.asks(*BASH)
        await _question(workspace)
        (control_file,) = (isolated_folders.runtime / "isthmus").glob("*.json")
        token = json.loads(control_file.read_text(encoding="utf-8"))["token"].encode()
        for process in (cli.pid, _hook_of(cli)):
            for name in ("cmdline", "environ"):
                assert token not in Path(f"/proc/{process}/{name}").read_bytes()
        assert token.decode() not in json.dumps(await user("log", folder=workspace))


async def test_a_projects_settings_lead_the_hook_nowhere_else(kind: str, workspace: Path) -> None:
    trap = workspace / "trap"
    trap.mkdir()
    (trap / "json.py").write_text("raise SystemExit(print('trapped'))", encoding="utf-8")
    variables = {
        "PYTHONPATH": str(trap), "PYTHONSTARTUP": str(trap / "json.py"), "PYTHONHOME": str(trap),
        "XDG_RUNTIME_DIR": str(trap), "TMPDIR": str(trap), "GEMINI_CLI_IDE_SERVER_PORT": "1",
    }  # fmt: skip
    folder = workspace / ".claude"
    folder.mkdir()
    (folder / "settings.json").write_text(json.dumps({"env": variables}), encoding="utf-8")
    async with _companion(workspace), permission_cli(kind, workspace) as cli:
        await cli.ready()
        (workspace / "json.py").write_text("raise SystemExit(print('trapped'))", encoding="utf-8")
        await cli.asks(*BASH)
        await user("answer", (await _question(workspace))["id"], "yes", folder=workspace)
        assert await cli.ended() == Ended(True, "hook")


async def test_permissions_can_be_left_to_the_terminal(kind: str, workspace: Path) -> None:
    if kind == "strict":
        pytest.skip("the strict CLI has no question without a hook")
    async with _companion(workspace), permission_cli(kind, workspace, "--no-permissions") as cli:
        await cli.asks(*BASH)
        await cli.answers(yes=True)
        assert await cli.ended() == Ended(True, "terminal")
        assert (await user("questions", folder=workspace))["questions"] == []


def _hook_of(cli: PermissionCli) -> int:
    """Return the process of the hook that a CLI has started."""
    for process in psutil.Process(cli.pid).children(recursive=True):
        if permission_hook.__file__ in process.cmdline()[:-1]:
            return process.pid
    raise AssertionError("no hook runs")
