import codecs
from dataclasses import replace as with_fields
from pathlib import Path
from typing import Any

import pytest

from isthmus.development_tool import FileDiff
from isthmus.tools.edits.replace import Replace
from isthmus.tools.edits.write_file import WriteFile
from isthmus.tools.port.base import Approved, Tool
from isthmus.tools.port.failure import ToolFailure
from support.tool_calls import success_of, tool_context

pytestmark = pytest.mark.anyio

WRITE: dict[str, Any] = {"file_path": "a.txt", "content": "new\n"}
REPLACE: dict[str, Any] = {"file_path": "a.txt", "old_string": "old", "new_string": "new"}


async def proposal_of(tool: Tool, workspace: Path, arguments: dict[str, Any]) -> FileDiff:
    proposal = await tool.propose(arguments, tool_context(workspace))
    assert isinstance(proposal, FileDiff)
    return proposal


async def failure_of(tool: Tool, workspace: Path, arguments: dict[str, Any], approved: Approved | None = None) -> str:
    with pytest.raises(ToolFailure) as failure:
        await success_of(tool, tool_context(workspace), approved, **arguments)
    return f"{failure.value.category}: {failure.value}"


async def written(tool: Tool, workspace: Path, arguments: dict[str, Any], modified: str | None = None) -> FileDiff:
    proposal = await proposal_of(tool, workspace, arguments)
    result = await success_of(tool, tool_context(workspace), Approved(proposal, modified), **arguments)
    assert result.output.diff is not None
    return result.output.diff


async def test_a_proposal_shows_both_contents_and_the_diff_and_writes_nothing(workspace: Path) -> None:
    (workspace / "sub").mkdir()
    (workspace / "sub" / "a.txt").write_bytes(b"one\nold\n")
    proposal = await proposal_of(Replace(), workspace, {**REPLACE, "file_path": "sub/a.txt"})
    assert proposal == FileDiff(
        file_name="a.txt",
        file_path=str(workspace / "sub" / "a.txt"),
        old_content="one\nold\n",
        new_content="one\nnew\n",
        formatted_diff="--- a/sub/a.txt\n+++ b/sub/a.txt\n@@ -1,2 +1,2 @@\n one\n-old\n+new\n",
    )
    assert (workspace / "sub" / "a.txt").read_bytes() == b"one\nold\n"


async def test_a_new_file_is_written_with_its_folders(workspace: Path) -> None:
    diff = await written(WriteFile(), workspace, {"file_path": "x/y/ünï.txt", "content": "é\n"})
    assert (workspace / "x/y/ünï.txt").read_bytes() == "é\n".encode()
    assert diff.old_content is None
    assert diff.formatted_diff == "--- /dev/null\n+++ b/x/y/ünï.txt\n@@ -0,0 +1 @@\n+é\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"one\r\nold\r\nend", b"one\r\nnew\r\nend"),
        (codecs.BOM_UTF8 + b"one\nold\n", codecs.BOM_UTF8 + b"one\nnew\n"),
        ("\ufeffone\r\nold\r\n".encode("utf-16-le"), "\ufeffone\r\nnew\r\n".encode("utf-16-le")),
        (b"caf\xe9\nold", b"caf\xe9\nnew"),
        (b"one\r\nold\nend\r\n", b"one\r\nnew\nend\r\n"),
        (b"old", b"new"),
        (b"a\rold\x0cb\n", b"a\rnew\x0cb\n"),
    ],
)
async def test_an_edit_keeps_every_byte_that_it_does_not_touch(workspace: Path, before: bytes, after: bytes) -> None:
    (workspace / "a.txt").write_bytes(before)
    (workspace / "a.txt").chmod(0o640)
    await written(Replace(), workspace, REPLACE)
    assert (workspace / "a.txt").read_bytes() == after
    assert (workspace / "a.txt").stat().st_mode & 0o777 == 0o640


async def test_writing_a_whole_file_keeps_its_mark_and_its_crlf_newlines(workspace: Path) -> None:
    (workspace / "a.txt").write_bytes(codecs.BOM_UTF8 + b"one\r\ntwo\r\n")
    diff = await written(WriteFile(), workspace, {"file_path": "a.txt", "content": "one\n2\n"})
    assert (workspace / "a.txt").read_bytes() == codecs.BOM_UTF8 + b"one\r\n2\r\n"
    assert (diff.old_content, diff.new_content) == ("one\r\ntwo\r\n", "one\r\n2\r\n")


