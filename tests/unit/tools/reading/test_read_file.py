import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from isthmus.tools.edits.replace import Replace
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.reading.read_file import ReadFile
from support.tool_calls import success_of, tool_context

pytestmark = pytest.mark.anyio


async def text_of(workspace: Path, **arguments: Any) -> str:
    return (await success_of(ReadFile(), tool_context(workspace), **arguments)).for_model


async def failure_of(workspace: Path, **arguments: Any) -> ToolFailure:
    with pytest.raises(ToolFailure) as failure:
        await text_of(workspace, **arguments)
    return failure.value


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"one\ntwo", "1\tone\n2\ttwo"),
        (b"one\r\ntwo\r\n", "1\tone\n2\ttwo\n"),
        (b"\xef\xbb\xbfmark\n", "1\tmark\n"),
        ("\ufeffwide é\n".encode("utf-16-le"), "1\twide é\n"),
        (b"caf\xe9\n", "1\tcafé\n"),
        (b"\n\nend\x0c\n", "1\t\n2\t\n3\tend\x0c\n"),
        (b"", "a.txt is empty."),
    ],
)
async def test_the_text_of_a_file_is_read_whatever_its_form(workspace: Path, data: bytes, text: str) -> None:
    (workspace / "a.txt").write_bytes(data)
    assert await text_of(workspace, file_path="a.txt") == text
    assert await text_of(workspace, absolute_path=str(workspace / "a.txt")) == text.replace(
        "a.txt is", f"{workspace / 'a.txt'} is"
    )


@pytest.mark.parametrize(
    ("arguments", "lines", "note"),
    [
        ({"start_line": 2, "end_line": 3}, "2\tl2\n3\tl3\n", "Lines 2-3 of 5"),
        ({"start_line": 4}, "4\tl4\n5\tl5", "Lines 4-5 of 5"),
        ({"end_line": 1}, "1\tl1\n", "use start_line: 2"),
        ({"start_line": 4, "end_line": 99}, "4\tl4\n5\tl5", "Lines 4-5 of 5"),
        ({"offset": 1, "limit": 2}, "2\tl2\n3\tl3\n", "Lines 2-3 of 5"),
        ({"offset": 3.0}, "4\tl4\n5\tl5", "Lines 4-5 of 5"),
        ({"start_line": 9}, "", "has 5 lines; there is no line 9"),
    ],
)
async def test_a_range_of_lines_is_read_and_said(
    workspace: Path, arguments: dict[str, Any], lines: str, note: str
) -> None:
    (workspace / "a").write_text("l1\nl2\nl3\nl4\nl5", encoding="utf-8")
    text = await text_of(workspace, file_path="a", **arguments)
    first, _, rest = text.partition("\n")
    assert note in first
    assert rest == lines


async def test_a_long_file_is_cut_after_two_thousand_lines_and_says_how_to_read_on(workspace: Path) -> None:
    (workspace / "a").write_text("".join(f"{number}\n" for number in range(1, 5_001)), encoding="utf-8")
    text = await text_of(workspace, file_path="a")
    assert text.startswith("[Lines 1-2000 of 5000 of a. To read on, use start_line: 2001.]\n1\t1\n")
    assert text.endswith("\n2000\t2000\n")


async def test_a_long_line_is_cut_and_that_is_said(workspace: Path) -> None:
    (workspace / "a").write_text("x" * 10_000 + "\nnext", encoding="utf-8")
    text = await text_of(workspace, file_path="a")
    assert text == (
        "[Lines 1-2 of 2 of a. Lines of more than 2000 characters are cut.]\n1\t"
        + "x" * 2_000
        + "... [line cut]\n2\tnext"
    )


async def test_many_long_lines_are_cut_by_characters(workspace: Path) -> None:
    (workspace / "a").write_text(("x" * 1_999 + "\n") * 1_000, encoding="utf-8")
    text = await text_of(workspace, file_path="a")
    assert text.startswith("[Lines 1-20 of 1000 of a.")
    assert len(text) < 201_000


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("a.mp3", b"ID3\0\0", "a.mp3 is audio of 5 bytes, not text"),
        ("a.png", b"\x89PNG" + bytes(10_000_000), "a.png is an image of 10000004 bytes, not text"),
        ("prog", b"\x7fELF\0\0", "prog is a binary file of 6 bytes"),
    ],
)
async def test_binary_files_are_named_as_what_they_are(workspace: Path, name: str, data: bytes, said: str) -> None:
    (workspace / name).write_bytes(data)
    failure = await failure_of(workspace, file_path=name)
    assert failure.category == "binary_file"
    assert said in str(failure)


async def test_a_folder_is_refused_with_the_tool_that_lists_it(workspace: Path) -> None:
    (workspace / "src").mkdir()
    failure = await failure_of(workspace, file_path="src")
    assert (failure.category, "list_directory" in str(failure)) == ("target_is_directory", True)


async def test_missing_files_pipes_and_huge_files_fail_without_waiting(workspace: Path) -> None:
    os.mkfifo(workspace / "pipe")
    with (workspace / "huge").open("wb") as file:
        file.truncate(10**9)
    categories = [(await failure_of(workspace, file_path=name)).category for name in ("none", "pipe", "huge", "a/b")]
    assert categories == ["file_not_found", "read_content_failure", "file_too_large", "file_not_found"]


