"""Searches of whole trees: one run of ripgrep, the results of a walk, and what was left out is said."""

import asyncio
import re
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isthmus.files.path_rules import PathAccess, PathRule
from isthmus.tools.port.base import ToolContext
from isthmus.tools.port.file_index import FileIndex
from isthmus.tools.port.shown_files import ShownFiles
from isthmus.tools.port.workspace import Workspace
from isthmus.tools.search import grep_search, ripgrep_tree
from isthmus.tools.search.glob_pattern import FileFilter
from isthmus.tools.search.grep_search import GrepSearch
from isthmus.tools.search.line_matcher import is_binary
from isthmus.tools.search.listing import list_files, with_sizes
from isthmus.tools.search.ripgrep_tree import SearchedTree, search_tree
from isthmus.tools.search.search_engines import LineQuery, OwnEngine, Ripgrep, SearchEngine
from isthmus.tools.search.skipped_files import SkippedFiles
from support.ripgrep import RG, NoFallback
from support.tool_calls import success_of, tool_context

pytestmark = pytest.mark.anyio

BIG = 10 * 1024 * 1024 + 1


@pytest.fixture(params=["ripgrep", "own"])
def engine(request: pytest.FixtureRequest) -> SearchEngine:
    return OwnEngine() if request.param == "own" else Ripgrep(RG, NoFallback())


async def text_of(workspace: Path, engine: SearchEngine, **arguments: Any) -> str:
    return (await success_of(GrepSearch(engine), tool_context(workspace), **arguments)).for_model


