import logging
import os
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isthmus.files.ignore.ignore_file import IgnoreFile, IgnoreScope, read_ignore_file
from isthmus.ide.workspace.privacy import HiddenFiles
from isthmus.tools.port.workspace import Workspace

NAMES = st.sampled_from(["a", "b", "ab", "a.txt", "b.log", "build", "é"])
RULES = st.lists(
    st.one_of(
        st.sampled_from(
            [
                "*.log", "!*.log", "a", "!a", "a/", "!a/", "/a", "/b", "a/b", "!a/b", "a/*", "!a/b/", "**/b", "a/**",
                "!a/**", "a/**/b", "*", "!*/", "!a.txt", "build/", "/build/a", "*.t?t", "[ab]", "# x", "", "\\#", "b/",
                "!b/a", "*/b", "ab*", "é", "/*", "!/a", " a", "a ", "**", "**/", "*/", "/", "!", "[", "a/b/",
                "a/**/", "!a/**/", "/*/", "**/a/", "*.log/", "a/**/b/",
            ]
        ),
        NAMES,
    ),
    max_size=5,
)  # fmt: skip
TREES = st.lists(st.lists(NAMES, min_size=1, max_size=4).map("/".join), min_size=1, max_size=12)


def make_tree(root: Path, paths: list[str], ignore_files: dict[str, list[str]]) -> None:
    for path in paths:
        target = root / path
        # A name may be that of a file where another path needs a folder.
        if any(parent.is_file() for parent in target.parents) or target.exists():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("text\n", encoding="utf-8")
    for path, rules in ignore_files.items():
        if (root / path).is_dir():
            (root / path / ".gitignore").write_text("\n".join(rules) + "\n", encoding="utf-8")


def listed_by_git(root: Path) -> list[str]:
    for folder in ("objects", "refs"):
        (root / ".git" / folder).mkdir(parents=True)
    (root / ".git" / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")  # a minimal result of git init
    found = subprocess.run(
        ["git", "ls-files", "-co", "-z", "--exclude-standard"], cwd=root, check=True, capture_output=True, text=True
    )
    return sorted(path for path in found.stdout.split("\0") if path)


@pytest.mark.slow
@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(paths=TREES, top=RULES, inner=RULES, deeper=RULES)
def test_a_walk_shows_the_files_that_git_does_not_ignore(
    tmp_path_factory: pytest.TempPathFactory, paths: list[str], top: list[str], inner: list[str], deeper: list[str]
) -> None:
    root = tmp_path_factory.mktemp("tree")
    make_tree(root, paths, {".": top, "a": inner, "a/b": deeper})
    expected = listed_by_git(root)
    assert sorted(file.path for file in Workspace(root).walk(root.resolve())) == expected


def shown(workspace: Path, folder: str = ".", *, git: bool = True) -> list[str]:
    place = Workspace(workspace)
    return [file.path for file in place.walk(place.resolve(folder), git=git)]


def test_files_come_in_the_order_of_their_names_folder_by_folder(workspace: Path) -> None:
    make_tree(workspace, ["b/x", "a/z", "a/b/c", "c", "B"], {})
    assert shown(workspace) == ["B", "a/b/c", "a/z", "b/x", "c"]


def test_rules_of_the_repository_around_the_workspace_count(tmp_path: Path) -> None:
    (tmp_path / ".git" / "info").mkdir(parents=True)
    (tmp_path / ".git" / "info" / "exclude").write_text("*.excluded\n", encoding="utf-8")
    (tmp_path / ".gitignore").write_text("*.log\n/sub/inner/only\n", encoding="utf-8")
    inner = tmp_path / "sub" / "inner"
    make_tree(inner, ["a.log", "only", "x.excluded", "kept", "deep/only"], {})
    assert shown(inner) == ["deep/only", "kept"]


def test_a_repository_inside_another_has_its_own_rules(workspace: Path) -> None:
    make_tree(workspace, ["x.log", "inner/x.log", "inner/y.tmp"], {".": ["*.log"], "inner": ["*.tmp"]})
    (workspace / ".git").mkdir()
    (workspace / "inner" / ".git").mkdir()
    assert shown(workspace) == [".gitignore", "inner/.gitignore", "inner/x.log"]


def test_geminiignore_hides_what_gitignore_shows_and_counts_without_it(workspace: Path) -> None:
    make_tree(workspace, ["a.txt", "secret/key", "sub/b.txt", "sub/c.txt"], {".": ["*.txt", "!b.txt"]})
    (workspace / ".geminiignore").write_text("secret/\n", encoding="utf-8")
    (workspace / "sub" / ".geminiignore").write_text("c.txt\n", encoding="utf-8")
    assert shown(workspace) == [".geminiignore", ".gitignore", "sub/.geminiignore", "sub/b.txt"]
    assert shown(workspace, git=False) == [
        ".geminiignore",
        ".gitignore",
        "a.txt",
        "sub/.geminiignore",
        "sub/b.txt",
    ]


def test_an_ignored_folder_can_be_searched_by_name(workspace: Path) -> None:
    make_tree(workspace, ["node_modules/p/index.js"], {".": ["node_modules/"]})
    assert shown(workspace) == [".gitignore"]
    assert shown(workspace, "node_modules") == ["node_modules/p/index.js"]


def test_links_pipes_and_the_git_folder_are_never_shown(workspace: Path, tmp_path: Path) -> None:
    make_tree(workspace, ["a", ".git/config"], {})
    (workspace / "link").symlink_to("a")
    (workspace / "folder").symlink_to(tmp_path)
    os.mkfifo(workspace / "pipe")
    assert shown(workspace) == ["a"]


def test_a_pipe_in_place_of_an_ignore_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".gitignore")
    assert read_ignore_file(tmp_path / ".gitignore") is None


