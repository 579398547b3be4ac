"""The pages on settings against the tables in the code."""

import re
from pathlib import Path

import pytest

from isthmus.settings.guards import GUARDS
from isthmus.settings.keys import KEYS, SettingKey

DOCS = Path(__file__).resolve().parents[3] / "docs"


def table(page: str, name: str) -> list[str]:
    text = (DOCS / page).read_text("utf-8")
    found = re.search(rf"<!-- {name}: [^>]*-->\n(.*?)<!-- /{name} -->", text, re.DOTALL)
    assert found is not None
    return found[1].splitlines()


def what_a_project_may(key: SettingKey) -> str:
    limit = f"; it {key.limit}" if key.limit else ""
    return f"| `{key.name}` | {key.setter.value}{limit} |"


def test_the_page_on_security_says_who_may_set_each_key() -> None:
    expected = ["| key | may be set by |", "|---|---|", *map(what_a_project_may, KEYS.values())]
    assert table("explanation/security.md", "keys") == expected, "\n".join(expected)


def test_the_page_on_settings_names_each_key_and_what_it_does() -> None:
    rows = [f"| `{key.name}` | {key.effect} | {key.merge.value} |" for key in KEYS.values()]
    expected = ["| key | meaning | files |", "|---|---|---|", *rows]
    assert table("reference/settings.md", "keys") == expected, "\n".join(expected)


def test_the_page_on_settings_names_each_guard_that_is_not_there() -> None:
    expected = ["| key | in Gemini CLI |", "|---|---|", *(f"| `{key}` | {does} |" for key, does in GUARDS.items())]
    assert table("reference/settings.md", "guards") == expected, "\n".join(expected)


@pytest.mark.parametrize("page", ["explanation/security.md"])
def test_every_test_that_a_page_names_is_there(page: str) -> None:
    named = re.findall(r"`(tests/[\w/.]+)`", (DOCS / page).read_text("utf-8"))
    assert len(named) > 10
    assert [path for path in named if not (DOCS.parent / path).exists()] == []
