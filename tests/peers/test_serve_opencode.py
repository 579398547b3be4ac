"""OpenCode behind our A2A server: the real program, with a scripted model behind it."""

import json
import re
from pathlib import Path

import pytest

from isthmus.acp.host.agents.opencode import AGENT
from isthmus.development_tool import FileDiff
from isthmus.events import TaskState
from support.acp_hosting import acp_hosting
from support.openai_wire import OpenAIWire
from support.opencode_cli import configured
from support.programs import node_package
from support.scripted_wire import Call, Reply, Say
from support.wire_server import WireRequest

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


def reply(request: WireRequest) -> Reply:
    """Return what the model says: it writes the file that the last prompt names, if it names one."""
    if not request.json.get("tools"):
        return Reply.of(Say("A title"))
    last = request.json["messages"][-1]
    named = re.search(r"write (\S+\.txt)", json.dumps(last["content"])) if last["role"] == "user" else None
    if named is None:
        return Reply.of(Say("That was it."))
    return Reply.of(Say("I write it."), Call("write", {"filePath": named[1], "content": "one\n"}))


async def test_edits_of_opencode_are_shown_over_a2a_and_written_as_the_user_wants_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = node_package("opencode-linux-x64") / "bin" / "opencode"
    with OpenAIWire(reply) as model:
        monkeypatch.setenv("OPENCODE_CONFIG", str(configured(model.base_url, tmp_path)))
        async with acp_hosting(tmp_path, command=[str(program), "acp"], agent=AGENT) as hosting:
            first, second = hosting.workspace / "first.txt", hosting.workspace / "second.txt"
            asked = await hosting.prompt(f"write {first}")
            assert asked.state is TaskState.INPUT_REQUIRED, asked.view
            request = asked.question.confirmation_request
            assert request is not None
            assert isinstance(request.details, FileDiff)
            assert (request.details.old_content, request.details.new_content) == (None, "one\n")
            assert [option.id for option in request.options] == ["once", "always", "reject"]
            assert not first.exists()
            done = await hosting.answer(asked, "once")
            assert (done.state, done.text) == (TaskState.COMPLETED, "That was it.")
            assert first.read_text(encoding="utf-8") == "one\n"

            asked = await hosting.prompt(f"write {second}", asked.context_id)
            done = await hosting.answer(asked, "once", "mine\n")
            assert done.state is TaskState.COMPLETED, done.view
            assert second.read_text(encoding="utf-8") == "mine\n"

            done = await hosting.prompt("go on", asked.context_id)
            assert (done.state, done.text) == (TaskState.COMPLETED, "That was it.")
            told = json.dumps(model.model_requests[-1].json["messages"][-1])
            assert f"The user changed your proposal for {second}" in told
            assert "-one" in told
            assert "+mine" in told
