"""An answer for all future sessions, through the whole server: stored, found by the next process, not inherited."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from isthmus.a2a.client.remote_agent import RemoteAgent
from isthmus.client import PromptMessage
from isthmus.development_tool import ToolCall, ToolCallConfirmation
from isthmus.events import StateChange, TaskState, ToolCallUpdate
from isthmus.mcp_host.config.folder_trust import TrustRule, state_trust
from support.isolation import IsolatedFolders
from support.loaded_program import LoadedProgram
from support.mcp_hosting import scripted, write_servers
from support.serve_program import serve_program
from support.turns import events_of

pytestmark = pytest.mark.anyio

ONE_CALL = """
name: mcp
scenarios:
  - prompt: '.'
    replies:
      - call: {name: ok, arguments: {x: one}}
      - text: done
"""
FOR_GOOD = "proceed_always_and_save"


def settings(home: Path, servers: Mapping[str, Any], *, keeps: bool) -> None:
    write_servers(home, servers)
    path = home / ".gemini" / "settings.json"
    values = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps({**values, "security": {"enablePermanentToolApproval": keeps}}), encoding="utf-8")


async def asked(agent: RemoteAgent, workspace: Path, option: str | None = None) -> tuple[list[str], TaskState]:
    """Return the options of the question in a new session, and the task's state after this answer."""
    turn = await agent.prompt(PromptMessage("go", settings={"workspace_path": str(workspace)}))
    events = await events_of(turn)
    calls: list[ToolCall] = [event.tool_call for event in events if isinstance(event, ToolCallUpdate)]
    questions = [call for call in calls if call.confirmation_request is not None]
    if questions and option is not None:
        answer = [ToolCallConfirmation(questions[0].tool_call_id, option)]
        events = await events_of(await agent.answer(turn.snapshot.task_id, answer, answered_by="test"))
    last = events[-1]
    assert isinstance(last, StateChange)
    request = questions[0].confirmation_request if questions else None
    return ([] if request is None else [option.id for option in request.options]), last.state


async def test_what_is_allowed_for_good_lasts_for_the_next_process_and_that_server(
    isolated_folders: IsolatedFolders, tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    servers = {"helper": scripted("plain")}
    settings(isolated_folders.home, servers, keeps=True)
    async with (
        serve_program(tmp_path, workspace, script=ONE_CALL, loaded=loaded_isthmus) as server,
        server.client() as agent,
    ):
        options, state = await asked(agent, workspace, FOR_GOOD)
        assert options == ["proceed_once", "proceed_always_tool", "proceed_always_server", FOR_GOOD, "cancel"]
        assert state is TaskState.COMPLETED
        assert await asked(agent, workspace) == ([], TaskState.COMPLETED)
    (kept,) = json.loads((tmp_path / "data" / "mcp-approvals.json").read_text("utf-8"))
    assert (kept["server"], kept["origin"], kept["tool"]) == ("helper", "user", "ok")
    # A project with a server of the same name, in a trusted folder.
    theirs = workspace / "theirs"
    theirs.mkdir()
    write_servers(theirs, servers)
    state_trust(isolated_folders.home, theirs, TrustRule.FOLDER)
    async with (
        serve_program(tmp_path, workspace, script=ONE_CALL, loaded=loaded_isthmus) as server,
        server.client() as agent,
    ):
        assert await asked(agent, workspace) == ([], TaskState.COMPLETED)
        assert (await asked(agent, theirs))[1] is TaskState.INPUT_REQUIRED
    settings(isolated_folders.home, servers, keeps=False)
    async with (
        serve_program(tmp_path, workspace, script=ONE_CALL, loaded=loaded_isthmus) as server,
        server.client() as agent,
    ):
        options, state = await asked(agent, workspace)
        assert (FOR_GOOD in options, state) == (False, TaskState.INPUT_REQUIRED)
