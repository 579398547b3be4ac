"""The dialect ``coderAgent``: Isthmus and the recorded scenes beside the real gemini-cli-a2a-server.

The third party is the official JavaScript client, used as that server's clients use it.
"""

import asyncio
import json
import os
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from support.coder_agent_client import Line, parts_of
from support.coder_agent_scenes import Stage, our_server, real_server, recorded, shared
from support.coder_agent_shape import brief, events
from support.extended import first_of
from support.programs import NODE_PEERS, node_package, require
from support.scripted_wire import Call, Reply, Say

pytestmark = [pytest.mark.anyio, pytest.mark.shares_connections]


@pytest.fixture(scope="module")
async def real(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Stage]:
    async with shared(real_server(tmp_path_factory.mktemp("real").resolve())) as stage:
        yield stage


@pytest.fixture(scope="module")
async def ours(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Stage]:
    async with shared(our_server(tmp_path_factory.mktemp("ours").resolve())) as stage:
        yield stage


@pytest.mark.parametrize("name", first_of(["edit_once", "text", "shell_once", "canceled", "refusals", "edit_cancel"]))
async def test_the_transcripts_are_what_the_real_server_says(real: Stage, name: str) -> None:
    lines, expected = await real.play(name), recorded(name)
    assert events(lines) == events(expected)
    assert [line.get("error") for line in lines] == [line.get("error") for line in expected]


async def drive(url: str, workspace: Path, outcome: str, token: str = "") -> dict[str, Any]:
    """Return the events that the official client has seen."""
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
    """Return events as lines of a transcript, with a placeholder for the call."""
    return json.loads(json.dumps([{"server": event} for event in seen]).replace(call_id, "CALL-1"))


def call_of(seen: list[dict[str, Any]]) -> str:
    """Return the id of the call that waits."""
    parts = [part for event in seen for part in parts_of(event)]
    return next(part["data"]["request"]["callId"] for part in parts if "request" in part.get("data", {}))


@pytest.mark.parametrize("outcome", first_of(["proceed_once", "proceed_always"]))
async def test_the_javascript_client_sees_the_same_of_both_servers(outcome: str, real: Stage, ours: Stage) -> None:
    seen: list[dict[str, Any]] = []
    for stage in (real, ours):
        stage.clear()
        path = stage.workspace / "b.txt"
        call = Call("write_file", {"file_path": str(path), "content": "new\n"})
        stage.model.add(Reply.of(Say("I write."), call), Reply.of(Say("Done.")))
        seen.append(await drive(stage.url, stage.workspace, outcome, stage.token))
        assert path.read_text(encoding="utf-8") == "new\n"
    by_real, by_ours = seen
    for part in ("asked", "answered"):
        mine = events(lines_of(by_ours[part], call_of(by_ours["asked"])))
        theirs = events(lines_of(by_real[part], call_of(by_real["asked"])))
        assert brief(mine) == brief(theirs)
        assert mine == theirs
    assert by_ours["afterwards"]["status"]["state"] == by_real["afterwards"]["status"]["state"] == "input-required"
    assert by_ours["afterwards"].keys() == by_real["afterwards"].keys()
    kinds = [event["kind"] for event in by_ours["replayed"]]
    assert kinds == [event["kind"] for event in by_real["replayed"]] == ["task"]
