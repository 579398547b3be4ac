from pathlib import Path

import pytest

from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.workspace import Workspace


def refusal(workspace: Path, path: str, *, writing: bool = False) -> str:
    place = Workspace(workspace)
    with pytest.raises(ToolFailure) as failure:
        _ = place.writable_path(path) if writing else place.open_path(path)
    return failure.value.category


def test_paths_are_absolute_and_relative_ones_begin_in_the_workspace(workspace: Path) -> None:
    (workspace / "a").mkdir()
    place = Workspace(workspace)
    assert place.resolve("a/../b c") == workspace / "b c"
    assert place.resolve(str(workspace / "a")) == workspace / "a"
    assert place.resolve(".") == workspace
    assert place.resolve("missing/deep/file") == workspace / "missing/deep/file"


@pytest.mark.parametrize("path", ["..", "../x", "a/../../x", "/etc/passwd", "/", "~", "~/x"])
def test_paths_outside_are_refused(workspace: Path, path: str) -> None:
    assert refusal(workspace, path) == "outside_workspace"


def test_a_folder_whose_name_begins_like_the_workspace_is_outside(workspace: Path) -> None:
    assert refusal(workspace, str(workspace) + "-other/x") == "outside_workspace"


@pytest.mark.parametrize("path", ["a\0b", "loop/x"])
def test_what_is_no_path_is_refused(workspace: Path, path: str) -> None:
    (workspace / "loop").symlink_to("loop")
    assert refusal(workspace, path) == "invalid_arguments"


def test_links_that_lead_out_are_refused_also_for_files_that_do_not_exist(workspace: Path, tmp_path: Path) -> None:
    (workspace / "out").symlink_to(tmp_path)
    (workspace / "dangling").symlink_to(tmp_path / "missing")
    for path in ("out/x", "out", "dangling", "out/new/deep/file"):
        assert refusal(workspace, path) == "outside_workspace"


def test_links_within_the_workspace_lead_to_their_target(workspace: Path) -> None:
    (workspace / "real").mkdir()
    (workspace / "link").symlink_to("real")
    assert Workspace(workspace).resolve("link/x") == workspace / "real" / "x"


def test_the_workspace_itself_may_be_a_link(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(workspace)
    assert Workspace(tmp_path / "link").resolve(str(tmp_path / "link" / "x")) == workspace / "x"


def test_a_folder_that_became_a_link_is_noticed_at_the_next_resolving(workspace: Path, tmp_path: Path) -> None:
    place = Workspace(workspace)
    (workspace / "a").mkdir()
    assert place.resolve("a/x") == workspace / "a" / "x"
    (workspace / "a").rmdir()
    (workspace / "a").symlink_to(tmp_path)
    with pytest.raises(ToolFailure, match="outside the workspace"):
        place.resolve("a/x")


@pytest.mark.parametrize("path", ["secret", "secret/key", "secret/new", "a/token.pem", "link"])
def test_what_geminiignore_names_is_closed(workspace: Path, path: str) -> None:
    (workspace / ".geminiignore").write_text("secret/\n*.pem\n!ok.pem\n", encoding="utf-8")
    (workspace / "secret").mkdir()
    (workspace / "secret" / "key").write_text("x", encoding="utf-8")
    (workspace / "link").symlink_to("secret/key")
    assert refusal(workspace, path) == "ignored_file"
    assert Workspace(workspace).open_path("a/ok.pem") == workspace / "a" / "ok.pem"


def test_a_geminiignore_further_down_can_reopen_a_file(workspace: Path) -> None:
    (workspace / ".geminiignore").write_text("*.pem\n", encoding="utf-8")
    (workspace / "certs").mkdir()
    (workspace / "certs" / ".geminiignore").write_text("!public.pem\n", encoding="utf-8")
    assert Workspace(workspace).open_path("certs/public.pem")
    assert refusal(workspace, "certs/private.pem") == "ignored_file"


def test_gitignored_files_may_be_read(workspace: Path) -> None:
    (workspace / ".gitignore").write_text("*.log\n", encoding="utf-8")
    assert Workspace(workspace).open_path("x.log") == workspace / "x.log"


@pytest.mark.parametrize("path", [".git/hooks/pre-commit", "sub/.git/config", ".GIT/config"])
def test_files_of_git_are_not_written(workspace: Path, path: str) -> None:
    assert refusal(workspace, path, writing=True) == "protected_path"
    assert Workspace(workspace).open_path(path)
