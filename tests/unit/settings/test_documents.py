"""The pages on settings against the tables in the code."""

import re

import pytest

from isthmus.sandbox.guarded_paths import AT_HOME, STARTING, Effect
from isthmus.settings.keys import KEYS
from settings_tables import COMMAND, DOCS, TABLES, tables, tables_in, with_tables


def table(page: str, name: str) -> list[str]:
    text = (DOCS / page).read_text("utf-8")
    found = re.search(rf"<!-- {name}: [^>]*-->\n(.*?)<!-- /{name} -->", text, re.DOTALL)
    assert found is not None
    return found[1].splitlines()


@pytest.mark.parametrize("page", TABLES)
def test_the_tables_of_keys_are_current(page: str) -> None:
    written = tables(page)
    assert tables_in((DOCS / page).read_text("utf-8")) == written, f"run: {COMMAND}"


def test_a_row_of_each_table_has_what_the_row_of_the_key_says() -> None:
    meanings, setters = tables("reference/settings.md")["keys"], tables("explanation/security.md")["keys"]
    for key in KEYS.values():
        (row,) = [line for line in meanings.splitlines() if line.startswith(f"| `{key.name}` |")]
        assert row == f"| `{key.name}` | {key.effect} | {key.reader.merge.value} |"
        (row,) = [line for line in setters.splitlines() if line.startswith(f"| `{key.name}` |")]
        assert row.startswith(f"| `{key.name}` | {key.setter.value}")
        assert key.limit in row


def test_only_what_is_between_marks_is_written() -> None:
    page = "before\n<!-- keys: written by scripts/settings_tables.py from a.py -->\nold\n<!-- /keys -->\nafter\n"
    assert with_tables(page, {"keys": "| new |\n"}) == page.replace("old", "| new |")


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


@pytest.mark.parametrize("page", ["explanation/security.md"])
def test_every_test_that_a_page_names_is_there(page: str) -> None:
    named = re.findall(r"`(tests/[\w/.]+)`", (DOCS / page).read_text("utf-8"))
    assert len(named) > 10
    assert [path for path in named if not (DOCS.parent / path).exists()] == []
