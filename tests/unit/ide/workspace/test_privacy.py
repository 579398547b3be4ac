"""Files that agents never see, by name and by ignore file."""

import itertools
from pathlib import Path

import pytest

from isthmus.ide.workspace import privacy
from isthmus.ide.workspace.privacy import HiddenFiles
from isthmus.ide.workspace.workspace_files import FileStamp


@pytest.fixture
def hidden(workspace: Path) -> HiddenFiles:
    return HiddenFiles((str(workspace),), itertools.count().__next__)


def _file(folder: Path, name: str, text: str = "text\n") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", [".env", ".env.local", ".envrc", ".ENV", "deep/er/.env.production", ".env.d/secrets"])
def test_environment_files_are_hidden_wherever_they_lie(hidden: HiddenFiles, workspace: Path, name: str) -> None:
    assert hidden.hides(str(_file(workspace, name)))


@pytest.mark.parametrize("name", ["env", "my.env.py", "environment", "a.py", ".gitignore", ".geminiignore"])
def test_other_files_are_not_hidden(hidden: HiddenFiles, workspace: Path, name: str) -> None:
    assert not hidden.hides(str(_file(workspace, name)))


def test_the_name_counts_outside_the_workspace_too_but_not_that_of_its_folders(
    hidden: HiddenFiles, tmp_path: Path
) -> None:
    assert hidden.hides(str(_file(tmp_path, "elsewhere/.env")))
    assert not hidden.hides(str(_file(tmp_path, ".envs/project/a.py")))


@pytest.mark.parametrize("name", [".geminiignore", ".aiexclude"])
def test_both_ignore_files_hide_with_the_rules_of_gitignore(hidden: HiddenFiles, workspace: Path, name: str) -> None:
    _file(workspace, name, "*.key\nprivate/\n!public.key\n/top.txt\n")
    assert hidden.hides(str(workspace / "deep" / "a.key"))
    assert hidden.hides(str(workspace / "private" / "b.txt"))
    assert hidden.hides(str(workspace / "top.txt"))
    assert not hidden.hides(str(workspace / "deep" / "top.txt"))
    assert not hidden.hides(str(workspace / "public.key"))
    assert hidden.hides(str(workspace / "private" / "public.key")), "below a hidden folder nothing is taken back"


def test_one_ignore_file_does_not_take_back_what_the_other_hides(hidden: HiddenFiles, workspace: Path) -> None:
    _file(workspace, ".aiexclude", "*.key\n")
    _file(workspace, ".geminiignore", "!*.key\n")
    assert hidden.hides(str(workspace / "a.key"))


def test_an_ignore_file_in_a_folder_counts_below_it_and_over_those_above(hidden: HiddenFiles, workspace: Path) -> None:
    _file(workspace, ".aiexclude", "*.log\n")
    _file(workspace, "sub/.aiexclude", "!kept.log\nsecret.txt\n")
    assert hidden.hides(str(workspace / "kept.log"))
    assert not hidden.hides(str(workspace / "sub" / "kept.log"))
    assert hidden.hides(str(workspace / "sub" / "deep" / "secret.txt"))
    assert not hidden.hides(str(workspace / "secret.txt"))


def test_a_folder_is_hidden_by_the_rules_for_folders(hidden: HiddenFiles, workspace: Path) -> None:
    (workspace / ".geminiignore").write_text("secret/\n", encoding="utf-8")
    (workspace / "secret").mkdir()
    assert hidden.hides(f"{workspace}/secret/")
    assert hidden.hides(f"{workspace}/other/secret/")
    assert not hidden.hides(f"{workspace}/secret")  # so named it may be a file, which the rule leaves
    assert not hidden.hides(f"{workspace}/")


def test_a_changed_ignore_file_counts(hidden: HiddenFiles, workspace: Path) -> None:
    path = str(workspace / "a.txt")
    assert not hidden.hides(path)
    ignore = _file(workspace, ".aiexclude", "a.txt\n")
    assert hidden.hides(path)
    _file(workspace, ".aiexclude", "something-else.txt\n")
    assert not hidden.hides(path)
    _file(workspace, ".aiexclude", "a.txt\n")
    ignore.unlink()
    assert not hidden.hides(path)


def test_an_unchanged_ignore_file_is_read_once(
    hidden: HiddenFiles, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _file(workspace, ".aiexclude", "a.txt\n")
    assert hidden.hides(str(workspace / "a.txt"))

    def refuse(path: Path) -> None:
        raise AssertionError(f"{path} was read again")

    monkeypatch.setattr(privacy, "read_ignore_file", refuse)
    assert hidden.hides(str(workspace / "a.txt"))


def test_ignore_files_are_looked_at_once_for_all_files_of_a_moment(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[str] = []

    class Stamp(FileStamp):
        @classmethod
        def of(cls, path: str) -> FileStamp | None:
            looks.append(path)
            return FileStamp.of(path)

    monkeypatch.setattr(privacy, "FileStamp", Stamp)
    _file(workspace, ".aiexclude", "a.txt\n")
    hidden = HiddenFiles((str(workspace),), lambda: 0.0)
    for number in range(10):
        hidden.hides(str(workspace / "sub" / f"{number}.txt"))
    assert len(looks) == len(set(looks)) == 4


def test_a_link_is_hidden_when_it_or_its_end_is(hidden: HiddenFiles, workspace: Path, tmp_path: Path) -> None:
    _file(workspace, ".aiexclude", "secret/\nhidden-link\n")
    secret = _file(workspace, "secret/a.txt")
    for name, target in (
        ("to-file", secret),
        ("to-env", _file(tmp_path, "x/.env")),
        ("hidden-link", _file(workspace, "plain.txt")),
        (".env", _file(workspace, "plain2.txt")),
    ):
        (workspace / name).symlink_to(target)
        assert hidden.hides(str(workspace / name)), name
    (workspace / "folder").symlink_to(workspace / "secret")
    assert hidden.hides(str(workspace / "folder" / "a.txt"))
    assert not hidden.hides(str(workspace / "plain.txt"))


def test_a_workspace_that_is_a_link_itself_hides_by_both_of_its_names(workspace: Path, tmp_path: Path) -> None:
    _file(workspace, ".aiexclude", "a.txt\n")
    (tmp_path / "alias").symlink_to(workspace)
    for folder in (tmp_path / "alias", workspace):
        hidden = HiddenFiles((str(folder),))
        assert hidden.hides(str(workspace / "a.txt"))
        assert hidden.hides(str(tmp_path / "alias" / "a.txt"))


def test_a_path_with_dots_is_the_path_without_them(hidden: HiddenFiles, workspace: Path) -> None:
    _file(workspace, ".aiexclude", "/a.txt\n")
    assert hidden.hides(f"{workspace}/sub/../a.txt")


def test_an_ignore_file_that_is_none_hides_nothing(hidden: HiddenFiles, workspace: Path) -> None:
    (workspace / ".aiexclude").mkdir()
    (workspace / ".geminiignore").symlink_to("/dev/zero")
    assert not hidden.hides(str(workspace / "a.txt"))
