"""Generated lines of ACP, to the agent, as answers, and of a hosted agent: JSON comes out, nothing hangs or grows."""

import asyncio
import itertools
import random
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from isthmus.events import TaskState
from support import acp_frames, noisy_agent_program
from support.acp_front import ALLOW, BOTH_VERSIONS, CANCELLED, FrontClient, RefusedError, front
from support.acp_program import acp_program
from support.fuzzing import SECONDS, TIMEOUT, cases
from support.memory_agent import MemoryAgent
from support.waiting import eventually_async

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(TIMEOUT)]

VERSIONS = (1, 2)
SAMPLED = VERSIONS if SECONDS > 60 else (2,)
"""Versions of the front of a hosted agent; the sample of ``make test`` has the draft, whose messages say more."""
NOISY_AGENT = Path(noisy_agent_program.__file__)
SHARE = 0.015
LINES = 100
"""Number of lines after which a good request must be answered."""
WARM_BATCHES = 20
"""Number of batches after which memory counts: the first ones load modules and begin sessions."""
GROWTH_BYTES = 64 * 1024 * 1024


@pytest.mark.parametrize("version", VERSIONS)
async def test_generated_lines_to_the_agent_leave_it_as_it_was(tmp_path: Path, version: int) -> None:
    async with acp_program(tmp_path, version=version) as program:
        client = program.client
        client.numbers = itertools.count(10_000)  # generated lines have other ids
        await program.initialize()
        memory: list[int] = []
        for chance in cases(f"acp lines to the agent, version {version}", SHARE, least=3):
            session = await client.new(tmp_path)
            lines = [acp_frames.line(chance, session, str(tmp_path), version) for _ in range(LINES)]
            await client.write(b"".join(lines))
            assert await client.call("session/list", cwd="/nowhere") == {"sessions": []}
            await client.call("auth/login" if version == 2 else "authenticate", methodId="environment")
            last = await client.new(tmp_path)
            assert await client.prompt(last, "still there?") == "end_turn"
            assert "You said: still there?" in client.text()  # others' turns may speak after it
            for each in {message.get("result", {}).get("sessionId") for message in client.messages} - {None}:
                try:
                    await client.call("session/close", sessionId=each)
                except RefusedError as error:
                    assert error.code == -32002  # noqa: PT017 - a generated line has closed it
            client.messages.clear()
            memory.append(psutil.Process(program.process.pid).memory_info().rss)
        is_flat(memory, LINES)
        assert await program.end() == 0
        program.no_traceback()


@pytest.mark.parametrize("version", SAMPLED)
async def test_generated_lines_of_a_hosted_agent_end_its_turn_or_nothing(tmp_path: Path, version: int) -> None:
    command = shlex.join([sys.executable, str(NOISY_AGENT)])
    async with acp_program(tmp_path, None, "--agent", command, "--trust-agent", version=version) as program:
        client = program.client
        await program.initialize()
        session = await client.new(tmp_path)
        memory: list[int] = []
        for chance in cases(f"acp lines of a hosted agent, version {version}", SHARE, least=3):
            turn = await client.begin_prompt(session, f"{chance.randrange(10**9)} {LINES}")
            assert await until_end(client, turn) in ("end_turn", "cancelled", -32603)
            turn = await client.begin_prompt(session, "0 0")
            assert await until_end(client, turn) == "end_turn"
            assert client.text().endswith("Still here.")
            client.messages.clear()
            memory.append(psutil.Process(program.process.pid).memory_info().rss)
        is_flat(memory, LINES)
        assert await program.end() == 0
        program.no_traceback()


async def until_end(client: FrontClient, turn: "asyncio.Future[Any]") -> str | int:
    """Answer all questions until a turn ends; return the reason, or the code of the error."""
    answered = 0

    async def has_ended() -> bool:
        nonlocal answered
        for question in client.questions[answered:]:
            answered += 1
            options = question["params"].get("options")
            selected = {"outcome": "selected", "optionId": options[0]["optionId"]} if options else CANCELLED["outcome"]
            await client.respond(question, {"outcome": selected})
        return turn.done()

    await eventually_async(has_ended, 60, what="the end of a turn")
    try:
        return turn.result()["stopReason"]
    except RefusedError as error:
        return error.code


def is_flat(memory: Sequence[int], lines: int) -> None:
    """Fail if memory has grown from batch to batch, each of so many lines."""
    print(f"{len(memory) * lines} lines; memory {[size >> 20 for size in memory[:: len(memory) // 10 + 1]]} MiB")
    if len(memory) > WARM_BATCHES:
        assert memory[-1] - memory[WARM_BATCHES] < GROWTH_BYTES


@pytest.mark.parametrize("version", VERSIONS)
async def test_generated_answers_to_a_question_decide_it_or_leave_it_open(workspace: Path, version: int) -> None:
    agent = MemoryAgent()
    answers = 0
    async with front(agent, options=BOTH_VERSIONS, version=version) as client:
        for chance in cases(f"acp answers to the agent, version {version}", SHARE, least=20):
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
