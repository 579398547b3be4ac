"""The texts of the page: each in English and Chinese, with the same places, and used by the page."""

import re
from pathlib import Path

import pytest

FRONTEND = Path(__file__).parents[3] / "frontend" / "src"
ENTRY = re.compile(r'^  (\w+): \[\s*("(?:[^"\\]|\\.)*"),\s*("(?:[^"\\]|\\.)*"),?\s*\],$', re.MULTILINE)
NAME = re.compile(r"^  (\w+): \[", re.MULTILINE)
PLACE = re.compile(r"\{(\d)\}")


@pytest.fixture(scope="module")
def words() -> dict[str, tuple[str, str]]:
    table = (FRONTEND / "words.ts").read_text("utf-8").partition("const TABLE = {\n")[2].partition("\n} as const;")[0]
    found = {name: (english, chinese) for name, english, chinese in ENTRY.findall(table)}
    assert set(found) == set(NAME.findall(table)), "an entry is not a pair of texts"
    return found


def test_each_text_is_there_in_both_languages(words: dict[str, tuple[str, str]]) -> None:
    assert len(words) > 100
    for name, (english, chinese) in words.items():
        assert english.strip('" '), name
        assert re.search(r"[\u4e00-\u9fff]", chinese), name
        assert not re.search(r"[\u4e00-\u9fff]", english), name


def test_both_languages_have_the_same_places(words: dict[str, tuple[str, str]]) -> None:
    for name, (english, chinese) in words.items():
        assert sorted(PLACE.findall(english)) == sorted(PLACE.findall(chinese)), name


def test_no_text_of_the_page_is_outside_the_table() -> None:
    shown = re.compile(
        r'(?:aria-label|title|placeholder|alt)="([^"$]*[a-z][^"$]*)"|>\s*([A-Z][a-z]+ [a-z][^<$`{}=;]*)<'
    )
    for path in FRONTEND.rglob("*.ts"):
        if path.name == "words.ts":
            continue
        for found in shown.finditer(path.read_text("utf-8")):
            assert (found[1] or found[2]) in {"Isthmus"}, f"{path.name}: {found[0]}"
