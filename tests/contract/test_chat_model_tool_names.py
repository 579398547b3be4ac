"""Names of tools that a provider refuses never reach it, and what it calls them by is understood."""

import re
from dataclasses import replace
from typing import Any, cast

import pytest

from isthmus.models.port.base import (
    Done,
    Message,
    ModelToolResult,
    Text,
    ToolRequest,
    ToolRequestStarted,
    ToolSpec,
    requests_of,
)
from support.model_bench import GEMINI, QUESTION, Bench, Provider, bench, continued, each_provider
from support.scripted_wire import Call, Reply, Say

pytestmark = pytest.mark.anyio

SCHEMA = {"type": "object", "properties": {"x": {"type": "string"}}}
NAMES = ("git.log", "git_log", "repo.read", "naïve tool!", "9lives", "x" * 80, f"{'x' * 80}y", "read_file", "")
TAKEN = {
    "gemini": re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}"),
    "anthropic": re.compile(r"[A-Za-z0-9_-]{1,64}"),
    "openai": re.compile(r"[A-Za-z0-9_-]{1,64}"),
    "responses": re.compile(r"[A-Za-z0-9_-]{1,64}"),
}
ASKED = replace(QUESTION, tools=tuple(ToolSpec(name, f"tool {name}", SCHEMA) for name in NAMES))


def tool_names(body: Any) -> list[str]:
    tools: Any = body["tools"]
    if "functionDeclarations" in tools[0]:
        tools = tools[0]["functionDeclarations"]
    return [tool["function"]["name"] if "function" in tool else tool["name"] for tool in tools]


def called_names(it: Bench, provider: Provider, index: int) -> list[str]:
    """Return the names of the calls in the history of a request."""
    found: list[str] = []

    def walk(value: Any) -> None:
        match value:
            case {"functionCall": {"name": str(name)}} | {"type": "tool_use", "name": str(name)}:
                found.append(name)
            case {"type": "function", "function": {"name": str(name)}} | {"type": "function_call", "name": str(name)}:
                found.append(name)
            case _ if isinstance(value, dict):
                for item in cast("dict[str, Any]", value).values():
                    walk(item)
            case _ if isinstance(value, list):
                for item in cast("list[Any]", value):
                    walk(item)
            case _:
                pass

    walk(provider.messages(it.wire.model_requests[index]))
    return found


@each_provider
async def test_every_tool_is_offered_under_a_name_of_its_own_that_the_provider_takes(provider: Provider) -> None:
    async with bench(provider, Reply.of(Say("hi"))) as it:
        await it.answer(ASKED)
        names = tool_names(it.wire.model_requests[0].json)
    assert all(TAKEN.get(provider.name, TAKEN["openai"]).fullmatch(name) for name in names), names
    assert len(set(names)) == len(NAMES)
    assert (names[1], names[7]) == ("git_log", "read_file")


@each_provider
@pytest.mark.requirement("MCP-099")
async def test_a_call_by_the_providers_name_is_the_tools_and_goes_back_as_offered(
    provider: Provider,
) -> None:
    async with bench(provider, Reply.of(Say("hi"))) as it:
        await it.answer(ASKED)
        offered = dict(zip(NAMES, tool_names(it.wire.model_requests[0].json), strict=True))
        calls = [Call(offered[name], {"x": name}, id=f"call_{index}") for index, name in enumerate(NAMES)]
        it.wire.add(Reply.of(*calls))
        it.wire.add(Reply.of(Say("done")))
        items = await it.ask(ASKED)
        done = items[-1]
        assert isinstance(done, Done)
        assert [item.name for item in items if isinstance(item, ToolRequestStarted)] == list(NAMES)
        requests = requests_of(done.message)
        assert [(call.name, call.arguments) for call in requests] == [(name, {"x": name}) for name in NAMES]
        results = [ModelToolResult(call.id, call.name, "x") for call in requests]
        await it.answer(replace(continued(done, *results), tools=ASKED.tools))
        assert tool_names(it.wire.model_requests[2].json) == list(offered.values())
        assert called_names(it, provider, 2) == list(offered.values())


@each_provider
async def test_a_call_of_a_tool_that_is_gone_does_not_get_the_request_refused(provider: Provider) -> None:
    gone = ToolRequest("call_1", "gone.tool now", {})
    history = (
        *QUESTION.messages,
        Message("assistant", (gone,)),
        Message("user", (ModelToolResult("call_1", gone.name, "x"), Text("go on"))),
    )
    async with bench(provider, Reply.of(Say("hi"))) as it:
        await it.answer(replace(QUESTION, messages=history))
        (name,) = called_names(it, provider, 0)
    assert name == ("gone.tool_now" if provider is GEMINI else "gone_tool_now")
