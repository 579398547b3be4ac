"""First bytes of a connection: enough to begin work, incomplete, or of another protocol."""

import ssl

import pytest

from isthmus.listeners.beginnings import (
    LONGEST,
    Foreign,
    Partial,
    ReadBeginning,
    Whole,
    any_beginning,
    http_beginning,
    tls_beginning,
)

REQUESTS = (
    b"GET / HTTP/1.1\r\n\r\n",
    b"\r\nPOST /a?b HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n",
    b"GET /\xff HTTP/1.0\nHost: a\n\n",
    b"OPTIONS * HTTP/1.1\r\nX: " + b"a" * 3000 + b"\r\n\r\n",
)


def hello() -> bytes:
    """Return the first message of a TLS client."""
    sent = ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), sent, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return sent.read()


@pytest.mark.parametrize("request_head", REQUESTS)
def test_a_request_is_there_with_its_blank_line_and_not_before(request_head: bytes) -> None:
    for length in range(len(request_head)):
        assert http_beginning(request_head[:length]) == Partial(), request_head[:length]
    for body in (b"", b"{}", b"GET / HTTP/1.1\r\n"):
        assert http_beginning(request_head + body) == Whole()


@pytest.mark.parametrize(
    "data", [b"\x00", b"\x16\x03\x01", b"\xff" * 100, b"hello\r\n", b"GET /\n\n", b" GET / HTTP/1.1\r\n"]
)
def test_what_is_no_request_is_answered_in_http(data: bytes) -> None:
    beginning = http_beginning(data)
    assert isinstance(beginning, Foreign)
    head, _, body = beginning.answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"Content-Length: %d" % len(body) in head


def test_a_tls_client_begins_with_its_first_record() -> None:
    data = hello()
    for length in range(len(data)):
        assert tls_beginning(data[:length]) == Partial()
    assert tls_beginning(data) == tls_beginning(data + b"more") == Whole()
    for foreign in (b"G", b"GET / HTTP/1.1\r\n\r\n", b"\x17\x03\x03"):
        assert tls_beginning(foreign) == Foreign()


@pytest.mark.parametrize(
    ("read", "data"),
    [(http_beginning, b"GET /" + b"a" * LONGEST), (tls_beginning, b"\x16\x03\x01\xff\xff" + b"a" * LONGEST)],
)
def test_what_is_too_long_to_look_at_is_the_protocols_matter(read: ReadBeginning, data: bytes) -> None:
    assert read(data[:LONGEST]) == Whole()


def test_where_anything_may_be_spoken_the_first_byte_is_enough() -> None:
    assert (any_beginning(b""), any_beginning(b"x")) == (Partial(), Whole())
