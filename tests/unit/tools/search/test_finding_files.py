import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.tools.port.base import Tool
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.reading.read_many_files import ReadManyFiles
from isthmus.tools.search.glob import Glob
from isthmus.tools.search.glob_pattern import FileFilter, GlobPattern
from isthmus.tools.search.list_directory import ListDirectory
from support.tool_calls import success_of, tool_context
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


def make(workspace: Path, files: dict[str, str]) -> None:
    for index, (path, text) in enumerate(files.items()):
        (workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (workspace / path).write_text(text, encoding="utf-8")
        os.utime(workspace / path, (1_000 + index, 1_000 + index))


async def text_of(tool: Tool, workspace: Path, **arguments: Any) -> str:
    return (await success_of(tool, tool_context(workspace), **arguments)).for_model


async def category_of(tool: Tool, workspace: Path, **arguments: Any) -> str:
    with pytest.raises(ToolFailure) as failure:
        await text_of(tool, workspace, **arguments)
    return failure.value.category


async def found(workspace: Path, **arguments: Any) -> list[str]:
    text = await text_of(Glob(), workspace, **arguments)
    return [line.removeprefix(f"{workspace}/") for line in text.split("\n")[1:]]


async def test_a_listing_has_folders_first_sizes_and_the_number_of_ignored_entries(workspace: Path) -> None:
    make(workspace, {"b.txt": "12345", "a/x": "", ".gitignore": "*.log\n", "x.log": "", ".git/config": "", "é": "é"})
    (workspace / "link").symlink_to("a")
    assert await text_of(ListDirectory(), workspace, dir_path=".") == (
        f"Directory listing for {workspace}:\n"
        "[DIR] a\n.gitignore (6 bytes)\nb.txt (5 bytes)\nlink -> a\né (2 bytes)\n(1 ignored)"
    )


async def test_a_listing_leaves_out_what_the_call_or_geminiignore_names(workspace: Path) -> None:
    make(workspace, {"s/a.tmp": "", "s/b": "", "s/c.log": "", ".gitignore": "*.log", ".geminiignore": "s/b"})
    text = await text_of(
        ListDirectory(),
        workspace,
        path="s",
        ignore=["*.tmp"],
        file_filtering_options={"respect_git_ignore": False, "respect_gemini_ignore": False},
    )
    assert text == f"Directory listing for {workspace / 's'}:\nc.log (0 bytes)\n(2 ignored)"


async def test_a_listing_of_too_many_entries_says_how_many_are_missing(workspace: Path) -> None:
    for number in range(1_003):
        (workspace / f"f{number:04}").touch()
    text = await text_of(ListDirectory(), workspace, dir_path=str(workspace))
    assert text.endswith("f0999 (0 bytes)\n[3 more entries are not shown; glob finds them]")


async def test_a_name_that_is_not_utf8_is_shown_escaped(workspace: Path) -> None:
    (workspace / os.fsdecode(b"caf\xe9")).touch()
    assert "caf\\xe9 (0 bytes)" in await text_of(ListDirectory(), workspace, dir_path=".")
    assert await found(workspace, pattern="*") == ["caf\\xe9"]


async def test_what_cannot_be_listed_says_why(workspace: Path) -> None:
    make(workspace, {"file": "", "secret/x": "", ".geminiignore": "secret/"})
    assert await category_of(ListDirectory(), workspace, dir_path="file") == "path_is_not_a_directory"
    assert await category_of(ListDirectory(), workspace, dir_path="none") == "file_not_found"
    assert await category_of(ListDirectory(), workspace, dir_path="..") == "outside_workspace"
    assert await category_of(ListDirectory(), workspace, dir_path="secret") == "ignored_file"
    (workspace / "empty").mkdir()
    assert (await text_of(ListDirectory(), workspace, dir_path="empty")).endswith("The folder is empty.")


async def test_glob_gives_the_newest_first_and_leaves_out_ignored_files(workspace: Path) -> None:
    make(
        workspace, {"a.py": "", "s/b.py": "", "s/t/c.py": "", "x.PY": "", "s/d.txt": "", "v/e.py": "", ".git/f.py": ""}
    )
    make(workspace, {".gitignore": "v/\n"})
    assert await found(workspace, pattern="**/*.py") == ["x.PY", "s/t/c.py", "s/b.py", "a.py"]
    assert await found(workspace, pattern="**/*.py", case_sensitive=True) == ["s/t/c.py", "s/b.py", "a.py"]
    assert await found(workspace, pattern="*.py", dir_path="s") == ["s/b.py"]
    assert await found(workspace, pattern="s/*.{py,txt}") == ["s/d.txt", "s/b.py"]
    assert await found(workspace, pattern=f"{workspace}/s/*") == ["s/d.txt", "s/b.py"]
    assert await found(workspace, pattern="v/*", respect_git_ignore=False) == ["v/e.py"]


async def test_glob_says_when_nothing_is_found_and_when_more_is_there(workspace: Path) -> None:
    assert (
        await text_of(Glob(), workspace, pattern="*.x") == f'No files found matching pattern "*.x" within {workspace}.'
    )
    for number in range(1_002):
        (workspace / f"{number}").touch()
    text = await text_of(Glob(), workspace, pattern="*")
    assert text.startswith(f'Found 1002 file(s) matching "*" within {workspace}, newest first:\n')
    assert text.endswith("\n[2 more files are not shown; use a narrower pattern]")


async def test_a_name_that_looks_like_a_pattern_is_found_by_itself(workspace: Path) -> None:
    make(workspace, {"app/[id]/page.tsx": "", "app/i/page.tsx": ""})
    assert await found(workspace, pattern="app/[id]/page.tsx") == ["app/[id]/page.tsx"]
    assert await found(workspace, pattern="app/[ix]/*") == ["app/i/page.tsx"]


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("**", "a/b", True),
        ("**/a", "a", True),
        ("a/**", "a/b/c", True),
        ("a/**/z", "a/z", True),
        ("a/**/z", "a/b/c/z", True),
        ("a/*/z", "a/b/c/z", False),
        ("*", "a/b", False),
        ("*", ".hidden", True),
        ("a?c", "abc", True),
        ("a?c", "a/c", False),
        ("[!a]b", "cb", True),
        ("[^a]b", "ab", False),
        ("x.{ts,tsx}", "x.tsx", True),
        ("{a,b/{c,d}}/e", "b/d/e", True),
        ("{a}", "{a}", True),
        ("{a,b", "{a,b", True),
        ("./a", "a", True),
        ("a.b", "axb", False),
    ],
)
def test_a_glob_pattern_matches_as_in_a_shell(pattern: str, path: str, fits: bool) -> None:
    assert GlobPattern(pattern).matches(path) is fits