async def test_what_the_reviewer_changed_is_written_and_the_model_is_told(workspace: Path) -> None:
    (workspace / "a.txt").write_bytes(b"one\r\nold\r\n")
    tool, context = WriteFile(), tool_context(workspace)
    proposal = await proposal_of(tool, workspace, WRITE)
    result = await success_of(tool, context, Approved(proposal, "reviewed\nby me\n"), **WRITE)
    assert (workspace / "a.txt").read_bytes() == b"reviewed\r\nby me\r\n"
    assert "User modified the `content` to be: reviewed\r\nby me\r\n" in result.for_model
    assert result.output.diff is not None
    assert result.output.diff.new_content == "reviewed\r\nby me\r\n"
    assert result.output.diff.old_content == "one\r\nold\r\n"
    assert "+by me" in (result.output.diff.formatted_diff or "")


async def test_a_review_without_a_change_is_not_told_as_one(workspace: Path) -> None:
    tool, context = WriteFile(), tool_context(workspace)
    proposal = await proposal_of(tool, workspace, WRITE)
    result = await success_of(tool, context, Approved(proposal, "new\n"), **WRITE)
    assert "User modified" not in result.for_model


async def test_a_reviewer_may_make_the_file_empty(workspace: Path) -> None:
    (workspace / "a.txt").write_bytes(b"old")
    diff = await written(Replace(), workspace, REPLACE, modified="")
    assert (workspace / "a.txt").read_bytes() == b""
    assert diff.new_content == ""


@pytest.mark.parametrize(("tool", "arguments"), [(WriteFile(), WRITE), (Replace(), REPLACE)])
async def test_a_file_that_changed_since_the_proposal_is_not_written(
    workspace: Path, tool: Tool, arguments: dict[str, Any]
) -> None:
    path = workspace / "a.txt"
    path.write_bytes(b"old\n")
    approved = Approved(await proposal_of(tool, workspace, arguments))
    path.write_bytes(b"old\nand more\n")
    assert (await failure_of(tool, workspace, arguments, approved)).startswith("file_changed: a.txt changed since")
    assert path.read_bytes() == b"old\nand more\n"
    path.unlink()
    assert (await failure_of(tool, workspace, arguments, approved)).startswith("file_changed: a.txt was removed since")
    assert not path.exists()
    path.write_bytes(b"\0binary")
    assert (await failure_of(tool, workspace, arguments, approved)).startswith(
        "file_changed: a.txt was replaced with a binary file since"
    )


async def test_a_file_that_appeared_since_the_proposal_is_not_overwritten(workspace: Path) -> None:
    approved = Approved(await proposal_of(WriteFile(), workspace, WRITE))
    (workspace / "a.txt").write_bytes(b"theirs")
    assert (await failure_of(WriteFile(), workspace, WRITE, approved)).startswith(
        "file_changed: a.txt was created since"
    )
    assert (workspace / "a.txt").read_bytes() == b"theirs"


async def test_only_newlines_that_changed_are_a_change_too(workspace: Path) -> None:
    (workspace / "a.txt").write_bytes(b"old\n")
    approved = Approved(await proposal_of(Replace(), workspace, REPLACE))
    (workspace / "a.txt").write_bytes(b"old\r\n")
    assert (await failure_of(Replace(), workspace, REPLACE, approved)).startswith("file_changed")


async def test_a_path_that_became_a_link_to_another_file_is_not_written(workspace: Path) -> None:
    (workspace / "a.txt").write_bytes(b"old\n")
    (workspace / "b.txt").write_bytes(b"old\n")
    approved = Approved(await proposal_of(Replace(), workspace, REPLACE))
    (workspace / "a.txt").unlink()
    (workspace / "a.txt").symlink_to("b.txt")
    assert (await failure_of(Replace(), workspace, REPLACE, approved)).startswith("file_changed")
    assert (workspace / "b.txt").read_bytes() == b"old\n"


async def test_a_link_inside_the_workspace_is_written_through(workspace: Path) -> None:
    (workspace / "b.txt").write_bytes(b"old\n")
    (workspace / "a.txt").symlink_to("b.txt")
    diff = await written(Replace(), workspace, REPLACE)
    assert diff.file_path == str(workspace / "b.txt")
    assert (workspace / "a.txt").is_symlink()
    assert (workspace / "b.txt").read_bytes() == b"new\n"


