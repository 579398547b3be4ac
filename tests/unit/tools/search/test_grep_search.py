import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.search.grep_search import GrepSearch
from isthmus.tools.search.search_engines import (
    OwnEngine,
    Ripgrep,
    SearchEngine,
    available_engine,
    is_portable,
)
from support.ripgrep import RG, NoFallback
from support.tool_calls import success_of, tool_context
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["ripgrep", "own"])
def engine(request: pytest.FixtureRequest) -> SearchEngine:
    return OwnEngine() if request.param == "own" else Ripgrep(RG)


async def text_of(workspace: Path, engine: SearchEngine, **arguments: Any) -> str:
    return (await success_of(GrepSearch(engine), tool_context(workspace), **arguments)).for_model


def make(workspace: Path, files: dict[str, str | bytes]) -> None:
    for path, content in files.items():
        (workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (workspace / path).write_bytes(content.encode() if isinstance(content, str) else content)


async def test_matches_come_file_by_file_with_their_numbers(workspace: Path, engine: SearchEngine) -> None:
    make(workspace, {"b.py": "def one():\n    pass\nDEF two\n", "a/x.txt": "undefined", "c.md": "nothing"})
    assert await text_of(workspace, engine, pattern=r"def\b|\bdef|def") == (
        'Found 3 matches for pattern "def\\b|\\bdef|def" in the workspace:\n---\n'
        "File: a/x.txt\nL1: undefined\n---\nFile: b.py\nL1: def one():\nL3: DEF two\n---"
    )


@pytest.mark.parametrize(
    ("arguments", "files"),
    [
        ({"pattern": "x1"}, ["a.py", "s/b.py", "s/t/c.txt"]),
        ({"pattern": "X1", "case_sensitive": True}, []),
        ({"pattern": "X1"}, []),
        ({"pattern": "X1", "case_sensitive": False}, ["a.py", "s/b.py", "s/t/c.txt"]),
        ({"pattern": r"\Bx1|x\S|\x781"}, ["a.py", "s/b.py", "s/t/c.txt"]),
        ({"pattern": "x1", "include_pattern": "*.py"}, ["a.py", "s/b.py"]),
        ({"pattern": "x1", "include_pattern": "", "dir_path": ""}, ["a.py", "s/b.py", "s/t/c.txt"]),
        ({"pattern": "x1", "include": "s/**"}, ["s/b.py", "s/t/c.txt"]),
        ({"pattern": "x1", "dir_path": "s"}, ["s/b.py", "s/t/c.txt"]),
        ({"pattern": "x1", "path": "s", "include_pattern": "t/*"}, ["s/t/c.txt"]),
        ({"pattern": "x1", "dir_path": "s/b.py"}, ["s/b.py"]),
        ({"pattern": "x1", "no_ignore": True}, ["a.py", "s/b.py", "s/t/c.txt", "v/d.py"]),
        ({"pattern": "x1", "dir_path": "v"}, ["v/d.py"]),
        ({"pattern": "(", "fixed_strings": True}, ["s/b.py"]),
        ({"pattern": "x1", "exclude_pattern": "#"}, ["a.py", "s/t/c.txt"]),
        ({"pattern": "(?<=x)1"}, ["a.py", "s/b.py", "s/t/c.txt"]),
        ({"pattern": "(?!x)q"}, []),
    ],
)
async def test_where_is_searched_and_how(
    workspace: Path, engine: SearchEngine, arguments: dict[str, Any], files: list[str]
) -> None:
    make(workspace, {"a.py": "x1", "s/b.py": "x1 # (", "s/t/c.txt": "x1", "v/d.py": "x1", ".git/config": "x1"})
    make(workspace, {".gitignore": "v/\n", ".geminiignore": "g\n", "g": "x1", "b.bin": b"x1\0", "p.png": "x1"})
    text = await text_of(workspace, engine, names_only=True, **arguments)
    if not files:
        assert text.startswith("No matches found for pattern")
    else:
        assert text.split(":\n", 1)[1].split("\n") == files


async def test_lines_around_a_match_are_shown(workspace: Path, engine: SearchEngine) -> None:
    make(workspace, {"a": "1\r\n2\r\nx\r\n4\r\n5\r\nx\r\n"})
    text = await text_of(workspace, engine, pattern="^x$", before=1, after=2)
    assert text.split("File: a\n")[1] == "L2- 2\nL3: x\nL4- 4\nL5- 5\nL6: x\n---"
    text = await text_of(workspace, engine, pattern="^4$", context=9)
    assert text.split("File: a\n")[1] == "L1- 1\nL2- 2\nL3- x\nL4: 4\nL5- 5\nL6- x\n---"


async def test_limits_hold_and_are_said(workspace: Path, engine: SearchEngine) -> None:
    make(workspace, {"a": "x\n" * 80, "b": "x\n" * 80, "c": "x" * 5_000 + "\n"})
    text = await text_of(workspace, engine, pattern="x")
    assert text.startswith('Found 100 matches for pattern "x" in the workspace (only the first 100 are shown; there')
    assert text.count("\nL") == 100
    text = await text_of(workspace, engine, pattern="x", max_matches_per_file=2)
    assert text.startswith('Found 5 matches for pattern "x" in the workspace:')
    assert text.endswith("x... [line cut]\n---")
    assert len(text) < 2_300
    text = await text_of(workspace, engine, pattern="x", total_max_matches=160, include_pattern="[ab]")
    assert text.startswith('Found 160 matches for pattern "x" in the workspace (filter: "[ab]"):')


async def test_other_encodings_are_searched(workspace: Path, engine: SearchEngine) -> None:
    make(workspace, {"16le": "\ufeffGrüße\r\nx".encode("utf-16-le"), "16be": "\ufeffGrüße\n".encode("utf-16-be")})
    make(workspace, {"8": "\ufeffGrüße\n", "1": b"Gr\xfc\xdfe x\n", "u": "Grüße"})
    text = await text_of(workspace, engine, pattern="^Grüße$", case_sensitive=True, names_only=True)
    assert text.split(":\n", 1)[1].split("\n") == ["16be", "16le", "8", "u"]
    assert "L1: Gr\ufffd\ufffde x" in await text_of(workspace, engine, pattern="e x")


async def test_files_that_cannot_be_searched_are_left_out(workspace: Path, engine: SearchEngine) -> None:
    make(workspace, {"a": "x", "b": "x\n" + "\0" * 10, "big": b"x\n" * 6_000_000})
    (workspace / "link").symlink_to("a")
    text = await text_of(workspace, engine, pattern="x", names_only=True)
    assert text.split(":\n", 1)[1].split("\n") == ["a"]


async def test_unusual_file_names_are_searched(workspace: Path, engine: SearchEngine) -> None:
    make(workspace, {"-e x": "x", "new\nline": "x", "é": "x"})
    text = await text_of(workspace, engine, pattern="x", names_only=True)
    assert text.split(":\n", 1)[1] == "-e x\nnew\\nline\né"


@pytest.mark.parametrize("pattern", ["(", "[a", "*x", "a{2", "x\ny", "a\rb", "(?P<n>", "\\"])
async def test_a_pattern_that_is_none_is_refused_before_the_search(
    workspace: Path, engine: SearchEngine, pattern: str
) -> None:
    if pattern == "a{2":
        assert "No matches" in await text_of(workspace, engine, pattern=pattern)
        return
    with pytest.raises(ToolFailure) as failure:
        await GrepSearch(engine).propose({"pattern": pattern}, tool_context(workspace))
    assert failure.value.category == "invalid_arguments"
    assert "pattern: expected" in str(failure.value)


@pytest.mark.slow
async def test_a_pattern_that_takes_for_ever_is_stopped(workspace: Path) -> None:
    make(workspace, {"a": "a" * 60 + "!\n"})
    async with asyncio.timeout(60):
        with pytest.raises(ToolFailure, match=r"took more than 0\.5 s and was stopped"):
            await success_of(GrepSearch(OwnEngine(), 0.5), tool_context(workspace), pattern="(?=a)(a|a)*$")


async def test_a_search_that_is_cancelled_leaves_no_process(workspace: Path) -> None:
    import psutil

    make(workspace, {"a": "a" * 60 + "!\n"})
    before = set(psutil.Process().children())
    task = asyncio.create_task(success_of(GrepSearch(OwnEngine()), tool_context(workspace), pattern="(?=a)(a|a)*$"))
    await eventually_async(lambda: set(psutil.Process().children()) - before, 60, what="the search runs")
    task.cancel()
    async with asyncio.timeout(60):
        with pytest.raises(asyncio.CancelledError):
            await task
    assert not set(psutil.Process().children()) - before


WORDS = st.sampled_from(["foo", "Foo", "bar", "é", "ß", "", " ", "a.b", "x_1", "\t", "foobar", "\U0001f600", "[", "4"])
CONTENTS = st.lists(WORDS, max_size=8).map(" ".join)


@st.composite
def texts(draw: st.DrawFn) -> str:
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    lines = draw(st.lists(CONTENTS, max_size=6))
    return newline.join(lines) + newline * draw(st.booleans())


PATTERNS = st.lists(
    st.sampled_from(
        ["foo", "o", r"\bfoo\b", "^", "$", ".", ".*", r"\w+", r"\s", r"\d", "|", "(?:a|b)", "[a-f]", "[^o]", "o{2}",
         "é?", r"\.", "(o)", "o+?", r"[\w.]", "-", "F", r"\S", r"\B", "[x_]", "a{1,2}"]
    ),
    min_size=1,
    max_size=4,
).map("".join)  # fmt: skip


@pytest.mark.slow
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    files=st.dictionaries(st.sampled_from(["a", "b/c", "b/d", "é", "b-c"]), texts(), min_size=1),
    pattern=PATTERNS,
    is_fixed=st.booleans(),
    is_case_sensitive=st.booleans(),
    maximum=st.integers(1, 4),
)
def test_both_engines_find_the_same(
    tmp_path_factory: pytest.TempPathFactory,
    files: dict[str, str],
    pattern: str,
    is_fixed: bool,
    is_case_sensitive: bool,
    maximum: int,
) -> None:
    workspace = tmp_path_factory.mktemp("tree").resolve()
    make(workspace, dict(files))
    arguments = {
        "pattern": pattern,
        "fixed_strings": is_fixed,
        "case_sensitive": is_case_sensitive,
        "total_max_matches": maximum,
    }
    try:
        own = asyncio.run(text_of(workspace, OwnEngine(), **arguments))
    except ToolFailure:
        return
    is_left = not (is_fixed or is_portable(pattern)) or not (is_case_sensitive or pattern.isascii())
    engine = Ripgrep(RG) if is_left else Ripgrep(RG, NoFallback())
    assert asyncio.run(text_of(workspace, engine, **arguments)) == own


