"""Questions of agents, answered from a terminal: all programs are real but the agent, which is in this process.

So ``isthmus ide`` runs below the agent here: the agent answers itself, which is refused unless it was allowed.
"""

import asyncio
import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.claude_cli import CallError, ClaudeCli, claude_cli
from support.isthmus_program import ISTHMUS, CompanionProgram, companion_program, isthmus, user
from support.jupyter import RunningJupyter, shared_jupyter
from support.pty_program import pty_program
from support.waiting import eventually_async

if TYPE_CHECKING:
    import subprocess

pytestmark = pytest.mark.anyio

COMMAND = ("companion", "--editor", "jupyter")


@pytest.fixture
async def jupyter(workspace: Path) -> AsyncGenerator[RunningJupyter]:
    """Start a Jupyter server with an open notebook."""
    notebook = workspace / "analysis.ipynb"
    notebook.write_text(json.dumps({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}), encoding="utf-8")
    async with shared_jupyter(workspace) as running:
        await running.open(notebook)
        yield running


@asynccontextmanager
async def _companion(jupyter: RunningJupyter, workspace: Path, *options: str) -> AsyncGenerator[CompanionProgram]:
    arguments = ("--address", jupyter.file, "--workspace", str(workspace), *options)
    starting = companion_program(workspace, *arguments, command=COMMAND)
    companion = await asyncio.to_thread(starting.__enter__)
    try:
        yield companion
    finally:
        await asyncio.to_thread(starting.__exit__, None, None, None)


async def _asked(cli: ClaudeCli, workspace: Path, code: str) -> "tuple[asyncio.Task[Any], dict[str, Any]]":
    """Call executeCode, and wait for the question; return both."""
    call = asyncio.create_task(cli.call("executeCode", {"code": code}))
    (question,) = (await user("questions", "--wait", "30", folder=workspace))["questions"]
    return call, question


