from pathlib import Path

import pytest

from isthmus.mcp_host.trust import file_trust, is_trusted


@pytest.mark.parametrize(
    ("rules", "folder", "trusts"),
    [
        ({}, "/w/a", False),
        ({"/w/a": "TRUST_FOLDER"}, "/w/a", True),
        ({"/w/a": "TRUST_FOLDER"}, "/w/a/b/c", True),
        ({"/w/a": "TRUST_FOLDER"}, "/w/ab", False),
        ({"/w/a": "TRUST_FOLDER"}, "/w", False),
        ({"/w/a": "TRUST_PARENT"}, "/w/other", True),
        ({"/w": "TRUST_FOLDER", "/w/a": "DO_NOT_TRUST"}, "/w/a/b", False),
        ({"/w": "DO_NOT_TRUST", "/w/a": "TRUST_FOLDER"}, "/w/a/b", True),
        ({"/w/a": "DO_NOT_TRUST", "/w/a/": "TRUST_FOLDER"}, "/w/a", False),
        ({"/w/a": "TRUST_FOLDER", "/w/a/x": "SOMETHING"}, "/w/a/x", True),
    ],
)
def test_the_longest_rule_that_fits_decides(rules: dict[str, str], folder: str, trusts: bool) -> None:
    assert is_trusted(Path(folder), rules) is trusts


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
