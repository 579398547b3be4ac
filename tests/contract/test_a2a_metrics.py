"""The metrics of a server with a real engine and journal: what is counted, and who reads it."""

import asyncio
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from isthmus.a2a.options import ServerOptions
from isthmus.a2a.push.sender import PushSender
from isthmus.a2a.push.service import pushing
from isthmus.a2a.push.targets import PushRule
from isthmus.a2a.server.application import Observers
from isthmus.a2a.server.probes import Metrics, Probes
from isthmus.a2a.server.users.auth import UserAccess
from isthmus.a2a.server.users.users import UserTable
from isthmus.a2a.wires import Wires
from isthmus.engine import Engine, EngineOptions
from isthmus.engine.port.agents import Agent
from isthmus.engine.port.placement import EVERY_TASK, Placement
from isthmus.engine.port.workspaces import WorkspaceRule
from isthmus.engine.readiness import Readiness
from isthmus.journal.sqlite.journal import SqliteJournal
from isthmus.observability.exposition import CONTENT_TYPE
from isthmus.observability.metrics import WorkMetrics
from isthmus.observability.page import MetricsPage
from support.a2a_serving import TOKEN, RawClient, prompt, rpc, serving
from support.agents import EchoAgent, GatedAgent, WaitingAgent
from support.metrics_page import reader_of
from support.waiting import eventually_async
from support.wire_server import Answer, WireServer

pytestmark = pytest.mark.anyio

READER = "a token for the metrics alone"


@dataclass(slots=True)
class Measured:
    """A server whose metrics are read; ``now`` is the time by which the journal is read again."""

    engine: Engine
    path: Path
    table: UserTable
    client: RawClient | None = None
    now: float = 0.0

    async def get(self, authorization: str = f"Bearer {TOKEN}", **headers: str) -> Any:
        """Return the answer of the page."""
        assert self.client is not None
        return await self.client.http.get(
            self.client.url + "metrics", headers={"Authorization": authorization, **headers}
        )

    async def value(self, name: str, **labels: str) -> float:
        """Return a value of the page, for which the journal is read again."""
        self.now += 1000
        response = await self.get()
        assert response.status_code == 200
        return reader_of(response.text)(name, **labels)

    async def send(self, text: str, workspace: Path, user: str = "", *, blocking: bool = True) -> dict[str, Any]:
        """Send a prompt as a user and return the task."""
        assert self.client is not None
        headers: dict[str, str] = {}
        if user:
            self.table, _, token = self.table.added(user, 0, None, None)
            headers = {"Authorization": f"Bearer {token}"}
        params = {**prompt(text, workspace), "configuration": {"blocking": blocking}}
        answer = await self.client.http.post(self.client.url, json=rpc("message/send", params), headers=headers)
        return answer.json()["result"]


@asynccontextmanager
async def measured(
    folder: Path, workspace: Path, agent: Agent, users: int = 0, placement: Placement = EVERY_TASK, **access: Any
) -> AsyncGenerator[Measured]:
    path, work, wires = folder / "journal.sqlite", WorkMetrics(), Wires()
    rule = WorkspaceRule(workspace, (workspace,))
    engine = Engine(agent, await SqliteJournal.open(path), EngineOptions(rule, placement=placement, telemetry=work))
    await engine.start()
    found = Measured(engine, path, UserTable())
    page = MetricsPage(engine, work, Readiness(engine, lambda: found.now), users, lambda: found.now)
    probes = Probes(None, Metrics(page.text, CONTENT_TYPE, **access))
    async with (
        pushing(engine, PushSender(PushRule.of(["127.0.0.0/8"])), wires, telemetry=work) as push,
        serving(
            engine,
            ServerOptions(TOKEN),
            for_user=engine.for_user,
            access=UserAccess(lambda: found.table),
            observers=Observers(probes=probes, telemetry=work),
            push=push,
        ) as found.client,
    ):
        yield found


