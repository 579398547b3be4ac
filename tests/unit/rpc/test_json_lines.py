"""The JSON-RPC end with lines of JSON: any line is a message or gets an error response, and the next one is read."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.rpc.json_lines import LineFraming
from isthmus.rpc.messages import ErrorResponse, Message, Notification, ParseError, Request, Response, RpcError
from isthmus.rpc.peer import JsonRpcPeer

NEXT = b'{"jsonrpc":"2.0","method":"next"}\n'


def peer_of(maximum_bytes: int = 1000) -> JsonRpcPeer:
    return JsonRpcPeer(LineFraming(maximum_bytes))


def receive(data: bytes, peer: JsonRpcPeer | None = None) -> list[Message]:
    return list((peer or peer_of()).receive(data))


@given(st.lists(st.dictionaries(st.text(), st.text(), max_size=3), max_size=4), st.data())
def test_messages_are_the_same_in_whatever_pieces_they_come(told: list[dict[str, str]], data: Any) -> None:
    stream = b"".join(
        json.dumps({"jsonrpc": "2.0", "method": "m", "params": params}).encode() + b"\n" for params in told
    )
    peer, received = peer_of(100_000), list[Message]()
    sizes = data.draw(st.lists(st.integers(1, 60), min_size=1, max_size=30))
    while stream:
        size = sizes.pop(0) if sizes else len(stream)
        received += peer.receive(stream[:size])
        stream = stream[size:]
    assert received == [Notification("m", params) for params in told]


@given(st.binary(max_size=200))
def test_after_any_bytes_the_next_line_is_read(data: bytes) -> None:
    peer = peer_of()
    receive(data + b"\n", peer)
    assert receive(NEXT, peer) == [Notification("next", {})]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"not json", -32700),
        (b"{", -32700),
        (b"\xff\xfe", -32700),
        (b'{"jsonrpc":"2.0","method":"m","params":{"x":NaN}}', -32700),
        (b"[" * 200 + b"]" * 200, -32700),
        (b"[]", -32600),
        (b'[{"jsonrpc":"2.0","method":"m"}]', -32600),
        (b"5", -32600),
        (b"null", -32600),
        (b"{}", -32600),
        (b'{"method":"m"}', -32600),
        (b'{"jsonrpc":"1.0","method":"m"}', -32600),
        (b'{"jsonrpc":"2.0","method":5}', -32600),
        (b'{"jsonrpc":"2.0","method":"m","id":1.5}', -32600),
        (b'{"jsonrpc":"2.0","method":"m","id":true}', -32600),
        (b'{"jsonrpc":"2.0","id":"a","result":1}', -32600),
        (b'{"jsonrpc":"2.0","method":"m","params":[1]}', -32602),
        (b'{"jsonrpc":"2.0","method":"m","params":"x"}', -32602),
    ],
)
def test_a_line_that_is_not_a_message_gets_an_error_and_the_next_one_is_read(line: bytes, code: int) -> None:
    problem, following = receive(line + b"\n" + NEXT)
    assert isinstance(problem, ParseError)
    assert problem.code == code
    assert following == Notification("next", {})


def test_an_error_has_the_id_of_the_request_where_it_can_be_read() -> None:
    (problem,) = receive(b'{"jsonrpc":"2.0","id":"a","method":"m","params":[1]}\n')
    assert problem == ParseError("a", -32602, "m: expected params as an object, received a list")


def test_each_kind_of_message_is_read() -> None:
    assert receive(
        b'{"jsonrpc":"2.0","id":"a","method":"m"}\n'
        b'{"jsonrpc":"2.0","id":null,"method":"m"}\n'
        b'{"jsonrpc":"2.0","id":1,"result":null}\n'
        b'{"jsonrpc":"2.0","id":2,"error":{"code":-5,"message":"no","data":[1]}}\n'
        b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"not JSON"}}\n'
    ) == [
        Request("a", "m", {}),
        Notification("m", {}),
        Response(1, None),
        ErrorResponse(2, -5, "no", [1]),
        ErrorResponse(None, -32700, "not JSON"),
    ]


def test_empty_lines_and_carriage_returns_are_nothing() -> None:
    assert receive(b"\n\r\n   \n" + NEXT.replace(b"\n", b"\r\n")) == [Notification("next", {})]


@pytest.mark.parametrize("size", [1, 7, 4096])
def test_a_line_that_is_too_long_is_skipped_in_whatever_pieces_it_comes(size: int) -> None:
    peer = peer_of(1000)
    stream, received = b"x" * 50_000 + b"\n" + NEXT, list[Message]()
    for start in range(0, len(stream), size):
        received += receive(stream[start : start + size], peer)
    problem, following = received
    assert isinstance(problem, ParseError)
    assert (problem.code, problem.text) == (-32600, "expected a message of at most 1000 bytes, received one of 50000")
    assert following == Notification("next", {})


def test_a_line_of_just_the_maximum_is_read() -> None:
    head, tail = b'{"jsonrpc":"2.0","method":"', b'"}'
    name = b"m" * (1000 - len(head) - len(tail))
    assert receive(head + name + tail + b"\n") == [Notification(name.decode(), {})]


def test_half_of_a_surrogate_pair_is_mended_not_refused() -> None:
    (message,) = receive(b'{"jsonrpc":"2.0","method":"m","params":{"text":"half \\ud83d"}}\n')
    assert message == Notification("m", {"text": "half \N{REPLACEMENT CHARACTER}"})


def test_a_message_of_a_million_brackets_is_refused_before_it_is_read() -> None:
    (problem,) = receive(b'{"jsonrpc":"2.0","method":"' + b"[" * 1_000_000 + b'"}\n', peer_of(2_000_000))
    assert isinstance(problem, ParseError)
    assert problem.code == -32700


def test_a_request_is_one_line_whatever_its_texts_contain() -> None:
    number, framed = peer_of().request("m", {"text": "a\nb\r\u2028\x85 \ud83d"})
    assert number == 1
    assert framed.endswith(b"\n")
    assert len(framed.decode().splitlines()) == 1
    assert json.loads(framed) == {
        "jsonrpc": "2.0", "id": 1, "method": "m", "params": {"text": "a\nb\r\u2028\x85 \ud83d"},
    }  # fmt: skip


def test_a_request_that_is_too_large_is_not_made() -> None:
    with pytest.raises(RpcError, match="m: a message of 1047 bytes is more than 1000"):
        peer_of().request("m", {"text": "x" * 988})


def test_requests_have_ids_of_their_own() -> None:
    peer = peer_of()
    assert [peer.request("m", None)[0] for _ in range(3)] == [1, 2, 3]
