"""Clients that do not wait for answers: a prompt right behind a load, a cancellation in the middle, an early end."""

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from isthmus.acp.front.session import FrontSession
from isthmus.acp.front.session_options import SessionOptions
from isthmus.acp.front.turn import ClientPort
from isthmus.acp.v1.connection import ElicitationCapabilities
from isthmus.client import PromptMessage, TaskList, TaskQuery, Turn
from isthmus.development_tool import ConfirmationOption, ConfirmationRequest
from isthmus.events import TextContent
from support.acp_front import ALLOW, FrontClient, RefusedError, front
from support.memory_agent import Ask, MemoryAgent, Script, Step, Wait, write_file_call
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


@pytest.fixture
def release() -> asyncio.Event:
    return asyncio.Event()


@pytest.fixture
async def agent(release: asyncio.Event) -> AsyncGenerator[MemoryAgent]:
    def script(message: PromptMessage) -> Sequence[Step]:
        match message.text:
            case "slow":
                return (
                    TextContent("t1", "one "),
                    TextContent("t2", "two "),
                    Wait(release),
                    TextContent("t2", "three "),
                )
            case "edit":
                return (Ask((write_file_call(),)), TextContent("t1", "edited "))
            case _:
                return (TextContent("t1", f"{message.text} "),)

    agent = MemoryAgent(script)
    yield agent
    await agent.aclose()


async def begun(agent: MemoryAgent, workspace: Path, text: str) -> str:
    """Begin a session and a turn in a client that ends, and return the session."""
    async with front(agent) as client:
        session = await client.new(workspace)
        await client.begin_prompt(session, text)
        await eventually_async(lambda: client.updates and (client.text().endswith("two ") or client.questions))
    return session


async def send_at_once(client: FrontClient, *requests: tuple[str, dict[str, Any]]) -> "list[asyncio.Future[Any]]":
    """Send requests in one chunk, and return their future results."""
    lines: list[bytes] = []
    results: list[asyncio.Future[Any]] = []
    for method, params in requests:
        number = next(client.numbers)
        results.append(asyncio.get_running_loop().create_future())
        client.waiting[number] = (method, results[-1])
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        lines.append(json.dumps(message).encode() + b"\n")
    await client.write(b"".join(lines))
    return results


