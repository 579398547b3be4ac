"""The tools for edits by model: each family has those that it is trained to use, and no others."""

import pytest

from isthmus.models.port.edit_tools import ALL_EDIT_TOOLS, PATCHES, PATCHES_AS_JSON, STRINGS, edit_tools_of


@pytest.mark.parametrize(
    ("name", "tools"),
    [
        ("gpt-5.2", PATCHES),
        ("gpt-5-codex", PATCHES),
        ("openai/gpt-5", PATCHES),
        ("gpt-6.2-sol", PATCHES),
        ("GPT-10", PATCHES),
        ("gpt-4.1", PATCHES_AS_JSON),
        ("gpt-oss-120b", PATCHES_AS_JSON),
        ("o4-mini", PATCHES_AS_JSON),
        ("codex-mini-latest", PATCHES_AS_JSON),
        ("gpt-4o", STRINGS),
        ("gpt-4-turbo", STRINGS),
        ("gemini-3-pro", STRINGS),
        ("claude-opus-4-6", STRINGS),
        ("qwen3-coder", STRINGS),
        ("ollama3", STRINGS),
    ],
)
def test_each_family_has_the_tools_that_it_is_trained_to_use(name: str, tools: object) -> None:
    assert edit_tools_of(name) == tools


def test_where_the_tools_of_a_family_are_not_offered_the_others_are() -> None:
    assert PATCHES.among(ALL_EDIT_TOOLS) == PATCHES
    assert PATCHES.among({"replace", "write_file"}) == STRINGS
    assert STRINGS.among({"apply_patch"}) == PATCHES_AS_JSON
    assert STRINGS.among({"write_file", "apply_patch"}) == STRINGS
    assert STRINGS.among(()) == STRINGS


def test_the_other_tools_for_edits_are_hidden() -> None:
    assert PATCHES.hidden == {"replace", "write_file"}
    assert STRINGS.hidden == {"apply_patch"}
