"""Generated lines of ACP, to the agent and as answers to it: JSON alone comes out, nothing hangs, memory is flat."""

import asyncio
import itertools
import random
from pathlib import Path
from typing import Any

import psutil
import pytest

from isthmus.events import TaskState
from support import acp_frames
from support.acp_front import ALLOW, RefusedError, front
from support.acp_program import acp_program
from support.fuzzing import TIMEOUT, cases
from support.memory_agent import MemoryAgent

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(TIMEOUT)]

SHARE = 0.03
LINES = 100
"""Number of lines after which a good request must be answered."""
WARM_BATCHES = 20
"""Number of batches after which memory counts: the first ones load modules and begin sessions."""
GROWTH_BYTES = 64 * 1024 * 1024


async def test_generated_lines_to_the_agent_leave_it_as_it_was(tmp_path: Path) -> None:
    async with acp_program(tmp_path) as program:
        client = program.client
        client.numbers = itertools.count(10_000)  # generated lines have other ids
        await program.initialize()
        memory: list[int] = []
        for chance in cases("acp lines to the agent", SHARE, least=3):
            session = await client.new(tmp_path)
            lines = [acp_frames.line(chance, session, str(tmp_path)) for _ in range(LINES)]
            await client.write(b"".join(lines))
            assert await client.call("session/list", cwd="/nowhere") == {"sessions": []}
            await client.call("session/list", cwd="/nowhere")
            last = await client.new(tmp_path)
            assert await client.prompt(last, "still there?") == "end_turn"
            assert client.text().endswith("You said: still there?")
            for each in {message.get("result", {}).get("sessionId") for message in client.messages} - {None}:
                try:
                    await client.call("session/close", sessionId=each)
                except RefusedError as error:
                    assert error.code == -32002  # noqa: PT017 - a generated line has closed it
            client.messages.clear()
            memory.append(psutil.Process(program.process.pid).memory_info().rss)
        print(f"{len(memory) * LINES} lines; memory {[size >> 20 for size in memory[:: len(memory) // 10 + 1]]} MiB")
        if len(memory) > WARM_BATCHES:
            assert memory[-1] - memory[WARM_BATCHES] < GROWTH_BYTES
        assert await program.end() == 0
        program.no_traceback()


async def test_generated_answers_to_a_question_decide_it_or_leave_it_open(workspace: Path) -> None:
    agent = MemoryAgent()
    answers = 0
    async with front(agent) as client:
        for chance in cases("acp answers to the agent", SHARE, least=20):
            session = await client.new(workspace)
            turn = await client.begin_prompt(session, "edit the file")
            question = await client.question()
            noise = [generated(chance, question["id"]) for _ in range(chance.randrange(80))]
            for message in noise:
                await client.send(message)
            await client.send({"id": question["id"], **acp_frames.answer(chance, "proceed_once")})
            answers += len(noise) + 1
            try:
                assert (await asyncio.wait_for(turn, 30))["stopReason"] in ("end_turn", "cancelled")
            except RefusedError as error:
                assert error.code == -32603  # noqa: PT017 - both ends of a turn are fine, if it ends
            (task,) = [task for task in await agent.tasks() if task.context_id == session]
            if task.state is TaskState.INPUT_REQUIRED:
                client.messages.clear()
                await client.load(session, workspace)
                await client.respond(await client.question(), ALLOW)
                await client.call("session/close", sessionId=session)
            else:
                assert task.state.is_terminal
            client.messages.clear()
    print(f"{answers} answers")
    await agent.aclose()


def generated(chance: random.Random, number: int) -> dict[str, Any]:
    """Return an answer that is not one to the open question."""
    other = chance.choice([number - 1, number + 1, str(number), None, -number, 10**30, True, [number], 0.5])
    return {"id": other, **acp_frames.answer(chance, "proceed_once")}