@given(st.text(st.sampled_from("a*?[]{},/!^-\\."), max_size=30), st.text(st.sampled_from("a./"), max_size=60))
def test_no_pattern_is_invalid_or_takes_for_ever(pattern: str, path: str) -> None:
    GlobPattern(pattern).matches(path)


def test_a_pattern_of_many_stars_does_not_take_for_ever() -> None:
    assert not GlobPattern("*a" * 40 + "b").matches("a" * 250)
    assert not GlobPattern("**/a/" * 40 + "b").matches("a/" * 250)


def test_a_filter_without_a_slash_is_about_names() -> None:
    assert FileFilter("*.py").matches("a/b/c.py")
    assert not FileFilter("a/*.py").matches("x/a/c.py")
    assert FileFilter("src/**").matches("src/b/c.py")


async def test_many_files_are_joined_in_the_order_of_their_paths(workspace: Path) -> None:
    make(workspace, {"b.md": "B\r\n", "a/x.md": "X", "a/y.txt": "Y", "node_modules/z.md": "Z", "i.png": "\0"})
    text = await text_of(ReadManyFiles(), workspace, include=["**/*.md", "a", "i.png"])
    assert text == (
        "--- a/x.md ---\n\nX\n\n--- a/y.txt ---\n\nY\n\n--- b.md ---\n\nB\n\n\n--- End of content ---\n"
        "Read 3 of 4 files.\ni.png is an image and was not read."
    )


