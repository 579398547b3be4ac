"""Sessions in front of a client: how they begin, are found again, change and end. Engine and journal are real."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from isthmus.acp.front import session_list
from isthmus.programs.acp.front import AUTH_METHODS
from support.acp_front import ALLOW, BOTH_VERSIONS, RefusedError, front
from support.agents import AskingAgent, EchoAgent, WaitingAgent
from support.engines import engine_on
from support.memory_agent import MemoryAgent
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


async def test_the_greeting_names_what_the_agent_can(workspace: Path) -> None:
    async with engine_on(workspace, EchoAgent()) as engine, front(engine) as client:
        assert await client.call("initialize", protocolVersion=1) == {
            "protocolVersion": 1,
            "agentCapabilities": {
                "loadSession": True,
                "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
                "mcpCapabilities": {"http": True, "sse": True},
                "sessionCapabilities": {"list": {}, "resume": {}, "close": {}, "additionalDirectories": {}},
                "_meta": {"isthmus": {"editedAnswers": True}},
            },
            "authMethods": [],
            "agentInfo": {"name": "isthmus", "version": "1.0", "title": "Isthmus"},
        }


@pytest.mark.parametrize("version", [1, 2])
async def test_after_a_logout_no_session_begins_until_the_client_logs_in(version: int, workspace: Path) -> None:
    options = replace(BOTH_VERSIONS, auth_methods=AUTH_METHODS)
    prefix = "auth/" if version == 2 else ""
    async with (
        engine_on(workspace, EchoAgent()) as engine,
        front(engine, options=options, version=version) as client,
    ):
        greeting = await client.call("initialize", protocolVersion=version, info={"name": "x", "version": "1"})
        assert version == 2 or greeting["agentCapabilities"]["auth"] == {"logout": {}}
        session = await client.new(workspace)
        assert await client.call(f"{prefix}logout") == {}
        about: dict[str, Any] = {"cwd": str(workspace), "mcpServers": []}
        for method, more in (("session/new", {}), ("session/resume", {"sessionId": session})):
            with pytest.raises(RefusedError, match="logged out: authenticate first, by environment") as caught:
                await client.call(method, **about, **more)
            assert caught.value.code == -32000
        assert await client.call(f"{prefix}login" if prefix else "authenticate", methodId="environment") == {}
        assert "sessionId" in await client.call("session/new", **about)


@pytest.mark.parametrize("version", [0, 2, 99])
async def test_another_protocol_version_is_answered_with_ours(version: int, workspace: Path) -> None:
    async with engine_on(workspace, EchoAgent()) as engine, front(engine) as client:
        assert (await client.call("initialize", protocolVersion=version))["protocolVersion"] == 1


async def test_a_new_session_answers_a_prompt_and_shows_its_title(workspace: Path) -> None:
    async with engine_on(workspace, EchoAgent()) as engine, front(engine) as client:
        session = await client.new(workspace)
        assert await client.prompt(session, "one two three") == "end_turn"
        assert client.text() == "one two three "
        assert client.of_kind("session_info_update") == [
            {"sessionUpdate": "session_info_update", "title": "one two three"}
        ]
        assert client.of_kind("user_message_chunk") == []
        await client.prompt(session, "four")
        assert len(client.of_kind("session_info_update")) == 1
        (first, second) = (await engine.tasks())[::-1]
        assert (first.context_id, second.context_id) == (session, session)
        assert first.workspace == str(workspace)


@pytest.mark.parametrize(
    ("cwd", "message"),
    [
        ("relative/path", "cwd: expected an absolute path, received 'relative/path'"),
        ("", "cwd: expected an absolute path"),
        ("/no/such/folder", "cwd: /no/such/folder is not a folder on this machine"),
        ("/a\0b", "cwd: expected an absolute path"),
    ],
)
async def test_a_folder_that_cannot_be_is_refused(cwd: str, message: str, workspace: Path) -> None:
    async with engine_on(workspace, EchoAgent()) as engine, front(engine) as client:
        for method, more in (("session/new", {}), ("session/load", {"sessionId": f"session-{'0' * 32}"})):
            with pytest.raises(RefusedError, match=message) as caught:
                await client.call(method, cwd=cwd, mcpServers=[], **more)
            assert caught.value.code == -32602


async def test_a_file_is_not_a_folder_for_a_session(workspace: Path) -> None:
    (workspace / "file").touch()
    async with engine_on(workspace, EchoAgent()) as engine, front(engine) as client:
        with pytest.raises(RefusedError, match="is not a folder on this machine"):
            await client.call("session/new", cwd=str(workspace / "file"), mcpServers=[])


async def test_a_session_does_not_move_to_another_folder(workspace: Path) -> None:
    other = workspace.parent / "other"
    other.mkdir()
    async with engine_on(workspace, EchoAgent(), workspace=workspace.parent) as engine, front(engine) as client:
        session = await client.new(workspace)
        await client.prompt(session, "x")
        for method in ("session/load", "session/resume"):
            with pytest.raises(RefusedError, match=f"the session works in {workspace}; expected this folder, not"):
                await client.call(method, sessionId=session, cwd=str(other), mcpServers=[])
        assert await client.prompt(session, "y") == "end_turn"


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("session/prompt", {"prompt": [{"type": "text", "text": "x"}]}),
        ("session/load", {"cwd": "/", "mcpServers": []}),
        ("session/resume", {"cwd": "/"}),
        ("session/set_mode", {"modeId": "plan"}),
        ("session/set_config_option", {"configId": "mode", "value": "plan"}),
        ("session/close", {}),
    ],
)
async def test_a_session_that_nobody_began_is_not_found(method: str, params: dict[str, Any], workspace: Path) -> None:
    async with engine_on(workspace, EchoAgent()) as engine, front(engine) as client:
        with pytest.raises(RefusedError, match="there is no session 'nothing'") as caught:
            await client.call(method, sessionId="nothing", **params)
        assert caught.value.code == -32002


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("session/fork", {"sessionId": "s", "cwd": "/"}, -32601),
        ("session/delete", {"sessionId": "s"}, -32601),
        ("", {}, -32601),
        ("session/new", {}, -32602),
        ("session/new", {"cwd": 5}, -32602),
        ("session/new", {"cwd": "/", "mcpServers": "none"}, -32602),
        ("session/new", {"cwd": "/", "mcpServers": [{"name": "x"}]}, -32602),
        ("session/prompt", {"sessionId": "s"}, -32602),
        ("session/prompt", {"sessionId": "s", "prompt": "text"}, -32602),
        ("session/prompt", {"sessionId": "s", "prompt": [{"type": "text"}]}, -32602),
        ("session/prompt", {"sessionId": [], "prompt": []}, -32602),
        ("session/list", {"cursor": "-1"}, -32602),
        ("session/list", {"cursor": "x"}, -32602),
        ("session/list", {"cursor": "\N{ARABIC-INDIC DIGIT ONE}"}, -32602),
        ("authenticate", {"methodId": "magic"}, -32602),
        ("initialize", {"protocolVersion": "1"}, -32602),
        ("initialize", {}, -32602),
    ],
)
async def test_a_request_that_does_not_fit_is_refused(
    method: str, params: dict[str, Any], code: int, workspace: Path
) -> None:
    async with engine_on(workspace, EchoAgent()) as engine, front(engine) as client:
        with pytest.raises(RefusedError) as caught:
            await client.call(method, **params)
        assert caught.value.code == code


async def test_sessions_are_listed_with_title_and_folder_page_by_page(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_list, "PAGE_SESSIONS", 2)
    async with engine_on(workspace, EchoAgent()) as engine, front(engine) as client:
        sessions: list[str] = []
        for text in ("first", "second", "third"):
            sessions.append(await client.new(workspace))
            await client.prompt(sessions[-1], text)
        first = await client.call("session/list")
        assert [(item["sessionId"], item["title"], item["cwd"]) for item in first["sessions"]] == [
            (sessions[2], "third", str(workspace)),
            (sessions[1], "second", str(workspace)),
        ]
        assert first["sessions"][0]["updatedAt"].endswith("Z")
        second = await client.call("session/list", cursor=first["nextCursor"])
        assert [item["title"] for item in second["sessions"]] == ["first"]
        assert "nextCursor" not in second
        assert await client.call("session/list", cursor="999999999999") == {"sessions": []}
        assert await client.call("session/list", cwd=str(workspace / "other")) == {"sessions": []}
        assert len((await client.call("session/list", cwd=str(workspace)))["sessions"]) == 2


async def test_a_session_can_be_loaded_before_its_first_prompt_by_another_process(workspace: Path) -> None:
    async with engine_on(workspace, EchoAgent()) as engine, front(engine) as first:
        session = await first.new(workspace)
        async with front(engine) as second:
            assert (await second.load(session, workspace))["modes"]["currentModeId"] == "default"
            assert second.of_kind("user_message_chunk", "agent_message_chunk") == []
            assert await second.prompt(session, "hello") == "end_turn"


async def test_a_session_that_was_loaded_shows_all_of_it_before_the_response(workspace: Path) -> None:
    async with engine_on(workspace, EchoAgent()) as engine:
        async with front(engine) as client:
            session = await client.new(workspace)
            await client.prompt(session, "one")
            await client.prompt(session, "two")
        async with front(engine) as client:
            _, result = await client.begin("session/load", sessionId=session, cwd=str(workspace), mcpServers=[])
            await asyncio.wait_for(result, 10)
            answer = next(i for i, message in enumerate(client.messages) if "modes" in message.get("result", {}))
            shown = [
                (message["params"]["update"]["sessionUpdate"], message["params"]["update"]["content"]["text"])
                for message in client.messages[:answer]
                if "content" in message.get("params", {}).get("update", {})
            ]
            assert shown == [
                ("user_message_chunk", "one"),
                ("agent_message_chunk", "one "),
                ("user_message_chunk", "two"),
                ("agent_message_chunk", "two "),
            ]


async def test_a_session_that_was_resumed_shows_nothing_of_its_past(workspace: Path) -> None:
    async with engine_on(workspace, EchoAgent()) as engine:
        async with front(engine) as client:
            session = await client.new(workspace)
            await client.prompt(session, "one")
        async with front(engine) as client:
            result = await client.call("session/resume", sessionId=session, cwd=str(workspace))
            assert result["modes"]["currentModeId"] == "default"
            assert await client.prompt(session, "two") == "end_turn"
            assert (client.text(), client.text("user_message_chunk")) == ("two ", "")


async def test_a_session_that_the_client_has_can_be_loaded_again(workspace: Path) -> None:
    async with engine_on(workspace, EchoAgent()) as engine, front(engine) as client:
        session = await client.new(workspace)
        await client.prompt(session, "one")
        await client.load(session, workspace)
        await client.load(session, workspace)
        assert client.text("user_message_chunk") == "oneone"
        assert client.text() == "one one one "
        assert await client.prompt(session, "two") == "end_turn"


async def test_slash_commands_are_told_and_run(workspace: Path) -> None:
    agent = MemoryAgent()
    async with front(agent) as client:
        session = await client.new(workspace)
        await eventually_async(lambda: client.of_kind("available_commands_update"))
        assert client.of_kind("available_commands_update") == [
            {
                "sessionUpdate": "available_commands_update",
                "availableCommands": [{"name": "say", "description": "Say something", "input": {"hint": "text"}}],
            }
        ]
        assert await client.prompt(session, "/say hello there") == "end_turn"
        assert client.text() == "You said: hello there"
        assert await client.prompt(session, "/unknown x") == "end_turn"
        assert client.text() == "You said: hello thereYou said: /unknown x"
    await agent.aclose()


async def test_a_mode_is_set_for_the_next_prompt_and_told_to_the_client(workspace: Path) -> None:
    agent = MemoryAgent()
    async with front(agent) as client:
        session = await client.new(workspace)
        await client.prompt(session, "a")
        assert await client.call("session/set_mode", sessionId=session, modeId="plan") == {}
        (update,) = client.of_kind("config_option_update")
        assert [option["currentValue"] for option in update["configOptions"]] == ["plan"]
        await client.prompt(session, "b")
        result = await client.call("session/set_config_option", sessionId=session, configId="mode", value="auto_edit")
        assert result["configOptions"][0]["currentValue"] == "auto_edit"
        assert client.of_kind("current_mode_update") == [
            {"sessionUpdate": "current_mode_update", "currentModeId": "auto_edit"}
        ]
        await client.call("session/set_config_option", sessionId=session, configId="model", value="m2")
        await client.prompt(session, "c")
        with pytest.raises(RefusedError, match="modeId: expected one of default, auto_edit, plan, yolo"):
            await client.call("session/set_mode", sessionId=session, modeId="wild")
    assert [dict(prompt.settings or {}) for prompt in agent.prompts] == [
        {"workspace_path": str(workspace)},
        {"workspace_path": str(workspace), "approval_mode": "plan"},
        {"workspace_path": str(workspace), "approval_mode": "auto_edit", "model": "m2"},
    ]
    await agent.aclose()


async def test_a_session_that_is_closed_stops_its_turn_and_is_not_known_any_more(workspace: Path) -> None:
    agent = WaitingAgent()
    async with engine_on(workspace, agent) as engine, front(engine) as client:
        session = await client.new(workspace)
        turn = await client.begin_prompt(session, "work")
        await agent.started.wait()
        assert await client.call("session/close", sessionId=session) == {}
        assert (await asyncio.wait_for(turn, 10))["stopReason"] == "cancelled"
        assert agent.stopped.is_set()
        with pytest.raises(RefusedError, match="there is no session"):
            await client.prompt(session, "more")
        await client.load(session, workspace)


async def test_a_second_prompt_while_one_runs_is_refused_and_the_first_goes_on(workspace: Path) -> None:
    agent = WaitingAgent()
    async with engine_on(workspace, agent) as engine, front(engine) as client:
        session = await client.new(workspace)
        turn = await client.begin_prompt(session, "work")
        await agent.started.wait()
        refused: list[tuple[str, dict[str, Any]]] = [
            ("session/prompt", {"prompt": [{"type": "text", "text": "x"}]}),
            ("session/load", {"cwd": str(workspace), "mcpServers": []}),
            ("session/resume", {"cwd": str(workspace)}),
        ]
        for method, params in refused:
            with pytest.raises(RefusedError, match="a prompt is running in this session") as caught:
                await client.call(method, sessionId=session, **params)
            assert caught.value.code == -32600
        agent.release.set()
        assert (await asyncio.wait_for(turn, 10))["stopReason"] == "end_turn"


async def test_sessions_run_at_the_same_time_and_their_updates_name_them(workspace: Path) -> None:
    async with engine_on(workspace, AskingAgent()) as engine, front(engine) as client:
        first, second = await client.new(workspace), await client.new(workspace)
        turns = [await client.begin_prompt(session, "x") for session in (first, second)]
        questions = [await client.question(index) for index in range(2)]
        assert {question["params"]["sessionId"] for question in questions} == {first, second}
        for question in questions:
            await client.respond(question, ALLOW)
        for turn in turns:
            assert (await asyncio.wait_for(turn, 10))["stopReason"] == "end_turn"


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ([], "expected at least one block with content"),
        ([{"type": "video", "url": "x"}], "expected text, image, audio, resource_link or resource, received 'video'"),
    ],
)
async def test_a_prompt_that_cannot_be_taken_is_refused_and_the_next_one_runs(
    blocks: list[dict[str, Any]], message: str, workspace: Path
) -> None:
    async with engine_on(workspace, EchoAgent()) as engine, front(engine) as client:
        session = await client.new(workspace)
        with pytest.raises(RefusedError, match=message):
            await client.call("session/prompt", sessionId=session, prompt=blocks)
        assert await client.prompt(session, "fine") == "end_turn"
