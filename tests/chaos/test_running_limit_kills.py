"""A user's limit of tasks at work with two servers on one database, of which one is killed in the middle."""

import asyncio
import shutil
import signal
import time
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from isthmus.a2a.client.remote_agent import RemoteAgent
from isthmus.a2a.server.users.users import UserTable
from isthmus.a2a.server.users.users_file import FILE, UsersFile
from isthmus.client import PromptMessage
from support.loaded_program import loaded_program
from support.postgres import postgres, run_sql
from support.serve_program import serve_program

pytestmark = pytest.mark.anyio

TASKS = 16
LIMIT = 2
SCRIPT = """
name: practice
scenarios:
  - prompt: '.'
    replies:
      - steps: [{delay: 0.2}, {text: Done.}]
"""
AT_WORK = "SELECT count(*) FROM tasks WHERE state IN ('submitted', 'working') AND tag = 0 AND \"user\" = 'alice'"
LEFT = "SELECT count(*) FROM tasks WHERE state <> 'completed'"


def user_of(data: Path) -> str:
    """Make a user; return the token."""

    def add(table: UserTable) -> tuple[UserTable, str]:
        changed, _, token = table.added("alice", time.time())
        return changed, token

    return UsersFile(data / FILE).change(add)


@pytest.mark.extended
@pytest.mark.timeout(120)
async def test_no_more_than_allowed_are_at_work_and_all_are_done(tmp_path: Path, workspace: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    for folder in (first, second):
        (folder / "data").mkdir(parents=True)
    token = user_of(first / "data")
    shutil.copy(first / "data" / FILE, second / "data" / FILE)
    with postgres() as server, loaded_program() as copies:
        url = server.database()
        options = ("--journal", url, "--slots", "4", "--user-max-running", str(LIMIT))
        async with AsyncExitStack() as stack:
            programs = [
                await stack.enter_async_context(
                    serve_program(folder, workspace, *options, script=SCRIPT, loaded=copies)
                )
                for folder in (first, second)
            ]
            agents = [await RemoteAgent.connect(program.url, token) for program in programs]
            for agent in agents:
                stack.push_async_callback(agent.aclose)
            settings = {"workspace_path": str(workspace)}
            for number in range(TASKS):
                await agents[number % 2].prompt(PromptMessage(f"go {number}", settings=settings))
            most, is_killed = 0, False
            async with asyncio.timeout(100):
                while left := int(await run_sql(url, LEFT)):
                    most = max(most, int(await run_sql(url, AT_WORK)))
                    if left <= TASKS // 2 and not is_killed:
                        programs[0].process.send_signal(signal.SIGKILL)
                        is_killed = True
            assert (most, is_killed) == (LIMIT, True)
            assert await run_sql(url, "SELECT count(*) FROM tasks") == TASKS
