"""Kills ``isthmus serve`` while a subagent works and asks; a client answers in either task until both have ended."""

import asyncio
import os
import random
from collections import Counter
from pathlib import Path

import pytest

from chaos.crash_run import SCRIPT
from isthmus.a2a.client.remote_agent import RemoteAgent
from isthmus.client import PromptMessage, TaskError, TaskNotFound, TaskSnapshot
from isthmus.development_tool import ToolCallConfirmation
from isthmus.errors import IsthmusError
from isthmus.events import TaskState
from support.serve_program import ServeProgram, serve_program

pytestmark = pytest.mark.anyio

SEED = int(os.environ.get("CHAOS_SEED", str(random.SystemRandom().randrange(10**6))))
KILLS = 60 if "CHAOS_KILLS" in os.environ else 5
DELEGATE = """
  - prompt: '\\Adelegate'
    replies:
      - call: {name: invoke_agent, arguments: {agent_name: generalist, prompt: work 1}}
      - text: The subagent has done it.
"""
SECONDS = 120


class Client:
    """A client of two tasks, which answers a question in one of the two that have it."""

    def __init__(self, workspace: Path, chance: random.Random) -> None:
        self._settings = {"workspace_path": str(workspace)}
        self._chance = chance
        self.task_id = ""

    async def work(self, server: ServeProgram, kill_after: float | None) -> bool:
        """Answer until the task has ended (True), or until the server is killed after this time in seconds."""
        agent = await RemoteAgent.connect(server.url, server.token)
        killing = asyncio.create_task(self._kill(server, kill_after)) if kill_after is not None else None
        try:
            async with asyncio.timeout(SECONDS):
                while not await self._step(agent):
                    await asyncio.sleep(0.01)  # delay: pause between two steps, below the deadline
            return True
        except IsthmusError:
            if killing is None:
                raise
            await killing
            return False
        finally:
            if killing is not None:
                killing.cancel()
            await agent.aclose()

    async def _kill(self, server: ServeProgram, seconds: float) -> None:
        await asyncio.sleep(seconds)  # delay: the kill comes at a random moment
        server.process.kill()
        await server.process.wait()

    async def _step(self, agent: RemoteAgent) -> bool:
        if not self.task_id:
            turn = await agent.prompt(PromptMessage("delegate", message_id="m-1", settings=self._settings))
            self.task_id = turn.task_id
        tasks = await agent.tasks()
        if next(task for task in tasks if task.task_id == self.task_id).state.is_terminal:
            return True
        waiting = [task for task in tasks if task.pending]
        if waiting:
            await self._answer(agent, self._chance.choice(waiting))
        return False

    async def _answer(self, agent: RemoteAgent, task: TaskSnapshot) -> None:
        try:
            found = (await agent.get(task.task_id)).pending
            for call in found[:1]:
                confirmation = ToolCallConfirmation(call.tool_call_id, "proceed_once")
                await agent.answer(task.task_id, [confirmation], answered_by="test")
        except TaskNotFound:
            raise
        except TaskError:
            pass  # It was answered in the other task meanwhile.


@pytest.mark.timeout(600)
async def test_a_subagent_and_the_task_that_began_it_go_on_after_each_kill(tmp_path: Path) -> None:
    print(f"CHAOS_SEED={SEED}")
    chance = random.Random(SEED)  # noqa: S311 - to be repeated
    workspace, traces = tmp_path / "work", tmp_path / "traces"
    workspace.mkdir()
    script = SCRIPT.replace("TRACES", str(traces)) + DELEGATE
    client = Client(workspace, chance)
    kills = 0
    for kill_after in [*(chance.uniform(0.0, 0.25) for _ in range(KILLS)), None]:
        async with serve_program(tmp_path, workspace, script=script) as server:
            if await client.work(server, kill_after):
                break
            kills += 1
    print(f"{kills} kills")
    async with serve_program(tmp_path, workspace, script=script) as server:
        agent = await RemoteAgent.connect(server.url, server.token)
        tasks = await agent.tasks()
        await agent.aclose()
    states = {task.parent: task.state for task in tasks}
    assert states == {"": TaskState.COMPLETED, client.task_id: TaskState.COMPLETED}, f"CHAOS_SEED={SEED}"
    found = Counter(traces.read_text(encoding="utf-8").split() if traces.exists() else [])
    assert all(count == 1 for count in found.values()), f"CHAOS_SEED={SEED}: {found}"
    written = workspace / "file-1.txt"  # Not there if the process ended while it was about to be written.
    assert not written.exists() or written.read_text("utf-8") == "1\n"
