"""Tests of reading server-sent events from a response."""

import itertools

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai import APIError

from isthmus.models.openai.event_reader import END_MARK, EventSplitter, read_events

pytestmark = pytest.mark.anyio


def split(*pieces: bytes) -> list[bytes]:
    splitter = EventSplitter()
    return [event for piece in pieces for event in splitter.feed(piece)]


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"data: one\n\ndata: two\n\n", [b"one", b"two"]),
        (b"data:one\r\n\r\ndata: two\r\r", [b"one", b"two"]),
        (b": comment\n\nevent: x\nid: 1\ndata: one\n\n", [b"one"]),
        (b"data: one\ndata:  two\n\n", [b"one\n two"]),
        (b"retry: 5\n\n\n\ndata\n\n", [b""]),
        (b"data: not complete\n", []),
        (b"data: not complete", []),
    ],
)
def test_an_event_is_the_data_up_to_an_empty_line(stream: bytes, events: list[bytes]) -> None:
    assert split(stream) == events


@given(st.lists(st.integers(0, 60)))
def test_a_stream_may_be_cut_anywhere(places: list[int]) -> None:
    stream = b"event: a\r\ndata: one\r\n\r\n: c\n\ndata: tw\ndata: o\n\ndata: three\r\r\n"
    edges = sorted({0, len(stream), *(place for place in places if place < len(stream))})
    pieces = [stream[start:end] for start, end in itertools.pairwise(edges)]
    assert split(*pieces) == [b"one", b"tw\no", b"three"]


async def test_what_follows_the_end_mark_is_not_read_as_events() -> None:
    response = httpx2.Response(200, content=b'data: {"a":1}\n\ndata: [DONE]\n\ndata: not JSON\n\n')
    assert [event async for event in read_events(response)] == [{"a": 1}, END_MARK]


async def test_numbers_that_json_lacks_are_read_as_null_and_the_answer_goes_on() -> None:
    response = httpx2.Response(200, content=b'data: {"logprobs":[-Infinity,NaN,1e999,0.5]}\n\ndata: [DONE]\n\n')
    assert [event async for event in read_events(response)] == [{"logprobs": [None, None, None, 0.5]}, END_MARK]


async def test_data_that_is_no_json_is_an_error() -> None:
    response = httpx2.Response(200, content=b"data: {\n\n")
    with pytest.raises(ValueError, match="Expecting"):
        [event async for event in read_events(response)]


async def test_an_error_in_the_stream_is_raised_as_the_sdk_does() -> None:
    request = httpx2.Request("POST", "http://localhost/")
    response = httpx2.Response(200, content=b'data: {"error": {"message": "full"}}\n\n', request=request)
    with pytest.raises(APIError, match="full") as raised:
        [event async for event in read_events(response)]
    assert raised.value.body == {"message": "full"}