async def test_the_owner_reads_the_metrics_and_others_do_not(tmp_path: Path, workspace: Path) -> None:
    async with measured(tmp_path, workspace, EchoAgent()) as server:
        response = await server.get()
        assert (response.status_code, response.headers["content-type"]) == (200, CONTENT_TYPE)
        assert response.headers["cache-control"] == "no-store"
        server.table, _, token = server.table.added("alice", 0, None, None)
        for authorization, status in (("", 401), (f"Bearer {READER}", 401), (f"Bearer {token}", 403)):
            refused = await server.get(authorization)
            assert refused.status_code == status
            assert "isthmus_" not in refused.text
        assert (await server.get(Host="evil.example")).status_code == 403
        assert server.client is not None
        assert (await server.client.http.post(server.client.url + "metrics")).status_code == 405


async def test_a_token_for_the_metrics_opens_nothing_else(tmp_path: Path, workspace: Path) -> None:
    async with measured(tmp_path, workspace, EchoAgent(), token=READER) as server:
        assert (await server.get(f"Bearer {READER}")).status_code == 200
        assert (await server.get(f"Bearer {READER}x")).status_code == 401
        assert (await server.get()).status_code == 200
        assert server.client is not None
        headers = {"Authorization": f"Bearer {READER}"}
        refused = await server.client.http.post(
            server.client.url, json=rpc("message/send", prompt("go", workspace)), headers=headers
        )
        assert refused.status_code == 401


async def test_open_metrics_need_no_token(tmp_path: Path, workspace: Path) -> None:
    async with measured(tmp_path, workspace, EchoAgent(), is_open=True) as server:
        assert (await server.get("")).status_code == 200
        assert (await server.get("", Origin="https://evil.example")).status_code == 403


async def test_a_server_without_metrics_has_no_such_page(tmp_path: Path, workspace: Path) -> None:
    async with measured(tmp_path, workspace, EchoAgent()) as server, serving(server.engine) as plain:
        assert (await plain.http.get(plain.url + "metrics")).status_code == 404


async def test_tasks_and_their_segments_are_counted(tmp_path: Path, workspace: Path) -> None:
    agent = WaitingAgent()
    async with measured(tmp_path, workspace, agent) as server:
        assert await server.value("tasks", state="working") == 0
        task = await server.send("go", workspace, blocking=False)
        await agent.started.wait()
        assert await server.value("tasks", state="working") == 1
        assert await server.value("tasks_running") == 1
        agent.release.set()
        await eventually_async(lambda: server.engine.running == 0)
        assert await server.value("tasks", state="completed") == 1
        assert await server.value("tasks_running") == 0
        assert await server.value("segment_seconds_count", state="completed") == 1
        assert await server.value("queue_seconds_count") == 1
        assert await server.value("queue_seconds_bucket", le="2.5") == 1
        assert task["id"] not in (await server.get()).text


async def test_a_task_that_waits_for_a_slot_is_counted_and_its_wait_measured(tmp_path: Path, workspace: Path) -> None:
    agent = GatedAgent()
    async with measured(tmp_path, workspace, agent, placement=Placement(slots=1)) as server:
        await server.send("one", workspace, blocking=False)
        await server.send("two", workspace, blocking=False)
        await eventually_async(lambda: agent.started == ["one"])
        assert await server.value("slots") == 1
        assert await server.value("queue_length") == 1
        assert await server.value("queue_seconds_count") == 1
        agent.let_go("one", "two")
        await eventually_async(lambda: agent.started == ["one", "two"])
        assert await server.value("queue_length") == 0
        assert await server.value("queue_seconds_count") == 2
        assert await server.value("queue_seconds_sum") > 0


async def test_tasks_are_counted_for_so_many_users_by_name(tmp_path: Path, workspace: Path) -> None:
    async with measured(tmp_path, workspace, EchoAgent(), users=2) as server:
        for user, count in (("alice", 3), ("bob", 2), ("carol", 1), ("dave", 1)):
            for _ in range(count):
                await server.send("go", workspace, user)
        for user, count in (("alice", 3), ("bob", 2), ("other", 2)):
            assert await server.value("tasks", state="completed", user=user) == count
        for _ in range(9):
            await server.send("go", workspace, "carol")
        # No series comes and goes with the order of users.
        assert await server.value("tasks", state="completed", user="other") == 11
        text = (await server.get()).text
        assert "alice" in text
        assert "carol" not in text


