"""Faults of servers that share a database: each befalls one of them, the database, the network, a disk or a clock."""

import asyncio
import contextlib
import os
import random
import re
import signal
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from isthmus.journal.port.lease_owner import MACHINE
from support.cutting_proxy import CuttingProxy, cutting_proxy
from support.full_disk import SmallDisk, limit_files
from support.loaded_program import LoadedProgram
from support.postgres import Postgres, run_sql
from support.serve_program import ServeProgram, serve_program
from support.set_clock_program import CLOCK, SET_CLOCK

LEASE_SECONDS = 3.0
CLOCK_SECONDS = 30.0
"""Time in seconds by which clocks are set forward or back."""
FULL_SECONDS = 2.0
"""Time in seconds for which a disk is full."""
APART_SECONDS = 1.5
"""Maximum time in seconds between the first and the last server that reaches the database after an outage."""


@dataclass
class Replica:
    """A server and its own way to the database, which is a connection pool where ``is_pooled``."""

    number: int
    folder: Path
    proxy: CuttingProxy
    program: ServeProgram
    is_pooled: bool
    is_paused: bool = False


@dataclass
class Machines:
    """Where the servers of a run are: one PostgreSQL, on a disk of its own if there is one, and a pool before it."""

    server: Postgres
    pool: int
    """Port of the connection pool."""
    disk: SmallDisk | None
    copies: LoadedProgram
    url: str = field(init=False)

    def __post_init__(self) -> None:
        self.url = self.server.database()

    async def sql(self, statement: str, *values: object) -> str:
        """Return the first value of a statement, as the database has it, as text."""
        return str(await run_sql(self.url, statement, *values))


