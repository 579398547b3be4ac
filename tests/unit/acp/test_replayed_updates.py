"""Updates of a turn that is sent again: texts that a later one replaces are not sent."""

import pytest

from isthmus.acp.front.replayed_updates import ReplayedUpdates
from isthmus.acp.v1.content import TextBlock
from isthmus.acp.v1.updates import AgentMessageChunk, AgentThoughtChunk, SessionUpdate, ToolCallStarted, ToolCallState

pytestmark = pytest.mark.anyio


def text(message_id: str, content: str, replaces: str | None = None) -> AgentMessageChunk:
    meta = {"isthmus": {"replacesMessageId": replaces}} if replaces is not None else None
    return AgentMessageChunk(TextBlock(content), message_id, meta)


THOUGHT = AgentThoughtChunk(TextBlock("hm"))
CALL = ToolCallStarted("c1")


class Sent:
    """What a client was sent: texts, and the kinds of other updates."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.updates = ReplayedUpdates(self._take)

    async def _take(self, update: SessionUpdate) -> None:
        match update:
            case AgentMessageChunk(TextBlock(content)):
                self.seen.append(content)
            case ToolCallState():
                self.seen.append("(call)")
            case _:
                self.seen.append("(thought)")

    async def give(self, *updates: SessionUpdate) -> list[str]:
        for update in updates:
            await self.updates.update(update)
        return self.seen


async def test_a_text_that_was_replaced_is_not_sent() -> None:
    sent = Sent()
    assert await sent.give(text("m1", "first"), text("m2", "to"), text("m2", "rn"), text("m3", "whole", "m2")) == []
    await sent.updates.finish()
    assert sent.seen == ["first", "whole"]


async def test_a_last_text_waits_for_what_comes_next_and_is_dropped_if_that_replaces_it() -> None:
    sent = Sent()
    await sent.give(text("m1", "first"), CALL, text("m2", "to"), THOUGHT, text("m2", "rn"), THOUGHT)
    await sent.updates.settle()
    assert sent.seen == ["first", "(call)", "(thought)", "(thought)"]
    assert await sent.give(THOUGHT, text("m3", "whole", "m2")) == [*sent.seen[:4], "(thought)", "whole"]
    assert (await sent.give(CALL))[-1] == "(call)"


@pytest.mark.parametrize(("then", "shown"), [(text("m1", "on"), "on"), (CALL, "(call)")])
async def test_a_last_text_is_sent_before_what_does_not_replace_it(then: SessionUpdate, shown: str) -> None:
    sent = Sent()
    await sent.give(text("m1", "go "))
    await sent.updates.settle()
    assert sent.seen == []
    assert await sent.give(then) == ["go ", shown]


async def test_nothing_waits_after_a_tool_call() -> None:
    sent = Sent()
    await sent.give(text("m1", "I write."), CALL)
    await sent.updates.settle()
    assert sent.seen == ["I write.", "(call)"]


async def test_the_end_of_a_turn_sends_a_text_that_waited() -> None:
    sent = Sent()
    await sent.give(text("m1", "all"))
    await sent.updates.settle()
    await sent.updates.finish()
    assert sent.seen == ["all"]