async def test_names_of_users_are_not_on_the_page_unless_wanted(tmp_path: Path, workspace: Path) -> None:
    async with measured(tmp_path, workspace, EchoAgent()) as server:
        await server.send("go", workspace, "alice")
        assert await server.value("tasks", state="completed") == 1
        assert "alice" not in (await server.get()).text


async def test_requests_are_counted_by_method_and_status(tmp_path: Path, workspace: Path) -> None:
    async with measured(tmp_path, workspace, EchoAgent()) as server:
        assert server.client is not None
        await server.send("go", workspace)
        await server.client.error("tasks/get", {"id": "nothing"})
        for number in range(30):
            await server.client.call(f"invented/{number}", {})
            await server.client.http.request(("PROPFIND", "MKCOL")[number % 2], server.client.url)
        assert await server.value("http_requests_total", method="message/send", code="200") == 1
        assert await server.value("http_requests_total", method="tasks/get", code="200") == 1
        assert await server.value("http_requests_total", method="POST", code="200") == 30
        assert await server.value("http_requests_total", method="other", code="405") == 30
        assert await server.value("http_requests_total", method="GET", code="200") == 4
        assert "invented" not in (await server.get()).text.lower()


async def test_push_notifications_are_counted_with_their_lag(tmp_path: Path, workspace: Path) -> None:
    async with measured(tmp_path, workspace, EchoAgent()) as server:
        with WireServer(lambda _: Answer(204, {"content-length": "0"})) as hooks:
            assert server.client is not None
            config = {"pushNotificationConfig": {"url": hooks.base_url}}
            await server.client.result("message/send", {**prompt("go", workspace), "configuration": config})

            async def is_delivered() -> bool:
                return 'isthmus_push_attempts_total{outcome="delivered"}' in (await server.get()).text

            await eventually_async(is_delivered)
        assert await server.value("pushes", state="active") == 1
        assert await server.value("push_lag_seconds_count") == await server.value(
            "push_attempts_total", outcome="delivered"
        )


async def test_the_journal_is_read_every_five_seconds_at_most(tmp_path: Path, workspace: Path) -> None:
    async with measured(tmp_path, workspace, EchoAgent()) as server:
        counts, reads = server.engine.journal.counts, list[bool]()

        async def counted(*, by_user: bool = False) -> Any:
            reads.append(by_user)
            return await counts(by_user=by_user)

        server.engine.journal.counts = counted
        await asyncio.gather(*(server.get() for _ in range(10)))
        server.now += 4.9
        await server.get()
        assert len(reads) == 1
        server.now += 0.1
        await server.get()
        assert len(reads) == 2


async def test_without_its_journal_the_page_has_what_the_process_knows(tmp_path: Path, workspace: Path) -> None:
    async with measured(tmp_path, workspace, EchoAgent()) as server:
        assert await server.value("journal_available") == 1
        assert await server.value("journal_bytes") > 0
        with closing(sqlite3.connect(server.path)) as connection:
            connection.execute("ALTER TABLE tasks RENAME TO gone")
        assert await server.value("journal_available") == 0
        assert await server.value("tasks_running") == 0
        assert "isthmus_tasks{" not in (await server.get()).text


async def test_a_server_alone_is_one_replica_that_hears_nothing(tmp_path: Path, workspace: Path) -> None:
    async with measured(tmp_path, workspace, EchoAgent()) as server:
        assert await server.value("replicas") == 1
        assert await server.value("replica_hears_news") == 0
        assert await server.value("slots") == float("inf")
        assert await server.value("draining") == 0
        await server.engine.runner.drain(0)
        assert await server.value("draining") == 1
