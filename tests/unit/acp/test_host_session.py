"""Updates of a hosted ACP agent that comes with several sessions: each is for the turn of its own."""

from pathlib import Path

import pytest

from isthmus.acp.host.agent_link import AgentLaunch
from isthmus.acp.host.agent_session import AgentSession
from isthmus.acp.host.known_agent import UNKNOWN
from isthmus.acp.host.limits import HostLimits
from isthmus.acp.host.prompt_turn import PromptTurn
from isthmus.acp.host.update_reader import UpdateReader
from isthmus.acp.served.files import WorkspaceFiles

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(("session_id", "is_taken"), [("s", True), ("of an earlier session", False)])
async def test_an_update_is_for_the_turn_of_its_own_session(tmp_path: Path, session_id: str, is_taken: bool) -> None:
    limits = HostLimits()
    session = AgentSession(AgentLaunch(("agent",), {}, UNKNOWN), tmp_path, WorkspaceFiles(tmp_path), limits)
    session.session_id, session.turn = "s", PromptTurn("t", UpdateReader(UNKNOWN, limits))
    session._is_muted = False  # pyright: ignore[reportPrivateUsage] - it has begun
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "hello"}}
    session.notification("session/update", {"sessionId": session_id, "update": update})
    assert (await session.turn.next(0) is not None) == is_taken
