"""Sessions in the worktree of a repository: killed with their machine, they go on at another with their files."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from isthmus.a2a.client.remote_agent import RemoteAgent
from isthmus.client import Delivery, PromptMessage
from isthmus.development_tool import ToolCallConfirmation
from isthmus.events import StateChange, TaskState
from isthmus.journal.port.lease_owner import MACHINE
from support.loaded_program import LoadedProgram
from support.postgres import Postgres, postgres
from support.serve_program import ServeProgram, serve_program
from support.waiting import eventually_async

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]

SCRIPT = """
name: practice
scenarios:
  - prompt: '.'
    replies:
      - call: {name: write_file, arguments: {file_path: '{{workspace}}/notes.txt', content: "one\\n"}}
      - call: {name: run_shell_command, arguments: {command: 'rm README && echo two >> notes.txt && ls'}}
      - call: {name: write_file, arguments: {file_path: '{{workspace}}/last.txt', content: "three\\n"}}
      - text: I am done.
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres() as found:
        yield found


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a bare repository with one commit."""
    first, bare = tmp_path / "first", tmp_path / "app.git"
    first.mkdir()
    (first / "README").write_text("Read me.\n", "utf-8")
    git("init", "-q", "-b", "main", str(first))
    git("-C", str(first), "add", ".")
    git("-C", str(first), "-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "-qm", "First")
    git("clone", "-q", "--bare", str(first), str(bare))
    return bare


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True, encoding="utf-8").stdout


async def until_state(agent: RemoteAgent, task: str, state: TaskState, after: int = 0) -> list[Delivery]:
    seen: list[Delivery] = []
    async with asyncio.timeout(60):
        async for item in (await agent.follow(task, after)).deliveries:
            seen.append(item)
            if isinstance(item.event, StateChange) and item.event.state is state:
                return seen
    raise AssertionError(f"the stream ended: {seen[-1:]}")


async def answer(agent: RemoteAgent, task: str) -> str:
    """Allow the call that a task asks for; return the text of its question's arguments."""
    (call,) = (await agent.get(task)).pending
    await agent.answer(task, [ToolCallConfirmation(call.tool_call_id, "proceed_once")], answered_by="test")
    return str(call.input_parameters)


def machine(
    tmp_path: Path, name: str, url: str, repository: Path, loaded: LoadedProgram, script: str = SCRIPT
) -> AbstractAsyncContextManager[ServeProgram]:
    """Return a server on a machine of its own, which has the journal and the repository in common with others."""
    folder, work = tmp_path / name, tmp_path / "work"
    folder.mkdir(exist_ok=True)
    work.mkdir(exist_ok=True)
    options = ("--journal", url, "--repository", f"app=git+file://{repository}#main")
    return serve_program(folder, work, *options, script=script, environment={MACHINE: name}, loaded=loaded)


async def test_a_session_goes_on_at_another_machine_with_its_files_and_its_question(
    tmp_path: Path, repository: Path, server: Postgres, loaded_isthmus: LoadedProgram
) -> None:
    url = server.database()
    machines = [machine(tmp_path, name, url, repository, loaded_isthmus) for name in "ab"]
    async with machines[0] as first, machines[1] as second:
        async with first.client() as agent:
            turn = await agent.prompt(PromptMessage("go", settings={"workspace_path": "/git:app"}))
            task = turn.task_id
            await until_state(agent, task, TaskState.INPUT_REQUIRED)
            assert str(tmp_path / "a") in await answer(agent, task)
            await until_state(agent, task, TaskState.INPUT_REQUIRED, (await agent.get(task)).seq)
        assert await first.end(signal.SIGKILL) == -signal.SIGKILL
        async with second.client() as agent:
            assert "rm README" in await answer(agent, task)
            await until_state(agent, task, TaskState.INPUT_REQUIRED, (await agent.get(task)).seq)
            assert str(tmp_path / "b") in await answer(agent, task)
            await until_state(agent, task, TaskState.COMPLETED)
            (artifact,) = (await agent.get(task)).artifacts
    branch = str(artifact.name)
    assert git("-C", str(repository), "ls-tree", "--name-only", branch).split() == ["last.txt", "notes.txt"]
    assert git("-C", str(repository), "show", f"{branch}:notes.txt") == "one\ntwo\n"
    assert git("-C", str(repository), "show", "main:README") == "Read me.\n"
    text, patch = (part.text or "" for part in artifact.parts)
    assert branch in text
    assert "deleted file mode 100644\n" in patch
    assert "+++ b/last.txt\n@@ -0,0 +1 @@\n+three\n" in patch


async def test_a_deleted_session_is_removed_on_every_machine_and_in_the_repository(
    tmp_path: Path, repository: Path, server: Postgres, loaded_isthmus: LoadedProgram
) -> None:
    url = server.database()
    machines = [machine(tmp_path, name, url, repository, loaded_isthmus) for name in "abab"]
    async with machines[0] as first, machines[1] as second:
        async with first.client() as agent:
            await agent.prompt(PromptMessage("stays", settings={"workspace_path": "/git:app"}))
            task = (await agent.prompt(PromptMessage("go", settings={"workspace_path": "/git:app"}))).task_id
            await until_state(agent, task, TaskState.INPUT_REQUIRED)
            await answer(agent, task)
            await until_state(agent, task, TaskState.INPUT_REQUIRED, (await agent.get(task)).seq)
        assert await first.end(signal.SIGKILL) == -signal.SIGKILL
        async with second.client() as agent:
            await answer(agent, task)
            await until_state(agent, task, TaskState.INPUT_REQUIRED, (await agent.get(task)).seq)
            session = (await agent.get(task)).context_id
            await agent.cancel(task)
    assert f"refs/isthmus/sessions/{session}" in git("-C", str(repository), "for-each-ref")
    of_session = [list((tmp_path / name).rglob(f"*{session}*")) for name in "ab"]
    assert all(of_session)
    command = (sys.executable, "-m", "isthmus", "tasks", "delete", task, "--journal", url, "--data-dir", str(tmp_path))
    assert "Deleted" in await asyncio.to_thread(subprocess.check_output, command, text=True)
    for note in tmp_path.glob(f"*/data/repositories/*/owners/{session}.json"):
        os.utime(note, (0, 0))

    async with machines[2], machines[3]:
        await eventually_async(lambda: not any(path.exists() for paths in of_session for path in paths))
    refs = git("-C", str(repository), "for-each-ref")
    assert session not in refs
    for name in "ab":
        log = (tmp_path / name / "serve.log").read_text("utf-8")
        assert f"removed the worktrees of 1 deleted session: {session}" in log
