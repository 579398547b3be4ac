"""MCP servers that connect after the prompt is there: one line each, once their outcome is known."""

import os
import shlex
from pathlib import Path

import pytest

from isthmus.programs.terminal.slow_servers import outcome_of, slow_servers_told
from isthmus.terminal.interactive.announcements import Notice
from isthmus.tools.port.servers import ServerState, ServerStatus
from isthmus.tools.port.tool_set import ToolScope
from support.mcp_hosting import hosting, scripted, status_when
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


async def test_a_server_that_connects_late_is_named_then_and_a_quick_one_is_not(
    tmp_path: Path, workspace: Path
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    server = scripted("plain")
    command = shlex.join([server["command"], *server["args"]])
    late = {"command": "sh", "args": ["-c", f"read line < {shlex.quote(str(gate))} && exec {command}"]}
    said = list[Notice]()
    scope = ToolScope(workspace)
    async with hosting(tmp_path, {"quick": scripted("plain"), "late": late}) as host:
        await status_when(host, scope, "quick", ServerState.CONNECTED)
        async with slow_servers_told([host], scope, said.append, seconds=0):
            gate.write_text("go\n", "utf-8")
            await eventually_async(lambda: said)
            assert [notice.text for notice in said] == ["The MCP server late is connected now: 1 tool."]


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (ServerStatus("a\x1b", ServerState.NEEDS_LOGIN), "needs a login: /mcp auth a\u241b"),
        (
            ServerStatus("a", ServerState.DISCONNECTED, problem="it ended; its last output: x\ny"),
            "is not connected: it ended; isthmus mcp doctor a says more",
        ),
        (ServerStatus("a", ServerState.DISABLED), "is not connected: disabled"),
    ],
)
def test_what_keeps_a_server_away_is_said_with_what_to_do(status: ServerStatus, words: str) -> None:
    assert words in outcome_of(status)
    assert "\n" not in outcome_of(status)
