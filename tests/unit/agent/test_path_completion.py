"""Completion of references to files and folders, from the index of the workspace."""

import string
import threading
from collections.abc import Callable, Hashable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typing_extensions import override

from isthmus.agent.references import completion
from isthmus.agent.references.completion import MAXIMUM_COMPLETIONS, best_paths, complete_path
from isthmus.tools.port.file_index import FileIndex
from isthmus.tools.port.kept_indexes import KeptIndex, KeptIndexes
from isthmus.tools.port.workspace import Workspace
from support.wide_trees import wide_index


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a busy machine take its time."""
    for name in ("FIRST_SECONDS", "REFRESH_SECONDS", "SCORING_SECONDS"):
        monkeypatch.setattr(completion, name, 60.0)


class OneIndex(KeptIndexes):
    """Indexes of which there is one."""

    def __init__(self, index: FileIndex) -> None:
        super().__init__()
        self.kept = KeptIndex(index)

    @override
    def of(self, key: Hashable, make: Callable[[], FileIndex]) -> KeptIndex:
        return self.kept


def make(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).touch()


def lines(line: str, workspace: Workspace) -> list[str]:
    return [item.line for item in complete_path(line, workspace)]


def test_files_and_folders_are_offered_the_best_first(tmp_path: Path) -> None:
    make(tmp_path, "src/app.py", "src/a b.py", "apps/src/x.py", "docs/my-app.md", "v/app", ".gitignore", "odd\n")
    (tmp_path / ".gitignore").write_text("v/\n", encoding="utf-8")
    workspace = Workspace(tmp_path)
    assert lines("see @app", workspace) == [
        *("see @apps/", "see @apps/src/", "see @apps/src/x.py", "see @src/app.py", "see @docs/my-app.md")
    ]
    assert lines("@src/a", workspace) == [r"@src/a\ b.py", "@src/app.py"]
    assert lines("@src/", workspace) == [r"@src/a\ b.py", "@src/app.py", "@apps/src/", "@apps/src/x.py"]
    assert lines("@APP.P", workspace) == ["@src/app.py", "@apps/src/x.py"]
    assert lines("@sapy", workspace) == [r"@src/a\ b.py", "@src/app.py"]
    assert lines("@src/app.py", workspace) == ["@src/app.py"]
    assert lines("@none", workspace) == lines("@src done", workspace) == lines("@/etc", workspace) == []


def test_a_file_of_the_agents_is_offered_at_once_and_a_closed_one_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path, "a/secret", "a/open")
    workspace = Workspace(tmp_path)
    assert lines("@a/", workspace) == ["@a/open", "@a/secret"]
    # An answer from what was listed before must not show what was closed meanwhile.
    (tmp_path / ".geminiignore").write_text("secret\n", encoding="utf-8")
    assert lines("@a/", workspace) == ["@a/open"]
    monkeypatch.setattr(completion, "FRESH_SECONDS", -1.0)
    make(tmp_path, "a/new")
    assert lines("@a/", workspace) == ["@a/new", "@a/open"]


def test_a_tree_that_is_being_listed_gives_what_was_found_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(completion, "FIRST_SECONDS", 0.0)
    make(tmp_path, "pkg001/sub/deep.py", "pkg001/near.py", "pkg002/far.py")
    has_some, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        if index.count >= 100:
            has_some.set()
            assert go_on.wait(60)

    top = tmp_path.resolve()
    index = wide_index(folders=3, files=100, top=top, before=wait)
    indexes = OneIndex(index)
    workspace = Workspace(tmp_path, indexes=indexes)
    future = indexes.kept.refreshed()
    assert has_some.wait(60)
    try:
        found = complete_path("@pkg000/file_09", workspace)
        assert found[0].line == "@pkg000/file_090.py"
        assert (found[-1].line, found[-1].description) == (
            "@pkg000/file_09",
            "still looking through the folder: 100 files so far",
        )
        # A typed folder is listed at once.
        assert lines("@pkg001/", workspace)[:3] == ["@pkg001/sub/", "@pkg001/near.py", "@pkg001/sub/deep.py"]
    finally:
        go_on.set()
    future.result(60)
    assert all(not item.description for item in complete_path("@pkg002/file_09", workspace))


def test_a_wide_tree_is_searched_to_its_end(tmp_path: Path) -> None:
    index = wide_index(folders=200, files=100, top=tmp_path.resolve())
    workspace = Workspace(tmp_path, indexes=OneIndex(index))
    index.refresh()
    assert lines("@pkg199/file_05", workspace)[:2] == ["@pkg199/file_050.py", "@pkg199/file_051.py"]
    assert lines("@pkg19/file_0", workspace)[0] == "@pkg019/file_000.py"
    assert len(lines("@file_099", workspace)) == MAXIMUM_COMPLETIONS
    assert lines("@p199f99", workspace) == ["@pkg199/file_099.py"]


NAMES = st.text(st.sampled_from("aBß.-"), min_size=1, max_size=3).filter(lambda name: name.strip(".") != "")


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    paths=st.sets(st.lists(NAMES, min_size=1, max_size=3).map("/".join), max_size=12),
    typed=st.text(st.sampled_from("abß.-/" + string.whitespace[:1]), max_size=3),
)
def test_the_best_are_those_of_all_paths(tmp_path_factory: pytest.TempPathFactory, paths: set[str], typed: str) -> None:
    root = tmp_path_factory.mktemp("tree").resolve()
    for path in paths:
        if not (root / path).is_dir() and not any(above.is_file() for above in (root / path).parents):
            make(root, path)
    index = Workspace(root).index_below(root)
    index.refresh()
    every = [path.relative_to(root).as_posix() + "/" * path.is_dir() for path in root.rglob("*")]
    scored = ((score_of(typed, path), len(path), path) for path in every)
    assert best_paths(index, typed) == [path for score, _, path in sorted(scored) if score < 5]


def score_of(typed: str, path: str) -> int:
    """Return how badly a path fits what was typed, as the documentation says it."""
    wanted, whole = typed.casefold(), path.casefold()
    if whole.startswith(wanted):
        return int("/" in path[len(typed) :].rstrip("/"))
    if whole.rstrip("/").rpartition("/")[2].startswith(wanted):
        return 2
    letters = iter(whole)
    return 3 if wanted in whole else 4 if all(letter in letters for letter in wanted) else 5