async def test_a_read_only_file_is_refused_and_stays(workspace: Path) -> None:
    (workspace / "a.txt").write_bytes(b"old\n")
    (workspace / "a.txt").chmod(0o444)
    assert (await failure_of(Replace(), workspace, REPLACE)).startswith("permission_denied: a.txt is read-only")
    assert (workspace / "a.txt").read_bytes() == b"old\n"


@pytest.mark.parametrize(
    ("path", "category"),
    [
        ("../x", "outside_workspace"),
        ("secret", "ignored_file"),
        (".git/hooks/x", "protected_path"),
        ("folder", "target_is_directory"),
        ("image.png", "binary_file"),
        ("text/below", "path_is_not_a_directory"),
    ],
)
async def test_files_that_may_not_be_edited_are_refused_before_anybody_is_asked(
    workspace: Path, path: str, category: str
) -> None:
    (workspace / ".geminiignore").write_text("secret\n", encoding="utf-8")
    (workspace / "folder").mkdir()
    (workspace / "image.png").write_bytes(b"\x89PNG\0")
    (workspace / "text").write_text("x", encoding="utf-8")
    with pytest.raises(ToolFailure) as failure:
        await WriteFile().propose({"file_path": path, "content": "x"}, tool_context(workspace))
    assert failure.value.category == category


async def test_text_that_the_encoding_cannot_hold_is_refused(workspace: Path) -> None:
    (workspace / "a.txt").write_bytes(b"caf\xe9 old")
    assert "unencodable_text" in await failure_of(Replace(), workspace, {**REPLACE, "new_string": "…"})
    proposal = await proposal_of(Replace(), workspace, REPLACE)
    assert "unencodable_text" in await failure_of(Replace(), workspace, REPLACE, Approved(proposal, "…"))
    assert (workspace / "a.txt").read_bytes() == b"caf\xe9 old"


async def test_a_write_that_changes_nothing_is_not_proposed(workspace: Path) -> None:
    (workspace / "a.txt").write_bytes(b"new\r\n")
    assert (await failure_of(WriteFile(), workspace, WRITE)).startswith("edit_no_change")


@pytest.mark.parametrize(
    ("arguments", "category"),
    [
        ({**REPLACE, "old_string": "missing"}, "edit_no_occurrence_found: old_string does not occur in a.txt: expec"),
        ({**REPLACE, "old_string": "twice"}, "edit_expected_occurrence_mismatch: old_string occurs 2 times in a.txt"),
        ({**REPLACE, "old_string": "twice", "expected_replacements": 3}, "edit_expected_occurrence_mismatch"),
        ({**REPLACE, "old_string": "", "new_string": "x"}, "attempt_to_create_existing_file"),
        ({**REPLACE, "new_string": "old"}, "edit_no_change"),
        ({**REPLACE, "file_path": "none.txt"}, "file_not_found"),
    ],
)
async def test_a_replacement_that_is_not_possible_says_why(
    workspace: Path, arguments: dict[str, Any], category: str
) -> None:
    (workspace / "a.txt").write_bytes(b"old twice twice\n")
    assert (await failure_of(Replace(), workspace, arguments)).startswith(category)
    assert (workspace / "a.txt").read_bytes() == b"old twice twice\n"


async def test_several_edits_are_made_in_order_in_the_result_of_those_before(workspace: Path) -> None:
    (workspace / "a.txt").write_bytes(b"one\r\ntwo\r\nthree\r\n")
    edits = [
        {"old_string": "one", "new_string": "two"},
        {"old_string": "two\ntwo", "new_string": "2\n2"},
        {"old_string": "2", "new_string": "zwei", "replace_all": True},
    ]
    diff = await written(Replace(), workspace, {"file_path": "a.txt", "edits": edits})
    assert (workspace / "a.txt").read_bytes() == b"zwei\r\nzwei\r\nthree\r\n"
    assert diff.old_content == "one\r\ntwo\r\nthree\r\n"


async def test_of_several_edits_none_is_made_if_one_is_not_possible(workspace: Path) -> None:
    (workspace / "a.txt").write_bytes(b"old\n")
    edits = [{"old_string": "old", "new_string": "new"}, {"old_string": "old", "new_string": "x"}]
    failure = await failure_of(Replace(), workspace, {"file_path": "a.txt", "edits": edits})
    assert failure.startswith("edit_no_occurrence_found: edits[2]: old_string does not occur in a.txt")
    assert (workspace / "a.txt").read_bytes() == b"old\n"


