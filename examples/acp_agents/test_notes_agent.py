import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).with_name("notes_agent.py")


@pytest.mark.parametrize(("option", "reason", "notes"), [("yes", "end_turn", "buy milk\n"), ("no", "cancelled", "")])
def test_a_note_is_written_once_the_user_allows_it(tmp_path: Path, option: str, reason: str, notes: str) -> None:
    answer = {"outcome": {"outcome": "selected", "optionId": option}}
    sent: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": {"protocolVersion": 1}},
        {"id": 2, "method": "session/new", "params": {"cwd": str(tmp_path), "mcpServers": []}},
        {"id": 3, "method": "session/prompt", "params": {"sessionId": "s1", "prompt": [{"text": "buy milk"}]}},
        {"id": "question", "result": answer},
    ]
    lines = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in sent)
    done = subprocess.run([sys.executable, str(PROGRAM)], input=lines, capture_output=True, text=True, check=True)
    received = [json.loads(line) for line in done.stdout.splitlines()]
    assert received[-1] == {"jsonrpc": "2.0", "id": 3, "result": {"stopReason": reason}}
    assert [each["id"] for each in received if "method" not in each] == [1, 2, 3]
    written = tmp_path / "notes.txt"
    assert (written.read_text("utf-8") if written.exists() else "") == notes
