"""The end of a resumed session: texts, calls and diffs in order, condensed."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from isthmus.client import Delivery, PromptMessage
from isthmus.development_tool import ErrorDetails, FileDiff, ToolCall, ToolCallStatus, ToolOutput
from isthmus.events import AgentEvent, Command, Prompt, TextContent, ToolCallUpdate
from isthmus.task_view import CallView
from isthmus.terminal.interactive.past_items import (
    RESUMED_CALLS,
    RESUMED_MESSAGES,
    LeftOut,
    PastItem,
    PastText,
    end_of,
    past_items,
)
from support.conversation import OPTIONS, Conversation
from support.front_program import NEW, OLD, WORKSPACE, steps_of_call
from support.memory_agent import MemoryAgent, Step

pytestmark = pytest.mark.anyio


def call(name: str, status: ToolCallStatus = ToolCallStatus.SUCCEEDED) -> ToolCallUpdate:
    return ToolCallUpdate(ToolCall(name, status, name, {}, name))


def shown(*events: AgentEvent) -> list[str]:
    """Return the items of a task with these events, in short."""
    items = past_items(Delivery(seq, seq, event) for seq, event in enumerate(events, 1))
    return [short(item) for item in items]


def short(item: PastItem) -> str:
    match item:
        case PastText(role, text):
            return f"{role}: {text}"
        case LeftOut(calls):
            return f"{calls} more"
        case _:
            return item.call.tool_name


def test_texts_and_finished_calls_come_in_the_order_in_which_they_began() -> None:
    assert shown(
        Prompt("p", "do it"),
        TextContent("a", "I "),
        call("one", ToolCallStatus.EXECUTING),
        TextContent("a", "look."),
        TextContent("b", "Then."),
        call("waiting", ToolCallStatus.PENDING),
        call("one"),
        TextContent("c", " \n"),
        Command("m", ("memory", "add"), "tea"),
    ) == ["user: do it", "agent: I look.", "one", "agent: Then.", "user: /memory add tea"]


def test_the_last_texts_are_kept_and_the_last_calls_between_them() -> None:
    texts: list[PastItem] = [PastText("user", str(number)) for number in range(RESUMED_MESSAGES + 2)]
    calls: list[PastItem] = [CallView(call(f"c{number}").tool_call) for number in range(RESUMED_CALLS + 3)]
    kept = [short(item) for item in end_of([*calls, *texts[:-1], *calls, texts[-1], calls[0]])]
    assert kept[:RESUMED_MESSAGES] == [f"user: {number}" for number in range(2, RESUMED_MESSAGES + 1)] + ["3 more"]
    assert kept[-3:] == [f"c{RESUMED_CALLS + 2}", f"user: {RESUMED_MESSAGES + 1}", "c0"]
    assert len(kept) == RESUMED_MESSAGES + RESUMED_CALLS + 2


@pytest.fixture
def conversation(monkeypatch: pytest.MonkeyPatch) -> Iterator[Conversation]:
    made = Conversation(monkeypatch)
    yield made
    made.close()


async def test_resuming_shows_the_calls_and_the_beginning_of_each_diff(conversation: Conversation) -> None:
    def script(message: PromptMessage) -> Sequence[Step]:
        diff = FileDiff("greeting.py", f"{WORKSPACE}/greeting.py", NEW, OLD)
        long = replace(diff, old_content=None, new_content="".join(f"line {number}\n" for number in range(50)))
        return [
            TextContent("t", "I change it."),
            *steps_of_call("r", "replace", "greeting.py", output=ToolOutput(diff=diff)),
            *steps_of_call("w", "write_file", "long.py", output=ToolOutput(diff=long)),
            *steps_of_call("f", "read_file", "b.py", error=ErrorDetails("no such file\nb.py")),
            TextContent("u", "Done."),
        ]

    agent = MemoryAgent(script)
    turn = await agent.prompt(PromptMessage("change it", settings={"workspace_path": WORKSPACE}))
    async for _ in turn.deliveries:
        pass
    assert await conversation.run(agent, options=replace(OPTIONS, resume="latest")) == 0
    text = conversation.text
    order = ["\u203a change it", "I change it.", "✓ replace  greeting.py  +1 -1", '-     return "Hi', "✓ write_file"]
    places = [text.index(part) for part in (*order, "… 38 more lines", "✗ read_file", "no such file", "Done.")]
    assert places == sorted(places)
