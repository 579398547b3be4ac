"""``isthmus acp --draft-v2``: a client that writes the draft's wire itself, and the official TypeScript SDK's."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from support import acp_schema
from support.acp_client import acp_command, model_option
from support.acp_wire import AcpProgram, acp_program
from support.programs import NODE_PEERS, node_package, require
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

INFO = {"name": "test", "version": "1"}
HELLO = {"protocolVersion": 2, "info": INFO, "capabilities": {}}


def states(updates: Sequence[dict[str, Any]]) -> list[str]:
    found = [update for update in updates if update["sessionUpdate"] == "state_update"]
    return [" ".join(filter(None, (update["state"], update.get("stopReason")))) for update in found]


async def ended(program: AcpProgram, *, count: int = 1) -> list[dict[str, Any]]:
    """Return the updates once this many turns have ended."""

    def updates() -> list[dict[str, Any]]:
        return [message["params"]["update"] for message in program.updates]

    await eventually_async(lambda: sum(state.startswith("idle ") for state in states(updates())) >= count, 30)
    return updates()


async def test_a_client_of_the_draft_edits_a_file_and_another_sees_all_of_it(tmp_path: Path, workspace: Path) -> None:
    options = ("--draft-v2", "--in-process", "--model", model_option(tmp_path))
    async with acp_program(workspace, *options) as program:
        greeting = (await program.request("initialize", **HELLO))["result"]
        acp_schema.check("InitializeResponse", greeting, 2)
        assert greeting["protocolVersion"] == 2
        session = (await program.request("session/new", cwd=str(workspace)))["result"]["sessionId"]
        prompt = [{"type": "text", "text": "write a.txt"}]
        accepted = await program.request("session/prompt", sessionId=session, prompt=prompt)
        acp_schema.check("PromptResponse", accepted["result"], 2)
        question = await program.question()
        acp_schema.check_message(question, version=2)
        path = str(workspace / "a.txt")
        assert question["params"]["subject"]["toolCall"]["content"] == [
            {
                "type": "diff",
                "changes": [{"operation": "add", "path": path, "fileType": "text"}],
                "patch": {
                    "format": "git_patch",
                    "text": f"diff --git {path} {path}\nnew file mode 100644\n--- /dev/null\n+++ {path}\n"
                    "@@ -0,0 +1,2 @@\n+one\n+two\n",
                },
            }
        ]
        program.choose(question, "proceed_once")
        updates = await ended(program)
        for update in updates:
            acp_schema.check_update(update, 2)
        assert states(updates) == ["running", "requires_action", "running", "idle end_turn"]
        assert program.text() == "I write a.txt.It is written."
        assert Path(path).read_text(encoding="utf-8") == "one\ntwo\n"
        await program.request("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "take your time"}])
        await eventually_async(lambda: program.text().endswith("I begin."), 30)
        program.send({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}})
        assert states(await ended(program, count=2))[-1] == "idle cancelled"
        assert await program.end() == 0
    async with acp_program(workspace, *options) as program:
        await program.request("initialize", **HELLO)
        about = {"sessionId": session, "cwd": str(workspace)}
        assert "result" in await program.request("session/resume", **about, replayFrom={"type": "start"})
        assert program.text().startswith("I write a.txt.It is written.I begin.")
        assert program.text("user_message_chunk") == "write a.txttake your time"


async def test_without_the_option_the_draft_is_answered_with_version_1(workspace: Path) -> None:
    async with acp_program(workspace, "--in-process", "--model", "demo") as program:
        assert (await program.request("initialize", **HELLO))["result"]["protocolVersion"] == 1


def test_the_typescript_client_of_the_draft_works_with_the_agent(tmp_path: Path, workspace: Path) -> None:
    node_package("@agentclientprotocol/sdk")
    done = subprocess.run(
        [require("node"), NODE_PEERS / "drive_acp_v2.mjs", workspace, *acp_command(tmp_path), "--draft-v2"],
        capture_output=True, encoding="utf-8", timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    first, second = seen["first"], seen["second"]
    assert first["greeting"]["protocolVersion"] == 2
    shown = [update for update in first["updates"] if update["sessionUpdate"] == "user_message"]
    assert [answer["messageId"] for answer in first["accepted"]] == [update["messageId"] for update in shown]
    ends = [state.removeprefix("idle ") for state in states(first["updates"]) if state.startswith("idle ")]
    assert ends == ["end_turn", "end_turn", "end_turn", "cancelled"]
    assert [question["title"] for question in first["questions"]] == ["Allow this change?"] * 2
    assert first["mode"]["configOptions"][0]["currentValue"] == "plan"
    assert [file.name for file in workspace.iterdir()] == ["allowed.txt"]
    assert [each["sessionId"] for each in second["listed"]["sessions"]] == [first["session"]["sessionId"]]
    prompts = [update for update in second["updates"] if update["sessionUpdate"] == "user_message_chunk"]
    assert [update["content"]["text"] for update in prompts] == [
        "say hello",
        "write allowed.txt",
        "write refused.txt",
        "take your time",
    ]
    assert states(second["updates"]) == ["idle"]
