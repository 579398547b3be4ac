"""The real Claude Agent and Codex behind our A2A server, with scripted models; `make agents` installs and runs them."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from isthmus.client import CommandScope, PromptMessage
from isthmus.development_tool import ExecuteDetails, FileDiff, ToolCallStatus
from isthmus.events import TaskState
from support.acp_hosting import Seen, seen_of
from support.installed_agents import INSTALLED, InstalledAgent, installed_agent
from support.scripted_wire import Reply, Say

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not INSTALLED, reason="`make agents` installs and names the agents"),
]

BEFORE = "one\ntwo\nthree\n"
PROPOSED = "one\nTWO\nthree\n"
MINE = "one\nMINE\nthree\n"


@pytest.fixture(params=INSTALLED)
def peer(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[InstalledAgent]:
    with installed_agent(request.param) as agent:
        for name, value in agent.environment.items():
            monkeypatch.setenv(name, value)
        yield agent
    assert agent.script.unexpected == 0


async def test_an_edit_is_changed_by_another_client_and_the_session_survives(
    peer: InstalledAgent, tmp_path: Path
) -> None:
    async with peer.hosted(tmp_path) as hosting:
        path = hosting.workspace / "a.txt"
        path.write_text(BEFORE, encoding="utf-8")
        peer.edits(path)
        asked = await hosting.prompt("Make the second line loud.")
        assert asked.state is TaskState.INPUT_REQUIRED, asked.view
        request = asked.question.confirmation_request
        assert request is not None
        assert isinstance(request.details, FileDiff)
        assert (request.details.old_content, request.details.new_content) == (BEFORE, PROPOSED)
        peer.says("Do", "ne.")
        answered = await hosting.answer(asked, option(asked, "allow_once"), MINE)
        assert answered.state is not TaskState.INPUT_REQUIRED, answered.view
        assert path.read_text(encoding="utf-8") == MINE
        call = answered.call(asked.question.tool_call_id)
        assert call.status is ToolCallStatus.SUCCEEDED
        assert call.output is not None
        assert call.output.diff is not None
        assert call.output.diff.new_content == MINE
    async with peer.hosted(tmp_path) as hosting:
        peer.script.replies.clear()
        peer.says("I ", "know.")
        again = await hosting.prompt("Go on.", asked.context_id)
        assert (again.state, again.text) == (TaskState.COMPLETED, "I know."), again.view
        assert "The user changed your proposal for" in peer.told
        assert "-TWO" in peer.told
        assert "+MINE" in peer.told
        assert "Make the second line loud." in peer.told


async def test_edits_and_commands_are_refused_and_allowed(peer: InstalledAgent, tmp_path: Path) -> None:
    async with peer.hosted(tmp_path) as hosting:
        path, made = hosting.workspace / "a.txt", hosting.workspace / "made"
        path.write_text(BEFORE, encoding="utf-8")
        peer.edits(path)
        asked = await hosting.prompt("Make the second line loud.")
        peer.says("Not done.")
        refused = await hosting.answer(asked, option(asked, "reject_once"))
        assert refused.state is not TaskState.INPUT_REQUIRED, refused.view
        assert refused.call(asked.question.tool_call_id).status is ToolCallStatus.CANCELLED
        assert path.read_text(encoding="utf-8") == BEFORE
        peer.script.replies.clear()

        peer.edits(path)
        asked = await hosting.prompt("Please.", asked.context_id)
        peer.says("Done.")
        done = await hosting.answer(asked, option(asked, "allow_once"))
        assert done.state is TaskState.COMPLETED, done.view
        assert path.read_text(encoding="utf-8") == PROPOSED

        peer.runs("echo hello > made && echo finished")
        asked = await hosting.prompt("Run it.", asked.context_id)
        assert asked.state is TaskState.INPUT_REQUIRED, asked.view
        request = asked.question.confirmation_request
        assert request is not None
        assert isinstance(request.details, ExecuteDetails)
        assert request.details.command == "echo hello > made && echo finished"
        peer.says("Ran.")
        done = await hosting.answer(asked, option(asked, "allow_once"))
        assert done.state is TaskState.COMPLETED, done.view
        assert made.read_text(encoding="utf-8") == "hello\n"
        output = done.call(asked.question.tool_call_id).output
        assert output is not None
        assert "finished" in (output.text or "")


async def test_an_edit_in_a_further_folder_is_asked_about_and_made_and_its_use_stated(
    peer: InstalledAgent, tmp_path: Path
) -> None:
    async with peer.hosted(tmp_path) as hosting:
        work, path = hosting.workspace / "work", hosting.workspace / "beside" / "a.txt"
        for folder in (work, path.parent):
            folder.mkdir()
        path.write_text(BEFORE, encoding="utf-8")
        peer.edits(path)
        settings = {"workspace_path": str(work), "additional_directories": [str(path.parent)]}
        message = PromptMessage("Make the second line loud.", settings=settings)
        asked = await seen_of(hosting.agent, await hosting.agent.prompt(message))
        assert asked.state is TaskState.INPUT_REQUIRED, asked.view
        peer.says("Done.")
        done = await hosting.answer(asked, option(asked, "allow_once"))
        assert done.state is TaskState.COMPLETED, done.view
        assert path.read_text(encoding="utf-8") == PROPOSED
        status = await hosting.agent.session_status(CommandScope(context_id=asked.context_id))
        assert status.context_tokens is not None
        assert status.context_window is not None
        assert 0 < status.context_tokens < status.context_window
        # Claude Agent knows prices, Codex states none.
        stated = None if status.cost is None else (status.cost.amount > 0, status.cost.currency)
        assert stated == ((True, "USD") if peer.name == "claude" else None)


async def test_a_turn_is_cancelled_while_it_asks(peer: InstalledAgent, tmp_path: Path) -> None:
    async with peer.hosted(tmp_path) as hosting:
        path = hosting.workspace / "a.txt"
        path.write_text(BEFORE, encoding="utf-8")
        peer.edits(path)
        asked = await hosting.prompt("Make the second line loud.")
        assert (await hosting.agent.cancel(asked.task_id)).state is TaskState.CANCELED
        peer.script.otherwise = Reply.of(Say("Here I am."))  # Claude Agent may ask its model once more by itself
        again = await hosting.prompt("Still there?", asked.context_id)
        assert again.state is TaskState.COMPLETED, again.view
        assert again.text.endswith("Here I am.")
        assert path.read_text(encoding="utf-8") == BEFORE


@pytest.mark.parametrize("answer", ["accept", "decline"])
async def test_a_form_of_the_agent_is_answered_by_another_client(
    peer: InstalledAgent, tmp_path: Path, answer: str
) -> None:
    async with peer.hosted(tmp_path) as hosting:
        peer.asks()
        asked = await hosting.prompt("Ask me.")
        assert asked.state is TaskState.INPUT_REQUIRED, asked.view
        assert asked.question.tool_name == "elicitation"
        request = asked.question.confirmation_request
        assert request is not None
        assert isinstance(request.details, FileDiff)
        assert "Which color?" in request.details.new_content
        field = asked.question.input_parameters["fields"][0]
        peer.script.otherwise = Reply.of(Say("Thank you."))
        filled = json.dumps({field: "Blue"}) if answer == "accept" else None
        done = await hosting.answer(asked, answer, filled)
        assert done.state is not TaskState.INPUT_REQUIRED, done.view
        if answer == "accept":
            assert (done.state, done.text) == (TaskState.COMPLETED, "Thank you.")
            assert "Blue" in json.dumps(peer.script.requests[-1].json).rpartition("Ask me.")[2]


async def test_commands_are_known_before_the_first_prompt(peer: InstalledAgent, tmp_path: Path) -> None:
    async with peer.hosted(tmp_path) as hosting:
        scope = CommandScope(settings={"workspace_path": str(hosting.workspace)})
        assert {"compact", "review"} & {item.name for item in await hosting.agent.commands(scope)}
        peer.says("Hello.")
        assert (await hosting.prompt("Hello?")).text == "Hello."


def option(asked: Seen, kind: str) -> str:
    """Return the first option of a question that has this kind."""
    request = asked.question.confirmation_request
    assert request is not None
    return next(item.id for item in request.options if item.kind == kind)
