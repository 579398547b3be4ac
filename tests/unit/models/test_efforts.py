"""Each level of thinking on the wire, for the models of the table on the four wires; and requests that fit a model."""

import json
from dataclasses import replace
from typing import Any

import pytest

from isthmus.models import anthropic, gemini
from isthmus.models.anthropic import AnthropicModel
from isthmus.models.catalogue.facts import ModelFacts, Thinking
from isthmus.models.catalogue.table import all_facts, facts_of
from isthmus.models.endpoint.endpoint import endpoint
from isthmus.models.endpoint.providers import ANTHROPIC, GEMINI, OPENAI, Provider
from isthmus.models.fitting import fitted, with_cut_calls
from isthmus.models.openai import chat_body as openai_body
from isthmus.models.openai.responses_body import responses_body
from isthmus.models.port.base import (
    Effort,
    Finish,
    Message,
    ModelRequest,
    ModelThought,
    ModelToolResult,
    ProviderState,
    Sampling,
    Text,
    ToolChoice,
    ToolRequest,
    ToolSpec,
)
from isthmus.models.streaming import StreamOptions, open_provider

HELLO = Message("user", (Text("hello"),))
REQUEST = ModelRequest("", (HELLO,), (ToolSpec("t", "", {"type": "object", "properties": {}}),))
CHAT_HOSTS = {
    "openai": "api.openai.com",
    "mistral": "api.mistral.ai",
    "deepseek": "api.deepseek.com",
    "xai": "api.x.ai",
    "groq": "api.groq.com",
}


def bodies(facts: ModelFacts, request: ModelRequest) -> list[dict[str, Any]]:
    """Return the bodies for a model on each wire of its owner."""
    match facts.owner:
        case "anthropic":
            return [anthropic.request_body(request, facts.id)]
        case "gemini":
            return [gemini.request_body(request, facts.id)]
        case "openai":
            origin = "openai@api.openai.com"
            return [openai_body.request_body(request, facts.id, origin), responses_body(request, facts.id, origin)]
        case owner:
            return [openai_body.request_body(request, facts.id, f"openai@{CHAT_HOSTS[owner]}")]


def thinking_of(body: dict[str, Any]) -> str:
    """Return all that a body says of thinking."""
    names = ("thinking", "output_config", "reasoning_effort", "reasoning")
    said = {name: body[name] for name in names if name in body}
    return json.dumps(said | {"google": body.get("generationConfig", {}).get("thinkingConfig")}, sort_keys=True)


@pytest.mark.parametrize("facts", list(all_facts()), ids=lambda facts: f"{facts.owner}:{facts.id}")
def test_each_level_of_a_model_changes_its_request(facts: ModelFacts) -> None:
    for wire, usual in enumerate(bodies(facts, REQUEST)):
        said = {effort: thinking_of(bodies(facts, replace(REQUEST, effort=effort))[wire]) for effort in facts.efforts}
        assert len(set(said.values())) == len(facts.efforts)
        assert thinking_of(usual) not in said.values()


@pytest.mark.parametrize(
    ("owner", "name", "effort", "sent"),
    [
        ("anthropic", "claude-sonnet-5-5", Effort.XHIGH, '"output_config": {"effort": "xhigh"}'),
        ("anthropic", "claude-opus-4-6", Effort.MAX, '"output_config": {"effort": "max"}'),
        ("anthropic", "claude-opus-4-6", Effort.XHIGH, '"output_config": {"effort": "high"}'),
        ("anthropic", "claude-haiku-4-5", Effort.HIGH, '"thinking": {"budget_tokens": 24576, "type": "enabled"}'),
        ("anthropic", "claude-3-7-sonnet-20250219", Effort.LOW, '"budget_tokens": 1024'),
        ("gemini", "gemini-3.8-flash", Effort.HIGH, '"thinkingLevel": "high"'),
        ("gemini", "gemini-3.5-flash", Effort.MINIMAL, '"thinkingLevel": "minimal"'),
        ("gemini", "gemini-2.5-pro", Effort.MEDIUM, '"thinkingBudget": 8192'),
        ("openai", "gpt-6.2-sol", Effort.MAX, '"reasoning": {"effort": "max", "summary": "auto"}'),
        ("openai", "gpt-5", Effort.MINIMAL, '"reasoning_effort": "minimal"'),
        ("mistral", "mistral-medium-latest", Effort.MEDIUM, '"reasoning_effort": "high"'),
        ("xai", "grok-4.7", Effort.XHIGH, '"reasoning_effort": "xhigh"'),
    ],
)
def test_the_level_is_sent_in_the_words_of_the_family(owner: str, name: str, effort: Effort, sent: str) -> None:
    facts = facts_of(owner, name)
    assert facts is not None
    assert any(sent in thinking_of(body) for body in bodies(facts, replace(REQUEST, effort=effort)))


