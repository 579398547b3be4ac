"""``isthmus acp`` with the official Python client: prompts, permissions, cancellation, and sessions."""

import asyncio
from pathlib import Path
from typing import Any

import acp
import pytest

from support.acp_client import acp_user
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

NEW_FILE = "one\ntwo\n"


async def test_a_prompt_streams_its_thoughts_and_its_text(tmp_path: Path, workspace: Path) -> None:
    async with acp_user(tmp_path, workspace) as user:
        session = await user.new()
        assert await user.prompt(session, "say hello") == "end_turn"

    assert user.greeting["protocolVersion"] == 1
    assert user.greeting["agentInfo"]["name"] == "isthmus"
    # The public registry lists only agents with one of these; a method without a type is of the first.
    assert user.greeting["agentCapabilities"]["auth"] == {"logout": {}}
    assert {method.get("type", "agent") for method in user.greeting["authMethods"]} & {"agent", "terminal"}
    client = user.client
    assert client.text("agent_thought_chunk") == "I look around first.\n"
    chunks = client.of_kind("agent_message_chunk")
    assert [chunk["content"] for chunk in chunks] == [
        {"type": "text", "text": "Hello"},
        {"type": "text", "text": " from the agent."},
    ]
    assert chunks[0]["messageId"] == chunks[1]["messageId"]
    assert {update["sessionId"] for update in client.updates} == {session}
    assert client.of_kind("user_message_chunk") == []


async def test_the_client_reads_how_full_the_context_of_the_model_is(tmp_path: Path, workspace: Path) -> None:
    async with acp_user(tmp_path, workspace) as user:
        session = await user.new()
        assert await user.prompt(session, "say hello") == "end_turn"

    (usage,) = user.client.of_kind("usage_update")
    assert usage["size"] == 128_000
    assert usage["used"] > 100


async def test_the_client_reads_the_tokens_of_a_turn_and_the_cost(tmp_path: Path, workspace: Path) -> None:
    async with acp_user(tmp_path, workspace) as user:
        session = await user.new()
        answer = await user.agent.prompt(session_id=session, prompt=[acp.text_block("say hello")])

    usage = answer.usage
    kinds = (usage.input_tokens, usage.output_tokens, usage.cached_read_tokens or 0, usage.thought_tokens or 0)
    assert usage.total_tokens == sum(kinds) > 100
    (update,) = user.client.of_kind("usage_update")
    assert update["cost"] == {"amount": 0.0, "currency": "USD"}  # a script has no price


async def test_a_fork_of_a_session_goes_on_by_itself(tmp_path: Path, workspace: Path) -> None:
    async with acp_user(tmp_path, workspace) as user:
        session = await user.new()
        await user.prompt(session, "say hello")
        fork = (await user.agent.fork_session(session_id=session, cwd=str(workspace))).session_id
        await user.prompt(fork, "write new.txt")
        user.client.updates.clear()
        await user.load(fork)
        assert user.client.text("user_message_chunk") == "say hellowrite new.txt"
        user.client.updates.clear()
        await user.load(session)
        assert user.client.text("user_message_chunk") == "say hello"


async def test_the_client_is_told_the_slash_commands_of_a_session(tmp_path: Path, workspace: Path) -> None:
    async with acp_user(tmp_path, workspace) as user:
        session = await user.new()
        told = await eventually_async(lambda: user.client.of_kind("available_commands_update"))
        assert await user.prompt(session, "/about") == "end_turn"

    names = [command["name"] for command in told[0]["availableCommands"]]
    assert {"about", "memory:show"} <= set(names)
    assert not any(" " in name for name in names)
    assert "0.1.0" in user.client.text()


async def test_an_edit_shows_its_diff_and_waits_for_permission(tmp_path: Path, workspace: Path) -> None:
    async with acp_user(tmp_path, workspace) as user:
        written: list[bool] = []

        def decide(_: dict[str, Any]) -> str:
            written.append((workspace / "new.txt").exists())
            return "allow_once"

        user.client.decide = decide
        session = await user.new()
        assert await user.prompt(session, "write new.txt") == "end_turn"

    question = user.client.questions[0]
    diff = {"type": "diff", "path": str(workspace / "new.txt"), "newText": NEW_FILE}
    assert written == [False]
    assert (workspace / "new.txt").read_text(encoding="utf-8") == NEW_FILE
    assert question["sessionId"] == session
    assert question["toolCall"]["content"] == [diff]
    assert question["toolCall"]["kind"] == "edit"
    assert {option["kind"] for option in question["options"]} >= {"allow_once", "allow_always", "reject_once"}
    call = user.client.call()
    assert call["toolCallId"] == question["toolCall"]["toolCallId"]
    assert call["content"] == [diff]
    assert call["locations"] == [{"path": str(workspace / "new.txt")}]
    assert call["rawInput"]["file_path"] == "new.txt"
    assert user.client.statuses() == ["pending", "in_progress", "completed"]
    assert user.client.text().endswith("It is written.")


