"""The request for a summary: it begins as the request before it, on every wire, and its answer is a summary alone."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from isthmus.agent.approval.policy import ApprovalMode, Policy
from isthmus.agent.context.summary import CALL_REFUSED
from isthmus.development_tool import ToolOutput
from isthmus.events import Command, TaskState
from isthmus.internal_events import Compacted, ResultsPruned
from isthmus.tools.port.base import Arguments, CallContext, ToolKind, ToolResult, ToolSucceeded
from isthmus.tools.port.tool_set import ToolSet
from support.agent_harness import AgentHarness
from support.effect_tools import EffectTool
from support.model_bench import ALL, ANTHROPIC, GEMINI, OPENAI, RESPONSES, Provider
from support.scripted_wire import Call, Failure, Reply, Say, Think, WireUsage

pytestmark = pytest.mark.anyio

MODELS: Mapping[str, str] = {
    GEMINI.name: "gemini-3.8-flash",
    ANTHROPIC.name: "claude-sonnet-5-5",
    OPENAI.name: "gpt-6.2-sol",
    RESPONSES.name: "gpt-6.2-sol",
}
MESSAGES: Mapping[str, str] = {GEMINI.name: "contents", RESPONSES.name: "input"}
ASKED = "Write the summary of the conversation above"
TRANSCRIPT = "Write the summary of the transcript above"
SUMMARY = Reply.of(Say("## Goal\nwhat was wanted"))
DONE = Reply.of(Say("Done."))
WORDS = " ".join(map(str, range(2_000)))
FULL = 1e-9
"""Share of the window that every request exceeds."""


class LongLook(EffectTool):
    """A tool with a long result."""

    @override
    async def run(self, arguments: Arguments, context: CallContext) -> ToolResult:
        return ToolSucceeded(ToolOutput(text=WORDS), WORDS)


class Session:
    """A session whose agent talks to one provider's wire."""

    def __init__(self, workspace: Path, wire: Any, provider: Provider) -> None:
        self.provider = provider
        self.at = AgentHarness(
            workspace,
            wire,
            Policy(ApprovalMode.YOLO),
            tools=ToolSet.of(EffectTool("look", ToolKind.READ)),
            provider=provider.name,
            model=MODELS[provider.name],
            variables=(provider.key, provider.base_url),
        )

    async def say(self, *replies: Any, text: str = "Go on.") -> None:
        self.at.wire.add(*replies)
        assert (await self.at.prompt(text)).state is TaskState.COMPLETED

    async def compress(self, *replies: Any) -> None:
        self.at.wire.add(*replies)
        self.at.events.append(Command("m", ("compress",), ""))
        assert (await self.at.segment()).state is TaskState.COMPLETED

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [request.json for request in self.at.wire.model_requests]

    @property
    def summary(self) -> Compacted:
        (found,) = [event for event in self.at.events if isinstance(event, Compacted)]
        return found

    def check_beginning(self, before: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
        """Check that a request differs from the one before it by more messages alone."""
        name = MESSAGES.get(self.provider.name, "messages")
        rest, other = ({key: item for key, item in body.items() if key != name} for body in (before, asked))
        assert json.dumps(rest) == json.dumps(other)
        old, new = unmarked(before[name]), unmarked(asked[name])
        assert json.dumps(new[: len(old)]) == json.dumps(old)
        assert ASKED in json.dumps(new[len(old) :])
        assert ASKED not in json.dumps(old)


def unmarked(messages: Sequence[Any]) -> list[Any]:
    """Return messages without Anthropic's marks, which are not cached themselves."""
    return json.loads(re.sub(r', "cache_control": \{[^}]*\}', "", json.dumps(messages)))


@pytest.fixture
def started(workspace: Path) -> Iterator[Callable[[Provider], Session]]:
    wires: list[Any] = []

    def start(provider: Provider) -> Session:
        wires.append(wire := provider.wire())
        return Session(workspace, wire.__enter__(), provider)

    yield start
    for wire in wires:
        wire.__exit__(None, None, None)


@pytest.fixture(params=ALL, ids=lambda provider: provider.name)
def session(request: pytest.FixtureRequest, started: Callable[[Provider], Session]) -> Session:
    return started(request.param)


@pytest.fixture
def gemini(started: Callable[[Provider], Session]) -> Session:
    return started(GEMINI)


async def test_the_command_asks_behind_the_conversation(session: Session) -> None:
    look = Reply.of(Think("Let me see.", signature="c2lnbmVk"), Call("look"))
    await session.say(look, Reply.of(Say(WORDS)), text="Begin.")
    await session.say(DONE)
    await session.compress(SUMMARY)
    session.check_beginning(session.bodies[-2], session.bodies[-1])
    assert "what was wanted" in session.summary.summary
    await session.say(DONE)
    assert "what was wanted" in json.dumps(session.bodies[-1])
    assert ASKED not in json.dumps(session.bodies[-1])


async def test_an_automatic_compaction_asks_behind_the_newest_results(session: Session) -> None:
    await session.say(Reply.of(Say(WORDS)), text="Begin.")
    await session.say(DONE)
    session.at.share = FULL
    await session.say(SUMMARY, Reply.of(Call("look")), DONE)
    first, asked = session.bodies[1:3]
    session.check_beginning(first, asked)
    assert "what was wanted" in session.summary.summary


async def test_a_model_that_calls_a_tool_is_refused_and_asked_again(session: Session) -> None:
    await session.say(Reply.of(Say(WORDS)), text="Begin.")
    await session.say(DONE)
    usage = WireUsage(input=100, output=10)
    called = Reply((Say("I will look first."), Call("look")), usage=usage)
    await session.compress(called, Reply((Say("## Goal\nwhat was wanted"),), usage=usage))
    session.check_beginning(session.bodies[-3], session.bodies[-1])
    assert json.dumps(session.bodies[-1]).count(CALL_REFUSED) == 1
    assert session.at.calls == []
    assert "what was wanted" in session.summary.summary
    assert "look first" not in session.summary.summary
    assert (session.summary.input_tokens, session.summary.output_tokens) == (200, 20)


async def test_a_summary_beside_a_call_is_taken(gemini: Session) -> None:
    await gemini.say(Reply.of(Say(WORDS)), text="Begin.")
    await gemini.say(DONE)
    await gemini.compress(Reply.of(Say("## Goal\nwhat was wanted"), Call("look")))
    assert len(gemini.bodies) == 3
    assert "what was wanted" in gemini.summary.summary
    assert gemini.at.calls == []


CALLS = Reply.of(Call("look"))
UNUSABLE: Mapping[str, Sequence[Any]] = {
    "it calls tools all the time": (CALLS, CALLS),
    "the conversation is too long": (Failure(400, kind="context_too_long"),),
    "the provider refuses it": (Failure(400, "strange field"),),
}


@pytest.mark.parametrize("case", UNUSABLE)
async def test_a_transcript_is_summarised_where_the_conversation_cannot(gemini: Session, case: str) -> None:
    await gemini.say(Reply.of(Say(WORDS)), text="Begin.")
    await gemini.say(DONE)
    await gemini.compress(*UNUSABLE[case], SUMMARY)
    *_, last = gemini.bodies
    assert TRANSCRIPT in json.dumps(last)
    assert "tools" not in last
    assert "what was wanted" in gemini.summary.summary


async def test_a_conversation_that_leaves_no_room_is_not_sent(gemini: Session) -> None:
    await gemini.say(Reply.of(Say(WORDS)), text="Begin.")
    await gemini.say(Reply((Say("Done."),), usage=WireUsage(input=1_045_000)))
    await gemini.compress(SUMMARY)
    assert TRANSCRIPT in json.dumps(gemini.bodies[-1])


async def test_another_model_gets_a_transcript(gemini: Session) -> None:
    await gemini.say(Reply.of(Say(WORDS)), text="Begin.")
    await gemini.say(DONE)
    gemini.at.model = "gemini-3.8-pro"
    await gemini.compress(SUMMARY)
    assert TRANSCRIPT in json.dumps(gemini.bodies[-1])


async def test_results_are_not_removed_before_a_summary(gemini: Session) -> None:
    gemini.at.tools = ToolSet.of(LongLook("look", ToolKind.READ))
    usage = WireUsage(0, 0)
    for _ in range(3):
        await gemini.say(Reply.of(Call("look"), usage=usage), Reply.of(Say("Done."), usage=usage))
    gemini.at.share = FULL
    before = gemini.bodies[-1]
    await gemini.say(SUMMARY, DONE)
    gemini.check_beginning(before, gemini.bodies[-2])
    assert not any(isinstance(event, ResultsPruned) for event in gemini.at.events)
