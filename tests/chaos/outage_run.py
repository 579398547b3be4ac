"""Rounds in which the database is away for longer than a lease while each of three servers runs a command."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from typing_extensions import override

from chaos.replica_faults import Machines
from chaos.replica_run import SECONDS, ReplicaRun, WatchedTask
from isthmus.client import Delivery
from isthmus.development_tool import ToolCall, ToolCallStatus
from isthmus.events import ToolCallUpdate
from support.waiting import eventually_async


class OutageRun(ReplicaRun):
    """Servers whose database is away in each round; none of them ends."""

    calls = 0
    """Number of calls that have ended."""
    moved = 0
    """Number of tasks that another server took from the one that ran them."""

    def __init__(self, folder: Path, machines: Machines, seed: int) -> None:
        super().__init__(folder, machines, seed)
        self.failed: list[str] = []
        """Calls that have not succeeded, each with its task and the reason."""

    @override
    async def play(self, number: int) -> None:
        """Play a round, and note the calls that failed and the tasks that changed their server, of which none may."""
        gate = self.workspace / f"gate-{number}"
        tasks = [WatchedTask(f"{number}-{part}") for part in range(len(self.servers.replicas))]
        async with asyncio.timeout(SECONDS):
            for task, replica in zip(tasks, self.servers.replicas, strict=True):
                await self.begin(task, replica, f"hold {task.name} {gate.name}")
            clients = [asyncio.create_task(self.client(task)) for task in tasks]
            await eventually_async(lambda: all(f"{task.name}-begun" in self.done for task in tasks))
            epochs = [await self._epoch(task) for task in tasks]
            await self.servers.outage()
            await eventually_async(self._are_held)
            gate.touch()
            await asyncio.gather(*clients)
            for task in tasks:
                await self.check(task)
            await self.servers.end_another()  # before it takes a task of the next round
        for task, epoch in zip(tasks, epochs, strict=True):
            calls = ended_calls(task.seen)
            self.calls += len(calls)
            self.failed += [
                f"{task.name}: {call.error or call.output}" for call in calls if call.status is not _SUCCEEDED
            ]
            self.moved += await self._epoch(task) != epoch

    async def _epoch(self, task: WatchedTask) -> str:
        return await self.machines.sql("SELECT epoch::text FROM tasks WHERE id = $1", task.task_id)

    async def _are_held(self) -> bool:
        """Return whether each task at work has a lease that has not run out."""
        late = (
            "SELECT count(*) FROM tasks WHERE state IN ('submitted', 'working')"
            " AND lease_until < extract(epoch FROM clock_timestamp())"
        )
        return await self.machines.sql(late) == "0"


_SUCCEEDED = ToolCallStatus.SUCCEEDED


def ended_calls(deliveries: Sequence[Delivery]) -> Sequence[ToolCall]:
    """Return the calls that have ended, as they ended."""
    calls = [item.event.tool_call for item in deliveries if isinstance(item.event, ToolCallUpdate)]
    return [call for call in calls if call.status.is_final]