@pytest.mark.parametrize("name", ["claude-3-5-haiku-latest", "gpt-4.1", "gemini-2.0-flash", "gpt-5-chat-latest"])
def test_a_model_that_does_not_think_is_told_nothing(name: str) -> None:
    owner = {"c": "anthropic", "g": "openai"}[name[0]] if not name.startswith("gemini") else "gemini"
    facts = facts_of(owner, name)
    assert facts is not None
    assert facts.efforts == ()
    for with_effort, without in zip(
        bodies(facts, replace(REQUEST, effort=Effort.HIGH)), bodies(facts, REQUEST), strict=True
    ):
        assert thinking_of(with_effort) == thinking_of(without) == '{"google": null}'


def test_an_older_claude_begins_no_thought_in_the_middle_of_calls_without_one() -> None:
    call = ToolRequest("1", "t", {})
    result = Message("user", (ModelToolResult("1", "t", "done"),))
    foreign = replace(REQUEST, messages=(HELLO, Message("assistant", (call,)), result), effort=Effort.HIGH)
    assert "thinking" not in anthropic.request_body(foreign, "claude-haiku-4-5")
    thought = ModelThought("Hm", ProviderState("anthropic", {"signature": "s"}))
    native = replace(foreign, messages=(HELLO, Message("assistant", (thought, call)), result))
    assert "thinking" in anthropic.request_body(native, "claude-haiku-4-5")


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("claude-sonnet-5-5", 128_000),
        ("claude-haiku-4-5", 64_000),
        ("claude-3-haiku-20240307", 4_096),
        # Their API refuses a request whose parts together could exceed the window.
        ("claude-sonnet-4-0", 50_000),
        ("claude-unknown-9", 32_000),
    ],
)
def test_a_claude_may_answer_as_long_as_the_table_says(name: str, limit: int) -> None:
    assert anthropic.request_body(REQUEST, name)["max_tokens"] == limit


def test_a_request_asks_for_no_more_than_the_model_takes() -> None:
    asked = replace(REQUEST, max_output_tokens=10_000, sampling=Sampling(0.5), choice=ToolChoice.ANY)
    older, newer = facts_of("anthropic", "claude-3-haiku-20240307"), facts_of("anthropic", "claude-sonnet-5-5")
    assert older is not None
    assert newer is not None
    assert fitted(asked, older) == replace(asked, max_output_tokens=4_096)
    assert fitted(asked, newer) == replace(asked, sampling=Sampling(), choice=ToolChoice.AUTO)
    assert fitted(asked, None) == asked


def test_a_call_that_the_limit_has_cut_names_the_limit() -> None:
    whole, cut = ToolRequest("1", "t", {"a": 1}), ToolRequest("2", "t", {}, invalid="the arguments are not valid JSON")
    begun = ToolRequest("3", "t", {})
    for last in (cut, begun):
        message = with_cut_calls(Message("assistant", (Text("x"), whole, last)), Finish.LENGTH, 4_096)
        assert message.parts[:2] == (Text("x"), whole)
        assert message.parts[2] == replace(
            last,
            arguments={},
            invalid="the answer was cut at the output limit of 4,096 tokens, so its arguments are incomplete; "
            "ask for less at once, for example write a long file in several calls",
        )
    unchanged = Message("assistant", (cut,))
    assert with_cut_calls(unchanged, Finish.TOOL_CALLS, 4_096) == unchanged
    assert with_cut_calls(Message("assistant", (whole,)), Finish.LENGTH, 1).parts == (whole,)


@pytest.mark.parametrize("provider", [ANTHROPIC, GEMINI, OPENAI], ids=lambda provider: provider.id)
def test_the_default_models_say_what_they_can_do(provider: Any) -> None:
    from isthmus.models.streaming import open_provider

    model = open_provider(provider, provider.default_model, {provider.secrets.keys[0]: "k" * 20})
    facts = facts_of(provider.id, provider.default_model)
    assert facts is not None
    able = model.capabilities
    assert (able.context_window, able.efforts, able.output_limit) == (facts.room, facts.efforts, facts.output_limit)
    assert able.thoughts == (facts.thinking is not Thinking.NONE)


def test_an_unknown_claude_has_no_window_by_its_name() -> None:
    where = endpoint(ANTHROPIC, {"ANTHROPIC_API_KEY": "k" * 20})
    assert AnthropicModel("claude-unknown-9", where, {}, StreamOptions()).capabilities.context_window is None


LOCAL = "http://127.0.0.1:9"


@pytest.mark.parametrize(
    ("provider", "name", "base_url", "empties"),
    [
        (ANTHROPIC, "claude-sonnet-5-5", None, True),
        (ANTHROPIC, "qwen3", LOCAL, False),
        (OPENAI, "gpt-6.1-sol", None, True),
        (OPENAI, "gpt-6.1-sol", LOCAL, False),
        (GEMINI, "gemini-3.8-flash", None, False),
    ],
)
def test_where_another_effort_empties_the_cache(
    provider: Provider, name: str, base_url: str | None, empties: bool
) -> None:
    keys = {"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k", "GEMINI_API_KEY": "k"}
    model = open_provider(provider, name, keys, base_url=base_url)
    assert model.capabilities.effort_empties_cache is empties
