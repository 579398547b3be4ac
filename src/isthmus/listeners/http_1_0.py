"""Answers to clients of HTTP/1.0, such as proxies with old defaults: a body of unknown length ends with the connection.

uvicorn's protocol on httptools sends chunks to them, too, which they would take for part of the body.
"""

import math
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

Send: TypeAlias = Callable[[Mapping[str, Any]], Awaitable[None]]


def without_chunks(cycle: Any) -> Send:
    """Return a ``send`` without chunks for one of uvicorn's requests, after which uvicorn closes the connection."""
    send: Send = cycle.send

    async def send_without_chunks(message: Mapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            names = {name.lower() for name, _ in message.get("headers", ())}
            if not names & {b"content-length", b"transfer-encoding"}:
                cycle.chunked_encoding = False
                cycle.expected_content_length = math.inf
        elif cycle.expected_content_length == math.inf and not message.get("more_body", False):
            cycle.expected_content_length = len(message.get("body", b""))
        await send(message)

    return send_without_chunks
