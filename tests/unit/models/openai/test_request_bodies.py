"""Bodies of requests by provider: schemas, how much to think, the choice of tools, and the sampling of words."""

from dataclasses import replace
from typing import Any

import pytest

from isthmus.encoding.codec import JsonObject
from isthmus.models import anthropic, gemini
from isthmus.models.openai.chat_completions import chat_body as openai_body
from isthmus.models.openai.responses_body import responses_body
from isthmus.models.port.base import Effort, ModelRequest, Sampling, ToolChoice, ToolSpec

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


@pytest.mark.parametrize(
    ("name", "effort", "sent"),
    [
        ("gemini-2.5-pro", Effort.MEDIUM, {"includeThoughts": True, "thinkingBudget": 8192}),
        ("gemini-3-pro-preview", Effort.LOW, {"includeThoughts": True, "thinkingLevel": "low"}),
        ("gemini-3-pro-preview", Effort.MEDIUM, {"includeThoughts": True}),
        ("gemini-3-flash-preview", Effort.MEDIUM, {"includeThoughts": True, "thinkingLevel": "medium"}),
        ("gemini-2.5-pro", None, {"includeThoughts": True}),
        ("gemini-2.0-flash", Effort.HIGH, None),
    ],
)
def test_gemini_is_told_how_much_to_think(name: str, effort: Effort | None, sent: Any) -> None:
    body = gemini.request_body(replace(REQUEST, effort=effort), name)
    assert body.get("generationConfig", {}).get("thinkingConfig") == sent


@pytest.mark.parametrize(
    ("name", "effort", "sent"),
    [
        ("claude-opus-4-6", Effort.HIGH, {"effort": "high"}),
        ("claude-opus-4-6", None, None),
        ("claude-3-5-sonnet-20241022", Effort.HIGH, None),
    ],
)
def test_anthropic_is_told_how_much_to_think(name: str, effort: Effort | None, sent: Any) -> None:
    assert anthropic.request_body(replace(REQUEST, effort=effort), name).get("output_config") == sent


@pytest.mark.parametrize(
    ("name", "origin", "sent"),
    [
        ("gpt-5.1", "openai@api.openai.com", "low"),
        ("o4-mini", "openai@api.openai.com", "low"),
        ("gpt-4.1", "openai@api.openai.com", None),
        ("qwen3", "openai@localhost:8000", "low"),
    ],
)
def test_openai_is_told_how_much_to_think(name: str, origin: str, sent: str | None) -> None:
    body = openai_body.request_body(replace(REQUEST, effort=Effort.LOW), name, origin)
    assert body.get("reasoning_effort") == sent
    assert "reasoning_effort" not in openai_body.request_body(REQUEST, name, origin)


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        (ToolChoice.AUTO, [None, None, None, None]),
        (ToolChoice.ANY, [{"functionCallingConfig": {"mode": "ANY"}}, {"type": "any"}, "required", "required"]),
        (ToolChoice.NONE, [{"functionCallingConfig": {"mode": "NONE"}}, {"type": "none"}, "none", "none"]),
    ],
)
def test_each_provider_is_told_whether_tools_are_to_be_called(choice: ToolChoice, sent: list[Any]) -> None:
    request = replace(REQUEST, choice=choice)
    bodies = [
        anthropic.request_body(request, "claude-x"),
        openai_body.request_body(request, "m", "openai@x"),
        responses_body(request, "m", "openai@x"),
    ]
    asked = [gemini.request_body(request, "g").get("toolConfig"), *(body.get("tool_choice") for body in bodies)]
    assert asked == sent
    assert "tool_choice" not in openai_body.request_body(replace(request, tools=()), "m", "openai@x")


def test_each_provider_is_told_how_to_sample() -> None:
    request = replace(REQUEST, sampling=Sampling(0, 0.9, 3))
    generation = gemini.request_body(request, "g")["generationConfig"]
    assert generation == {"temperature": 0, "topP": 0.9, "topK": 3}
    for body in (
        anthropic.request_body(request, "claude-x"),
        openai_body.request_body(request, "m", "openai@x"),
        responses_body(request, "m", "openai@x"),
    ):
        assert (body["temperature"], body["top_p"], body["top_k"]) == (0, 0.9, 3)


@pytest.mark.parametrize("change", [{"choice": ToolChoice.ANY}, {"sampling": Sampling(temperature=0)}])
def test_anthropic_thinks_not_where_it_would_refuse_the_request(change: Any) -> None:
    assert "thinking" in anthropic.request_body(REQUEST, "claude-opus-4-6")
    assert "thinking" not in anthropic.request_body(replace(REQUEST, **change), "claude-opus-4-6")