def make(workspace: Path, files: dict[str, str | bytes]) -> None:
    for path, content in files.items():
        (workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (workspace / path).write_bytes(content.encode() if isinstance(content, str) else content)


def counting(folder: Path, errors: str = "") -> Ripgrep:
    """Return ripgrep that writes a line into ``runs`` for each start, and `errors` to standard error."""
    program = folder / "rg-counted"
    program.write_text(
        f"#!/bin/sh\necho run >> '{folder}/runs'\nprintf '%s' '{errors}' >&2\nexec '{RG}' \"$@\"\n", encoding="utf-8"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return Ripgrep(str(program), NoFallback())


def runs(folder: Path) -> int:
    return (folder / "runs").read_text("utf-8").count("run")


async def test_no_matches_says_which_files_were_not_searched(workspace: Path, engine: SearchEngine) -> None:
    make(workspace, {"a.txt": "y", "p.png": "x1", "P.JPG": "x1", "hidden/big": b"x1" + bytes(BIG), "b.bin": b"x1\0"})
    make(workspace, {"data/big.json": b"x1" + bytes(BIG), ".gitignore": "hidden/\n"})
    text = await text_of(workspace, engine, pattern="x1")
    assert text == (
        'No matches found for pattern "x1" in the workspace.\n[Not searched - data/big.json (more than 10 MiB); '
        "b.bin (not text); 2 files whose names say that they are not text]"
    )
    text = await text_of(workspace, engine, pattern="x1", include_pattern="*.png")
    assert text.endswith('(filter: "*.png").\n[Not searched - 1 file whose names say that they are not text]')
    text = await text_of(workspace, engine, pattern="y", names_only=True)
    assert text.startswith("[Not searched - data/big.json (more than 10 MiB)")
    assert text.endswith("in the workspace:\na.txt")


async def test_a_file_that_has_grown_since_the_listing_is_not_shown(workspace: Path) -> None:
    make(workspace, {"big": "x1\n", "a": "x1"})
    context = tool_context(workspace)
    listing = await with_sizes(await list_files(context.workspace, workspace), 60.0)
    assert listing.knows_large
    with (workspace / "big").open("r+b") as file:
        file.truncate(BIG)
    shown = ShownFiles(context.workspace, workspace)
    skipped = SkippedFiles()
    tree = SearchedTree(context.workspace, listing, shown)
    found = await search_tree(Ripgrep(RG), LineQuery("x1"), tree, 10, skipped)
    assert [file.path.name for file in found or ()] == ["a"]
    assert skipped.too_large == {"big"}


async def test_large_files_that_are_not_known_are_left_out_with_a_word(
    workspace: Path, engine: SearchEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(workspace, {"big": b"x1\n" + b"y" * BIG, "a": "y"})

    def without_time(_index: FileIndex, _start: str, _should_stop: object) -> bool:
        return False

    monkeypatch.setattr(FileIndex, "find_large", without_time)
    text = await text_of(workspace, engine, pattern="z1")
    assert "big (more than 10 MiB)" in text or "[Not searched - any files of more than 10 MiB]" in text


async def test_large_files_are_looked_for_when_nothing_is_found(
    workspace: Path, engine: SearchEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grep_search, "SIZES_SECONDS", -1.0)  # in a tree that is too wide to look at each file first
    make(workspace, {"big": b"x1\n" + b"y" * BIG, "a": "y"})
    assert (await text_of(workspace, engine, pattern="z1")).endswith("\n[Not searched - big (more than 10 MiB)]")
    assert "Found 1 match" in await text_of(workspace, engine, pattern="y", include_pattern="a")


async def test_rules_that_came_after_the_listing_hide_files(workspace: Path) -> None:
    make(workspace, {"secret/key": "x1", "a": "x1"})
    context = tool_context(workspace)
    listing = await list_files(context.workspace, workspace)
    make(workspace, {".geminiignore": "secret/\n"})
    tree = SearchedTree(context.workspace, listing, ShownFiles(context.workspace, workspace))
    found = await search_tree(Ripgrep(RG), LineQuery("x1"), tree, 10, SkippedFiles())
    assert [file.path.name for file in found or ()] == ["a"]


async def test_closed_and_asked_files_stay_hidden(workspace: Path, engine: SearchEngine) -> None:
    make(workspace, {"secret.env": "x1", "asked/b": "x1", "a": "x1"})
    rule = PathRule("settings", ((str(workspace), "secret.env"),))
    asked = PathRule("settings", ((str(workspace), "asked/"),))
    access = PathAccess(closed=(rule,), asked=(asked,))
    context = tool_context(workspace)
    closed = ToolContext(Workspace(workspace, (), access), "call-1", context.output_folder, context.environment)
    text = (await success_of(GrepSearch(engine), closed, pattern="x1", names_only=True)).for_model
    assert text.split(":\n")[1] == "a"


@pytest.mark.slow
async def test_a_tree_is_searched_by_one_run_of_ripgrep(workspace: Path, tmp_path: Path) -> None:
    make(workspace, {f"{number // 100}/{number:05}{'n' * 100}": f"x{number}\n" for number in range(3_000)})
    denied = "rg: ./7: Permission denied (os error 13)\nrg: ./1/none: Permission denied (os error 13)\nrg: other\n"
    engine = counting(tmp_path, denied)
    text = await text_of(workspace, engine, pattern="x1234|x7$", names_only=True)
    assert [name[:8] for name in text.split(":\n")[-1].split("\n")] == ["0/00007n", "12/01234"]
    assert runs(tmp_path) == 1
    text = await text_of(workspace, engine, pattern="nothing at all")
    assert text.endswith("\n[Not searched - 1/none, 7/ (cannot be read)]")


async def test_matches_of_a_frequent_word_come_in_the_order_of_the_paths(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ripgrep_tree, "MANY_LINES", 500)
    monkeypatch.setattr(ripgrep_tree, "BATCH", 16)
    make(workspace, {f"{number:03}/a": "x\n" * 20 for number in range(100)})
    engine = counting(tmp_path)
    text = await text_of(workspace, engine, pattern="x", total_max_matches=50)
    assert text.startswith("Found 50 matches")
    assert re.findall("File: (.*)", text) == ["000/a", "001/a", "002/a"]
    assert runs(tmp_path) == 2


async def test_an_expression_that_ripgrep_refuses_is_searched_without_it(workspace: Path) -> None:
    make(workspace, {"a": "x" * 1_000})
    pattern = "(?:x{999}){999}|x{1000}"
    assert (await text_of(workspace, Ripgrep(RG), pattern=pattern, names_only=True)).endswith(":\na")


NAMES = st.sampled_from(["a", "b.py", "é", "x y", "[1]", "#c", "!d", "s\\t", "{a,b}", "k.png", "K.PNG", "lib.jar", "*"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
CONTENTS = st.sampled_from(["x1\n", "x1\nx1", "y", "", b"x1\0", b"\xffx1", "\ufeffx1"])
LINES = st.sampled_from(
    ["a", "a/", "/a/b.py", "!a", "*", "!*", "*.py", "!*.py", "\\#c", "[[]1]", "**/a", "a/**", "{a,b}", "x\\ y", "s*"]
)
RULES = st.dictionaries(
    st.sampled_from([".gitignore", ".geminiignore", "a/.gitignore", "a/.geminiignore", "é/.gitignore"]),
    st.lists(LINES, max_size=4).map("\n".join),
    max_size=3,
)


def walked(workspace: Path, include: str, *, git: bool) -> list[str]:
    """Return the files with a match, found by a walk and by reading each file: slow, and plainly right."""
    place = Workspace(workspace)
    found: list[str] = []
    for file in place.walk(place.root, git=git, for_contents=True):
        data = (place.root / file.path).read_bytes()
        is_named = not file.path.lower().endswith((".png", ".jar"))
        is_wanted = not include or FileFilter(include).matches(file.path)
        if is_named and is_wanted and not is_binary(data) and b"x1" in data:
            found.append(file.path)
    return found


@pytest.mark.slow
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    files=st.dictionaries(PATHS, CONTENTS, min_size=1, max_size=8),
    rules=RULES,
    include=st.sampled_from(["", "", "*.py", "*.{py,png}", "a/**", "[[]1]/*", "{a,b}"]),
    git=st.booleans(),
)
def test_a_search_finds_what_a_walk_finds(
    tmp_path_factory: pytest.TempPathFactory,
    files: dict[str, str | bytes],
    rules: dict[str, str],
    include: str,
    git: bool,
) -> None:
    workspace = tmp_path_factory.mktemp("tree").resolve()
    for path, content in {**files, **rules, "a/.git/HEAD": "x1", ".rgignore": "*", ".ignore": "*"}.items():
        place = workspace / path
        if not place.is_dir() and not any(above.is_file() for above in place.parents):
            make(workspace, {path: content})
    arguments: dict[str, Any] = {"pattern": "x1", "names_only": True, "no_ignore": not git, "include_pattern": include}
    arguments = {name: value for name, value in arguments.items() if value != ""}
    text = asyncio.run(text_of(workspace, Ripgrep(RG, NoFallback()), **arguments))
    found = [] if "No matches" in text else text.split(":\n")[-1].split("\n")
    expected = walked(workspace, include, git=git)
    assert [name.replace("\\\\", "\\") for name in found] == expected
