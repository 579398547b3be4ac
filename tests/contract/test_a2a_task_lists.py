"""Lists of tasks over a real socket: pages, and a client that needs several pages."""

from pathlib import Path

import pytest

from isthmus.a2a.client.remote_agent import RemoteAgent
from isthmus.client import PromptMessage, TaskPlace, TaskQuery
from isthmus.events import TaskState
from support.a2a_serving import TOKEN, serving
from support.memory_agent import MemoryAgent

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(("protocol", "binding"), [("1.0", "JSONRPC"), ("1.0", "HTTP+JSON"), ("0.3", "JSONRPC")])
async def test_a_client_reads_as_many_pages_as_it_needs(workspace: Path, protocol: str, binding: str) -> None:
    agent = MemoryAgent()
    for index in range(230):
        await agent.prompt(PromptMessage(f"task {index}", context_id=f"c{index % 2}", settings={"workspace_path": "/"}))
    async with serving(agent) as server:
        remote = await RemoteAgent.connect(server.url, TOKEN, protocol=protocol, binding=binding)
        try:
            expected = [task.task_id for task in await agent.tasks(1000)]
            assert len(expected) == 230
            assert [task.task_id for task in await remote.tasks(1000)] == expected
            assert [task.task_id for task in await remote.tasks(130)] == expected[:130]
            assert await remote.tasks(0) == []
            found = await remote.list_tasks(TaskQuery(3, "c1"))
            assert found.total == 115
            last = found.tasks[-1]
            after = TaskPlace(last.updated_at, last.task_id)
            more = await remote.list_tasks(TaskQuery(200, "c1", after=after))
            assert len({task.task_id for task in (*found.tasks, *more.tasks)}) == 115
            assert (await remote.list_tasks(TaskQuery(state=TaskState.FAILED))).total == 0
        finally:
            await remote.aclose()
