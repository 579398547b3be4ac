"""Keys that are probably misspelt: said at the start, and no key that Gemini CLI has is among them."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.settings import load_settings
from isthmus.settings.keys import KEYS
from isthmus.settings.misspelt import edit_distance

GEMINI_CLI_KEYS = (Path(__file__).parent / "gemini_cli_keys.txt").read_text("utf-8").split()
"""All keys of Gemini CLI's own schema of settings, sections among them."""


def nested(name: str) -> dict[str, Any]:
    """Return the settings that have the value true under a dotted name."""
    first, _, rest = name.partition(".")
    return {first: nested(rest) if rest else True}


def said(folder: Path, values: dict[str, Any], *, of_project: bool = False, is_trusted: bool = False) -> list[str]:
    home, project = folder / "home", folder / "project"
    path = (project if of_project else home) / ".gemini" / "settings.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(values), "utf-8")
    lines = load_settings(project, home, {}, is_trusted=is_trusted).ignored
    return [line.removeprefix(f"{path}: ") for line in lines if "is not a key" in line]


@pytest.mark.parametrize(
    ("name", "line"),
    [
        (
            "isthmus.thinkingEfort",
            "isthmus.thinkingEfort is not a key of the settings. Did you mean isthmus.thinkingEffort?",
        ),
        (
            "isthmus.fallbackmodels",
            "isthmus.fallbackmodels is not a key of the settings. Did you mean isthmus.fallbackModels?",
        ),
        (
            "isthmus.colour",
            "isthmus.colour is not a key of Isthmus and has no effect. docs/reference/settings.md has all.",
        ),
        ("tools.exlude", "tools.exlude is not a key of the settings. Did you mean tools.exclude?"),
        (
            "hooksConfig.enable",
            "hooksConfig.enable is not a key of the settings. Did you mean hooksConfig.enabled?",
        ),
        ("mcpServer", "mcpServer is not a key of the settings. Did you mean mcpServers?"),
    ],
)
def test_a_misspelt_key_is_said_with_what_is_meant(name: str, line: str, tmp_path: Path) -> None:
    assert said(tmp_path, nested(name)) == [line]


def test_no_key_of_gemini_cli_is_taken_for_a_mistake(tmp_path: Path) -> None:
    assert len(GEMINI_CLI_KEYS) > 200
    for number, name in enumerate(GEMINI_CLI_KEYS):
        if name not in KEYS:
            assert said(tmp_path / str(number), nested(name)) == []


def test_an_untrusted_projects_file_is_not_read_for_mistakes(tmp_path: Path) -> None:
    values = nested("isthmus.colour")
    assert said(tmp_path, values, of_project=True) == []
    assert len(said(tmp_path, values, of_project=True, is_trusted=True)) == 1


def test_of_many_mistakes_the_first_are_named_without_control_characters(tmp_path: Path) -> None:
    lines = said(tmp_path, {"isthmus": {f"no\x1b[2J{number}" + "x" * 500: 1 for number in range(50)}})
    assert len(lines) == 10
    assert all("\x1b" not in line and len(line) < 250 for line in lines)


TEXTS = st.text("abc", max_size=6)


@given(TEXTS, TEXTS, st.integers(0, 6))
def test_the_edit_distance_is_that_of_the_definition(first: str, second: str, limit: int) -> None:
    def distance(one: str, other: str) -> int:
        if not one or not other:
            return len(one) + len(other)
        if one[0] == other[0]:
            return distance(one[1:], other[1:])
        return 1 + min(distance(one[1:], other), distance(one, other[1:]), distance(one[1:], other[1:]))

    assert edit_distance(first, second, limit) == min(distance(first, second), limit + 1)
