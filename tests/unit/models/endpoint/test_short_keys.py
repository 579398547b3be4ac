"""Keys that are too short to be hidden in messages and logs: the error names the variable, and never the key."""

import pytest

from isthmus.models.endpoint.endpoint import short_keys


@pytest.mark.parametrize(
    "variable", ["GEMINI_API_KEY", "GOOGLE_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY"]
)
def test_a_key_too_short_to_be_hidden_is_named_with_its_length_and_not_shown(variable: str) -> None:
    (line,) = short_keys({variable: " zqjxw ", "OTHER": "x"})
    assert line.startswith(f"{variable} has 5 characters, and a key below 8 is not hidden")
    assert "zqjxw" not in line
    assert short_keys({variable: "z"})[0].startswith(f"{variable} has 1 character, ")
    for fine in ("zqjxwzqj", "", "  "):
        assert short_keys({variable: fine}) == ()


@pytest.mark.parametrize(
    ("address", "count"),
    [("http://127.0.0.1:8080/v1", 0), ("http://localhost:1234", 0), ("http://box.lan/v1", 1), ("https://api.x", 1)],
)
def test_a_placeholder_for_a_server_on_this_machine_is_passed_over(address: str, count: int) -> None:
    assert len(short_keys({"OPENAI_API_KEY": "ollama", "OPENAI_BASE_URL": address})) == count