@pytest.mark.parametrize(
    ("pattern", "portable"),
    [
        (r"foo\.bar\(", True),
        (r"^\s*(?:class|def)\s+\w+", True),
        (r"[A-Za-z_][\w-]*", True),
        ("a{2,3}?", True),
        (r"import \{.*\} from ['\"]x", True),
        ("(?=a)", False),
        ("a++", False),
        ("[[:alpha:]]", False),
        ("[a&&b]", False),
        (r"\Aa", False),
        (r"\Ba", False),
        (r"\<a", False),
        ("(?i)a", False),
        (r"(a)\1", False),
        ("a{,3}", False),
        ("a{", False),
        (r"\p{L}", False),
        ("a*{2}", False),
    ],
)
def test_only_expressions_with_one_meaning_go_to_ripgrep(pattern: str, portable: bool) -> None:
    assert is_portable(pattern) is portable


@pytest.mark.slow
async def test_many_files_are_searched_in_portions(workspace: Path) -> None:
    make(workspace, {f"{number:05}{'n' * 200}": f"x{number}" for number in range(1_500)})
    text = await text_of(workspace, Ripgrep(RG, NoFallback()), pattern="x1234|x7$", names_only=True)
    assert [name[:5] for name in text.split("\n")[1:]] == ["00007", "01234"]


def test_ripgrep_is_taken_from_the_path_or_from_beside_python(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert isinstance(available_engine(), Ripgrep)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert isinstance(available_engine(), Ripgrep)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert isinstance(available_engine(), OwnEngine)


def test_a_program_of_the_folder_one_works_in_is_never_taken_for_ripgrep(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "rg").write_text("#!/bin/sh\n", encoding="utf-8")
    (tmp_path / "rg").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", ".")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "none" / "python"))
    assert isinstance(available_engine(), OwnEngine)
