"""The pages on settings against the tables in the code."""

import re
from pathlib import Path

import pytest

from isthmus.sandbox.guarded_paths import AT_HOME, STARTING, Effect
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


def test_the_page_on_security_names_each_file_that_starts_programs() -> None:
    names = {
        Effect.AGENT: "agent",
        Effect.EDITOR: "editor",
        Effect.VERSION_CONTROL: "version control",
        Effect.CONTINUOUS_INTEGRATION: "continuous integration",
        Effect.ENVIRONMENT: "environment",
    }
    rows = [
        f"| {names[effect]} | {consumer} | {where} | {', '.join(f'`{path}`' for path in paths)} |"
        for where, files in (("a workspace", STARTING), ("a home folder", AT_HOME))
        for effect, by_consumer in files.items()
        for consumer, paths in by_consumer.items()
    ]
    expected = ["| kind | acts on it | in | files |", "|---|---|---|---|", *rows]
    assert table("explanation/security.md", "starting") == expected, "\n".join(expected)


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
