"""Patches in the form of Codex: parsing, hunks in a file, the tool with several kinds of change."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.development_tool import FileDiff
from isthmus.tools.edits.apply_patch import ApplyPatch
from isthmus.tools.edits.patch_text import FilePatch, Hunk, PatchError, file_sections, parse_file_patch, patched_text
from isthmus.tools.port.base import Approved
from isthmus.tools.port.failure import ToolFailure
from support.tool_calls import success_of, tool_context

pytestmark = pytest.mark.anyio

TWO_FILES = """\
*** Begin Patch
*** Add File: new.txt
+first
+
*** Update File: src/a.py
@@ class A:
@@     def f(self):
-        return 1
+        return 2
*** End Patch
"""


def patch(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch", ""])


def patched(text: str, *lines: str) -> str:
    return patched_text(text, parse_file_patch(patch("*** Update File: a", *lines)))[0]


def test_a_patch_of_several_files_is_split_into_one_for_each() -> None:
    first, second = file_sections(TWO_FILES)
    assert parse_file_patch(first) == FilePatch("add", "new.txt", lines=("first", ""))
    assert parse_file_patch(second) == FilePatch(
        "update",
        "src/a.py",
        hunks=(Hunk(("        return 1",), ("        return 2",), ("class A:", "def f(self):")),),
    )
    assert file_sections(first) == [first]
    assert file_sections("nonsense") == ["nonsense"]


@pytest.mark.parametrize("around", ["{}", "```\n{}\n```", "<<'EOF'\n{}\nEOF\n", "apply_patch <<EOF\n{}\nEOF"])
def test_quoting_around_a_patch_is_ignored(around: str) -> None:
    assert parse_file_patch(around.format(patch("*** Delete File: a.txt"))) == FilePatch("delete", "a.txt")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("--- a\n+++ b\n", "expected a patch from '*** Begin Patch' to '*** End Patch'; it begins '--- a'"),
        (patch("*** Rename File: a"), "after '*** Begin Patch', received '*** Rename File: a'"),
        (patch("*** Add File: a", "text"), "expected lines that begin with '+' for a new file, received 'text'"),
        (patch("*** Update File: a", "*** Move to: "), "expected a path after '*** Move to:', received none"),
        (patch("*** Update File: a", "@@", "x"), "begins with ' ', '+', '-' or '@@', received 'x'"),
        (patch("*** Update File: a"), "expected at least one changed line in each hunk, received none"),
        (patch("*** Delete File: a", "-x"), "expected nothing after '*** Delete File: a', received '-x'"),
        (TWO_FILES, "expected one file in each call"),
    ],
)
def test_a_patch_of_another_form_is_refused_with_what_was_expected(text: str, reason: str) -> None:
    with pytest.raises(PatchError) as error:
        parse_file_patch(text)
    assert reason in str(error.value)


def test_hunks_are_searched_one_after_the_other() -> None:
    text = "def f():\n    go()\n\ndef g():\n    go()\n"
    assert patched(text, "@@ def g():", "-    go()", "+    stop()") == text[:-9] + "    stop()\n"
    assert patched(text, " def f():", "-    go()", "+    a()", "@@", "-    go()", "+    b()") == (
        "def f():\n    a()\n\ndef g():\n    b()\n"
    )
    assert patched(text, "@@ def f():", "-    go()", "+    a()") == "def f():\n    a()\n\ndef g():\n    go()\n"


def test_lines_without_context_are_added_at_the_end_or_after_the_named_line() -> None:
    assert patched("a\nb", "@@", "+c", "*** End of File") == "a\nb\nc\n"
    assert patched("a\nb\n", "@@ a", "+c") == "a\nc\nb\n"


def test_the_last_line_without_a_newline_is_found() -> None:
    assert patched("a\nb", "@@", " a", "-b", "+c") == "a\nc"


def test_slips_in_context_lines_are_tolerated_and_named() -> None:
    update = parse_file_patch(patch("*** Update File: a", "@@", " if x:", "-\tgo( 1 )", "+\tgo( 2 )"))
    assert patched_text("if x:\n    go(1)\n", update) == (
        "if x:\n    go(2)\n",
        ("hunk 1 was found with other white space within lines",),
    )


@pytest.mark.parametrize(
    ("text", "lines", "reason"),
    [
        ("go()\ngo()\n", ("@@", "-go()", "+a()"), "hunk 1: its lines occur 2 times; add more context lines, or name"),
        ("a\n", ("@@ def g():", "-a", "+b"), "hunk 1: no line 'def g():' comes after the hunk before it"),
        ("a\n", ("@@", "-alpha beta", "+b"), "hunk 1: its context and removed lines are not in the file."),
    ],
)
def test_a_hunk_that_does_not_fit_is_refused(text: str, lines: tuple[str, ...], reason: str) -> None:
    with pytest.raises(PatchError) as error:
        patched(text, *lines)
    assert str(error.value).startswith(reason)


@given(st.lists(st.sampled_from(["*** Update File: a", "@@ x", "@@", " x", "-x", "+y", "*** End of File", "", "z"])))
def test_any_lines_are_a_patch_or_refused(lines: list[str]) -> None:
    try:
        for section in file_sections(patch(*lines)):
            parsed = parse_file_patch(section)
            if parsed.kind == "update":
                patched_text("x\nx\n\nz", parsed)
    except PatchError:
        pass


async def run(workspace: Path, text: str, modified: str | None = None) -> str:
    context = tool_context(workspace)
    proposal = await ApplyPatch().propose({"input": text}, context)
    assert isinstance(proposal, FileDiff)
    return (await success_of(ApplyPatch(), context, Approved(proposal, modified), input=text)).for_model


async def test_files_are_created_changed_and_deleted(workspace: Path) -> None:
    assert (await run(workspace, patch("*** Add File: sub/a.txt", "+one", "+two"))).startswith("Created the new file")
    assert (workspace / "sub/a.txt").read_bytes() == b"one\ntwo\n"
    changed = await run(workspace, patch("*** Update File: sub/a.txt", "@@", " one", "-two", "+2"))
    assert changed == f"Modified the file {workspace / 'sub/a.txt'}. Changed now: line 2 of 2."
    assert (workspace / "sub/a.txt").read_bytes() == b"one\n2\n"
    assert (await run(workspace, patch("*** Delete File: sub/a.txt"))) == f"Deleted {workspace / 'sub/a.txt'}."
    assert not (workspace / "sub/a.txt").exists()


async def test_a_deletion_that_the_user_changes_to_a_text_writes_the_text(workspace: Path) -> None:
    (workspace / "a.txt").write_bytes(b"old\n")
    told = await run(workspace, patch("*** Delete File: a.txt"), "kept\n")
    assert "User modified the content of the file to be: kept\n" in told
    assert (workspace / "a.txt").read_bytes() == b"kept\n"


@pytest.mark.parametrize("change", ["changed", "removed", "linked"])
async def test_a_file_that_changed_since_its_deletion_was_proposed_stays(workspace: Path, change: str) -> None:
    (workspace / "a.txt").write_bytes(b"old\n")
    (workspace / "other").mkdir()
    (workspace / "other" / "a.txt").write_bytes(b"old\n")
    text = patch("*** Delete File: a.txt")
    proposal = await ApplyPatch().propose({"input": text}, tool_context(workspace))
    (workspace / "a.txt").unlink()
    if change == "changed":
        (workspace / "a.txt").write_bytes(b"new\n")
    elif change == "linked":
        (workspace / "a.txt").symlink_to("other/a.txt")
    with pytest.raises(ToolFailure, match="since this edit was proposed") as failure:
        await success_of(ApplyPatch(), tool_context(workspace), Approved(proposal), input=text)
    assert failure.value.category == "file_changed"
    assert (workspace / "other" / "a.txt").read_bytes() == b"old\n"
    assert (workspace / "a.txt").exists() == (change != "removed")


async def test_a_failure_names_the_file_and_changes_nothing(workspace: Path) -> None:
    (workspace / "a.txt").write_bytes(b"old\n")
    for lines, reason in [
        (("*** Update File: a.txt", "@@", "-alpha", "+b"), "a.txt: hunk 1: its context and removed lines"),
        (("*** Add File: a.txt", "+b"), "a.txt already exists; use"),
        (("*** Update File: b.txt", "@@", "-a", "+b"), "b.txt does not exist; use"),
        (("*** Update File: ../x", "@@", "-a", "+b"), "outside the workspace"),
    ]:
        with pytest.raises(ToolFailure, match=re.escape(reason)):
            await ApplyPatch().propose({"input": patch(*lines)}, tool_context(workspace))
    assert (workspace / "a.txt").read_bytes() == b"old\n"
