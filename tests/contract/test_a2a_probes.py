"""The pages of a server for programs that watch it: whether it serves, and whether it can take work."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from isthmus.a2a.server.application import Observers
from isthmus.a2a.server.probes import Probes
from isthmus.engine import Engine, EngineOptions, readiness
from isthmus.engine.readiness import Readiness
from isthmus.journal.sqlite.journal import SqliteJournal
from support.a2a_serving import RawClient, prompt, serving
from support.agent_behind import behind
from support.agents import EchoAgent, WaitingAgent

pytestmark = pytest.mark.anyio


class Watched:
    """A served engine; ``now`` is the time by which answers of its journal are kept."""

    def __init__(self, engine: Engine, journal: SqliteJournal, path: Path) -> None:
        self.engine = engine
        self.journal = journal
        self.path = path
        self.now = 0.0
        self.ready = Readiness(engine, lambda: self.now)
        self.client: RawClient | None = None

    async def get(self, page: str, **headers: str) -> tuple[int, dict[str, Any]]:
        """Return status and answer of a page, without a token."""
        assert self.client is not None
        response = await self.client.http.get(self.client.url + page, headers={"Authorization": "", **headers})
        return response.status_code, response.json()


@asynccontextmanager
async def watched(folder: Path, agent: Any = None) -> AsyncGenerator[Watched]:
    path = folder / "journal.sqlite"
    journal = await SqliteJournal.open(path)
    engine = Engine(behind(agent or EchoAgent()), journal, EngineOptions())
    await engine.start()
    found = Watched(engine, journal, path)
    async with serving(engine, observers=Observers(probes=Probes(found.ready))) as found.client:
        yield found


def rename(path: Path, old: str, new: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"ALTER TABLE {old} RENAME TO {new}")


def questions_to(journal: SqliteJournal) -> list[str]:
    """Return a list that gets the ids of the tasks that the journal is asked for from now on."""
    task, questions = journal.task, list[str]()

    async def counted(task_id: str) -> Any:
        questions.append(task_id)
        return await task(task_id)

    journal.task = counted
    return questions


async def test_a_server_is_ready_while_its_journal_can_be_read(tmp_path: Path) -> None:
    async with watched(tmp_path) as server:
        assert await server.get("readyz") == (200, {"status": "ok"})
        rename(server.path, "tasks", "gone")
        assert await server.get("readyz") == (200, {"status": "ok"})  # the last answer counts for a second
        server.now += 1
        assert await server.get("readyz") == (503, {"status": "unavailable", "reason": "journal"})
        assert await server.get("healthz") == (200, {"status": "ok"})
        rename(server.path, "gone", "tasks")
        server.now += 1
        assert await server.get("readyz") == (200, {"status": "ok"})


async def test_probes_do_not_load_the_journal(tmp_path: Path) -> None:
    async with watched(tmp_path) as server:
        questions = questions_to(server.journal)
        await asyncio.gather(*(server.get("readyz") for _ in range(20)))
        await asyncio.gather(*(server.get("healthz") for _ in range(20)))
        assert len(questions) == 1


async def test_a_journal_that_does_not_answer_makes_no_probe_hang(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "ANSWER_SECONDS", 0.02)
    async with watched(tmp_path) as server:
        questions, goes_on = questions_to(server.journal), threading.Event()
        held = asyncio.create_task(server.journal.read("SELECT 1", (), lambda _: goes_on.wait(30)))
        try:
            for _ in range(3):
                assert await server.get("readyz") == (503, {"status": "unavailable", "reason": "journal"})
                server.now += 1
            assert len(questions) == 1
        finally:
            goes_on.set()
            await held


async def test_a_draining_server_is_alive_but_not_ready(tmp_path: Path, workspace: Path) -> None:
    agent = WaitingAgent()
    async with watched(tmp_path, agent) as server:
        assert server.client is not None
        params = {**prompt("work", workspace), "configuration": {"blocking": False}}
        await server.client.result("message/send", params)
        await agent.started.wait()
        draining = asyncio.create_task(server.engine.runner.drain(30))
        await asyncio.sleep(0)
        assert await server.get("readyz") == (503, {"status": "unavailable", "reason": "draining"})
        assert await server.get("healthz") == (200, {"status": "ok"})
        agent.release.set()
        await draining


async def test_a_server_that_ends_is_not_ready(tmp_path: Path) -> None:
    async with watched(tmp_path) as server:
        assert server.client is not None
        server.client.application.close_streams()
        assert await server.get("readyz") == (503, {"status": "unavailable", "reason": "draining"})


async def test_readiness_is_not_told_to_other_hosts_and_origins(tmp_path: Path) -> None:
    async with watched(tmp_path) as server:
        assert (await server.get("readyz", Host="evil.example"))[0] == 403
        assert (await server.get("readyz", Origin="https://evil.example"))[0] == 403
