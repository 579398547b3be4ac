"""Kills a hosted ACP agent, what it started, or its server at any moment: nothing happens twice, a loss is told.

The agent is scripted, or the real ones that ACP_AGENTS names: gemini, qwen, opencode (``make acp-kills``).
"""

import asyncio
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from isthmus.client import PromptMessage, TaskError, TaskSnapshot, Turn
from isthmus.development_tool import ToolCallConfirmation
from isthmus.errors import IsthmusError
from isthmus.events import TaskState
from support.acp_hosting import Seen, seen_of
from support.killed_agents import (
    ORIGINAL,
    KilledAgent,
    agent_processes,
    children_of_agents,
    commands_of_agents,
    killed_agent,
)
from support.ports import free_port
from support.serve_program import ServeProgram, serve_program
from support.turns import all_of, view_of
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

AGENTS = os.environ.get("ACP_AGENTS", "scripted").split()
SEED = int(os.environ.get("CHAOS_SEED", str(random.SystemRandom().randrange(10**6))))
KILLS = int(os.environ.get("CHAOS_KILLS", "1"))
MOMENTS = ("start", "stream", "question", "answer")
"""Parts of a turn from whose beginning the time to the kill is counted."""
LONGEST_WAIT_SECONDS = 0.5
"""Maximum time from the beginning of a part to the kill, apart from the start of a slow agent."""
STUCK_SECONDS = 180
"""Time after which something that should have ended counts as stuck; real agents start slowly on a busy machine."""


@dataclass(frozen=True, slots=True)
class Kill:
    """A prompt, and what is killed in its turn: this long after the beginning of a part."""

    number: int
    kind: str
    victim: str
    moment: str
    seconds: float
    is_new: bool
    """Whether a new conversation begins; else the last one goes on, with its agent."""

    @classmethod
    def at_random(cls, number: int, chance: random.Random, agent: KilledAgent) -> "Kill":
        """Return one of all kills."""
        kind, moment = chance.choice(agent.kinds), chance.choice(MOMENTS)
        victim = chance.choice(("server", "agent", "child", "command" if "run" in agent.kinds else "agent"))
        if victim == "command":
            kind, moment = "run", "answer"
        longest = agent.start_seconds if moment == "start" else LONGEST_WAIT_SECONDS
        return cls(number, kind, victim, moment, chance.uniform(0, longest), moment == "start" or chance.random() < 0.3)


