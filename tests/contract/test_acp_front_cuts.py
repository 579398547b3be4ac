"""The ACP front over a bad connection to a server: the client sees each text once, and no question is lost."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from isthmus.a2a.client.remote_agent import RemoteAgent, StreamRetryPolicy
from isthmus.events import TextContent
from isthmus.programs.acp.server_place import ServerPlace
from support.a2a_serving import TOKEN, serving
from support.acp_front import ALLOW, RefusedError, front
from support.cutting_proxy import CuttingProxy, cutting_proxy
from support.memory_agent import Ask, MemoryAgent, Wait, write_file_call
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

QUICK = StreamRetryPolicy(attempts=4, first_wait=0.01, longest_wait=0.05)
TEXTS = [f"{number} " for number in range(60)]


@pytest.fixture
def gates() -> list[asyncio.Event]:
    return [asyncio.Event() for _ in range(3)]


@pytest.fixture
async def agent(gates: list[asyncio.Event]) -> MemoryAgent:
    said = [TextContent("t", text) for text in TEXTS]
    return MemoryAgent(
        lambda _: (
            *said[:20],
            Wait(gates[0]),
            *said[20:40],
            Ask((write_file_call(),)),
            Wait(gates[1]),
            *said[40:],
        )
    )


@pytest.fixture
async def proxy(agent: MemoryAgent) -> AsyncGenerator[CuttingProxy]:
    async with serving(agent) as server, cutting_proxy(server.url) as proxy:
        yield proxy


async def test_connections_that_are_cut_show_every_text_once_and_ask_once(
    agent: MemoryAgent, proxy: CuttingProxy, gates: list[asyncio.Event], workspace: Path
) -> None:
    remote = await RemoteAgent.connect(proxy.url, TOKEN, retry_policy=QUICK)
    async with front(remote, place=ServerPlace(remote, remote.url)) as client:
        turn = await client.begin_prompt(await client.new(workspace), "go")
        await eventually_async(lambda: client.text() == "".join(TEXTS[:20]))
        proxy.cut()
        gates[0].set()
        question = await client.question()
        proxy.cut()
        await client.respond(question, ALLOW)
        await eventually_async(lambda: client.last_status == "completed")
        proxy.cut()
        gates[1].set()
        assert await asyncio.wait_for(turn, 20) == {"stopReason": "end_turn"}
        assert client.text() == "".join(TEXTS)
        assert (len(client.questions), client.withdrawn) == (1, [])
    await remote.aclose()


async def test_a_lost_answer_is_an_error_and_a_load_shows_what_became_of_it(
    agent: MemoryAgent, proxy: CuttingProxy, gates: list[asyncio.Event], workspace: Path
) -> None:
    for gate in gates:
        gate.set()
    remote = await RemoteAgent.connect(proxy.url, TOKEN, retry_policy=QUICK)
    async with front(remote, place=ServerPlace(remote, remote.url)) as client:
        session = await client.new(workspace)
        turn = await client.begin_prompt(session, "go")
        question = await client.question()
        proxy.cut_after = 0
        proxy.cut()
        await client.respond(question, ALLOW)
        with pytest.raises(RefusedError) as caught:
            await asyncio.wait_for(turn, 30)
        assert caught.value.code == -32603
        proxy.cut_after = None
        client.messages.clear()
        await client.load(session, workspace)
        (task,) = await agent.tasks()
        if task.pending:  # the answer was lost, not its response
            await client.respond(await client.question(), ALLOW)
        await eventually_async(lambda: client.text() == "".join(TEXTS))
        await eventually_async(lambda: client.last_status == "completed")
    await remote.aclose()


async def test_a_server_that_is_gone_ends_the_prompt_and_a_load_shows_the_rest(
    proxy: CuttingProxy, gates: list[asyncio.Event], workspace: Path
) -> None:
    remote = await RemoteAgent.connect(proxy.url, TOKEN, retry_policy=QUICK)
    async with front(remote, place=ServerPlace(remote, remote.url), answer=ALLOW) as client:
        session = await client.new(workspace)
        turn = await client.begin_prompt(session, "go")
        await eventually_async(lambda: client.text() == "".join(TEXTS[:20]))
        proxy.cut_after = 0
        proxy.cut()
        with pytest.raises(RefusedError) as caught:
            await asyncio.wait_for(turn, 30)
        assert caught.value.code == -32603
        with pytest.raises(RefusedError):
            await client.load(session, workspace)
        proxy.cut_after = None
        for gate in gates:
            gate.set()
        client.messages.clear()
        await client.load(session, workspace)
        await eventually_async(lambda: client.text() == "".join(TEXTS))
        assert client.text("user_message_chunk") == "go"
    await remote.aclose()
