"""Hooks around model requests beside the provider's prompt cache: what was sent before stays as it is."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from isthmus.events import Thought
from isthmus.internal_events import CacheEmptied
from isthmus.tools.port.tool_set import CALL_TOOL
from support.agent_harness import AgentHarness
from support.model_bench import GEMINI, Provider, each_provider
from support.model_hooks import agent, before, selects
from support.scripted_wire import Call, Reply, Say

pytestmark = pytest.mark.anyio

WRITE = Call("write_file", {"file_path": "made.txt", "content": "x"}, id="c1")
READ = Call("read_file", {"file_path": "none.txt"}, id="c2")
OTHER = Call(CALL_TOOL, {"name": "write_file", "arguments": WRITE.arguments}, id="c3")
COUNT = "count = len(given['llm_request']['messages'])\n"
CHOOSES = (
    f"{COUNT}"
    "names = [] if count > 2 else ['read_file', 'grep_search']\n"
    "said = {'hookSpecificOutput': {'toolConfig': {'mode': 'AUTO', 'allowedFunctionNames': names}}}"
)
ADDS = (
    f"{COUNT}"
    "messages = [*given['llm_request']['messages'], {'role': 'user', 'content': TEXT}]\n"
    "said = {'hookSpecificOutput': {'llm_request': {'messages': messages}}}"
)
REWRITES = (
    f"{COUNT}"
    "messages = given['llm_request']['messages']\n"
    "messages[0]['content'] = f'the question, with {count} messages'\n"
    "said = {'hookSpecificOutput': {'llm_request': {'messages': messages}}}"
)
HIDES = REWRITES.replace(", with {count} messages", " that it hides")


def _unmarked(value: Any) -> Any:
    """Return a part of a request without the marks of what is to be cached."""
    if isinstance(value, dict):
        return {name: _unmarked(item) for name, item in value.items() if name != "cache_control"}  # type: ignore[reportUnknownVariableType]
    return [_unmarked(item) for item in value] if isinstance(value, list) else value  # type: ignore[reportUnknownVariableType]


def _messages(body: Any) -> list[Any]:
    return next(_unmarked(body[name]) for name in ("contents", "input", "messages") if name in body)


def _bodies(at: AgentHarness) -> list[Any]:
    return [request.json for request in at.wire.model_requests]


def _keeps_what_was_sent(bodies: list[Any]) -> bool:
    """Return whether each request begins as the one before it did, from the tools to the last message."""
    return all(
        _unmarked([old.get(name) for name in ("tools", "system", "systemInstruction", "instructions")])
        == _unmarked([new.get(name) for name in ("tools", "system", "systemInstruction", "instructions")])
        and _messages(new)[: len(_messages(old))] == _messages(old)
        for old, new in itertools.pairwise(bodies)
    )


@each_provider
async def test_tools_that_a_hook_leaves_out_stay_in_the_request(provider: Provider, workspace: Path) -> None:
    replies = (Reply.of(Say("First."), READ, WRITE), Reply.of(OTHER), Reply.of(Say("Done.")), Reply.of(Say("Bye.")))
    with agent(provider, workspace, (selects(CHOOSES),), *replies) as at:
        await at.prompt("go")
        await at.prompt("again")
        bodies = _bodies(at)
        assert len(bodies) == 4
        assert _keeps_what_was_sent(bodies)
        assert "write_file" in json.dumps(bodies[0]["tools"])
        texts = json.dumps(_messages(bodies[-1]))
        assert texts.count("these tools alone may be called; calls of others are refused: read_file, grep_search.") == 1
        assert texts.count("all tools may be called again") == 1
        assert texts.count("a hook of the settings left write_file out of this request") == 2
        assert not (workspace / "made.txt").exists()


@each_provider
async def test_what_a_hook_adds_stays_in_the_conversation(provider: Provider, workspace: Path) -> None:
    hooks = (before(ADDS.replace("TEXT", "f'count {count}'")), before(ADDS.replace("TEXT", "'always'"), number=2))
    with agent(provider, workspace, hooks, Reply.of(Say("I look."), READ), Reply.of(Say("Done."))) as at:
        await at.prompt("go")
        first, second = _bodies(at)
        assert _keeps_what_was_sent([first, second])
        assert "count 1" in json.dumps(_messages(first)[-1])
        assert "count 1" not in json.dumps(_messages(second)[-1])
        assert "count 2" in json.dumps(_messages(second)[-1])
        assert json.dumps(second).count("always") == 1


def _said(at: AgentHarness) -> list[str]:
    said = [event.thought.subject for event in at.events if isinstance(event, Thought)]
    return [subject for subject in said if "changes messages that were sent before" in subject]


async def test_a_hook_that_changes_what_was_sent_does_so_and_the_price_is_said_once(workspace: Path) -> None:
    replies = (Reply.of(Say("I look."), READ), Reply.of(Say("Again."), READ), Reply.of(Say("Done.")))
    with agent(GEMINI, workspace, (before(REWRITES),), *replies, *replies) as at:
        await at.prompt("the question")
        await at.prompt("another one")
        changed = [f"with {count} messages" in json.dumps(_messages(body)) for count, body in enumerate(_bodies(at), 1)]
        assert changed[0]
        assert len(changed) == 6
        assert len([event for event in at.events if isinstance(event, CacheEmptied)]) == 1
        (said,) = _said(at)
        assert "reads about" in said
        assert "tokens anew" in said


async def test_a_hook_that_makes_the_same_of_a_message_each_time_empties_nothing(workspace: Path) -> None:
    with agent(GEMINI, workspace, (before(HIDES),), Reply.of(Say("I look."), READ), Reply.of(Say("Done."))) as at:
        await at.prompt("the question")
        assert "that it hides" in json.dumps(_bodies(at))
        assert _said(at) == []
