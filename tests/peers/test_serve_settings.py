"""The command ``isthmus serve`` and a client's settings of a session: AgentSettings that do not fit, and events."""

import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from isthmus.a2a.client.remote_agent import RemoteAgent
from isthmus.a2a.protocol.extension import URI
from isthmus.client import InvalidRequest, PromptMessage
from isthmus.development_tool import ToolCallConfirmation
from isthmus.events import RetryNotice, StateChange, TaskState, ToolCallUpdate
from isthmus.mcp_host.config.folder_trust import TrustRule, state_trust
from support.a2a_serving import EXTENSION, prompt, rpc
from support.loaded_program import LoadedProgram
from support.serve_program import ServeProgram, serve_program

pytestmark = pytest.mark.anyio

HOOKS = {"AnEventOfLater": [{"hooks": [{"type": "command", "command": "exit 2"}]}]}


async def test_agent_settings_that_cannot_be_followed_are_refused_by_the_fields_name(
    tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    wrong: tuple[tuple[Mapping[str, Any], str], ...] = (
        ({"model": "nonsense"}, "model: no model is called 'nonsense'; expected gemini:NAME"),
        ({"model": "claude-x"}, "model: "),
        ({"approval_mode": "never"}, "approval_mode is 'never'; expected one of plan"),
        ({"mcp_servers": ["nowhere"]}, "mcp_servers: no MCP server is named 'nowhere' here"),
        ({"context_files": ["../x.md"]}, "context_files: expected the name of a file"),
        ({"allowed_tools": ["rm -rf"]}, "allowed_tools: expected the name of a tool"),
    )
    async with serve_program(tmp_path, workspace, loaded=loaded_isthmus) as server:
        agent = await RemoteAgent.connect(server.url, server.token)
        for settings, text in wrong:
            with pytest.raises(InvalidRequest) as refused:
                await agent.prompt(PromptMessage("hello", settings={"workspace_path": str(workspace), **settings}))
            assert text in str(refused.value)
        assert await agent.tasks() == []
        await agent.aclose()


async def test_what_the_session_folders_settings_forbid_holds_under_yolo_too(
    tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    free, guarded, forbidding = tmp_path / "free", tmp_path / "guarded", tmp_path / "forbidding"
    for folder, said in (
        (free, {}),
        (guarded, {"hooks": HOOKS}),
        (forbidding, {"security": {"disableYoloMode": True}, "tools": {"exclude": ["glob"]}}),
    ):
        (folder / ".gemini").mkdir(parents=True)
        (folder / ".gemini" / "settings.json").write_text(json.dumps(said), encoding="utf-8")
    state_trust(Path.home(), guarded, TrustRule.FOLDER)
    roots = [part for folder in (free, guarded, forbidding) for part in ("--allow-workspace", str(folder))]
    async with (
        serve_program(tmp_path, workspace, *roots, "--approval-mode", "yolo", loaded=loaded_isthmus) as server,
        server.client() as agent,
    ):
        for folder, reason in ((guarded, "hooks.AnEventOfLater in "), (forbidding, "security.disableYoloMode in ")):
            settings = {"workspace_path": str(folder)}
            for wider in ({"approval_mode": "yolo"}, {"allowed_tools": ["write_file"]}):
                with pytest.raises(InvalidRequest, match=f"refused in this folder: .*{reason}"):
                    await agent.prompt(PromptMessage("greet", settings={**settings, **wider}))
            assert await ended_as(agent, settings) is TaskState.INPUT_REQUIRED, "the server's own mode"
            assert not (folder / "greeting.txt").exists()
        assert await ended_as(agent, {"workspace_path": str(free)}) is TaskState.COMPLETED
        assert (free / "greeting.txt").exists()


DELETE_SCRIPT = """
name: practice
scenarios:
  - prompt: '.'
    replies:
      - call: {name: write_file, arguments: {file_path: '{{workspace}}/greeting.txt', content: "hello\\n"}}
      - call: {name: run_shell_command, arguments: {command: 'rm -r build'}}
      - text: It cannot be done.
"""


async def test_clients_are_not_told_where_the_settings_of_the_servers_owner_lie(
    tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    file = Path.home() / ".gemini" / "settings.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    forbidden = {"exclude": ["write_file", "run_shell_command(rm)"]}
    file.write_text(json.dumps({"hooks": HOOKS, "tools": forbidden}), encoding="utf-8")
    told: list[str] = []
    async with (
        serve_program(tmp_path, workspace, script=DELETE_SCRIPT, loaded=loaded_isthmus) as server,
        server.client() as agent,
    ):
        settings = {"workspace_path": str(workspace)}
        with pytest.raises(
            InvalidRequest, match=r"hooks\.AnEventOfLater in the settings of the server's owner"
        ) as refused:
            await agent.prompt(PromptMessage("go", settings={**settings, "approval_mode": "yolo"}))
        told.append(str(refused.value))
        for text in ('"greeting"', "{"):
            turn = await agent.prompt(PromptMessage(f"go {text}", settings=settings))
            told += [repr(delivery.event) async for delivery in turn.deliveries]
            file.write_text("{", encoding="utf-8")
    log = (tmp_path / "serve.log").read_text(encoding="utf-8")
    whole = "\n".join(told)
    assert "'write_file' in tools.exclude of the settings of the server's owner excludes it" in whole
    assert "is forbidden by 'run_shell_command(rm)' in tools.exclude of the settings of the server's owner" in whole
    assert "the settings that count for this folder cannot be used; the server's log says why" in whole
    assert str(Path.home()) not in whole
    assert f"tools.exclude of {file}" in log
    assert f"hooks.AnEventOfLater in {file}" in log
    assert f"{file}, line 1" in log


async def test_a_question_survives_settings_that_break_before_it_is_answered(
    tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    file = workspace / ".gemini" / "settings.json"
    file.parent.mkdir()
    file.write_text(json.dumps({"tools": {"exclude": ["glob"]}}), encoding="utf-8")
    settings = {"workspace_path": str(workspace)}
    async with serve_program(tmp_path, workspace, loaded=loaded_isthmus) as server, server.client() as agent:
        turn = await agent.prompt(PromptMessage("greet", settings=settings))
        events = [delivery.event async for delivery in turn.deliveries]
        asked = [event.tool_call for event in events if isinstance(event, ToolCallUpdate)][-1]
        assert asked.confirmation_request is not None
        file.write_text('{"tools": {\n"exclude": [', encoding="utf-8")
        failed = await agent.prompt(PromptMessage("another", settings=settings))
        ends = [item.event async for item in failed.deliveries if isinstance(item.event, StateChange)]
        assert ends[-1].state is TaskState.FAILED
        assert f"{file}, line 2" in str(ends[-1].error)
        confirmation = ToolCallConfirmation(asked.tool_call_id, "proceed_once")
        answered = await agent.answer(turn.task_id, [confirmation], answered_by="user")
        states = [item.event.state async for item in answered.deliveries if isinstance(item.event, StateChange)]
        assert states[-1] is TaskState.COMPLETED
    assert (workspace / "greeting.txt").exists()


async def test_an_answer_after_a_restart_waits_for_settings_that_are_broken(
    tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    file = workspace / ".gemini" / "settings.json"
    file.parent.mkdir()
    good = json.dumps({"tools": {"exclude": ["glob"]}})
    file.write_text(good, encoding="utf-8")
    settings = {"workspace_path": str(workspace)}
    async with serve_program(tmp_path, workspace, loaded=loaded_isthmus) as server, server.client() as agent:
        turn = await agent.prompt(PromptMessage("greet", settings=settings))
        events = [delivery.event async for delivery in turn.deliveries]
        asked = [event.tool_call for event in events if isinstance(event, ToolCallUpdate)][-1]
    async with serve_program(tmp_path, workspace, loaded=loaded_isthmus) as server, server.client() as agent:
        file.write_text('{"tools": {\n"exclude": [', encoding="utf-8")
        confirmation = ToolCallConfirmation(asked.tool_call_id, "proceed_once")
        answered = await agent.answer(turn.task_id, [confirmation], answered_by="user")
        notices: list[RetryNotice] = []
        states: list[TaskState] = []
        async for delivery in answered.deliveries:
            match delivery.event:
                case RetryNotice() as notice:
                    notices.append(notice)
                    file.write_text(good, encoding="utf-8")
                case StateChange(state):
                    states.append(state)
                case _:
                    pass
        assert f"{file}, line 2" in notices[0].reason
        assert states[-1] is TaskState.COMPLETED
    assert (workspace / "greeting.txt").exists()


async def ended_as(agent: RemoteAgent, settings: Mapping[str, Any]) -> TaskState:
    """Return the last state of the task of a prompt that has a file written."""
    turn = await agent.prompt(PromptMessage("greet", settings=dict(settings)))
    states = [delivery.event.state async for delivery in turn.deliveries if isinstance(delivery.event, StateChange)]
    return states[-1]


async def tiers(server: ServeProgram, token: str, workspace: Path) -> AsyncIterator[str | None]:
    """Yield the ``user_tier`` of each event of a prompt."""
    headers = {**EXTENSION, "Authorization": f"Bearer {token}", "Accept": "text/event-stream"}
    async with httpx.AsyncClient(timeout=20) as http:
        response = await http.post(server.url, json=rpc("message/stream", prompt("hello", workspace)), headers=headers)
    for line in response.text.splitlines():
        if not line.startswith("data:"):
            continue
        item: dict[str, Any] = json.loads(line.removeprefix("data:"))["result"]
        if item.get("kind") == "status-update":
            yield item["metadata"][URI].get("user_tier")


@pytest.mark.requirement("A2A-094")
async def test_events_tell_the_tier_of_the_server_or_of_the_users_own_token(
    tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    data = ("--data-dir", str(tmp_path / "data"))
    made = loaded_isthmus.run("serve", "token", "add", "alice", "--tier", "gold", *data, folder=tmp_path)
    assert made.returncode == 0, made.stderr
    async with serve_program(tmp_path, workspace, "--user-tier", "standard", loaded=loaded_isthmus) as server:
        assert {tier async for tier in tiers(server, server.token, workspace)} == {"standard"}
        assert {tier async for tier in tiers(server, made.stdout.strip(), workspace)} == {"gold"}
    listed = loaded_isthmus.run("serve", "token", "list", *data, folder=tmp_path)
    assert "tier gold" in listed.stdout
    refused = loaded_isthmus.run("serve", "token", "add", "bob", "--tier", "", *data, folder=tmp_path)
    assert (refused.returncode, "expected a name of 1 to 64 printable characters" in refused.stderr) == (42, True)
