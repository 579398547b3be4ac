"""Other readings of a piece that is not in a file, and edits whose result the file has already."""

from pathlib import Path

import pytest

from isthmus.tools.edits.replace import Replace
from isthmus.tools.edits.replacement import NotReplaced, Replaced, replace_text
from isthmus.tools.port.failure import ToolFailure
from support.tool_calls import success_of, tool_context

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("text", "old", "new", "after", "tolerated"),
    [
        ("a\nb\nc\n", "2\tb\n", "2\tx\n3\ty\n", "a\nx\ny\nc\n", "line numbers, which were left out"),
        ("a\n\nc\n", "1→a\n2→\n3→c\n", "1→a\n2→\n3→d\n", "a\n\nd\n", "line numbers, which were left out"),
        ("a\nb\n", "```\na\n```", "```\nx\n```", "x\nb\n", "a code fence, which was left out"),
        ("a\nb\n", "```\n1\ta\n```", "```\n1\tx\n```", "x\nb\n",
         "a code fence, which was left out and line numbers, which were left out"),
        ("if x:\n    y\n", "7\tif x:\n8\ty\n", "7\tif x:\n8\tz\n", "if x:\n    z\n",
         "line numbers, which were left out and another indentation (tabs, spaces or depth)"),
        ("a &lt; b\n", "a &lt; b", "a &lt; c", "a &lt; c\n", ""),
        ("1\ta\n", "1\ta", "1\tb", "1\tb\n", ""),
    ],
)  # fmt: skip
def test_what_does_not_belong_to_the_text_is_left_out_and_named(
    text: str, old: str, new: str, after: str, tolerated: str
) -> None:
    assert replace_text(text, old, new) == Replaced(after, 1, tolerated)


@pytest.mark.parametrize("old", ["1\ta\n3\tb\n", "1\ta\n2: b\n", "1\n2\n", "x\ta\n"])
def test_numbers_that_are_none_of_a_reader_stay(old: str) -> None:
    assert isinstance(replace_text("a\nb\n", old, "c\n"), NotReplaced)


@pytest.mark.parametrize(
    ("text", "arguments", "told"),
    [
        ("a=10\n", {"old_string": "a=1", "new_string": "a=10"},
         "a.py already has new_string around old_string, at line 1: this edit seems to be made already"),
        ("x\nreturn width * height\n", {"old_string": "return width", "new_string": "return width * height"},
         "at line 2: this edit seems to be made already"),
        ("x\nreturn width * height\n", {"old_string": "return depth(1)", "new_string": "return width * height"},
         "old_string does not occur in a.py, but new_string does, at line 2"),
        ("a\n", {"edits": [{"old_string": "a\n", "new_string": "a\nb\n"}, {"old_string": "a", "new_string": "a\nb"}]},
         "edits[2]: a.py already has new_string around old_string"),
    ],
)  # fmt: skip
async def test_an_edit_that_is_made_already_is_not_made_again(
    workspace: Path, text: str, arguments: dict[str, object], told: str
) -> None:
    (workspace / "a.py").write_text(text, encoding="utf-8")
    with pytest.raises(ToolFailure) as failure:
        await Replace().propose({"file_path": "a.py", **arguments}, tool_context(workspace))
    assert told in str(failure.value)
    assert failure.value.category == "edit_made_already"


async def test_the_same_edit_twice_in_one_call_is_made_once_and_said(workspace: Path) -> None:
    (workspace / "a.py").write_text("a=1\n", encoding="utf-8")
    edits = [{"old_string": "a=1", "new_string": "a=10"}] * 2
    result = await success_of(Replace(), tool_context(workspace), file_path="a.py", edits=edits)
    assert (workspace / "a.py").read_text(encoding="utf-8") == "a=10\n"
    assert "(edits[2]: the same as an earlier one, which was made once.)" in result.for_model