def load_and_prompt(session: str, workspace: Path) -> "tuple[tuple[str, dict[str, Any]], tuple[str, dict[str, Any]]]":
    return (
        ("session/load", {"sessionId": session, "cwd": str(workspace), "mcpServers": []}),
        ("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "next"}]}),
    )


async def test_a_prompt_behind_a_load_comes_after_the_past_and_is_shown_once(
    agent: MemoryAgent, workspace: Path
) -> None:
    async with front(agent) as client:
        session = await client.new(workspace)
        await client.prompt(session, "first")
    async with front(agent) as client:
        # The session must be known for a prompt, so it is loaded twice.
        await client.load(session, workspace)
        client.messages.clear()
        load, turn = await send_at_once(client, *load_and_prompt(session, workspace))
        await asyncio.wait_for(load, 10)
        assert await asyncio.wait_for(turn, 10) == {"stopReason": "end_turn"}
        assert client.text() == "first next "


async def test_a_prompt_behind_a_load_waits_for_the_turn_at_work(
    agent: MemoryAgent, release: asyncio.Event, workspace: Path
) -> None:
    session = await begun(agent, workspace, "slow")
    async with front(agent) as client:
        await client.load(session, workspace)
        client.messages.clear()
        load, turn = await send_at_once(client, *load_and_prompt(session, workspace))
        await asyncio.wait_for(load, 10)
        assert not turn.done()
        release.set()
        assert await asyncio.wait_for(turn, 10) == {"stopReason": "end_turn"}
        assert client.text() == "one two three next "


async def test_a_prompt_behind_a_load_answers_the_waiting_question_in_words(
    agent: MemoryAgent, workspace: Path
) -> None:
    session = await begun(agent, workspace, "edit")
    async with front(agent) as client:
        await client.load(session, workspace)
        await client.question()
        client.messages.clear()
        load, turn = await send_at_once(client, *load_and_prompt(session, workspace))
        await asyncio.wait_for(load, 10)
        assert await asyncio.wait_for(turn, 10) == {"stopReason": "end_turn"}
        (task,) = await agent.tasks()
        assert agent.prompts[-1].task_id == task.task_id
        assert client.text() == "next "


class LateAgent(MemoryAgent):
    """An agent whose sessions take time to load, since it says that there are more events, and to take a prompt."""

    def __init__(self, script: Script) -> None:
        super().__init__(script)
        self.asked = asyncio.Event()
        self.takes = asyncio.Event()

    @override
    async def list_tasks(self, query: TaskQuery) -> TaskList:
        found = await super().list_tasks(query)
        return replace(found, tasks=[replace(task, seq=task.seq + 1) for task in found.tasks])

    @override
    async def prompt(self, message: PromptMessage) -> Turn:
        self.asked.set()
        await self.takes.wait()
        return await super().prompt(message)


@pytest.fixture
async def late(release: asyncio.Event) -> AsyncGenerator[LateAgent]:
    agent = LateAgent(lambda _: (TextContent("t1", "one "), TextContent("t2", "two "), Wait(release)))
    yield agent
    await agent.aclose()


async def test_a_cancellation_during_a_load_stops_what_it_finds(late: LateAgent, workspace: Path) -> None:
    late.takes.set()
    session = await begun(late, workspace, "slow")
    await eventually_async(lambda: late.followers == 0)
    async with front(late) as client:
        _, result = await client.begin("session/load", sessionId=session, cwd=str(workspace), mcpServers=[])
        await eventually_async(lambda: late.followers == 1)
        await client.notify("session/cancel", sessionId=session)
        await eventually_async(lambda: all_ended(late))
        await asyncio.wait_for(result, 10)


async def all_ended(agent: MemoryAgent) -> bool:
    return all(task.state.is_terminal for task in await agent.tasks())


async def test_a_load_that_is_cancelled_follows_nothing(late: LateAgent, workspace: Path) -> None:
    late.takes.set()
    session = await begun(late, workspace, "slow")
    await eventually_async(lambda: late.followers == 0)
    async with front(late) as client:
        number, result = await client.begin("session/load", sessionId=session, cwd=str(workspace), mcpServers=[])
        await eventually_async(lambda: late.followers == 1)
        await client.notify("$/cancel_request", requestId=number)
        with pytest.raises(RefusedError, match="session/load was cancelled"):
            await asyncio.wait_for(result, 10)
        await eventually_async(lambda: late.followers == 0, 5)


async def test_a_prompt_that_is_cancelled_while_the_agent_takes_it_is_stopped(late: LateAgent, workspace: Path) -> None:
    async with front(late) as client:
        session = await client.new(workspace)
        turn = await client.begin_prompt(session, "slow")
        await late.asked.wait()
        await client.notify("session/cancel", sessionId=session)
        await client.call("session/list")
        late.takes.set()
        assert await asyncio.wait_for(turn, 10) == {"stopReason": "cancelled"}
        assert await all_ended(late)


@pytest.mark.parametrize("asks", [False, True])
async def test_a_session_that_is_being_closed_takes_no_prompt_and_is_closed_after_its_own(
    asks: bool, agent: MemoryAgent, workspace: Path
) -> None:
    async with front(agent) as client:
        session = await client.new(workspace)
        prompt = {"sessionId": session, "prompt": [{"type": "text", "text": "edit" if asks else "slow"}]}
        first, closed, second = await send_at_once(
            client, ("session/prompt", prompt), ("session/close", {"sessionId": session}), ("session/prompt", prompt)
        )
        assert await asyncio.wait_for(first, 10) == {"stopReason": "cancelled"}
        assert await asyncio.wait_for(closed, 10) == {}
        with pytest.raises(RefusedError, match="there is no session"):
            await asyncio.wait_for(second, 10)
        ids = [message["id"] for message in client.messages if "id" in message and "method" not in message]
        assert ids.index(3) < ids.index(4)
        assert len(await agent.tasks()) <= 1


@pytest.mark.parametrize("text", ["slow", "edit"])
async def test_a_client_that_ends_leaves_no_follower(text: str, agent: MemoryAgent, workspace: Path) -> None:
    session = await begun(agent, workspace, text)
    await eventually_async(lambda: agent.followers == 0)
    async with front(agent) as client:
        await client.load(session, workspace)
    await eventually_async(lambda: agent.followers == 0)
    async with front(agent) as client:
        await client.begin("session/load", sessionId=session, cwd=str(workspace), mcpServers=[])
    await eventually_async(lambda: agent.followers == 0)


async def test_a_session_that_ends_in_the_moment_in_which_it_goes_on_leaves_no_follower(
    agent: MemoryAgent, workspace: Path
) -> None:
    session_id = await begun(agent, workspace, "slow")

    async def nothing(_: object) -> None:
        return

    port = ClientPort(nothing, nothing, nothing, ElicitationCapabilities(), "editor")
    session = FrontSession(agent, port, session_id, {"workspace_path": str(workspace)}, SessionOptions())
    await session.replay()
    await session.go_on()
    await session.aclose()
    await eventually_async(lambda: agent.followers == 0, 5)


async def test_many_sessions_are_opened_and_closed_without_a_follower_left(agent: MemoryAgent, workspace: Path) -> None:
    async with front(agent, answer=ALLOW) as client:
        for _ in range(20):
            session = await client.new(workspace)
            assert await client.prompt(session, "edit") == "end_turn"
            await client.load(session, workspace)
            await client.call("session/close", sessionId=session)
        assert agent.followers == 0


async def test_the_response_of_a_prompt_comes_after_all_of_its_updates(agent: MemoryAgent, workspace: Path) -> None:
    async with front(agent, answer=ALLOW) as client:
        session = await client.new(workspace)
        await client.prompt(session, "edit")
        response = next(i for i, message in enumerate(client.messages) if "stopReason" in message.get("result", {}))
        await client.call("session/list")
        shown = [
            i
            for i, message in enumerate(client.messages)
            if message.get("params", {}).get("update", {}).get("sessionUpdate")
            in ("agent_message_chunk", "tool_call", "tool_call_update")
        ]
        assert shown
        assert max(shown) < response


async def test_forms_and_pages_are_shown_by_clients_that_can(workspace: Path) -> None:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    arguments = {"message": "Who?", "server": "crm", "requested_schema": schema}
    form = write_file_call()
    assert form.confirmation_request is not None
    options = tuple(ConfirmationOption(name, name) for name in ("accept", "decline", "cancel"))
    request = ConfirmationRequest(options, file_edit_details=form.confirmation_request.file_edit_details)
    call = replace(form, tool_name="elicitation", input_parameters=arguments, confirmation_request=request)
    agent = MemoryAgent(lambda _: (Ask((call,)), TextContent("t", "Thanks.")))
    answer = {"action": "accept", "content": {"name": "Zoë"}}
    async with front(agent, answer=answer, capabilities={"elicitation": {"form": {}, "url": {}}}) as client:
        assert await client.prompt(await client.new(workspace), "x") == "end_turn"
        (question,) = client.questions
        assert question["method"] == "elicitation/create"
        assert question["params"]["requestedSchema"] == schema
        assert client.text() == "Thanks."
    await agent.aclose()