CATASTROPHIC = [
    "*a" * 12 + "b",
    "a*" * 50 + "b",
    "?*" * 40 + "b",
    "*?" * 40 + "b",
    "[ab]*" * 40 + "c",
    "*[!b]" * 40 + "b",
    "/" + "*a" * 12 + "b",
    "x/" + "*a" * 12 + "b",
    "**/a/" * 19 + "b",
    "**/a*/" * 19 + "b",
    "a/**/" + "*/" * 19 + "**/b",
    "**a**/" * 15 + "b",
]


@pytest.mark.parametrize("pattern", CATASTROPHIC)
def test_no_pattern_takes_long_for_any_name(pattern: str) -> None:
    rules = IgnoreFile(pattern.encode() + b"\n")
    names = ["a" * 60, "a" * 255, "x/" + "a" * 60, "a/" * 30 + "a", "a/" * 2_000 + "a"]
    begun = time.process_time()
    for name in names:
        assert rules.verdict(name, name.rpartition("/")[2]) is None
    assert time.process_time() - begun < 0.5, "one of them took over 100 ms"


def test_an_ignore_file_of_the_largest_size_is_matched_in_little_time() -> None:
    rules = IgnoreFile(b"\n".join(b"**/%d*a?a*[ab]b" % number for number in range(100_000)))
    path = "a/" * 2_000 + "a" * 90
    begun = time.process_time()
    assert rules.verdict(path, "a" * 90) is None
    assert rules.verdict(path, "a" * 90) is None
    assert time.process_time() - begun < 2, "2,000 patterns and a path of 4,090 characters"


def test_a_folder_whose_names_fit_a_catastrophic_pattern_is_walked_at_once(workspace: Path) -> None:
    make_tree(workspace, ["a" * 60, "b"], {".": ["*a" * 12 + "b"]})
    (workspace / ".geminiignore").write_text("*a" * 12 + "b\n", encoding="utf-8")
    begun = time.process_time()
    assert "a" * 60 in shown(workspace)
    assert not HiddenFiles([str(workspace)]).hides(str(workspace / ("a" * 60)))
    assert time.process_time() - begun < 1


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"x" * 200_001, "only its first 200000 bytes have an effect"),
        (b"x\n" * 10_001, "only its first 10000 lines have an effect"),
        (b"kept\n" + b"*x?\n" * 2_001, "from line 2002 on it has no effect: over 2000 patterns with wildcards"),
        (b"kept\n" + b"*a" * 101, "line 2 without effect: a pattern may have 1000 bytes and 100 wildcards"),
        (b"*" + b"a" * 1_000 + b"\nkept\n" + b"?" * 101, "line 1 and 1 more without effect: a pattern"),
    ],
)
def test_what_is_left_out_of_an_ignore_file_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, data: bytes, said: str
) -> None:
    path = tmp_path / ".gitignore"
    path.write_bytes(data)
    with caplog.at_level(logging.WARNING):
        rules = [read_ignore_file(path) for _ in range(3)]
    assert [record.getMessage().partition(": ")[0] for record in caplog.records] == [f"ignore file {path}"]
    assert said in caplog.text
    if b"kept" in data:
        assert [file.verdict("kept", "kept") for file in rules if file is not None] == [True] * 3


def test_ignore_files_of_a_deep_tree_count_up_to_a_total_size(caplog: pytest.LogCaptureFixture) -> None:
    scope = IgnoreScope(".gitignore")
    with caplog.at_level(logging.WARNING):
        for depth in range(20):
            scope = scope.with_file("a/" * depth, IgnoreFile(b"x" * 199_999))
    assert len(scope.files) == 5
    assert "no effect: all ignore files for a folder may have at most 1000000 bytes" in caplog.text


def test_a_walk_ends_within_a_folder_when_it_is_to_stop(workspace: Path) -> None:
    for number in range(300):
        (workspace / f"{number}").touch()
    looks = iter([False, False, True])
    assert len(list(Workspace(workspace).walk(workspace, should_stop=lambda: next(looks)))) < 201


def test_names_that_are_no_text_are_compared_byte_by_byte(workspace: Path) -> None:
    for name in (b"a\xff", b"b\xff", "c\u00e9".encode()):
        with open(os.fsencode(workspace) + b"/" + name, "wb"):  # noqa: PTH123 - a path of bytes
            pass
    (workspace / ".gitignore").write_bytes(b"a?\nc?\nb[\xf0-\xff]\n")
    assert shown(workspace) == [".gitignore", "c\u00e9"]
