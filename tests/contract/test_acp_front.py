"""The ACP front with each agent client that it can have: one in this process, and one behind a real A2A server."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

import pytest

from isthmus.client import AgentClient, PromptMessage
from isthmus.development_tool import AgentThought
from isthmus.events import TextContent, Thought
from isthmus.programs.acp.place import LocalPlace
from isthmus.programs.acp.server_place import ServerPlace
from support.a2a_serving import TOKEN, serving
from support.acp_front import ALLOW, REJECT, FrontClient, RefusedError, front
from support.engines import once
from support.memory_agent import Ask, MemoryAgent, Step, Wait, write_file_call
from support.remote_agents import remote_agent
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


@dataclass(frozen=True, slots=True)
class Served:
    """An agent client, the place of its sessions, and the agent behind it, which others use too."""

    client: AgentClient
    place: LocalPlace | ServerPlace
    agent: MemoryAgent
    release: asyncio.Event

    def front(self) -> AbstractAsyncContextManager[FrontClient]:
        """Serve it to a client of its own."""
        return front(self.client, place=self.place)


def script_with(release: asyncio.Event) -> "dict[str, Sequence[Step]]":
    return {
        "edit": (
            Thought(AgentThought("Plan", "Change it.")),
            TextContent("t1", "I will. "),
            Ask((write_file_call(),)),
            TextContent("t2", "I changed "),
            TextContent("t2", "it."),
        ),
        "slow": (TextContent("t1", "one "), TextContent("t1", "two "), Wait(release), TextContent("t1", "three")),
        "fail": (TextContent("t1", "I try. "), RuntimeError("the disk is full")),
    }


@pytest.fixture(params=["in this process", "behind a server"])
async def served(request: pytest.FixtureRequest) -> AsyncGenerator[Served]:
    release = asyncio.Event()
    scripts = script_with(release)

    def script(message: PromptMessage) -> Sequence[Step]:
        return scripts.get(message.text, (TextContent("t1", f"You said: {message.text}"),))

    agent = MemoryAgent(script)
    if request.param == "in this process":
        yield Served(agent, LocalPlace({}), agent, release)
        await agent.aclose()
        return
    async with serving(agent) as server, remote_agent(server.url, TOKEN) as remote:
        yield Served(remote, ServerPlace(remote, remote.url), agent, release)


async def test_a_prompt_is_answered_and_the_session_listed(served: Served, workspace: Path) -> None:
    async with served.front() as client:
        session = await client.new(workspace)
        assert await client.prompt(session, "hello") == "end_turn"
        assert (client.text(), client.text("user_message_chunk")) == ("You said: hello", "")
        (listed,) = (await client.call("session/list"))["sessions"]
        assert (listed["sessionId"], listed["title"], listed["cwd"]) == (session, "hello", str(workspace))


@pytest.mark.parametrize(("answer", "status"), [(ALLOW, "completed"), (REJECT, "failed")])
async def test_an_edit_is_asked_once_and_decided(
    answer: dict[str, object], status: str, served: Served, workspace: Path
) -> None:
    async with served.front() as client:
        turn = await client.begin_prompt(await client.new(workspace), "edit")
        question = await client.question()
        assert question["params"]["toolCall"]["content"] == [
            {"type": "diff", "path": "/workspace/a.txt", "newText": "new\n", "oldText": "old\n"}
        ]
        await client.respond(question, answer)
        assert await asyncio.wait_for(turn, 20) == {"stopReason": "end_turn"}
        assert client.text() == "I will. I changed it."
        assert client.text("agent_thought_chunk") == "**Plan**\nChange it.\n"
        assert (client.last_status, len(client.questions), client.withdrawn) == (status, 1, [])


async def test_the_users_own_text_reaches_the_agent(served: Served, workspace: Path) -> None:
    async with served.front() as client:
        turn = await client.begin_prompt(await client.new(workspace), "edit")
        edited = {**ALLOW, "_meta": {"isthmus": {"newContent": "mine\n"}}}
        await client.respond(await client.question(), edited)
        assert await asyncio.wait_for(turn, 20) == {"stopReason": "end_turn"}
        contents = [update["content"] for update in client.of_kind("tool_call_update") if "content" in update]
        assert contents[-1] == [{"type": "diff", "path": "/workspace/a.txt", "newText": "mine\n", "oldText": "old\n"}]


async def test_an_answer_given_elsewhere_withdraws_the_question(served: Served, workspace: Path) -> None:
    async with served.front() as client:
        turn = await client.begin_prompt(await client.new(workspace), "edit")
        question = await client.question()
        (task,) = await served.agent.tasks()
        await served.agent.answer(task.task_id, once("call-1"), answered_by="another")
        assert await asyncio.wait_for(turn, 20) == {"stopReason": "end_turn"}
        assert client.withdrawn == [question["id"]]
        assert (client.text(), client.last_status) == ("I will. I changed it.", "completed")


async def test_a_session_is_loaded_with_all_of_it(served: Served, workspace: Path) -> None:
    async with served.front() as client:
        session = await client.new(workspace)
        await client.prompt(session, "hello")
        turn = await client.begin_prompt(session, "edit")
        await client.respond(await client.question(), ALLOW)
        await asyncio.wait_for(turn, 20)
    async with served.front() as client:
        await client.load(session, workspace)
        assert client.text() == "You said: helloI will. I changed it."
        assert client.text("user_message_chunk") == "helloedit"
        assert (client.last_status, client.questions) == ("completed", [])


async def test_a_waiting_question_is_asked_again_by_the_next_client(served: Served, workspace: Path) -> None:
    async with served.front() as client:
        session = await client.new(workspace)
        await client.begin_prompt(session, "edit")
        await client.question()
    async with served.front() as client:
        await client.load(session, workspace)
        await client.respond(await client.question(), ALLOW)
        await eventually_async(lambda: client.text() == "I will. I changed it.")
        assert (client.last_status, len(client.questions), len(client.of_kind("tool_call"))) == ("completed", 1, 1)


async def test_a_turn_at_work_goes_on_without_its_client_and_is_shown_once(served: Served, workspace: Path) -> None:
    async with served.front() as client:
        session = await client.new(workspace)
        await client.begin_prompt(session, "slow")
        await eventually_async(lambda: client.text() == "one two ")
    async with served.front() as client:
        await client.load(session, workspace)
        served.release.set()
        await eventually_async(lambda: client.text() == "one two three")
        assert client.text("user_message_chunk") == "slow"


async def test_a_turn_is_cancelled(served: Served, workspace: Path) -> None:
    async with served.front() as client:
        session = await client.new(workspace)
        for text in ("slow", "edit"):
            turn = await client.begin_prompt(session, text)
            await eventually_async(lambda: client.text().endswith("two ") or client.questions)
            await client.notify("session/cancel", sessionId=session)
            assert await asyncio.wait_for(turn, 20) == {"stopReason": "cancelled"}


async def test_a_failure_is_the_error_of_the_prompt(served: Served, workspace: Path) -> None:
    async with served.front() as client:
        with pytest.raises(RefusedError, match="the disk is full"):
            await client.prompt(await client.new(workspace), "fail")
        assert client.text() == "I try. "


async def test_two_clients_on_one_question_are_asked_once_each(served: Served, workspace: Path) -> None:
    async with served.front() as one, served.front() as two:
        session = await one.new(workspace)
        turn = await one.begin_prompt(session, "edit")
        await one.question()
        await two.load(session, workspace)
        await two.respond(await two.question(), ALLOW)
        assert await asyncio.wait_for(turn, 20) == {"stopReason": "end_turn"}
        await eventually_async(lambda: one.withdrawn == [one.questions[0]["id"]])
        for client in (one, two):
            await eventually_async(lambda c=client: c.text() == "I will. I changed it.")
            assert len(client.questions) == 1


async def test_slash_commands_run_as_turns(served: Served, workspace: Path) -> None:
    async with served.front() as client:
        session = await client.new(workspace)
        await eventually_async(lambda: client.of_kind("available_commands_update"))
        assert await client.prompt(session, "/say hello") == "end_turn"
        assert client.text() == "You said: hello"
