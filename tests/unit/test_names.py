"""Names mean one thing: each public class name is that of one class, and the glossary has only words in use."""

import re
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = {path: path.read_text(encoding="utf-8") for path in (ROOT / "src/isthmus").rglob("*.py")}
IMPLEMENTATIONS = {
    "ArgumentError": "of the companion's two protocols",
    "UnknownNotification": "of the companion's two protocols",
}
"""Names that at most three sibling implementations share, and the implementations."""


@pytest.mark.slow
def test_no_public_class_name_stands_for_two_classes() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path, text in SOURCES.items():
        for name in re.findall(r"(?m)^\s*class ([A-Za-z]\w*)[(:\[]", text):
            places[name].append(str(path.relative_to(ROOT)))
    assert {name: found for name, found in places.items() if len(found) > 1 and name not in IMPLEMENTATIONS} == {}
    assert len(IMPLEMENTATIONS) <= 3
    assert [name for name in IMPLEMENTATIONS if len(places[name]) < 2] == []


@pytest.mark.slow
def test_every_word_of_the_glossary_is_used() -> None:
    glossary = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    words = re.findall(r"(?m)^\| (?!word|---)([a-z ]+) \|", glossary)
    assert 0 < len(words) <= 25
    source = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", "\n".join(SOURCES.values())).replace("_", " ").lower()
    assert [word for word in words if not re.search(rf"\b{word}s?\b", source)] == []
