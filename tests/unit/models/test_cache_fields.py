"""Fields of requests for the providers' caches: breakpoints, lifetimes, and keys by which requests find their cache."""

from dataclasses import replace
from typing import Any

import pytest

from isthmus.models import anthropic, gemini
from isthmus.models.openai import chat_body
from isthmus.models.openai.responses_body import responses_body
from isthmus.models.port.base import (
    Message,
    ModelRequest,
    ModelThought,
    ModelToolResult,
    ProviderState,
    Text,
    ToolRequest,
    ToolSpec,
)

SHORT = {"type": "ephemeral"}
LONG = {"type": "ephemeral", "ttl": "1h"}
TOOL = ToolSpec("glob", "Find files.", {"type": "object"})


def conversation(turns: int) -> ModelRequest:
    messages = [Message("user", (Text("Begin."),))]
    for number in range(turns):
        call = ToolRequest(f"c{number}", "glob", {})
        messages.append(Message("assistant", (call,)))
        messages.append(Message("user", (ModelToolResult(call.id, "glob", "x"), Text("a note"))))
    return ModelRequest("You are a test.", tuple(messages), (TOOL, replace(TOOL, name="grep")))


def marks(body: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return the place of each breakpoint, in the order of the prompt, and its value."""
    found = [(f"tool {tool['name']}", tool.get("cache_control")) for tool in body["tools"]]
    found += [("system", block.get("cache_control")) for block in body["system"]]
    for number, message in enumerate(body["messages"]):
        found += [(f"message {number}", block.get("cache_control")) for block in message["content"]]
    return [(place, mark) for place, mark in found if mark is not None]


@pytest.mark.parametrize(
    ("name", "is_interactive", "lasting"),
    [
        ("claude-sonnet-5-5", True, LONG),
        ("claude-sonnet-5-5", False, SHORT),
        ("claude-future-9-1", True, LONG),
        ("glm-5", True, SHORT),
    ],
)
def test_anthropic_keeps_a_conversation_for_an_hour_where_a_user_thinks(
    name: str, is_interactive: bool, lasting: Any
) -> None:
    body = anthropic.request_body(replace(conversation(3), is_interactive=is_interactive), name)
    assert marks(body) == [(place, lasting) for place in ("tool grep", "system", "message 4", "message 6")]


def test_anthropics_last_breakpoints_move_and_one_stays_where_the_cache_was_written() -> None:
    before, after = (marks(anthropic.request_body(conversation(turns), "claude-sonnet-5-5")) for turns in (3, 4))
    assert len(before) == len(after) == 4
    assert before[-1] == after[-2]


@pytest.mark.parametrize(
    ("origin", "has_key"),
    [("openai@api.openai.com", True), ("openai@eu.api.openai.com:443", True), ("openai@localhost:11434", False)],
)
def test_openais_own_servers_get_a_key_that_stays_the_same_in_a_conversation(origin: str, has_key: bool) -> None:
    first, later = (chat_body.request_body(conversation(turns), "gpt-5.6", origin) for turns in (0, 4))
    assert ("prompt_cache_key" in first) is has_key
    assert first.get("prompt_cache_key") == later.get("prompt_cache_key")
    if has_key:
        assert first["prompt_cache_key"] == responses_body(conversation(2), "gpt-5.6", origin)["prompt_cache_key"]


def test_the_key_is_that_of_the_conversation_also_after_its_beginning_is_summarised() -> None:
    origin = "openai@api.openai.com"
    whole = replace(conversation(2), conversation="local\0c1")
    summary = replace(whole, messages=(Message("user", (Text("Summary."),)), *whole.messages[-2:]))
    other = replace(whole, conversation="local\0c2")
    first, later, third = (
        chat_body.request_body(request, "gpt-5.6", origin)["prompt_cache_key"] for request in (whole, summary, other)
    )
    assert first == later != third
    assert "c1" not in first


def test_gemini_gets_the_signatures_of_thoughts_back_and_not_their_summaries() -> None:
    signed = ModelThought("How about that?", ProviderState("gemini", {"thoughtSignature": "s=="}))
    unsigned = ModelThought("**Looking** at it", ProviderState("gemini", {}))
    foreign = ModelThought("Hm.", ProviderState("anthropic", {"signature": "a=="}))
    said = Message("assistant", (unsigned, signed, foreign, Text("Yes.")))
    request = ModelRequest("", (Message("user", (Text("Is it?"),)), said, Message("user", (Text("Why?"),))))
    assert gemini.request_body(request, "gemini-3-pro")["contents"][1]["parts"] == [
        {"thoughtSignature": "s==", "thought": True, "text": ""},
        {"text": "Yes."},
    ]
