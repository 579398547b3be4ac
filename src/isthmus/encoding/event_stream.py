r"""The bytes of server-sent events: events, comments and the delay before a client returns.

Only an event ends with an empty line. Some parsers, such as httpx-sse of many A2A and MCP clients, take an empty line
after a comment for an event without data, and their clients fail. They do so as soon as any event had an id.
"""


def event_frame(data: bytes, event_id: int | str | None = None, name: str | None = None) -> bytes:
    """Return the bytes of an event; ``data`` is one line. Readers resume after events that have an id."""
    if name is not None:
        data = b"event: %b\ndata: %b\n\n" % (name.encode(), data)
        return data if event_id is None else b"id: %b\n%b" % (str(event_id).encode(), data)
    if event_id is None:
        return b"data: %b\n\n" % data
    return b"id: %b\ndata: %b\n\n" % (str(event_id).encode(), data)


def comment(text: str) -> bytes:
    """Return the bytes of a comment, which clients ignore; each line of the text becomes a line."""
    return b"".join(b": %b\n" % line for line in text.encode().splitlines() or (b"",))


def retry_after(milliseconds: int) -> bytes:
    """Return the bytes that tell a client how long to wait before it opens a stream again that ended."""
    return b"retry: %d\n" % milliseconds


KEEP_ALIVE = comment("keep-alive")
"""Bytes for a stream on which nothing else is sent: clients and proxies see that the connection lives."""