class ReplicaFaults:
    """Three servers that work in ``workspace``, with a folder each in ``folder``, and what happens to them."""

    def __init__(self, folder: Path, workspace: Path, machines: Machines, script: str, chance: random.Random) -> None:
        self.replicas: list[Replica] = []
        self.take_overs: dict[str, list[float]] = {"kill": [], "kill behind a pool": [], "pause": []}
        """Times in seconds from a fault to the moment at which another server has the task."""
        self._folder = folder
        self._workspace = workspace
        self._machines = machines
        self._script = script
        self._chance = chance
        self._stack = contextlib.AsyncExitStack()
        self._another = contextlib.AsyncExitStack()

    async def __aenter__(self) -> "ReplicaFaults":
        for number in range(3):
            is_pooled = number == 2
            port = self._machines.pool if is_pooled else self._machines.server.port
            proxy = await self._stack.enter_async_context(cutting_proxy(f"http://127.0.0.1:{port}/"))
            folder = self._folder / str(number)
            folder.mkdir()
            (folder / "clock").write_text("0", "ascii")
            program = await self._stack.enter_async_context(self._program(number, folder, proxy, is_pooled=is_pooled))
            self.replicas.append(Replica(number, folder, proxy, program, is_pooled))
        return self

    async def __aexit__(self, *error: object) -> None:
        for replica in self.replicas:
            if replica.is_paused:
                replica.program.process.send_signal(signal.SIGCONT)
        await self._another.aclose()
        await self._stack.aclose()

    def _program(
        self, number: int, folder: Path, proxy: CuttingProxy, *, is_pooled: bool
    ) -> "contextlib.AbstractAsyncContextManager[ServeProgram]":
        address = re.search(r"127\.0\.0\.1:\d+", proxy.url)
        assert address is not None
        url = self._machines.url.replace(f"127.0.0.1:{self._machines.server.port}", address[0])
        url += "?pool=transaction" if is_pooled else ""
        options = ("--journal", url, "--lease-seconds", str(LEASE_SECONDS), "--slots", "8")
        # As on another machine: nobody sees from its process number that it has ended.
        variables = {MACHINE: f"machine {number}", CLOCK: str(folder / "clock")}
        return serve_program(
            *(folder, self._workspace, *options),
            script=self._script, environment=variables, loaded=self._machines.copies, program=SET_CLOCK,
        )  # fmt: skip

    def all(self) -> Sequence[tuple[str, Callable[[], Awaitable[None]]]]:
        """Return the faults by name; one that is there twice happens twice as often."""
        return (
            ("kill", self._kill),
            ("kill", self._kill),
            ("pause", self._pause),
            ("cut", self._cut),
            ("partition", self._partition),
            ("outage", self.outage),
            ("terminate", self._terminate),
            ("database restart", self._restart_database),
            ("database crash", self._crash_database),
            ("database's disk full", self._fill_database),
            ("server's disk full", self._fill_server),
            ("clock", self._set_clock),
            ("clock", self._set_clock),
        )

    # --- servers ---

    async def _kill(self) -> None:
        replica = await self._busiest()
        owned = await self._owned(replica)
        killed = time.monotonic()
        replica.program.process.kill()
        await replica.program.process.wait()
        await self._until_taken("kill behind a pool" if replica.is_pooled else "kill", owned, killed)
        await self._start(replica)

    async def _pause(self) -> None:
        replica = await self._busiest()
        owned = await self._owned(replica)
        paused = time.monotonic()
        replica.program.process.send_signal(signal.SIGSTOP)
        replica.is_paused = True
        # The database ends what a server does that is stopped in the middle of a write, after some seconds.
        await self._until_taken("pause", owned, paused)
        # delay: the server is stopped for longer than a lease
        await asyncio.sleep(max(0.0, paused + LEASE_SECONDS + 1 - time.monotonic()))
        replica.program.process.send_signal(signal.SIGCONT)
        replica.is_paused = False

    async def _terminate(self) -> None:
        replica = await self._busiest()
        assert await replica.program.end(signal.SIGTERM) == 0
        await self._start(replica)

    async def _start(self, replica: Replica) -> None:
        program = self._program(replica.number, replica.folder, replica.proxy, is_pooled=replica.is_pooled)
        replica.program = await self._stack.enter_async_context(program)

    async def _set_clock(self) -> None:
        """Set the clock of a server forward or back, and let it stay so."""
        seconds = self._chance.choice((-CLOCK_SECONDS, 0.0, CLOCK_SECONDS))
        replica = self._chance.choice(self.replicas)
        (replica.folder / "clock").write_text(str(seconds), "ascii")

    async def _fill_server(self) -> None:
        """Let a server and the programs that it starts find no space for anything."""
        pid = (await self._busiest()).program.process.pid
        limit_files(pid, 0)
        await asyncio.sleep(FULL_SECONDS)  # delay: the disk stays full for this time
        limit_files(pid, None)

    # --- the network ---

    async def _cut(self) -> None:
        for replica in self.replicas:
            replica.proxy.cut()

    async def _partition(self) -> None:
        replica = await self._busiest()
        replica.proxy.cut_after = 0
        replica.proxy.cut()
        await asyncio.sleep(LEASE_SECONDS + 1)  # delay: the partition is longer than a lease
        replica.proxy.cut_after = None
        replica.proxy.cut()

    async def outage(self) -> None:
        """Keep the database away from all servers for longer than a lease; they reach it again one after the other."""
        await self.end_another()
        for replica in self.replicas:
            replica.proxy.cut_after = 0
        await self._cut()
        if self._chance.random() < 0.5:
            await self._crash_database()
        await asyncio.sleep(LEASE_SECONDS + 1)  # delay: the outage is longer than a lease
        if self._chance.random() < 0.5:
            await self._begin_another()
        for replica in self._chance.sample(self.replicas, len(self.replicas)):
            replica.proxy.cut_after = None
            replica.proxy.cut()
            # delay: the servers reach the database at random moments
            await asyncio.sleep(self._chance.uniform(0.0, APART_SECONDS / 2))

    async def end_another(self) -> None:
        """End the server that began in the last outage, if one did."""
        await self._another.aclose()

    async def _begin_another(self) -> None:
        """Begin a server that reaches the database while the others do not; it stays until the next outage."""
        folder = self._folder / "another"
        folder.mkdir(exist_ok=True)
        options = ("--journal", self._machines.url, "--lease-seconds", str(LEASE_SECONDS), "--slots", "8")
        program = serve_program(
            *(folder, self._workspace, *options),
            script=self._script, environment={MACHINE: "another machine"}, loaded=self._machines.copies,
        )  # fmt: skip
        await self._another.enter_async_context(program)

    # --- the database ---

    async def _restart_database(self) -> None:
        await asyncio.to_thread(self._machines.server.stop, "fast")
        await asyncio.to_thread(self._machines.server.start)

    async def _crash_database(self) -> None:
        await asyncio.to_thread(self._machines.server.stop, "immediate")
        await asyncio.to_thread(self._machines.server.start)

    async def _fill_database(self) -> None:
        """Let the database find no space: for new pages of its tables, or also for its log, which ends it."""
        server, disk = self._machines.server, self._machines.disk
        pid, until = server.pid, time.monotonic() + FULL_SECONDS
        if disk is None:
            limit_files(pid, self._chance.choice((0, 1024 * 1024)))
        else:
            disk.fill()
        is_log = self._chance.random() < 0.5
        while time.monotonic() < until:
            with contextlib.suppress(Exception):  # it may have ended
                if is_log:
                    await self._machines.sql("SELECT pg_switch_wal()")
            if disk is not None:
                disk.fill()
            await asyncio.sleep(0.1)  # delay: pause between two writes while the disk is full
        if disk is None:
            limit_files(pid, None)
        else:
            disk.free()
        if not await self._answers():
            await asyncio.to_thread(server.stop, "immediate")
            await asyncio.to_thread(server.start)

    async def _answers(self) -> bool:
        """Return whether the database works, also after some seconds in which it may recover."""
        for _ in range(20):
            try:
                await self._machines.sql("SELECT 1")
            except Exception:
                if not self._machines.server.is_running():
                    return False
                await asyncio.sleep(0.25)  # delay: pause between two of twenty attempts
            else:
                return True
        return False

    # --- the database as the judge ---

    async def _owners(self) -> dict[str, tuple[int, int]]:
        """Return the process number of the owner of each task at work, and the epoch."""
        rows = await self._machines.sql(
            "SELECT coalesce(string_agg(concat_ws(' ', id, split_part(owner, ':', 3), epoch), ';'), '') FROM tasks"
            " WHERE owner IS NOT NULL AND state IN ('submitted', 'working')"
        )
        return {row.split()[0]: (int(row.split()[1]), int(row.split()[2])) for row in rows.split(";") if row}

    async def _busiest(self) -> Replica:
        """Return a server that works on a task, if there is one."""
        pids = {pid for pid, _ in (await self._owners()).values()}
        busy = [replica for replica in self.replicas if replica.program.process.pid in pids]
        return self._chance.choice(busy or self.replicas)

    async def _owned(self, replica: Replica) -> dict[str, int]:
        pid = replica.program.process.pid
        return {task: epoch for task, (owner, epoch) in (await self._owners()).items() if owner == pid}

    async def _until_taken(self, fault: str, owned: dict[str, int], since: float) -> None:
        """Wait until each task has been claimed anew, and note how long that took."""
        left = dict(owned)
        statement = "SELECT epoch > $1 OR state NOT IN ('submitted', 'working') FROM tasks WHERE id = $2"
        while left:
            for task, epoch in list(left.items()):
                if await self._machines.sql(statement, epoch, task) == "True":
                    self.take_overs[fault].append(time.monotonic() - since)
                    del left[task]


def is_root() -> bool:
    """Return whether disks can be mounted."""
    return os.geteuid() == 0
