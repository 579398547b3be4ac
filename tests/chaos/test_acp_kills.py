"""Kills ``isthmus acp --connect`` and its server, at any moment and while a question waits: another client goes on."""

import asyncio
import os
import random
from collections import Counter
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from isthmus.a2a.client.retry import MAY_HAVE_ARRIVED
from isthmus.client import TaskSnapshot
from isthmus.events import TaskState
from support.acp_front_programs import Programs
from support.acp_wire import AcpProgram
from support.extended import first_of
from support.serve_program import ServeProgram
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

SEED = int(os.environ.get("CHAOS_SEED", str(random.SystemRandom().randrange(10**6))))
KILLS = int(os.environ.get("CHAOS_KILLS", "1"))
LONGEST_WAIT_SECONDS = 0.3
"""Maximum time from the beginning of a part of a turn to the kill."""
ORDERS = [("acp",), ("acp", "server")]
"""Who is killed while a question waits; other orders, at any moment, are in the test of random kills."""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def statuses(client: AcpProgram) -> list[str]:
    return [update["status"] for update in client.shown if "status" in update]


@pytest.mark.parametrize("order", first_of(ORDERS, ids=map(", then ".join, ORDERS)))
async def test_a_question_outlives_whoever_is_killed(tmp_path: Path, workspace: Path, order: tuple[str, ...]) -> None:
    async with AsyncExitStack() as stack:
        programs = Programs(tmp_path, workspace, stack)
        server = await programs.server()
        first = await programs.client()
        session_id, _ = await programs.asked(first)
        for killed in order:
            if killed == "acp":
                await first.kill()
            else:
                server.process.kill()
                await server.process.wait()
        if "server" in order:
            await programs.server()
        other = await programs.client()
        assert (await programs.load(other, session_id))["result"]["modes"]["currentModeId"] == "default"
        assert other.text("user_message_chunk") == "greet me"
        question = await other.question()
        assert question["params"]["toolCall"]["kind"] == "edit"
        other.choose(question, "proceed_once")
        await eventually_async(lambda: other.text() == "I wrote the greeting.")
        assert (workspace / "greeting.txt").read_text() == "hello\n"
        other.updates.clear()
        assert "result" in await programs.load(other, session_id)
        assert statuses(other) == ["pending", "in_progress", "completed"]
        assert len(other.questions) == 1


async def test_the_same_client_goes_on_with_a_server_that_was_killed(tmp_path: Path, workspace: Path) -> None:
    async with AsyncExitStack() as stack:
        programs = Programs(tmp_path, workspace, stack)
        server = await programs.server()
        client = await programs.client()
        _, response = await programs.asked(client)
        server.process.kill()
        await server.process.wait()
        await programs.server()
        client.choose(client.questions[0], "proceed_once")
        assert (await response)["result"]["stopReason"] == "end_turn"
        assert client.text() == "I wrote the greeting."
        assert (workspace / "greeting.txt").read_text() == "hello\n"


async def test_two_clients_are_asked_once_each_and_the_first_answer_counts(tmp_path: Path, workspace: Path) -> None:
    async with AsyncExitStack() as stack:
        programs = Programs(tmp_path, workspace, stack)
        await programs.server()
        first, second = await programs.client(), await programs.client()
        session_id, response = await programs.asked(first)
        await programs.load(second, session_id)
        second.choose(await second.question(), "proceed_once")
        assert (await response)["result"]["stopReason"] == "end_turn"
        await eventually_async(lambda: second.text() == "I wrote the greeting.")
        assert first.withdrawn == [first.questions[0]["id"]]
        assert (len(first.questions), len(second.questions)) == (1, 1)
        assert (workspace / "greeting.txt").read_text() == "hello\n"