async def _run(*arguments: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    return await asyncio.to_thread(isthmus, "ide", *arguments, folder=folder)


async def test_the_user_sees_the_code_and_answers_once(jupyter: RunningJupyter, workspace: Path) -> None:
    async with _companion(jupyter, workspace, "--allow-agent-accept"), claude_cli(workspace) as cli:
        assert (await _run("questions", folder=workspace)).stdout == "no question waits for an answer\n"
        call, question = await _asked(cli, workspace, "print('ran\\x1b[2J')\nprint(6 * 7)")
        assert question["agent"] == "Claude Code"
        assert question["title"] == "Claude Code wants to run code in analysis.ipynb"
        shown = (await _run("questions", folder=workspace)).stdout
        assert shown.startswith(f"{question['id']}: {question['title']}\nprint(")
        assert "Answer it in the browser: http://127.0.0.1:" in shown
        diffs = (await _run("diffs", folder=workspace)).stdout.splitlines()
        assert diffs[:2] == [
            "no diff waits for an answer", f"Question waits for an answer: {question['id']}: {question['title']}",
        ]  # fmt: skip
        assert diffs[2].startswith("Answer it in the browser: http://127.0.0.1:")
        status = (await _run("status", folder=workspace)).stdout
        assert f"Question waits for an answer: {question['id']}: {question['title']}" in status
        answered = await _run("answer", question["id"], "yes", folder=workspace)
        assert answered.stdout == f"answered yes: {question['title']}\n"
        content = await asyncio.wait_for(call, 60)
        assert "42\n" in "".join(item["text"] for item in content)
        again = await _run("answer", question["id"], "no", folder=workspace)
        assert again.returncode == 1
        assert f"no question {question['id']} waits for an answer; isthmus ide answered yes; waiting" in again.stderr


async def test_a_yes_for_the_session_counts_until_the_agent_leaves(jupyter: RunningJupyter, workspace: Path) -> None:
    async with _companion(jupyter, workspace, "--allow-agent-accept"):
        async with claude_cli(workspace) as cli:
            call, question = await _asked(cli, workspace, "print(6 * 7)")
            answered = await _run("answer", question["id"], "session", folder=workspace)
            assert answered.stdout == f"answered session: {question['title']}\n"
            await asyncio.wait_for(call, 60)
            content = await asyncio.wait_for(cli.call("executeCode", {"code": "print(6 * 9)"}), 60)
            assert "54\n" in "".join(item["text"] for item in content)
            status = (await _run("status", folder=workspace)).stdout
            assert f"Allowed until the agent leaves: {question['title']}\n" in status
        async with claude_cli(workspace) as cli:
            call, question = await _asked(cli, workspace, "print(1)")
            await user("answer", question["id"], "no", folder=workspace)
            with pytest.raises(CallError, match="did not allow"):
                await asyncio.wait_for(call, 60)


async def test_the_terminal_of_the_companion_has_a_link_and_a_file_has_none(
    jupyter: RunningJupyter, workspace: Path, tmp_path: Path
) -> None:
    link = r"Answer it in the browser: http://127\.0\.0\.1:\d+/open/"
    command = [*ISTHMUS, *COMMAND, "--address", jupyter.file, "--workspace", str(workspace)]
    with pty_program(command, folder=workspace, environment=dict(os.environ), columns=200) as terminal:
        await asyncio.to_thread(terminal.wait_for, "Companion ready")
        async with claude_cli(workspace) as cli:
            call, _ = await _asked(cli, workspace, "print(1)")
            await asyncio.to_thread(terminal.wait_for, link)
            assert "/open/" not in (await _run("status", folder=workspace)).stdout
            call.cancel()
        terminal.press("\x03")
        await asyncio.to_thread(terminal.wait_for_exit)
    errors = tmp_path / "errors"
    with errors.open("wb") as file:
        companion = await asyncio.create_subprocess_exec(*command, cwd=workspace, stdout=file, stderr=file)
    try:
        await eventually_async(lambda: b"Companion ready" in errors.read_bytes(), what="the companion")
        async with claude_cli(workspace) as cli:
            call, question = await _asked(cli, workspace, "print(1)")
            await eventually_async(lambda: question["title"].encode() in errors.read_bytes(), what="the message")
            assert b"/open/" not in errors.read_bytes()
            call.cancel()
    finally:
        companion.terminate()
        await companion.wait()


async def test_a_no_runs_nothing(jupyter: RunningJupyter, workspace: Path) -> None:
    async with _companion(jupyter, workspace, "--allow-agent-accept"), claude_cli(workspace) as cli:
        call, question = await _asked(cli, workspace, "open('ran', 'w')")
        assert (await user("answer", question["id"], "no", folder=workspace))["yes"] is False
        with pytest.raises(CallError, match="did not allow"):
            await asyncio.wait_for(call, 60)
    assert not (workspace / "ran").exists()


async def test_an_agent_does_not_answer_its_own_question(jupyter: RunningJupyter, workspace: Path) -> None:
    async with _companion(jupyter, workspace), claude_cli(workspace) as cli:
        call, question = await _asked(cli, workspace, "1")
        refused = await _run("answer", question["id"], "yes", folder=workspace)
        assert refused.returncode == 1
        assert "an agent does not answer its own question" in refused.stderr
        assert (await user("questions", folder=workspace))["questions"] == [question]
        call.cancel()


async def test_an_agent_that_leaves_takes_its_question_back(jupyter: RunningJupyter, workspace: Path) -> None:
    async with _companion(jupyter, workspace):
        async with claude_cli(workspace) as cli:
            call, _ = await _asked(cli, workspace, "1")
        with pytest.raises(CallError):
            await asyncio.wait_for(call, 30)

        async def is_taken_back() -> bool:
            return (await user("questions", folder=workspace))["questions"] == []

        await eventually_async(is_taken_back, 60, what="the question is taken back")
