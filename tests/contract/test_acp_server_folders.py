"""Further folders of a session whose agent is behind a real A2A server: the server decides about them."""

from pathlib import Path
from typing import Any

import pytest

from isthmus.agent.session.turn import AgentTurn
from isthmus.events import StateChange, TaskState
from isthmus.programs.acp.server_place import ServerPlace
from support.a2a_serving import TOKEN, serving
from support.acp_front import RefusedError, front
from support.engines import engine_on
from support.remote_agents import remote_agent

pytestmark = pytest.mark.anyio


class FolderAgent:
    """An agent that says in which further folders it works."""

    def __init__(self) -> None:
        self.folders: list[tuple[str, ...]] = []

    async def advance(self, turn: AgentTurn) -> StateChange:
        assert turn.session.settings is not None
        self.folders.append(turn.session.settings.additional_directories)
        return StateChange(TaskState.COMPLETED)


async def test_a_server_takes_folders_of_its_own_and_refuses_others_at_once(tmp_path: Path) -> None:
    work, beside, agent = tmp_path / "served" / "work", tmp_path / "served" / "beside", FolderAgent()
    for folder in (work, beside):
        folder.mkdir(parents=True)
    async with (
        engine_on(tmp_path, agent, workspace=tmp_path / "served") as engine,
        serving(engine) as server,
        remote_agent(server.url, TOKEN) as remote,
        front(remote, place=ServerPlace(remote, remote.url)) as client,
    ):
        about: dict[str, Any] = {"cwd": str(work), "mcpServers": []}
        session = (await client.call("session/new", **about, additionalDirectories=[str(beside)]))["sessionId"]
        await client.prompt(session, "hello")
        with pytest.raises(RefusedError, match=f"additional_directories {tmp_path} is not allowed"):
            await client.call("session/new", **about, additionalDirectories=[str(tmp_path)])
        await client.call("session/load", sessionId=session, **about)
        await client.prompt(session, "again")
        assert client.questions == []
    assert agent.folders == [(str(beside),), ()]
