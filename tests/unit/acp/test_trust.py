"""Trust in a folder whose files start programs: the client's user is asked before the first prompt in it."""

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from isthmus.mcp_host.config.folder_trust import stated_trust
from support.acp_front import CANCELLED, RefusedError, front
from support.memory_agent import MemoryAgent

pytestmark = pytest.mark.anyio


@pytest.fixture
async def agent() -> AsyncGenerator[MemoryAgent]:
    agent = MemoryAgent()
    yield agent
    await agent.aclose()


@pytest.fixture
def folder(workspace: Path) -> Path:
    (workspace / ".gemini").mkdir()
    settings = {"mcpServers": {"notes": {"command": "notes-server", "args": ["--fast"]}}}
    (workspace / ".gemini" / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
    return workspace


def choose(option: str) -> dict[str, Any]:
    return {"outcome": {"outcome": "selected", "optionId": option}}


def is_trusted(folder: Path) -> bool | None:
    return stated_trust(Path.home(), folder)


async def test_the_user_sees_what_would_start_and_is_asked_once(agent: MemoryAgent, folder: Path) -> None:
    async with front(agent, answer=choose("trust-folder")) as client:
        session = await client.new(folder)
        assert client.questions == []
        assert await client.prompt(session, "hello") == "end_turn"
        (question,) = client.questions
        call = question["params"]["toolCall"]
        assert (call["title"], call["status"]) == (f"Do you trust {folder}?", "pending")
        assert "notes-server" in call["content"][0]["content"]["text"]
        assert [(option["optionId"], option["kind"]) for option in question["params"]["options"]] == [
            ("trust-folder", "allow_always"),
            ("trust-parent", "allow_always"),
            ("distrust", "reject_always"),
            ("later", "reject_once"),
        ]
        assert is_trusted(folder) is True
        await client.prompt(await client.new(folder), "hello")
        assert len(client.questions) == 1


@pytest.mark.parametrize(
    ("answer", "trusted"),
    [
        (choose("distrust"), False),
        (choose("later"), None),
        (choose("no such option"), None),
        (CANCELLED, None),
        ({"outcome": "rubbish"}, None),
        ({}, None),
    ],
)
async def test_without_trust_the_prompt_runs_all_the_same(
    answer: dict[str, Any], trusted: bool | None, agent: MemoryAgent, folder: Path
) -> None:
    async with front(agent, answer=answer) as client:
        session = await client.new(folder)
        assert await client.prompt(session, "hello") == "end_turn"
        assert is_trusted(folder) is trusted
        assert await client.prompt(session, "again") == "end_turn"
        assert len(client.questions) == 1


async def test_a_client_that_cannot_ask_does_not_lose_the_prompt(agent: MemoryAgent, folder: Path) -> None:
    async with front(agent) as client:
        turn = await client.begin_prompt(await client.new(folder), "hello")
        question = await client.question()
        await client.send({"id": question["id"], "error": {"code": -32601, "message": "Method not found"}})
        assert await asyncio.wait_for(turn, 10) == {"stopReason": "end_turn"}
        assert is_trusted(folder) is None


async def test_a_prompt_can_be_cancelled_while_trust_is_asked_and_the_next_one_asks_again(
    agent: MemoryAgent, folder: Path
) -> None:
    async with front(agent) as client:
        session = await client.new(folder)
        turn = await client.begin_prompt(session, "hello")
        question = await client.question()
        await client.notify("session/cancel", sessionId=session)
        assert await asyncio.wait_for(turn, 10) == {"stopReason": "cancelled"}
        assert (client.withdrawn, agent.prompts) == ([question["id"]], [])
        turn = await client.begin_prompt(session, "hello")
        await client.respond(await client.question(1), choose("later"))
        assert await asyncio.wait_for(turn, 10) == {"stopReason": "end_turn"}


async def test_a_client_that_ends_while_trust_is_asked_leaves_nothing(agent: MemoryAgent, folder: Path) -> None:
    async with front(agent) as client:
        await client.begin_prompt(await client.new(folder), "hello")
        await client.question()
    assert agent.prompts == []


async def test_a_second_prompt_while_trust_is_asked_is_refused(agent: MemoryAgent, folder: Path) -> None:
    async with front(agent) as client:
        session = await client.new(folder)
        turn = await client.begin_prompt(session, "hello")
        question = await client.question()
        with pytest.raises(RefusedError, match="a prompt is running in this session"):
            await client.prompt(session, "more")
        await client.respond(question, choose("later"))
        assert await asyncio.wait_for(turn, 10) == {"stopReason": "end_turn"}


async def test_a_folder_without_programs_is_not_asked_about(agent: MemoryAgent, workspace: Path) -> None:
    async with front(agent) as client:
        assert await client.prompt(await client.new(workspace), "hello") == "end_turn"
        assert client.questions == []
