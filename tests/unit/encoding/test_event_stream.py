"""The frames of server-sent events, as the strictest parser in use reads them.

It is httpx-sse, which A2A and MCP clients in Python use. To it an empty line is an event once there was an ``id:``,
also that of an earlier event; without data it is one with empty data.
"""

from collections.abc import Sequence
from typing import TypeAlias

from httpx_sse import ServerSentEvent
from hypothesis import given
from hypothesis import strategies as st

from isthmus.encoding.event_stream import KEEP_ALIVE, comment, event_frame, retry_after
from support.event_streams import strictly_parsed

Piece: TypeAlias = "tuple[bytes, ServerSentEvent | None]"
"""Bytes of a stream, and the event that they are."""

DATA = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), min_size=1)
NOTES = st.text(st.characters(exclude_categories=["Cs"])).map(lambda text: (comment(text), None)) | st.just(
    (KEEP_ALIVE, None)
)


@st.composite
def events(draw: st.DrawFn) -> Piece:
    data, name = draw(DATA), draw(st.none() | st.sampled_from(["message", "error"]))
    number = draw(st.none() | st.integers(min_value=0))
    frame = event_frame(data.encode(), number, name)
    return frame, ServerSentEvent(event=name, data=data, id=None if number is None else str(number))


def test_the_frames_are_these_bytes() -> None:
    assert event_frame(b"{}") == b"data: {}\n\n"
    assert event_frame(b"{}", 7) == b"id: 7\ndata: {}\n\n"
    assert event_frame(b"{}", "s:7", "message") == b"id: s:7\nevent: message\ndata: {}\n\n"
    assert event_frame(b"{}", name="error") == b"event: error\ndata: {}\n\n"
    assert KEEP_ALIVE == b": keep-alive\n"
    assert comment("two\nlines\r\nor three") == b": two\n: lines\n: or three\n"
    assert comment("") == b": \n"
    assert retry_after(5000) == b"retry: 5000\n"


@given(st.lists(events() | NOTES), st.sampled_from([b"", retry_after(5000)]))
def test_comments_between_events_change_no_event(pieces: Sequence[Piece], begin: bytes) -> None:
    found = strictly_parsed(begin + b"".join(frame for frame, _ in pieces))
    sent = [event for _, event in pieces if event is not None]
    assert [(event.event, event.data) for event in found] == [(event.event, event.data) for event in sent]
    known = ""
    for event, received in zip(sent, found, strict=True):
        known = event.id or known
        assert received.id == known
    assert [event.retry for event in found] == [5000 if begin and at == 0 else None for at in range(len(found))]
