"""Further folders of a workspace: what the tools read, find and write there, and what stays closed."""

import json
from pathlib import Path
from typing import Any

import pytest

from isthmus.tools.builtin import builtin_tools
from isthmus.tools.port.base import CallContext, OutsideReader, ToolContext, ToolSucceeded
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.workspace import Workspace

pytestmark = pytest.mark.anyio


@pytest.fixture
def other(tmp_path: Path) -> Path:
    folder = tmp_path / "other"
    (folder / "src").mkdir(parents=True)
    (folder / "src/a.py").write_text("needle = 1\n", "utf-8")
    (folder / "ignored.log").write_text("needle\n", "utf-8")
    (folder / "closed.txt").write_text("needle\n", "utf-8")
    (folder / ".gitignore").write_text("*.log\n", "utf-8")
    (folder / ".geminiignore").write_text("closed.txt\n", "utf-8")
    (folder / ".git").mkdir()
    return folder


def context_of(workspace: Workspace) -> CallContext:
    return CallContext(workspace, "c", workspace.root / ".outputs", {})


async def result(workspace: Workspace, tool: str, **arguments: Any) -> str:
    called = builtin_tools().tools[tool]
    context = context_of(workspace)
    await called.propose(arguments, context)
    done = await called.run(arguments, context)
    assert isinstance(done, ToolSucceeded)
    return done.for_model


@pytest.mark.parametrize(
    ("tool", "arguments", "expected", "hidden"),
    [
        ("read_file", {"file_path": "{other}/src/a.py"}, "needle = 1", ""),
        ("list_directory", {"dir_path": "{other}"}, "[DIR] src", "closed.txt"),
        ("list_directory", {"dir_path": "{other}/src"}, "a.py", ""),
        ("glob", {"pattern": "**/*.py", "dir_path": "{other}"}, "{other}/src/a.py", "ignored"),
        ("grep_search", {"pattern": "needle", "dir_path": "{other}"}, "{other}/src/a.py", "ignored"),
        ("grep_search", {"pattern": "needle", "dir_path": "{other}/src"}, "{other}/src/a.py", ""),
        ("grep_search", {"pattern": "needle", "dir_path": "{other}/src/a.py"}, "L1: needle = 1", ""),
        ("read_many_files", {"include": ["{other}/**/*.py"]}, "needle = 1", "closed"),
        ("read_many_files", {"include": ["{other}/src"]}, "needle = 1", ""),
    ],
)
async def test_each_tool_works_in_a_further_folder(
    workspace: Path, other: Path, tool: str, arguments: dict[str, Any], expected: str, hidden: str
) -> None:
    filled = json.loads(json.dumps(arguments).replace("{other}", str(other)))
    text = await result(Workspace(workspace, [other]), tool, **filled)
    assert expected.format(other=other) in text
    assert not hidden or hidden not in text


async def test_files_are_written_and_edited_in_a_further_folder(workspace: Path, other: Path) -> None:
    place = Workspace(workspace, [other])
    path = str(other / "new/b.py")
    context = context_of(place)
    tools = builtin_tools().tools
    proposal = await tools["write_file"].propose({"file_path": path, "content": "x\n"}, context)
    assert proposal is not None
    assert place.writable_path(path) == other / "new/b.py"


@pytest.mark.parametrize("path", ["{other}/closed.txt", "{other}/../secret", "{other}-else/x", "{other}/link/x"])
def test_what_is_closed_or_leads_out_of_a_further_folder_is_refused(workspace: Path, other: Path, path: str) -> None:
    (other / "link").symlink_to(other.parent)
    with pytest.raises(ToolFailure) as refused:
        Workspace(workspace, [other]).open_path(path.format(other=other))
    assert refused.value.category in ("outside_workspace", "ignored_file")


def test_git_of_a_further_folder_is_not_written(workspace: Path, other: Path) -> None:
    with pytest.raises(ToolFailure) as refused:
        Workspace(workspace, [other]).writable_path(str(other / ".git/hooks/x"))
    assert refused.value.category == "protected_path"


def test_a_folder_inside_the_workspace_is_no_further_one(workspace: Path) -> None:
    (workspace / "sub").mkdir()
    assert Workspace(workspace, [workspace / "sub", workspace]).others == ()


def test_a_further_folder_around_the_workspace_keeps_its_own_rules(workspace: Path) -> None:
    (workspace.parent / "beside.txt").write_text("b", "utf-8")
    (workspace / ".geminiignore").write_text("mine.txt\n", "utf-8")
    place = Workspace(workspace, [workspace.parent])
    assert place.open_path(str(workspace.parent / "beside.txt")).name == "beside.txt"
    with pytest.raises(ToolFailure):
        place.open_path("mine.txt")


def test_a_file_outside_is_named_for_a_question_only_if_it_exists(workspace: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("o", "utf-8")
    (tmp_path / "link").symlink_to(outside)
    (workspace / "in.txt").write_text("i", "utf-8")
    tool = builtin_tools().tools["read_file"]
    assert isinstance(tool, OutsideReader)
    context: ToolContext = context_of(Workspace(workspace))
    assert tool.outside({"file_path": str(tmp_path / "link")}, context) == outside
    for path in ("in.txt", str(tmp_path / "missing"), str(tmp_path), "a\0b", ""):
        assert tool.outside({"file_path": path}, context) is None
