"""Messages to a working task wait until it takes them, up to a limit; over a real socket."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from isthmus.journal.port.base import INBOX_MESSAGES
from support.a2a_serving import prompt, serving
from support.agent_behind import behind
from support.agents import WaitingAgent
from support.engines import engine_on
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

SENDERS = 8
MESSAGES = INBOX_MESSAGES + 64
"""Number of messages; the engine gets more, without the wire, in tests/unit/engine/users/test_users.py."""


@pytest.mark.slow
async def test_messages_to_one_task_are_refused_beyond_the_cap_with_the_reason(tmp_path: Path, workspace: Path) -> None:
    agent = WaitingAgent()
    async with engine_on(tmp_path, behind(agent)) as engine, serving(engine) as server:
        params = {**prompt("work", workspace), "configuration": {"blocking": False}}
        task_id = (await server.result("message/send", params))["id"]
        await agent.started.wait()
        found: Counter[int | None] = Counter()
        refused: set[str] = set()

        async def send(numbers: range) -> None:
            for number in numbers:
                more = {**prompt(f"message {number}", taskId=task_id), "configuration": {"blocking": False}}
                answer = await server.call("message/send", more)
                found[answer.get("error", {}).get("code")] += 1
                refused.update([answer["error"]["message"]] if "error" in answer else [])

        await asyncio.gather(*(send(range(first, MESSAGES, SENDERS)) for first in range(SENDERS)))
        assert found == {None: INBOX_MESSAGES, -32000: MESSAGES - INBOX_MESSAGES}
        (reason,) = refused
        assert f"the limit is {INBOX_MESSAGES} messages" in reason
        assert "Send this one again later." in reason
        agent.release.set()

        async def has_ended() -> bool:
            return (await server.result("tasks/get", {"id": task_id}))["status"]["state"] == "completed"

        await eventually_async(has_ended)
        history = (await server.result("tasks/get", {"id": task_id, "historyLength": 1000}))["history"]
        assert len(history) == 1 + INBOX_MESSAGES
