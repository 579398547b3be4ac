"""The real Gemini CLI as an ACP agent behind our A2A server, with a scripted model; in `make agents` Qwen Code, too."""

import json
import os
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from isthmus.acp.host.limits import HostLimits
from isthmus.client import CommandScope
from isthmus.development_tool import FileDiff, ToolCallStatus
from isthmus.events import TaskState
from support.acp_hosting import AcpHosting, acp_hosting
from support.coding_cli_agents import CHOSEN, CodingCliAgent, coding_cli_agent
from support.scripted_wire import Call, Reply, Say

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.timeout(300)]

BEFORE = "one\ntwo\nthree\n"
PROPOSED = "one\nTWO\nthree\n"
MINE = "one\nMINE\nthree\n"


@pytest.fixture(params=CHOSEN)
def peer(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Generator[CodingCliAgent]:
    with coding_cli_agent(request.param) as agent:
        for name, value in agent.environment.items():
            monkeypatch.setenv(name, value)
        yield agent


@asynccontextmanager
async def hosted(peer: CodingCliAgent, folder: Path) -> AsyncGenerator[AcpHosting]:
    variables = tuple(peer.environment)
    limits = HostLimits(cancel_seconds=20)
    hosting = acp_hosting(folder, agent=peer.agent, limits=limits, command=peer.command, variables=variables)
    async with hosting as served:
        yield served


async def test_an_edit_is_changed_the_session_survives_and_a_turn_is_cancelled(
    peer: CodingCliAgent, tmp_path: Path
) -> None:
    async with hosted(peer, tmp_path) as hosting:
        path = hosting.workspace / "a.txt"
        path.write_text(BEFORE, encoding="utf-8")
        peer.writes(path, PROPOSED)
        peer.wire.add(Reply.of(Say("Done.")))
        asked = await hosting.prompt("Make the second line loud.")
        assert asked.state is TaskState.INPUT_REQUIRED, asked.view
        request = asked.question.confirmation_request
        assert request is not None
        assert asked.question.tool_name == "write_file"
        assert isinstance(request.details, FileDiff)
        assert (request.details.old_content, request.details.new_content) == (BEFORE, PROPOSED)
        assert [option.id for option in request.options] == ["proceed_always", "proceed_once", "cancel"]
        answered = await hosting.answer(asked, "proceed_once", MINE)
        assert answered.state is TaskState.COMPLETED, answered.view
        assert answered.text.endswith("Done.")
        assert path.read_text(encoding="utf-8") == MINE
        call = answered.call(asked.question.tool_call_id)
        assert call.status is ToolCallStatus.SUCCEEDED
        assert call.output is not None
        assert call.output.diff is not None
        assert call.output.diff.new_content == MINE
        commands = await hosting.agent.commands(CommandScope(context_id=asked.context_id))
        assert "init" in [command.name for command in commands]
        await _cancel_a_turn_that_asks(peer, hosting, asked.context_id)
    _begin_earlier()
    async with hosted(peer, tmp_path) as hosting:
        peer.wire.add(Reply.of(Say("I know.")))
        again = await hosting.prompt("Go on.", asked.context_id)
        assert again.state is TaskState.COMPLETED, again.view
        assert again.text == "I know."
        sent = json.dumps(peer.wire.model_requests[-1].json)
        assert "The user changed your proposal for" in sent
        assert "-TWO\\\\n+MINE" in sent or "-TWO\\n+MINE" in sent
        assert "Make the second line loud." in sent


def _begin_earlier() -> None:
    """Have the sessions of Gemini CLI begun in an earlier minute: it overwrites one that it loads in the same one."""
    for file in (Path(os.environ["HOME"]) / ".gemini").rglob("session-*.jsonl"):
        file.rename(file.with_name(f"session-2026-01-01T00-00-{file.name[-14:]}"))


async def _cancel_a_turn_that_asks(peer: CodingCliAgent, hosting: AcpHosting, context_id: str) -> None:
    command = {"command": "touch made.txt", "description": "Make a file", "is_background": False}
    peer.wire.add(Reply.of(Call("run_shell_command", command)))
    asked = await hosting.prompt("Make a file.", context_id)
    assert asked.state is TaskState.INPUT_REQUIRED, asked.view
    assert (await hosting.agent.cancel(asked.task_id)).state is TaskState.CANCELED
    peer.wire.add(Reply.of(Say("Here I am.")))
    again = await hosting.prompt("Still there?", context_id)
    assert again.state is TaskState.COMPLETED, again.view
    assert again.text.endswith("Here I am.")
    assert not (hosting.workspace / "made.txt").exists()
