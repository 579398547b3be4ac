"""Trust in a folder whose files start programs: the client's user is asked before the first prompt in it."""

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from isthmus.mcp_host.config.folder_trust import stated_trust
from isthmus.settings.trust.agreements import read_agreement
from isthmus.settings.trust.items import ItemKind
from isthmus.settings.trust.reading import project_items
from support.acp_front import CANCELLED, RefusedError, front
from support.memory_agent import MemoryAgent
from support.project_files import write_all

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


def add_hook(folder: Path, command: str) -> None:
    hooks = {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": command}]}]}
    (folder / ".claude").mkdir(exist_ok=True)
    (folder / ".claude" / "settings.json").write_text(json.dumps({"hooks": hooks}), encoding="utf-8")


@pytest.mark.parametrize("answer", ["allow", "refuse", "later", "no such option"])
async def test_what_is_new_in_a_trusted_folder_is_asked_about_alone(
    answer: str, agent: MemoryAgent, folder: Path
) -> None:
    async with front(agent, answer=choose("trust-folder")) as client:
        await client.prompt(await client.new(folder), "hello")
    add_hook(folder, "curl https://evil.example")
    async with front(agent, answer=choose(answer)) as client:
        await client.prompt(await client.new(folder), "hello")
        (question,) = client.questions
        call = question["params"]["toolCall"]
        assert call["title"] == f"Allow what is new or changed in {folder}?"
        text = call["content"][0]["content"]["text"]
        assert "hook UserPromptSubmit (.claude/settings.json): curl https://evil.example" in text
        assert "notes-server" not in text
        assert [(option["optionId"], option["kind"]) for option in question["params"]["options"]] == [
            ("allow", "allow_always"),
            ("refuse", "reject_always"),
            ("later", "reject_once"),
        ]
        await client.prompt(await client.new(folder), "hello")
        assert len(client.questions) == 1
        agreement = read_agreement(folder)
        assert agreement is not None
        (hook,) = [item for item in project_items(folder, Path.home()) if item.kind is ItemKind.HOOK]
        assert (agreement.covers(hook), agreement.is_decided(hook)) == (
            answer == "allow",
            answer in {"allow", "refuse"},
        )
        add_hook(folder, "curl https://other.example")
        await client.prompt(await client.new(folder), "hello")
        assert len(client.questions) == 2


async def test_what_appears_while_the_question_is_open_is_not_agreed_to(agent: MemoryAgent, folder: Path) -> None:
    async with front(agent) as client:
        turn = await client.begin_prompt(await client.new(folder), "hello")
        question = await client.question()
        add_hook(folder, "curl https://evil.example")
        await client.respond(question, choose("trust-folder"))
        assert await asyncio.wait_for(turn, 10) == {"stopReason": "end_turn"}
    assert is_trusted(folder) is True
    agreement = read_agreement(folder)
    assert agreement is not None
    assert [item.kind for item in project_items(folder, Path.home()) if not agreement.covers(item)] == [ItemKind.HOOK]


async def test_every_item_of_a_folder_stands_in_the_question(agent: MemoryAgent, workspace: Path) -> None:
    write_all(workspace)
    async with front(agent, answer=choose("later")) as client:
        await client.prompt(await client.new(workspace), "hello")
        text = client.questions[0]["params"]["toolCall"]["content"][0]["content"]["text"]
    for item in project_items(workspace, Path.home()):
        assert item.name.replace("git:push", "/git:push") in text, item


async def test_a_question_shows_a_hundred_items_and_the_rest_is_asked_about_afterwards(
    agent: MemoryAgent, folder: Path
) -> None:
    servers = {f"s{number:03}": {"command": f"program-{number:03}"} for number in range(103)}
    (folder / ".gemini" / "settings.json").write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    texts: list[str] = []
    for answer in ("trust-folder", "allow"):
        async with front(agent, answer=choose(answer)) as client:
            await client.prompt(await client.new(folder), "hello")
            texts.append(client.questions[0]["params"]["toolCall"]["content"][0]["content"]["text"])
    assert [text.count("MCP server") for text in texts] == [100, 3]
    assert "and 3 more, about which you are asked next time" in texts[0]
    assert "program-102" in texts[1]
