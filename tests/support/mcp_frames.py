"""Generated JSON-RPC messages of MCP that are wrong in a few places, and streams of events that carry them."""

import json
import random
from collections.abc import Iterator
from typing import Any

METHODS = (
    *("notifications/progress", "notifications/cancelled", "notifications/message", "notifications/tools/list_changed"),
    *("notifications/elicitation/complete", "notifications/resources/updated", "ping", "roots/list"),
    *("sampling/createMessage", "elicitation/create", "initialize", "tools/call", "", "no/such\nmethod"),
)
KEYS = (
    *("id", "method", "params", "result", "error", "jsonrpc"),
    *("progressToken", "progress", "total", "requestId", "_meta"),
)
ID = b"@ID@"
"""Placeholder in a generated message for the id of the answered request."""


def value(chance: random.Random, depth: int = 0) -> Any:
    """Return any JSON value, often one that does not fit."""
    leaves: list[Any] = [None, True, 0, -1, 10**400, 1e308, "", "x" * 2_000, "\x1b[2J\u202e", "half \ud83d", [], {}]
    if depth > 3 or chance.random() < 0.6:
        return chance.choice(leaves)
    if chance.random() < 0.5:
        return [value(chance, depth + 1) for _ in range(chance.randrange(4))]
    return {chance.choice(KEYS): value(chance, depth + 1) for _ in range(chance.randrange(4))}


def frame(chance: random.Random, methods: tuple[str, ...] = METHODS, *, is_json: bool = False) -> bytes:
    """Return one line: a message with a few errors, nested far too deeply, or bytes that are not a message.

    ``is_json``: it is valid JSON nevertheless, and not deeper than messages are.
    """
    kind = chance.uniform(0.15 if is_json else 0, 1)
    if kind < 0.1:
        return chance.randbytes(chance.randrange(200)).replace(b"\n", b"") + b"\n"
    if kind < 0.15:
        return b'{"jsonrpc":"2.0","method":"ping","id":' + b"[" * 5_000 + b"]" * 5_000 + b"}\n"
    message: dict[str, Any] = {"jsonrpc": "2.0"}
    if kind < 0.6:
        message |= {"method": chance.choice(methods), "params": value(chance)}
        if chance.random() < 0.5:
            message["id"] = chance.choice([value(chance), f"q{chance.randrange(5)}", chance.randrange(5)])
    else:
        message |= {chance.choice(["result", "error"]): value(chance), "id": value(chance)}
    if chance.random() < 0.2:
        message[chance.choice(KEYS)] = value(chance)
    if chance.random() < 0.1:
        message["id"] = "@ID@"
    line = json.dumps(message).replace('"@ID@"', "@ID@").encode()
    if chance.random() < 0.1 and not is_json:
        line = line[: chance.randrange(len(line))]
    return line + b"\n"


def events(chance: random.Random) -> bytes:
    """Return a piece of an event stream: each event carries a frame, or is malformed; the last one is complete."""
    is_json = chance.random() < 0.5  # invalid JSON ends the request that it comes for
    return b"".join(_event(chance, is_json=is_json) for _ in range(chance.randrange(1, 12))) + b"\n\n"


def _event(chance: random.Random, *, is_json: bool) -> bytes:
    end = chance.choice([b"\n", b"\n", b"\r\n", b"\r"])
    lines: list[bytes] = []
    if chance.random() < 0.3:
        lines.append(b"event: " + chance.choice([b"message", b"message", b"endpoint", b"error", b"", b"\xff\xfe"]))
    if chance.random() < 0.2:
        lines.append(chance.choice([b": a comment", b"retry: 5", b"retry: x", b"data", b"unknown: x", b"\xef\xbb\xbf"]))
    data = frame(chance, is_json=is_json).rstrip(b"\n")
    if chance.random() < 0.1 and data and not is_json:
        cut = chance.randrange(len(data))
        lines += [b"data: " + data[:cut], b"data:" + data[cut:]]
    else:
        lines.append(b"data: " + data)
    return end.join(lines) + end + (end if chance.random() < 0.95 else b"")


def pieces(chance: random.Random, data: bytes) -> Iterator[bytes]:
    """Yield the bytes in order, cut anywhere; sometimes at every byte."""
    if chance.random() < 0.1:
        yield from (data[i : i + 1] for i in range(min(len(data), 300)))
        data = data[300:]
    begin = 0
    for end in sorted(chance.randrange(len(data) + 1) for _ in range(chance.randrange(8))):
        yield data[begin:end]
        begin = end
    yield data[begin:]