async def test_one_edit_and_several_in_a_call_are_refused(workspace: Path) -> None:
    arguments = {**REPLACE, "edits": [{"old_string": "a", "new_string": "b"}]}
    assert (await failure_of(Replace(), workspace, arguments)) == (
        "invalid_arguments: replace: expected old_string and new_string, or edits; received both"
    )
    assert (await failure_of(Replace(), workspace, {"file_path": "a.txt", "new_string": "x"})) == (
        "invalid_arguments: replace: old_string: expected a string, received nothing"
    )


async def test_the_model_is_told_how_its_text_differed_from_the_file(workspace: Path) -> None:
    (workspace / "a.txt").write_bytes(b"    if old:\n        go()\n")
    arguments = {"file_path": "a.txt", "old_string": "if old:\n    go()\n", "new_string": "if new:\n    go()\n"}
    approved = Approved(await proposal_of(Replace(), workspace, arguments))
    result = await success_of(Replace(), tool_context(workspace), approved, **arguments)
    assert "(old_string was found with another indentation.)" in result.for_model
    assert "\n-    if old:\n+    if new:\n" in result.for_model
    assert (workspace / "a.txt").read_bytes() == b"    if new:\n        go()\n"


@pytest.mark.parametrize(
    ("before", "old", "new", "told"),
    [
        ("one\nold\n", "old", "new", "line 2 of 2"),
        ("one\nold\nthree", "old\n", "a\nb\nc\n", "lines 2-4 of 5"),
        ("old\nx\nold\ny\nold\n", "old", "a\nb", "lines 1-2, 4-5, 7-8 of 8"),
        ("one\nold\nthree\n", "old\n", "", "removed after line 1 of 2"),
        ("old\nx\nold\n", "old\n", "", "removed after line 0, removed after line 1 of 1"),
        ("x\nold\n" * 30, "old", "new", "lines 2, 4, 6, 8, 10, 12, 14, 16, 18, 20 and further ones of 60"),
        ("old", "old", "", "all of it was removed"),
    ],
)
async def test_the_model_is_told_the_lines_of_an_edit_and_not_its_own_text_again(
    workspace: Path, before: str, old: str, new: str, told: str
) -> None:
    (workspace / "a.txt").write_text(before, encoding="utf-8")
    arguments = {"file_path": "a.txt", "old_string": old, "new_string": new, "allow_multiple": True}
    approved = Approved(await proposal_of(Replace(), workspace, arguments))
    result = await success_of(Replace(), tool_context(workspace), approved, **arguments)
    assert result.for_model == f"Modified the file {workspace / 'a.txt'}. Changed now: {told}."


async def test_a_refusal_shows_the_nearest_lines_with_their_numbers(workspace: Path) -> None:
    (workspace / "a.txt").write_bytes(b"first\ntotal = compute(alpha, beta)\nlast\n")
    arguments = {"file_path": "a.txt", "old_string": "total = compute(alpha, gamma)", "new_string": "x"}
    assert "The nearest lines are:\n2\ttotal = compute(alpha, beta)\n" in await failure_of(
        Replace(), workspace, arguments
    )


async def test_an_empty_old_string_makes_a_new_file(workspace: Path) -> None:
    await written(Replace(), workspace, {"file_path": "n.txt", "old_string": "", "new_string": "x\n"})
    assert (workspace / "n.txt").read_bytes() == b"x\n"


async def test_all_occurrences_are_replaced_when_asked_for(workspace: Path) -> None:
    (workspace / "a.txt").write_bytes(b"old old\nold\n")
    await written(Replace(), workspace, {**REPLACE, "allow_multiple": True})
    assert (workspace / "a.txt").read_bytes() == b"new new\nnew\n"


async def test_the_same_approval_never_writes_twice(workspace: Path) -> None:
    (workspace / "a.txt").write_bytes(b"old\n")
    approved = Approved(await proposal_of(Replace(), workspace, REPLACE))
    await success_of(Replace(), tool_context(workspace), approved, **REPLACE)
    assert (await failure_of(Replace(), workspace, REPLACE, approved)).startswith("file_changed")


async def test_an_approval_of_another_file_is_not_taken(workspace: Path) -> None:
    (workspace / "a.txt").write_bytes(b"old\n")
    proposal = await proposal_of(Replace(), workspace, REPLACE)
    other = Approved(with_fields(proposal, file_path=str(workspace / "b.txt")))
    assert (await failure_of(Replace(), workspace, REPLACE, other)).startswith("file_changed")