async def test_a_link_that_leads_out_between_proposal_and_reading_is_refused(workspace: Path, tmp_path: Path) -> None:
    (workspace / "a").write_text("mine", encoding="utf-8")
    (tmp_path / "secret").write_text("theirs", encoding="utf-8")
    tool, context = ReadFile(), tool_context(workspace)
    arguments = {"file_path": "a"}
    await tool.propose(arguments, context)
    (workspace / "a").unlink()
    (workspace / "a").symlink_to(tmp_path / "secret")
    with pytest.raises(ToolFailure, match="outside the workspace"):
        await success_of(tool, context, **arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "read_file: file_path: expected a non-empty string, received nothing"),
        ({"file_path": 3}, "file_path: expected a non-empty string, received int 3"),
        ({"file_path": ""}, "file_path: expected a non-empty string, received str ''"),
        ({"file_path": "a", "start_line": 0}, "start_line: expected a whole number of 1 or more, received int 0"),
        ({"file_path": "a", "start_line": 1.5}, "start_line: expected a whole number of 1 or more, received float 1.5"),
        ({"file_path": "a", "start_line": True}, "received bool True"),
        ({"file_path": "a", "start_line": 3, "end_line": 2}, "end_line: expected start_line (3) or a later line"),
        ({"file_path": "\ud800"}, "expected Unicode text, received U+D800 at offset 0"),
        ({"file_path": ["x" * 200]}, "received list ['xxx"),
    ],
)
async def test_wrong_arguments_are_named_with_what_was_expected_and_what_came(
    workspace: Path, arguments: dict[str, Any], message: str
) -> None:
    (workspace / "a").write_text("x", encoding="utf-8")
    failure = await failure_of(workspace, **arguments)
    assert failure.category == "invalid_arguments"
    assert message in str(failure)
    assert len(str(failure)) < 200


async def test_names_beyond_ascii_are_read(workspace: Path) -> None:
    (workspace / "naïve 文件.txt").write_text("x", encoding="utf-8")
    assert await text_of(workspace, file_path="naïve 文件.txt") == "1\tx"


async def test_arguments_of_other_agents_tools_do_no_harm(workspace: Path) -> None:
    (workspace / "a").write_text("x", encoding="utf-8")
    assert await text_of(workspace, file_path="a", wait_for_previous=True, start_line=None) == "1\tx"


@pytest.mark.parametrize(
    ("name", "data", "media_type"),
    [("a.PNG", b"\x89PNG\r\n\x1a\n\0\0\0", "image/png"), ("a.pdf", b"%PDF-1.7\n\0", "application/pdf")],
)
async def test_an_image_or_document_is_shown_as_it_was_when_it_was_read(
    workspace: Path, name: str, data: bytes, media_type: str
) -> None:
    (workspace / name).write_bytes(data)
    context = tool_context(workspace)
    result = await success_of(ReadFile(), context, file_path=name)
    (workspace / name).write_bytes(b"another")
    (media,) = result.media
    assert media.media_type == media_type
    assert media.path.parent == context.output_folder
    assert media.path.read_bytes() == data
    assert result.for_model == f"{name}: {media_type}, {len(data)} B"


async def test_what_a_call_of_the_same_task_kept_can_be_read_and_nothing_else_outside(
    workspace: Path,
) -> None:
    context = tool_context(workspace)
    kept = context.output_folder / "call-1.txt"
    kept.parent.mkdir()
    kept.write_text("all of it")
    other = context.output_folder.with_name("outputs-of-another-task") / "call-1.txt"
    other.parent.mkdir()
    other.write_text("secret")
    (context.output_folder / "link").symlink_to(other)
    (context.output_folder / "folder").symlink_to(other.parent)
    assert (await success_of(ReadFile(), context, file_path=str(kept))).for_model == "1\tall of it"
    for path in (other, kept.parent / "link", kept.parent / "folder" / "call-1.txt", kept.parent / ".." / other):
        failure = await failure_of(workspace, file_path=str(path))
        assert failure.category == "outside_workspace", path
    assert (await failure_of(workspace, file_path=str(kept.parent))).category == "outside_workspace"


async def test_what_a_call_kept_is_read_in_a_workspace_that_holds_the_outputs(workspace: Path) -> None:
    context = replace(tool_context(workspace), output_folder=workspace / ".outputs")
    (workspace / ".outputs").mkdir()
    (workspace / ".outputs" / "a.txt").write_text("x")
    (workspace / ".geminiignore").write_text(".outputs\n")
    path = str(workspace / ".outputs" / "a.txt")
    assert (await success_of(ReadFile(), context, file_path=path)).for_model == "1\tx"


async def test_users_are_shown_the_text_without_numbers(workspace: Path) -> None:
    (workspace / "a.py").write_text("x = 1\ny = 2\n", encoding="utf-8")
    result = await success_of(ReadFile(), tool_context(workspace), file_path="a.py", start_line=2)
    assert result.output.text == "[Lines 2-2 of 2 of a.py.]\ny = 2\n"


async def test_the_numbered_form_can_be_given_back_as_an_edit(workspace: Path) -> None:
    (workspace / "a.py").write_text("def f():\n\n    return 1\n\n\ndef g():\n\treturn 1\n", encoding="utf-8")
    lines = (await text_of(workspace, file_path="a.py")).splitlines(keepends=True)
    old = "".join(lines[5:])
    await success_of(
        Replace(), tool_context(workspace), file_path="a.py", old_string=old, new_string=old.replace("return", "yield")
    )
    assert (workspace / "a.py").read_text(encoding="utf-8").endswith("def g():\n\tyield 1\n")


async def test_numbers_cost_little(workspace: Path) -> None:
    text = "".join(f"    value_{number} = compute(value_{number - 1})\n" for number in range(1, 1_001))
    (workspace / "a.py").write_text(text, encoding="utf-8")
    assert len(await text_of(workspace, file_path="a.py")) == len(text) + 3_893
