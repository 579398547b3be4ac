"""The JSON-RPC end with LSP framing: any input is a message or gets an error response, and the next one is read."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.rpc.lsp import MAXIMUM_HEADER_BYTES, MAXIMUM_MALFORMED, LspFraming, frame
from isthmus.rpc.messages import (
    ErrorResponse,
    Message,
    Notification,
    ParseError,
    Request,
    Response,
    RpcError,
    error_response,
    notification,
    response,
)
from isthmus.rpc.peer import BrokenPeerError, JsonRpcPeer

NEXT = frame(notification("next", {}))


def receive(data: bytes, peer: JsonRpcPeer | None = None) -> list[Message]:
    return list((peer or JsonRpcPeer(LspFraming())).receive(data))


def framed(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


def code_of(message: Message) -> int:
    assert isinstance(message, ParseError)
    return message.code


@given(st.lists(st.tuples(st.text(), st.dictionaries(st.text(), st.text(), max_size=3)), max_size=3), st.data())
def test_messages_are_the_same_in_whatever_pieces_they_come(told: list[tuple[str, dict[str, str]]], data: Any) -> None:
    stream = b"".join(frame(notification(method, params)) for method, params in told)
    peer, received = JsonRpcPeer(LspFraming()), list[Message]()
    sizes = data.draw(st.lists(st.integers(1, 400), min_size=1, max_size=20))
    while stream:
        size = sizes.pop(0) if sizes else len(stream)
        received += peer.receive(stream[:size])
        stream = stream[size:]
    assert received == [Notification(method, params) for method, params in told]


@given(st.binary(max_size=200))
def test_no_bytes_are_too_strange(data: bytes) -> None:
    receive(data)
    receive(framed(data))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error", "2.0"]), inner)
        ),
    )
)
def test_any_json_is_a_message_or_is_answered(value: Any) -> None:
    (message,) = receive(framed(json.dumps(value).encode()))
    assert isinstance(message, (Request, Notification, Response, ErrorResponse, ParseError))


def test_a_request_an_answer_and_an_error_come_back_as_they_are() -> None:
    peer = JsonRpcPeer(LspFraming())
    number, sent = peer.request("ask", {"a": 1})
    assert receive(sent) == [Request(number, "ask", {"a": 1})]
    assert receive(frame(response(number, [1]))) == [Response(number, [1])]
    assert receive(frame(error_response(number, -32803, "no"))) == [ErrorResponse(number, -32803, "no")]
    assert peer.request("ask", None)[0] != number


def test_other_headers_and_their_case_do_not_matter() -> None:
    body = b'{"jsonrpc":"2.0","method":"x"}'
    header = b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\ncontent-length:%d\r\n\r\n" % len(body)
    assert receive(header + body) == [Notification("x", {})]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", -32700),
        (b"\xff", -32700),
        (b"[" * 5000 + b"]" * 5000, -32700),
        (b'{"jsonrpc":"2.0","method":"x","params":{"n":NaN}}', -32700),
        (b"[" + b"[]," * 1_000_001 + b"[]]", -32700),
        (b"[]", -32600),
        (b'"x"', -32600),
        (b'{"method":"x"}', -32600),
        (b'{"jsonrpc":"2.0","id":true,"method":"x"}', -32600),
        (b'{"jsonrpc":"2.0","method":7}', -32600),
        (b'{"jsonrpc":"2.0","id":"ours?","result":1}', -32600),
        (b'{"jsonrpc":"2.0","id":7,"method":"x","params":[1]}', -32602),
    ],
    ids=lambda value: str(value)[:40],
)  # fmt: skip
def test_what_is_no_message_is_answered_and_the_next_one_is_read(body: bytes, code: int) -> None:
    message, following = receive(framed(body) + NEXT)
    assert code_of(message) == code
    assert following == Notification("next", {})


def test_a_refused_request_is_answered_by_its_id() -> None:
    (message,) = receive(framed(b'{"jsonrpc":"2.0","id":7,"method":"x","params":"y"}'))
    assert isinstance(message, ParseError)
    assert message.id == 7


def test_the_answer_to_something_unreadable_is_not_answered_again() -> None:
    assert receive(frame(error_response(None, -32700, "what?"))) == [ErrorResponse(None, -32700, "what?")]


@pytest.mark.parametrize(
    "header",
    [b"X: 1\r\n\r\n", b"Content-Length: many\r\n\r\n", b"Content-Length: -1\r\n\r\n", b"Content-Length\r\n\r\n"],
)
def test_a_header_without_a_length_is_skipped(header: bytes) -> None:
    message, following = receive(header + NEXT)
    assert code_of(message) == -32600
    assert following == Notification("next", {})


@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_a_header_without_end_is_told_once_and_not_kept(size: int) -> None:
    peer, received = JsonRpcPeer(LspFraming()), list[Message]()
    stream = b"X: " + b"x" * (10 * MAXIMUM_HEADER_BYTES) + b"\r\n\r\n" + NEXT
    for start in range(0, len(stream), size):
        received += peer.receive(stream[start : start + size])
    assert [code_of(message) for message in received[:-1]] == [-32600]
    assert received[-1] == Notification("next", {})


@pytest.mark.parametrize("size", [1, 50, 100_000])
def test_a_body_over_the_limit_is_skipped_as_it_comes(size: int) -> None:
    peer, received = JsonRpcPeer(LspFraming(maximum_body=100)), list[Message]()
    stream = framed(b"x" * 1000) + NEXT
    for start in range(0, len(stream), size):
        received += peer.receive(stream[start : start + size])
    assert [code_of(message) for message in received[:-1]] == [-32600]
    assert received[-1] == Notification("next", {})


def test_nothing_larger_than_the_limit_is_sent() -> None:
    with pytest.raises(RpcError, match="100"):
        JsonRpcPeer(LspFraming(maximum_body=100)).request("ask", {"text": "x" * 100})


def test_a_peer_that_speaks_something_else_is_left() -> None:
    junk = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
    assert len(receive(junk * (MAXIMUM_MALFORMED - 1))) == MAXIMUM_MALFORMED - 1
    with pytest.raises(BrokenPeerError):
        receive(junk * MAXIMUM_MALFORMED)


def test_half_a_surrogate_pair_is_mended() -> None:
    assert receive(framed(rb'{"jsonrpc":"2.0","method":"x","params":{"t":"\ud83d"}}')) == [
        Notification("x", {"t": "\ufffd"})
    ]