async def test_what_is_excluded_closed_or_ignored_is_not_read(workspace: Path) -> None:
    make(workspace, {"a.md": "A", "b.md": "B", "c.md": "C", "d.md": "D", ".geminiignore": "c.md", ".gitignore": "d.md"})
    assert "Read 1 of 1 files" in await text_of(ReadManyFiles(), workspace, paths=["*.md"], exclude=["b.*"])
    assert await text_of(ReadManyFiles(), workspace, include=["c.md"]) == "No files match c.md."
    options = {"respect_git_ignore": False}
    assert "\nD\n" in await text_of(ReadManyFiles(), workspace, include=["d.md"], file_filtering_options=options)


async def test_patterns_that_lead_out_of_the_workspace_are_refused(workspace: Path) -> None:
    for pattern in ("../*", "/etc/*", "a/../../x"):
        assert await category_of(ReadManyFiles(), workspace, include=[pattern]) == "outside_workspace"


async def test_too_much_text_is_cut_and_what_is_missing_is_named(workspace: Path) -> None:
    make(workspace, {f"f{number}": ("x" * 999 + "\n") * 36 for number in range(4)})
    text = await text_of(ReadManyFiles(), workspace, include=["*"])
    assert len(text) < 82_000
    assert "f2 is cut: " in text
    assert text.endswith("1 more files are left out: the limit is reached at f3.")


async def test_an_empty_list_of_patterns_is_refused(workspace: Path) -> None:
    assert await category_of(ReadManyFiles(), workspace, include=[]) == "invalid_arguments"
    assert await category_of(ReadManyFiles(), workspace, include=[""]) == "invalid_arguments"
    assert await category_of(ReadManyFiles(), workspace, include="*.md") == "invalid_arguments"


async def test_a_name_with_line_breaks_takes_one_line_in_every_listing(workspace: Path) -> None:
    make(workspace, {"a\nb.txt (9 bytes)": "", "c\r\x1b[2J\u2028\x85d": ""})
    (workspace / "link").symlink_to("to\nnowhere")
    assert (await text_of(ListDirectory(), workspace, dir_path=".")).split("\n")[1:] == [
        "a\\nb.txt (9 bytes) (0 bytes)",
        "c\\r\\x1b[2J\\u2028\\x85d (0 bytes)",
        "link -> to\\nnowhere",
    ]
    assert "a\\nb.txt (9 bytes)" in await found(workspace, pattern="**/*")


async def test_many_files_are_found_in_the_index_of_the_workspace(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(workspace, {f"pkg{at}/a.py": f"text {at}" for at in range(20)})
    looked: list[str] = []
    scandir = os.scandir

    def counted(folder: str) -> Any:
        looked.append(str(folder))
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", counted)

    context = tool_context(workspace)

    async def is_known() -> bool:
        looked.clear()
        found = await success_of(ReadManyFiles(), context, include=["pkg7/*.py"])
        assert "text 7" in found.for_model
        return not set(looked) - {str(workspace), str(workspace / "pkg7")}  # whose rules are read for each call

    # Folders that changed shortly before they were listed are read again.
    await eventually_async(is_known, what="a call lists no other folder again")
    make(workspace, {"pkg3/b.py": "new text"})
    looked.clear()
    found = await success_of(ReadManyFiles(), context, include=["pkg3/*", "pkg7/*"], exclude=["**/a.py"])
    assert found.for_model.startswith("--- pkg3/b.py ---\n\nnew text")
    assert "Read 1 of 1 files." in found.for_model
    assert {Path(folder).name for folder in looked} <= {workspace.name, "pkg3", "pkg7"}
