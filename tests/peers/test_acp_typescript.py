"""``isthmus acp`` with the official TypeScript SDK: the same main path as with the one for Python."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from support.acp_client import acp_command
from support.programs import NODE_PEERS, node_package, require


def text(updates: Sequence[dict[str, Any]], kind: str) -> str:
    return "".join(update["content"]["text"] for update in updates if update["sessionUpdate"] == kind)


def test_the_typescript_client_works_with_the_agent(tmp_path: Path, workspace: Path) -> None:
    node_package("@agentclientprotocol/sdk")
    ended = subprocess.run(
        [require("node"), NODE_PEERS / "drive_acp.mjs", workspace, *acp_command(tmp_path)],
        capture_output=True, encoding="utf-8", timeout=60, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    seen = json.loads(ended.stdout)
    first, second = seen["first"], seen["second"]

    assert first["greeting"]["agentCapabilities"]["loadSession"] is True
    assert first["session"]["modes"]["currentModeId"] == "default"
    assert first["stops"] == ["end_turn", "end_turn", "end_turn", "cancelled"]
    assert first["second"]["code"] == -32600
    assert first["unknown"]["code"] == -32002
    assert (first["loggedOut"], first["withoutLogin"]["code"]) == ({}, -32000)
    assert first["mode"]["configOptions"][0]["currentValue"] == "plan"
    said = text(first["updates"], "agent_message_chunk")
    assert said.startswith("Hello from the agent.I write allowed.txt.It is written.I write refused.txt.It was refused.")
    assert "I look around first." in text(first["updates"], "agent_thought_chunk")
    path = str(workspace / "allowed.txt")
    assert first["questions"][0]["toolCall"]["content"] == [{"type": "diff", "path": path, "newText": "one\ntwo\n"}]
    assert [file.name for file in workspace.iterdir()] == ["allowed.txt"]

    assert [each["sessionId"] for each in second["listed"]["sessions"]] == [first["session"]["sessionId"]]
    prompts = "say hello|write allowed.txt|write refused.txt|take your time"
    replayed = [update for update in second["updates"] if update["sessionUpdate"] == "user_message_chunk"]
    assert "|".join(update["content"]["text"] for update in replayed) == prompts
    assert text(second["updates"], "agent_message_chunk").startswith(said)
    assert second["questions"] == []