class HostedChaos:
    """Turns of a hosted agent, each with one kill."""

    def __init__(self, folder: Path, workspace: Path, agent: KilledAgent, stack: AsyncExitStack) -> None:
        self.agent = agent
        self.outcomes: Counter[str] = Counter()
        self._folder = folder
        self._workspace = workspace
        self._stack = stack
        self._arguments = ("--port", str(free_port()), *agent.arguments)
        self._server: ServeProgram | None = None
        self._context: str | None = None
        self._file = workspace / "a.txt"
        self._log = workspace / "ran.txt"

    async def kill_once(self, kill: Kill) -> None:
        """Run a turn in which something is killed, then look at everything, and go on with the conversation."""
        self._file.write_text(ORIGINAL, encoding="utf-8")
        self._log.write_text("", encoding="utf-8")
        server = await self._running()
        async with server.client() as client:
            context = None if kill.is_new else self._context
            settings = {"workspace_path": str(self._workspace)} if context is None else None
            text = f"prompt {kill.number} {kill.kind}"
            turn = await client.prompt(PromptMessage(text, f"m{kill.number}", context_id=context, settings=settings))
            await self._work_until_killed(server, turn.task_id, kill)
        self._context = turn.context_id
        await self._check(turn, kill)

    async def _running(self) -> ServeProgram:
        if self._server is None:
            starting = serve_program(
                self._folder, self._workspace, *self._arguments, environment=self.agent.environment
            )
            self._server = await self._stack.enter_async_context(starting)
        return self._server

    # --- the kill ---

    async def _work_until_killed(self, server: ServeProgram, task_id: str, kill: Kill) -> None:
        """Answer the task's question, unless the kill comes first, and kill."""
        asked, answered = asyncio.Event(), asyncio.Event()
        working = asyncio.create_task(self._answer(server, task_id, asked, answered, kill.moment))
        try:
            async with asyncio.timeout(2 * STUCK_SECONDS):
                match kill.moment:
                    case "stream":
                        await _until(lambda: self.agent.received(kill.number) > 0)
                    case "question":
                        await _until(lambda: asked.is_set() or working.done())
                        assert asked.is_set(), f"the turn ended without a question: {kill}"
                    case "answer":
                        await _until(lambda: answered.is_set() or working.done())
                        assert answered.is_set(), f"the turn ended without a question: {kill}"
                    case _:
                        pass
                if kill.victim == "command":
                    await _until(lambda: commands_of_agents() or working.done())
                else:
                    await asyncio.sleep(kill.seconds)  # delay: the kill comes at a random moment
                await self._strike(server, kill.victim)
                if kill.victim != "server":
                    answered.set()
                    await working
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)

    async def _strike(self, server: ServeProgram, victim: str) -> None:
        match victim:
            case "server":
                server.process.kill()
                await server.process.wait()
                self._server = None
                await _until(lambda: not agent_processes(), "the end of the agents of a server that was killed")
            case "agent":
                _kill(agent_processes())
            case "child":  # a program that starts itself again has one, else it is the agent
                _kill(children_of_agents() or agent_processes())
            case _:
                _kill(commands_of_agents())

    async def _answer(
        self, server: ServeProgram, task_id: str, asked: asyncio.Event, answered: asyncio.Event, moment: str
    ) -> None:
        """Answer the task's question as soon as it is asked; if the kill comes at the question, only after it."""
        with suppress(IsthmusError, TimeoutError):
            async with server.client() as client:
                while not (snapshot := await client.get(task_id, 0)).state.is_terminal:
                    if snapshot.pending:
                        asked.set()
                        if moment == "question":
                            await answered.wait()
                        confirmation = ToolCallConfirmation(snapshot.pending[0].tool_call_id, self.agent.allow)
                        turn = await client.answer(task_id, [confirmation], answered_by="the test")
                        answered.set()
                        await all_of(turn)
                        return
                    await asyncio.sleep(0.01)  # delay: pause between two looks at the task

    # --- what is left ---

    async def _check(self, turn: Turn, kill: Kill) -> None:
        """Check the task, the files and what the agent and its model were sent; then go on with the conversation."""
        server = await self._running()
        ended = await self._ended(server, turn.task_id)
        async with server.client() as client:
            seen = Seen(turn.task_id, turn.context_id, await view_of(await client.follow(turn.task_id, 0)))
            content, log = self._file.read_text(encoding="utf-8"), self._log.read_text(encoding="utf-8")
            self._check_effects(ended, seen, kill, content, log)
            number = kill.number + 1
            message = PromptMessage(f"prompt {number} hello", f"m{number}", context_id=turn.context_id)
            async with asyncio.timeout(STUCK_SECONDS):
                again = await seen_of(client, await client.prompt(message))
            assert again.state is TaskState.COMPLETED, again.view
            assert again.text.endswith(f"prompt {number} hello"), again.text
            assert self.agent.received(number) == 1
            assert all(task.state.is_terminal for task in await client.tasks()), "a task is stuck"
        assert self._file.read_text(encoding="utf-8") == content, "something happened later"
        later = self._log.read_text(encoding="utf-8").removeprefix(log)
        assert later in ("", f"end {kill.number}\n"), "a command ran later"

    def _check_effects(self, ended: TaskSnapshot, seen: Seen, kill: Kill, content: str, log: str) -> None:
        edited, begun = self.agent.edited(kill.number), f"begin {kill.number}\n"
        about = f"{kill}: {ended.state} {ended.error!r}, {content!r}, {log!r}"
        assert content in (ORIGINAL, edited), about
        assert log in ("", begun, f"{begun}end {kill.number}\n"), about
        assert self.agent.received(kill.number) <= 1, f"the agent was sent a message twice: {about}"
        assert max(self.agent.steps(kill.number), default=0) <= 1, f"the model was asked twice: {about}"
        calls = [item.call for item in seen.view.calls.values()]
        assert all(call.status.is_final for call in calls), f"a call is stuck: {about}, {calls}"
        is_done = content == edited if kill.kind == "edit" else bool(log)
        if ended.state is TaskState.FAILED:
            assert ended.error is not None, about
            assert "process ended" in ended.error, f"the loss was not told: {about}"
            errors = [call.error.message for call in calls if call.error is not None]
            if any("nothing was done" in error for error in errors):
                assert not is_done, f"a question that was lost was answered: {about}"
            result = "lost"
        else:
            assert ended.state is TaskState.COMPLETED, about
            assert is_done, about
            result = "completed"
        self.outcomes[f"{kill.victim} at {kill.moment}: {result}"] += 1
        self.outcomes[result] += 1

    async def _ended(self, server: ServeProgram, task_id: str) -> TaskSnapshot:
        """Return the task at its end; a question that is still open is answered."""
        async with server.client() as client:

            async def has_ended() -> TaskSnapshot | None:
                snapshot = await client.get(task_id)
                if snapshot.pending:
                    self.outcomes["open after the kill"] += 1
                    with suppress(TaskError):
                        await self._answer(server, task_id, asyncio.Event(), asyncio.Event(), "")
                return snapshot if snapshot.state.is_terminal else None

            found = await eventually_async(has_ended, STUCK_SECONDS, what="the end of the task")
            assert found is not None
            return found


async def _until(condition: Callable[[], object], what: str = "the moment of the kill") -> None:
    await eventually_async(condition, STUCK_SECONDS, what=what)


def _kill(processes: Sequence[psutil.Process]) -> None:
    for process in processes:
        with suppress(psutil.Error):
            process.kill()


@pytest.mark.extended
@pytest.mark.timeout(300 + KILLS * 120)
@pytest.mark.parametrize("name", AGENTS)
async def test_a_hosted_agent_or_its_server_is_killed_at_any_moment(tmp_path: Path, name: str) -> None:
    print(f"\nCHAOS_SEED={SEED}, {KILLS} kills of {name}, of what it started, or of its server")
    chance = random.Random(f"{SEED} {name}")  # noqa: S311 - a seed repeats the run
    workspace, begun = tmp_path / "workspace", time.monotonic()
    workspace.mkdir()
    with killed_agent(name, tmp_path, workspace) as agent:
        async with AsyncExitStack() as stack:
            chaos = HostedChaos(tmp_path, workspace, agent, stack)
            try:
                for number in range(KILLS):
                    await chaos.kill_once(Kill.at_random(2 * number, chance, agent))
                    if number % 10 == 9:
                        print(f"{number + 1} kills of {name}, {time.monotonic() - begun:.0f} s")
            finally:
                print(f"{name}, {time.monotonic() - begun:.0f} s: {dict(sorted(chaos.outcomes.items()))}")
        await eventually_async(lambda: not agent_processes(), what="the end of every agent")
