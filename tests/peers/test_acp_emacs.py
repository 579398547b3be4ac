"""``isthmus acp`` with acp.el, the client that agents' shells in Emacs are made of.

ISTHMUS_ACP_EL names the folder of acp.el; without it the test is skipped, since tests cannot install it.
"""

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from support.acp_client import acp_command
from support.programs import emacs

FOLDER = os.environ.get("ISTHMUS_ACP_EL", "")
"""Read once: tests do not see the variables of the developer."""
DRIVER = Path(__file__).with_name("emacs") / "drive_acp.el"


def text(updates: Sequence[dict[str, Any]], kind: str) -> str:
    return "|".join(update["content"]["text"] for update in updates if update["sessionUpdate"] == kind)


@pytest.mark.skipif(not FOLDER, reason="ISTHMUS_ACP_EL names no folder of acp.el")
def test_a_client_in_emacs_prompts_allows_an_edit_loads_the_session_and_forks_it(
    tmp_path: Path, workspace: Path
) -> None:
    ended = subprocess.run(
        [emacs(), "--batch", "-L", FOLDER, "-l", DRIVER, workspace, *acp_command(tmp_path)],
        capture_output=True, encoding="utf-8", timeout=60, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    seen = json.loads(ended.stdout)

    assert seen["stops"] == ["end_turn", "end_turn"]
    assert text(seen["updates"], "agent_message_chunk") == "Hello| from the agent.|I write new.txt.|It is written."
    content = seen["questions"][0]["toolCall"]["content"]
    assert content == [{"type": "diff", "path": str(workspace / "new.txt"), "newText": "one\ntwo\n"}]
    assert (workspace / "new.txt").read_text(encoding="utf-8") == "one\ntwo\n"
    assert text(seen["replayed"], "user_message_chunk") == "say hello|write new.txt"
    assert len(seen["questions"]) == 1
    assert (seen["fork"] != seen["session"], seen["forked"]) == (True, "end_turn")
