"""Forms of a tool's schema by provider: all of JSON Schema only for those that accept it."""

from typing import Any

import pytest

from isthmus.encoding.codec import JsonObject
from isthmus.models import anthropic, gemini, openai_body
from isthmus.models.base import ModelRequest, ToolSpec

PLAIN: JsonObject = {"type": "object", "properties": {"p": {"type": "string"}}}
FULL: JsonObject = {**PLAIN, "additionalProperties": False}
REQUEST = ModelRequest("", (), (ToolSpec("t", "", PLAIN, FULL), ToolSpec("u", "", PLAIN)))


def test_anthropic_is_sent_schemas_in_full() -> None:
    tools = anthropic.request_body(REQUEST, "claude-x")["tools"]
    assert [tool["input_schema"] for tool in tools] == [FULL, PLAIN]


def test_gemini_is_sent_schemas_in_the_form_that_every_provider_takes() -> None:
    (tools,) = gemini.request_body(REQUEST, "gemini-x")["tools"]
    assert [tool["parametersJsonSchema"] for tool in tools["functionDeclarations"]] == [PLAIN, PLAIN]


@pytest.mark.parametrize(
    ("origin", "first"),
    [
        ("openai@api.openai.com", FULL),
        ("openai@eu.api.openai.com:443", FULL),
        ("openai@localhost:11434", PLAIN),
        ("openai@openai.com.example.org", PLAIN),
        ("openai@fakeopenai.com", PLAIN),
        ("openai@", PLAIN),
    ],
)
def test_openai_is_sent_schemas_in_full_and_its_imitators_are_not(origin: str, first: Any) -> None:
    tools = openai_body.request_body(REQUEST, "m", origin)["tools"]
    assert [tool["function"]["parameters"] for tool in tools] == [first, PLAIN]
