"""Changes of files in the draft of version 2: structured changes, and patches that git applies."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from isthmus.acp.v1.updates import DiffContent, ToolCallStarted
from isthmus.acp.v2.tool_calls import git_patch
from isthmus.acp.v2.wire import FrontWireV2
from support import acp_schema


def content(diff: DiffContent) -> list[dict[str, Any]]:
    """Return the content of a tool call with a change."""
    (update,) = FrontWireV2().updates(ToolCallStarted("c1", content=(diff,)))
    acp_schema.check_update(update, 2)
    return update["content"]


def test_a_new_file_is_an_addition() -> None:
    patch = "diff --git /w/b /w/b\nnew file mode 100644\n--- /dev/null\n+++ /w/b\n@@ -0,0 +1 @@\n+x\n"
    assert content(DiffContent("/w/b", "x")) == [
        {
            "type": "diff",
            "changes": [{"operation": "add", "path": "/w/b", "fileType": "text"}],
            "patch": {"format": "git_patch", "text": patch + "\\ No newline at end of file\n"},
        }
    ]


def test_a_change_without_a_useful_patch_has_none() -> None:
    assert git_patch("/w/a", "same", "same") == ""
    assert git_patch("/w/a", None, "") == ""
    assert git_patch("/w/a", "", "x\n" * 600_000) == ""
    assert content(DiffContent("/w/a", "", "x\n" * 600_000)) == [
        {"type": "diff", "changes": [{"operation": "modify", "path": "/w/a", "fileType": "text"}]}
    ]


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("a.txt", "one\ntwo\n", "one\nthree\n"),
        ("with space.txt", None, "x\r\ny"),
        ('quote".txt', "a\n", ""),
        ("back\\slash", "", "a"),
        ("tab\tline\nend", "end", "end\n"),
        ("ümlaut", None, "ü\n"),
    ],
)
def test_git_applies_our_patches(name: str, old: str | None, new: str, tmp_path: Path) -> None:
    file = tmp_path / name
    if old is not None:
        file.write_bytes(old.encode())
    git = shutil.which("git")
    assert git is not None
    patch = git_patch(str(file), old, new)
    # -p1 takes the leading slash of the absolute paths away.
    done = subprocess.run([git, "apply", "-p1"], cwd="/", input=patch.encode(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert file.read_bytes() == new.encode()