async def test_a_refused_edit_of_a_file_showed_its_old_text_and_the_model_is_told(
    tmp_path: Path, workspace: Path
) -> None:
    (workspace / "old.txt").write_text("zero\n", encoding="utf-8")
    async with acp_user(tmp_path, workspace) as user:
        user.client.decide = lambda _: "reject_once"
        assert await user.prompt(await user.new(), "write old.txt") == "end_turn"

    diff = {"type": "diff", "path": str(workspace / "old.txt"), "oldText": "zero\n", "newText": NEW_FILE}
    assert user.client.questions[0]["toolCall"]["content"] == [diff]
    assert (workspace / "old.txt").read_text(encoding="utf-8") == "zero\n"
    assert user.client.call()["status"] == "failed"
    assert user.client.text().endswith("It was refused.")


async def test_an_edit_that_is_always_allowed_is_not_asked_again(tmp_path: Path, workspace: Path) -> None:
    async with acp_user(tmp_path, workspace) as user:
        user.client.decide = lambda _: "allow_always"
        session = await user.new()
        await user.prompt(session, "write a.txt")
        await user.prompt(session, "write b.txt")

    assert len(user.client.questions) == 1
    assert sorted(path.name for path in workspace.glob("*.txt")) == ["a.txt", "b.txt"]


async def test_a_mode_decides_what_is_asked(tmp_path: Path, workspace: Path) -> None:
    async with acp_user(tmp_path, workspace) as user:
        session = await user.new()
        await user.agent.set_session_mode(session_id=session, mode_id="auto_edit")
        await user.prompt(session, "write a.txt")
        assert user.client.questions == []
        await user.prompt(session, "run it")
        assert [question["toolCall"]["kind"] for question in user.client.questions] == ["execute"]
        with pytest.raises(acp.RequestError, match="expected one of default, auto_edit, plan, yolo") as caught:
            await user.agent.set_session_mode(session_id=session, mode_id="careful")

    assert caught.value.code == -32602
    told = user.client.of_kind("config_option_update")[-1]["configOptions"]
    assert (told[0]["id"], told[0]["currentValue"]) == ("mode", "auto_edit")
    assert (workspace / "ran.txt").exists()


async def test_an_effort_counts_from_the_next_prompt_on(tmp_path: Path, workspace: Path) -> None:
    async with acp_user(tmp_path, workspace) as user:
        session = await user.new()
        changed = await user.agent.set_config_option(session_id=session, config_id="effort", value="high")
        assert [(option.id, option.category) for option in changed.config_options][-1] == ("effort", "thought_level")
        await user.prompt(session, "say hello")
        await user.prompt(session, "/effort")
        assert "Effort: high." in user.client.text()
        with pytest.raises(acp.RequestError, match="expected one of default, low, medium, high"):
            await user.agent.set_config_option(session_id=session, config_id="effort", value="most")


async def test_a_turn_at_work_is_cancelled_at_once(tmp_path: Path, workspace: Path) -> None:
    async with acp_user(tmp_path, workspace) as user:
        session = await user.new()
        running = asyncio.ensure_future(user.prompt(session, "take your time"))
        await eventually_async(lambda: user.client.text() == "I begin.")
        with pytest.raises(acp.RequestError, match="a prompt is running in this session") as caught:
            await user.prompt(session, "say hello")
        await user.agent.cancel(session_id=session)
        async with asyncio.timeout(10):
            assert await running == "cancelled"
        assert await user.prompt(session, "say hello") == "end_turn"

    assert caught.value.code == -32600


async def test_a_turn_that_asks_is_cancelled_whether_the_client_answers_or_not(tmp_path: Path, workspace: Path) -> None:
    async with acp_user(tmp_path, workspace) as user:
        for answers in (True, False):
            answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            user.client.begin_anew(answer)
            session = await user.new()
            running = asyncio.ensure_future(user.prompt(session, "write new.txt"))
            await eventually_async(lambda: user.client.questions)
            await user.agent.cancel(session_id=session)
            if answers:
                answer.set_result("cancelled")
            async with asyncio.timeout(10):
                assert await running == "cancelled"
            assert user.client.call()["status"] == "failed"
            answer.cancel()

    assert not (workspace / "new.txt").exists()
