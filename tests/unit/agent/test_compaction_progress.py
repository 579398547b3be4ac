"""Compactions bring a conversation somewhere, or end: on generated conversations, and the rule for those of a turn."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.agent.context.compaction import FILES_HEADING, REQUEST_HEADING, NotCompactedError, compact
from isthmus.agent.session.compacted_sizes import (
    GROWTH_SHARE,
    MAXIMUM_FRUITLESS,
    SHRINK_SHARE,
    CompactedSizes,
    goes_in_circles,
    has_grown,
    shrinks,
)
from isthmus.agent.session.session import Session
from isthmus.agent.session.size import messages_tokens
from isthmus.events import AgentEvent, Prompt
from isthmus.internal_events import Compacted, FilesSeen, ModelReply, SeenText, ToolResultRecorded
from isthmus.models.port.base import Done, Finish, Message, ModelRequest, Text, ToolRequest, Usage
from isthmus.models.port.message import message_to_json
from support.emitting import collecting_turn

pytestmark = pytest.mark.anyio

WINDOW = 10_000
SIZES = st.integers(0, 8_000)


class Author:
    """A model that writes summaries of these lengths, one after the other."""

    name, provider = "author", "test"

    def __init__(self, lengths: list[int]) -> None:
        self._lengths = itertools.cycle(lengths)

    async def stream(self, request: ModelRequest):  # type: ignore[no-untyped-def]
        text = "s" * next(self._lengths)
        yield Done(Message("assistant", (Text(text),)), Usage(), Finish.STOP)


def reply(*parts: Text | ToolRequest) -> ModelReply:
    return ModelReply("m", "test", message_to_json(Message("assistant", parts)), input_tokens=0, output_tokens=0)


@st.composite
def sessions(draw: st.DrawFn) -> Session:
    """Return a conversation of several turns, of which the last one may be under way."""
    session, number = Session("c", workspace="/home/me/project"), itertools.count()
    for _ in range(draw(st.integers(1, 6))):
        session.apply(Prompt("p", "request " + "r" * draw(SIZES)), "t")
        for _ in range(draw(st.integers(0, 5))):
            call = f"c{next(number)}"
            session.apply(reply(ToolRequest(call, "read", {})))
            session.apply(ToolResultRecorded(call, "t" * draw(SIZES)))
        if draw(st.booleans()):
            session.apply(reply(Text("a" * draw(SIZES))))
    return session


@given(sessions(), st.lists(st.integers(1, 4_000), min_size=1, max_size=4))
async def test_each_compaction_makes_the_context_smaller_by_a_share_or_ends(
    session: Session, lengths: list[int]
) -> None:
    author, sizes = Author(lengths), [messages_tokens(session.messages)]
    most = 1 + math.ceil(math.log(max(2, sizes[0])) / -math.log(1 - SHRINK_SHARE))
    for _ in range(most + 1):
        try:
            done = await compact(collecting_turn(session, []), author, WINDOW)  # type: ignore[arg-type]
        except NotCompactedError:
            assert messages_tokens(session.messages) == sizes[-1]
            return
        sizes.append(messages_tokens(session.messages))
        assert sizes[-1] <= sizes[-2] * (1 - SHRINK_SHARE)
        assert done.tokens_after < done.tokens_before
    pytest.fail(f"the compactions do not end: {sizes}")


@given(st.integers(1, 10**6), st.integers(0, 10**6), st.integers(0, 10**6))
def test_what_replaces_more_than_it_saves_is_no_compaction(total: int, replaced: int, summary: int) -> None:
    if shrinks(total, replaced, summary):
        assert total - replaced + summary <= total * (1 - SHRINK_SHARE) + 1e-6


@given(st.lists(st.tuples(st.integers(0, 3_000), st.integers(0, 3_000)), max_size=60), st.integers(1_000, 10_000))
def test_the_compactions_of_a_turn_are_bounded_by_its_growth(steps: list[tuple[int, int]], window: int) -> None:
    compactions: list[CompactedSizes] = []
    now, grown = 2_000, 0
    for growth, kept in steps:
        now, grown = now + growth, grown + growth
        if goes_in_circles(compactions, window):
            break
        after = min(now, kept)
        compactions.append(CompactedSizes(now, after))
        now = after
    fruitful = grown / (window * GROWTH_SHARE)
    assert len(compactions) <= 1 + MAXIMUM_FRUITLESS * (fruitful + 1) + fruitful


def test_growth_between_compactions_counts_anew() -> None:
    small, large = CompactedSizes(1_000, 900), CompactedSizes(9_000, 900)
    assert not goes_in_circles([], WINDOW)
    assert not goes_in_circles([small, small], WINDOW)
    assert goes_in_circles([small, small, small], WINDOW)
    assert goes_in_circles([large, small, small], WINDOW)
    assert not goes_in_circles([small, small, large], WINDOW)
    assert not goes_in_circles([small, large, small], WINDOW)
    assert has_grown([], 0, WINDOW)
    assert not has_grown([small], 1_000, WINDOW)
    assert has_grown([small], 3_400, WINDOW)


def seen(path: str) -> FilesSeen:
    return FilesSeen((SeenText(path, "digest", 1, 3, 3),))


async def test_the_summary_names_the_files_that_were_read_or_changed_and_the_request() -> None:
    session = Session("c", workspace="/home/me/project")
    session.apply(Prompt("p", "Compare them, please."), "t")
    for number, path in enumerate(("a.py", "/etc/hosts", "src/b.py")):
        session.apply(reply(ToolRequest(f"c{number}", "read_file", {})))
        session.apply(seen(path if path.startswith("/") else f"/home/me/project/{path}"))
        session.apply(ToolResultRecorded(f"c{number}", "t" * 4_000))
    session.apply(reply(ToolRequest("last", "glob", {})))
    session.apply(ToolResultRecorded("last", "t" * 400))
    events: list[AgentEvent] = []
    await compact(collecting_turn(session, events), Author([50]), WINDOW)  # type: ignore[arg-type]
    (summary,) = [event.summary for event in events if isinstance(event, Compacted)]
    files = summary[summary.index(FILES_HEADING) : summary.index(REQUEST_HEADING)]
    assert files.split() == [*FILES_HEADING.split(), "-", "src/b.py", "-", "/etc/hosts", "-", "a.py"]
    assert "Compare them, please." in summary