class FrontKills:
    """Turns of a client, each with one kill; another client, of either version, goes on."""

    def __init__(self, programs: Programs, server: ServeProgram, version: int, chance: random.Random) -> None:
        self.outcomes: Counter[str] = Counter()
        self._programs = programs
        self._server = server
        self._version = version
        self._chance = chance
        self._file = programs.workspace / "greeting.txt"

    async def kill_once(self) -> None:
        """Kill the client, the server or both in a turn, and look at everything."""
        self._file.unlink(missing_ok=True)
        victims = self._chance.choice((("acp",), ("server",), ("acp", "server"), ("server", "acp")))
        moment = self._chance.choice(("prompt", "question", "answer"))
        first = await self._programs.client(self._version)
        session_id, response = await self._programs.begun(first)
        if moment != "prompt":
            await first.question()
        if moment == "answer":
            first.choose(first.questions[0], "proceed_once")
        await asyncio.sleep(self._chance.uniform(0, LONGEST_WAIT_SECONDS))  # delay: the kill comes at a random moment
        for victim in victims:
            await self._kill(victim, first)
        if "server" in victims:
            self._server = await self._programs.server()
        version = self._chance.choice((1, 2))
        other = await self._programs.client(version)
        assert "result" in await self._programs.load(other, session_id, version)
        result = await self._ended(session_id, first, other, version)
        self.outcomes[f"{'+'.join(victims)} at {moment}: {result}"] += 1
        if "acp" not in victims:
            await self._has_heard(first, response, result)
        for client in (first, other):
            await client.kill()

    async def _kill(self, victim: str, client: AcpProgram) -> None:
        if victim == "acp":
            await client.kill()
        else:
            self._server.process.kill()
            await self._server.process.wait()

    async def _ended(self, session_id: str, first: AcpProgram, other: AcpProgram, version: int) -> str:
        """Allow what is asked until the turn has ended, and check what it did and what is shown of it."""

        async def task() -> TaskSnapshot | None:
            async with self._server.client() as client:
                found = [task for task in await client.tasks() if task.context_id == session_id]
            assert len(found) <= 1, "the prompt was sent twice"
            return found[0] if found else None

        async def has_ended() -> bool:
            for client in (first, other):
                for question in client.questions[answered[client] :]:
                    client.choose(question, "proceed_once")
                    answered[client] += 1
            snapshot = await task()
            if snapshot is not None and snapshot.pending and not answered[other]:  # the task came after the load
                await self._programs.load(other, session_id, version)
            return snapshot is not None and snapshot.state.is_terminal

        answered: Counter[AcpProgram] = Counter()
        with suppress(AssertionError):
            await eventually_async(task, 2, what="a task")
        if await task() is None:
            assert not self._file.exists()
            return "not taken"  # the client or its connection ended before
        await eventually_async(has_ended, 30, what="the end of the turn")
        ended = await task()
        assert ended is not None
        assert ended.state is TaskState.COMPLETED, ended
        last = await self._programs.client(version)
        assert "result" in await self._programs.load(last, session_id, version)
        assert last.text("user_message_chunk") == "greet me"
        assert last.text() == "I wrote the greeting."
        (status,) = [status for status in statuses(last) if status in ("completed", "failed")]
        await last.kill()
        content = self._file.read_text(encoding="utf-8") if self._file.exists() else ""
        if status == "failed":  # the server was killed while it wrote
            assert content in ("", "hello\n")
            assert any("its outcome is not known" in str(update) for update in last.shown), "the loss was not told"
            return "lost"
        assert content == "hello\n"
        return "completed"

    async def _has_heard(self, client: AcpProgram, response: "asyncio.Future[dict[str, Any]]", result: str) -> None:
        """Check that a client whose server was killed is told how its turn ended."""

        def end() -> Mapping[str, Any] | None:
            answer = response.result() if response.done() else {}
            ends = [answer.get("result", answer), *(update for update in client.shown if update.get("state") == "idle")]
            return next((end for end in ends if "stopReason" in end or "error" in end), None)

        told = await eventually_async(end, 60, what="the end of the turn at the client")
        assert told is not None
        if told.get("stopReason") != "end_turn":  # it has waited for the server for as long as it does
            problem = told["error"]["message"]
            assert result == "not taken" or "load the session" in problem or MAY_HAVE_ARRIVED in problem, problem


@pytest.mark.timeout(300 + KILLS * 60)
@pytest.mark.parametrize("version", [1, 2] if "CHAOS_KILLS" in os.environ else [2])
async def test_a_client_or_its_server_is_killed_at_any_moment(tmp_path: Path, workspace: Path, version: int) -> None:
    print(f"\nCHAOS_SEED={SEED}, {KILLS} kills of a client of version {version}, or of its server")
    chance = random.Random(f"{SEED} front {version}")  # noqa: S311 - a seed repeats the run
    async with AsyncExitStack() as stack:
        programs = Programs(tmp_path, workspace, stack)
        kills = FrontKills(programs, await programs.server(), version, chance)
        try:
            for _ in range(KILLS):
                await kills.kill_once()
        finally:
            print(f"version {version}: {dict(sorted(kills.outcomes.items()))}")
