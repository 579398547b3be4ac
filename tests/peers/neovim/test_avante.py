"""``isthmus acp`` with the client of avante.nvim, in a real Neovim.

ISTHMUS_AVANTE names the folder of avante.nvim; without it the test is skipped: plugins of Neovim are not packages that
tests may install. What avante shows is not looked at: that needs further plugins.
"""

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from support.acp_client import acp_command
from support.programs import require

PLUGIN = os.environ.get("ISTHMUS_AVANTE", "")
"""Read once: tests do not see the variables of the developer."""
DRIVER = Path(__file__).with_name("drive_avante.lua")


def text(updates: Sequence[dict[str, Any]], kind: str) -> str:
    return "|".join(update["content"]["text"] for update in updates if update["sessionUpdate"] == kind)


@pytest.mark.slow
@pytest.mark.skipif(not PLUGIN, reason="ISTHMUS_AVANTE names no folder of avante.nvim")
def test_the_client_of_avante_prompts_allows_an_edit_and_loads_the_session(tmp_path: Path, workspace: Path) -> None:
    started = [require("nvim"), "--headless", "-u", "NONE", "-i", "NONE", "--cmd", f"set runtimepath^={PLUGIN}"]
    ended = subprocess.run(
        [*started, "-l", DRIVER, workspace, *acp_command(tmp_path)],
        capture_output=True, encoding="utf-8", timeout=120, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    seen = json.loads(ended.stdout)

    assert seen["errors"] == []
    assert seen["stops"] == ["end_turn", "end_turn"]
    assert text(seen["updates"], "agent_message_chunk") == "Hello| from the agent.|I write new.txt.|It is written."
    content = seen["questions"][0]["toolCall"]["content"]
    assert content == [{"type": "diff", "path": str(workspace / "new.txt"), "newText": "one\ntwo\n"}]
    assert (workspace / "new.txt").read_text(encoding="utf-8") == "one\ntwo\n"
    assert text(seen["replayed"], "user_message_chunk") == "say hello|write new.txt"
    assert len(seen["questions"]) == 1
    assert [option["id"] for option in seen["options"]] == ["mode", "model", "effort"]
