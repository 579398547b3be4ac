"""The main job on real processes: prompt over A2A, tools, an edit reviewed in an editor, the file written."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from support.extended import first_of
from support.isthmus_program import isthmus
from support.programs import require


def messages(folder: Path, link: str) -> Sequence[dict[str, Any]]:
    return [json.loads(line) for line in (folder / f"{link}.jsonl").read_text(encoding="utf-8").splitlines()]


def methods(found: Sequence[dict[str, Any]]) -> list[str]:
    return [str(message["body"]["method"]) for message in found if "method" in (message["body"] or ())]


@pytest.mark.parametrize("editor", first_of(["nvim", "headless"]))
def test_an_edit_is_changed_in_review_and_written(tmp_path: Path, editor: str) -> None:
    require("git")
    if editor == "nvim":
        require("nvim")
    ended = isthmus("demo", "--editor", editor, "--record", str(tmp_path / "messages"), folder=tmp_path)
    assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr
    assert '+    return f"See you soon, {name}!"' in ended.stdout
    assert "greeting.py" in ended.stdout.splitlines()[-1]
    for line in (
        "A2A  -> GET /.well-known/agent-card.json",
        "A2A  -> POST /  message/stream",
        "A2A  -> POST /  tasks/resubscribe",
        "IDE  -> POST /mcp  initialize",
        "IDE  -> POST /mcp  tools/call",
    ):
        assert line in ended.stdout.splitlines()
    a2a, ide = messages(tmp_path / "messages", "a2a"), messages(tmp_path / "messages", "ide")
    assert methods(a2a)[0] == "message/stream"
    assert {"initialize", "tools/call", "ide/contextUpdate", "ide/diffAccepted"} <= set(methods(ide))
    final = [message["body"]["result"] for message in a2a if message["head"].startswith("event")][-1]
    assert (final["status"]["state"], final["final"]) == ("completed", True)


def test_what_is_recorded_holds_no_token(tmp_path: Path) -> None:
    ended = isthmus("demo", "--editor", "headless", "--record", str(tmp_path / "messages"), folder=tmp_path)
    assert ended.returncode == 0, ended.stderr
    for link in ("a2a", "ide"):
        for message in messages(tmp_path / "messages", link):
            assert set(message) == {"at", "link", "arrow", "head", "body"}  # no headers, which hold the tokens
            assert "Bearer " not in json.dumps(message)
