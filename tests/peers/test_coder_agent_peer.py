"""The dialect ``coderAgent`` beside the real gemini-cli-a2a-server: what was recorded is what it says, and what we say.

The official JavaScript client, used as that server's clients use it, is the third party.
"""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from support.coder_agent_client import Line, parts_of
from support.coder_agent_scenes import real_server, recorded
from support.coder_agent_shape import brief, events
from support.gemini_a2a_server import gemini_a2a_server
from support.gemini_wire import GeminiWire
from support.programs import NODE_PEERS, node_package, require
from support.scripted_wire import Call, Reply, Say
from support.serve_program import serve_program

pytestmark = pytest.mark.anyio


async def test_the_transcripts_are_what_the_real_server_says(tmp_path: Path) -> None:
    async with real_server(tmp_path) as play:
        for name in ("text", "edit_once", "shell_once", "canceled", "refusals", "edit_cancel"):
            lines, expected = await play(name), recorded(name)
            assert events(lines) == events(expected), name
            assert [line.get("error") for line in lines] == [line.get("error") for line in expected]
            (tmp_path / "workspace" / "b.txt").unlink(missing_ok=True)


async def drive(url: str, workspace: Path, outcome: str, token: str = "") -> dict[str, Any]:
    """What the official client has seen."""
    node_package("@a2a-js/sdk")
    environment = {**os.environ, "ISTHMUS_A2A_TOKEN": token}
    command = [str(require("node")), str(NODE_PEERS / "drive_coder_agent.mjs"), url, str(workspace), outcome]
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env=environment
    )
    out, problems = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0, problems.decode()
    return json.loads(out)


def lines_of(seen: list[dict[str, Any]], call_id: str) -> list[Line]:
    """Events as lines of a transcript, the call by a name."""
    return json.loads(json.dumps([{"server": event} for event in seen]).replace(call_id, "CALL-1"))


def call_of(seen: list[dict[str, Any]]) -> str:
    """The id of the call that waits."""
    parts = [part for event in seen for part in parts_of(event)]
    return next(part["data"]["request"]["callId"] for part in parts if "request" in part.get("data", {}))


@pytest.mark.parametrize("outcome", ["proceed_once", "proceed_always"])
async def test_the_javascript_client_sees_the_same_of_both_servers(outcome: str, tmp_path: Path) -> None:
    seen: list[dict[str, Any]] = []
    for name in ("real", "ours"):
        folder = tmp_path / name
        workspace = folder / "workspace"
        workspace.mkdir(parents=True)
        call = Call("write_file", {"file_path": str(workspace / "b.txt"), "content": "new\n"})
        with GeminiWire([Reply.of(Say("I write."), call), Reply.of(Say("Done."))]) as wire:
            if name == "real":
                async with gemini_a2a_server(folder, workspace, wire) as server:
                    seen.append(await drive(server.url, workspace, outcome))
            else:
                environment = {"GEMINI_API_KEY": "unused", "GOOGLE_GEMINI_BASE_URL": wire.base_url}
                program = serve_program(folder, workspace, "-m", "gemini-2.5-pro", environment=environment)
                async with program as ours:
                    seen.append(await drive(ours.url, workspace, outcome, ours.token))
        assert (workspace / "b.txt").read_text(encoding="utf-8") == "new\n"
    real, ours = seen
    for part in ("asked", "answered"):
        mine = events(lines_of(ours[part], call_of(ours["asked"])))
        theirs = events(lines_of(real[part], call_of(real["asked"])))
        assert brief(mine) == brief(theirs)
        assert mine == theirs
    assert ours["afterwards"]["status"]["state"] == real["afterwards"]["status"]["state"] == "input-required"
    assert ours["afterwards"].keys() == real["afterwards"].keys()
    assert [event["kind"] for event in ours["replayed"]] == [event["kind"] for event in real["replayed"]] == ["task"]
