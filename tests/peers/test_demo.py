"""The main job on real processes: prompt over A2A, tools, an edit reviewed in an editor, the file written."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from support.isthmus_program import isthmus
from support.programs import require


def frames(folder: Path, link: str) -> Sequence[dict[str, Any]]:
    return [json.loads(line) for line in (folder / f"{link}.jsonl").read_text(encoding="utf-8").splitlines()]


def methods(found: Sequence[dict[str, Any]]) -> list[str]:
    return [str(frame["body"]["method"]) for frame in found if "method" in (frame["body"] or ())]


@pytest.mark.parametrize("editor", ["nvim", "headless"])
def test_an_edit_is_changed_in_review_and_written(tmp_path: Path, editor: str) -> None:
    require("git")
    if editor == "nvim":
        require("nvim")
    ended = isthmus("demo", "--editor", editor, "--record", str(tmp_path / "frames"), folder=tmp_path)
    assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr
    assert '+    return f"See you soon, {name}!"' in ended.stdout
    assert "greeting.py" in ended.stdout.splitlines()[-1]
    a2a, ide = frames(tmp_path / "frames", "a2a"), frames(tmp_path / "frames", "ide")
    assert methods(a2a)[0] == "message/stream"
    told = methods(ide)
    for method in ("initialize", "tools/call", "ide/contextUpdate", "ide/diffAccepted"):
        assert method in told
    final = [frame["body"]["result"] for frame in a2a if frame["kind"] == "event"][-1]
    assert (final["status"]["state"], final["final"]) == ("completed", True)


def test_the_frames_hold_no_token(tmp_path: Path) -> None:
    ended = isthmus("demo", "--editor", "headless", "--record", str(tmp_path / "frames"), folder=tmp_path)
    assert ended.returncode == 0, ended.stderr
    kept = [frame["headers"] for link in ("a2a", "ide") for frame in frames(tmp_path / "frames", link)]
    shown = {headers["authorization"] for headers in kept if "authorization" in headers}
    assert shown == {"Bearer (hidden)"}
