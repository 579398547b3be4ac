import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isthmus.ignore import read_ignore_file
from isthmus.tools.workspace import Workspace

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
        # A name may be taken by a file where another path needs a folder.
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
    (root / ".git" / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")  # what git init makes, in short
    found = subprocess.run(
        ["git", "ls-files", "-co", "-z", "--exclude-standard"], cwd=root, check=True, capture_output=True, text=True
    )
    return sorted(path for path in found.stdout.split("\0") if path)


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
