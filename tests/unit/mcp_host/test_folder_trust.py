import json
from pathlib import Path

import pytest

from isthmus.mcp_host.config.folder_trust import (
    TrustRule,
    file_trust,
    is_trusted,
    state_trust,
    stated_trust,
    trusted_folders_path,
)
from isthmus.settings.edit_file import SettingsFileError


@pytest.mark.parametrize(
    ("rules", "folder", "trusts"),
    [
        ({}, "/w/a", None),
        ({"/w/a": "TRUST_FOLDER"}, "/w/a", True),
        ({"/w/a": "TRUST_FOLDER"}, "/w/a/b/c", True),
        ({"/w/a": "TRUST_FOLDER"}, "/w/ab", None),
        ({"/w/a": "TRUST_FOLDER"}, "/w", None),
        ({"/w/a": "SOMETHING"}, "/w/a", None),
        ({"/w/a": "TRUST_PARENT"}, "/w/other", True),
        ({"/w": "TRUST_FOLDER", "/w/a": "DO_NOT_TRUST"}, "/w/a/b", False),
        ({"/w": "DO_NOT_TRUST", "/w/a": "TRUST_FOLDER"}, "/w/a/b", True),
        ({"/w/a": "DO_NOT_TRUST", "/w/a/": "TRUST_FOLDER"}, "/w/a", False),
        ({"/w/a": "TRUST_FOLDER", "/w/a/x": "SOMETHING"}, "/w/a/x", True),
    ],
)
def test_the_longest_rule_that_fits_decides(rules: dict[str, str], folder: str, trusts: bool | None) -> None:
    assert is_trusted(Path(folder), rules) is trusts


@pytest.mark.parametrize(
    ("rules", "trusts"),
    [
        ({"/": "TRUST_FOLDER", "/w": "TRUST_FOLDER", "/other": "TRUST_FOLDER"}, None),
        ({"/w/in": "TRUST_FOLDER"}, True),
        ({"/w": "DO_NOT_TRUST", "/w/in/a": "TRUST_FOLDER"}, True),
        ({"/w/in/a": "TRUST_PARENT"}, True),
        ({"/w/in": "TRUST_PARENT"}, None),
        ({"/w/in": "TRUST_FOLDER", "/w/in/a/b": "DO_NOT_TRUST"}, False),
    ],
)
def test_rules_above_the_folder_that_others_write_to_do_not_count(rules: dict[str, str], trusts: bool | None) -> None:
    assert is_trusted(Path("/w/in/a/b"), rules, Path("/w/in")) is trusts


@pytest.mark.parametrize("text", ["", "[]", "{", '{"/": 3}', "null"])
def test_a_file_that_says_nothing_usable_trusts_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / ".gemini").mkdir()
    (tmp_path / ".gemini" / "trustedFolders.json").write_text(text)
    assert not file_trust(tmp_path)(tmp_path)


def test_a_file_that_changes_counts_at_once(tmp_path: Path) -> None:
    trusts = file_trust(tmp_path)
    assert not trusts(tmp_path)
    (tmp_path / ".gemini").mkdir()
    (tmp_path / ".gemini" / "trustedFolders.json").write_text(f'{{"{tmp_path}": "TRUST_FOLDER"}} // mine')
    assert trusts(tmp_path)


def test_what_the_user_answers_is_kept_beside_what_stands_there(tmp_path: Path) -> None:
    path = trusted_folders_path(tmp_path)
    folder = tmp_path / "project"
    folder.mkdir()
    assert stated_trust(tmp_path, folder) is None
    state_trust(tmp_path, folder, TrustRule.FOLDER)
    assert stated_trust(tmp_path, folder) is True
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_text('{\n  // mine\n  "/elsewhere": "TRUST_PARENT"\n}\n', encoding="utf-8")
    state_trust(tmp_path, folder, TrustRule.NOT)
    assert stated_trust(tmp_path, folder) is False
    assert path.read_text(encoding="utf-8").startswith('{\n  // mine\n  "/elsewhere": "TRUST_PARENT",\n')
    state_trust(tmp_path, folder, TrustRule.PARENT)
    assert stated_trust(tmp_path, tmp_path / "another") is True


def test_another_spelling_of_the_folder_does_not_go_on_to_say_something_else(tmp_path: Path) -> None:
    folder, link = tmp_path / "project", tmp_path / "link"
    folder.mkdir()
    link.symlink_to(folder)
    state_trust(tmp_path, folder, TrustRule.FOLDER)
    path = trusted_folders_path(tmp_path)
    path.write_text(json.dumps({str(link): "DO_NOT_TRUST"}), encoding="utf-8")
    state_trust(tmp_path, folder, TrustRule.FOLDER)
    assert stated_trust(tmp_path, folder) is True


def test_a_file_that_is_broken_is_left_as_it_is(tmp_path: Path) -> None:
    path = trusted_folders_path(tmp_path)
    path.parent.mkdir()
    path.write_text("{ broken", encoding="utf-8")
    with pytest.raises(SettingsFileError, match=r"trustedFolders\.json:1:"):
        state_trust(tmp_path, tmp_path, TrustRule.FOLDER)
    assert path.read_text(encoding="utf-8") == "{ broken"


@pytest.mark.parametrize("path", ["\0", "/x\ud800", "/" + "\0" * 5000])
def test_a_rule_for_what_no_folder_can_be_called_hurts_no_other(tmp_path: Path, path: str) -> None:
    assert is_trusted(tmp_path, {path: "TRUST_FOLDER", str(tmp_path): "TRUST_FOLDER"}) is True
    assert is_trusted(tmp_path, {path: "TRUST_PARENT"}) is None
