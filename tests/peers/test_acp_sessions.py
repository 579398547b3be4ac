"""Sessions of ``isthmus acp`` with the official Python client: listed, loaded by another process, and refused."""

import asyncio
import signal
from pathlib import Path

import acp
import pytest

from support.acp_client import acp_user
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


async def test_another_client_lists_and_loads_a_session_with_all_that_was_said(tmp_path: Path, workspace: Path) -> None:
    async with acp_user(tmp_path, workspace) as first:
        session = await first.new()
        await first.prompt(session, "say hello")
        await first.prompt(session, "write new.txt")
    async with acp_user(tmp_path, workspace) as second:
        listed = await second.agent.list_sessions(cwd=str(workspace))
        assert [(each.session_id, each.cwd, each.title) for each in listed.sessions] == [
            (session, str(workspace), "say hello")
        ]
        assert (await second.agent.list_sessions(cwd=str(tmp_path))).sessions == []
        await second.load(session)
        replayed = len(second.client.updates)
        assert await second.prompt(session, "say hello") == "end_turn"

    client = second.client
    assert client.questions == []
    told = [update for update in client.updates[:replayed] if update["sessionUpdate"] != "available_commands_update"]
    kinds = [update["sessionUpdate"] for update in told]
    assert kinds[0] == "user_message_chunk"
    assert [update["content"]["text"] for update in told if update["sessionUpdate"] == "user_message_chunk"] == [
        "say hello",
        "write new.txt",
    ]
    said = [update["content"]["text"] for update in told if update["sessionUpdate"] == "agent_message_chunk"]
    assert "".join(said) == "Hello from the agent.I write new.txt.It is written."
    assert client.text("agent_thought_chunk") == "I look around first.\n" * 2
    assert client.call()["status"] == "completed"
    assert client.call()["content"][0]["type"] == "diff"


async def test_a_session_can_be_loaded_before_its_first_prompt(tmp_path: Path, workspace: Path) -> None:
    async with acp_user(tmp_path, workspace) as first:
        session = await first.new()
    async with acp_user(tmp_path, workspace) as second:
        await second.load(session)
        assert await second.prompt(session, "say hello") == "end_turn"
        listed = await second.agent.list_sessions()

    assert [each.session_id for each in listed.sessions] == [session]


async def test_a_question_outlives_the_process_and_is_asked_again(tmp_path: Path, workspace: Path) -> None:
    async with acp_user(tmp_path, workspace) as first:
        first.client.decide = lambda _: pending
        pending: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        session = await first.new()
        running = asyncio.ensure_future(first.prompt(session, "write new.txt"))
        await eventually_async(lambda: first.client.questions)
        first.process.send_signal(signal.SIGKILL)
        await first.process.wait()
        running.cancel()
        pending.cancel()
    async with acp_user(tmp_path, workspace) as second:
        await second.load(session)
        await eventually_async(lambda: second.client.text().endswith("It is written."))

    assert len(second.client.questions) == 1
    assert (workspace / "new.txt").read_text(encoding="utf-8") == "one\ntwo\n"
    assert second.client.call()["status"] == "completed"


async def test_a_turn_whose_process_was_killed_goes_on_and_its_text_is_shown_once(
    tmp_path: Path, workspace: Path
) -> None:
    async with acp_user(tmp_path, workspace) as first:
        session = await first.new()
        running = asyncio.ensure_future(first.prompt(session, "wait a moment"))
        await eventually_async(lambda: first.client.text() == "I begin.")
        first.process.send_signal(signal.SIGKILL)
        await first.process.wait()
        running.cancel()
    async with acp_user(tmp_path, workspace) as second:
        await second.load(session)
        await eventually_async(lambda: second.client.text().endswith(" I end."))
    async with acp_user(tmp_path, workspace) as third:
        await third.load(session)

    assert second.client.text() == "I begin. I end."
    assert third.client.text() == "I begin. I end."


async def test_the_mode_that_a_reopened_session_shows_is_the_one_that_holds(tmp_path: Path, workspace: Path) -> None:
    place = {"cwd": str(workspace)}
    async with acp_user(tmp_path, workspace) as first:
        session = await first.new()
        await first.agent.set_session_mode(session_id=session, mode_id="auto_edit")
        await first.prompt(session, "write a.txt")
    async with acp_user(tmp_path, workspace) as second:
        loaded = await second.agent.load_session(session_id=session, **place)
        await second.prompt(session, "write b.txt")
        assert (loaded.modes.current_mode_id, len(second.client.questions)) == ("auto_edit", 0)
    async with acp_user(tmp_path, workspace) as third:
        resumed = await third.agent.resume_session(session_id=session, **place)
        await third.prompt(session, "write c.txt")
        assert (resumed.modes.current_mode_id, len(third.client.questions)) == ("auto_edit", 0)


async def test_unknown_sessions_and_relative_folders_are_refused(tmp_path: Path, workspace: Path) -> None:
    async with acp_user(tmp_path, workspace) as user:
        with pytest.raises(acp.RequestError, match="there is no session 'nobody'") as unknown:
            await user.prompt("nobody", "say hello")
        with pytest.raises(acp.RequestError, match="there is no session 'nobody'") as not_loaded:
            await user.load("nobody")
        with pytest.raises(acp.RequestError, match="absolute") as relative:
            await user.agent.new_session(cwd="src")
        with pytest.raises(acp.RequestError) as missing:
            await user.agent.new_session(cwd=str(workspace / "missing"))

    assert (unknown.value.code, not_loaded.value.code) == (-32002, -32002)

    assert (relative.value.code, missing.value.code) == (-32602, -32602)
