"""Kills a hosted ACP agent or its server at any moment: nothing happens twice, nothing is stuck, a loss is told."""

import asyncio
import os
import random
import shlex
import signal
import sys
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path

import pytest

from isthmus.client import PromptMessage, TaskError, TaskSnapshot
from isthmus.development_tool import ToolCallConfirmation
from isthmus.errors import IsthmusError
from isthmus.events import TaskState
from support.acp_hosting import PROGRAM, prompts, running_agents, seen_of
from support.ports import free_port
from support.serve_program import ServeProgram, serve_program
from support.turns import all_of
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

COMMAND = shlex.join([sys.executable, str(PROGRAM)])
SEED = int(os.environ.get("CHAOS_SEED", str(random.SystemRandom().randrange(10**6))))
KILLS = int(os.environ.get("CHAOS_KILLS", "3"))
LONGEST_WAIT_SECONDS = 0.5
"""Maximum time from the beginning of a turn to the kill; a turn of the scripted agent takes less."""
ORIGINAL, EDITED = "one\ntwo\n", "one\nTWO\n"


class HostedChaos:
    """Turns of a hosted agent, each with one kill. A file can be changed in each turn, and is compared."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.folder = folder
        self.workspace = folder / "workspace"
        self.workspace.mkdir()
        self.file = self.workspace / "a.txt"
        self.chance = chance
        self.arguments = ("--port", str(free_port()), "--agent", COMMAND, "--trust-agent")
        self.outcomes: list[str] = []

    async def kill_once(self, number: int) -> None:
        """Run a turn in which the server or the agent is killed, then look at everything."""
        self.file.write_text(ORIGINAL, encoding="utf-8")
        victim = self.chance.choice(("server", "agent"))
        text = f"prompt {number} edit"
        async with self.server() as server, server.client() as client:
            settings = {"workspace_path": str(self.workspace)}
            turn = await client.prompt(PromptMessage(text, f"m{number}", settings=settings))
            killing = asyncio.create_task(self._kill(server, victim))
            with suppress(IsthmusError, TimeoutError):
                async with asyncio.timeout(60):
                    await self._answered(server, turn.task_id)
            await killing
            if victim == "agent":
                await self._check(server, turn.task_id, turn.context_id, text)
                return
        async with self.server() as server:
            await self._check(server, turn.task_id, turn.context_id, text)

    def server(self) -> AbstractAsyncContextManager[ServeProgram]:
        return serve_program(self.folder, self.workspace, *self.arguments)

    async def _kill(self, server: ServeProgram, victim: str) -> None:
        await asyncio.sleep(self.chance.uniform(0, LONGEST_WAIT_SECONDS))
        if victim == "server":
            server.process.kill()
            await server.process.wait()
            return
        for pid in running_agents():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    async def _answered(self, server: ServeProgram, task_id: str) -> None:
        """Answer the task's question as soon as it is asked."""
        async with server.client() as client:
            while True:
                snapshot = await client.get(task_id, 0)
                if snapshot.state.is_terminal:
                    return
                if snapshot.pending:
                    answer = ToolCallConfirmation(snapshot.pending[0].tool_call_id, "once")
                    await all_of(await client.answer(task_id, [answer], answered_by="the test"))
                    return
                await asyncio.sleep(0.01)

    async def _check(self, server: ServeProgram, task_id: str, context_id: str, text: str) -> None:
        """Check the task, the file and what the agent was sent; then go on with the conversation."""
        async with server.client() as client:
            ended = await self._ended(server, task_id)
            content = self.file.read_text(encoding="utf-8")
            assert content in (ORIGINAL, EDITED)
            assert sum(text in prompt for prompt in prompts()) <= 1, "the agent was sent a message twice"
            if ended.state is TaskState.FAILED:
                assert ended.error, "the loss was not told"
                self.outcomes.append("lost")
            else:
                assert ended.state is TaskState.COMPLETED
                assert content == EDITED
                self.outcomes.append("completed")
            again = await seen_of(client, await client.prompt(PromptMessage("hello", context_id=context_id)))
            assert again.state is TaskState.COMPLETED
            assert again.text.endswith("hello")
            assert self.file.read_text(encoding="utf-8") == content, "something happened later"

    async def _ended(self, server: ServeProgram, task_id: str) -> TaskSnapshot:
        """Return the task at its end; a question that is still open is answered."""
        async with server.client() as client:

            async def has_ended() -> TaskSnapshot | None:
                snapshot = await client.get(task_id)
                if snapshot.pending:
                    with suppress(TaskError):
                        await self._answered(server, task_id)
                return snapshot if snapshot.state.is_terminal else None

            found = await eventually_async(has_ended, 60, what="the end of the task")
            assert found is not None
            return found


@pytest.mark.timeout(3600)
async def test_a_hosted_agent_or_its_server_is_killed_at_any_moment(tmp_path: Path) -> None:
    print(f"\nCHAOS_SEED={SEED}, {KILLS} kills of a hosted agent or its server")
    chaos = HostedChaos(tmp_path, random.Random(SEED))  # noqa: S311 - a seed repeats the run
    for number in range(KILLS):
        await chaos.kill_once(number)
    await eventually_async(lambda: not running_agents(), what="the end of every agent")
    print(f"completed: {chaos.outcomes.count('completed')}, lost: {chaos.outcomes.count('lost')}")
