"""A model provider that answers at once, as OpenAI's Chat Completions do, with texts that are ready in memory.

A prompt with "Read" is answered with a call that reads ``README.md``, any other prompt and the call's result with a
text in PIECES pieces.
"""

import asyncio
import json
from typing import Any

PIECES = 12
"""Number of pieces in which an answer is streamed."""
ANSWER = "".join(f"This is sentence {number} of it. " for number in range(PIECES))
"""The whole answer."""
_CALL = {"index": 0, "id": "call_0", "type": "function"}


def _answer(*deltas: dict[str, Any], reason: str) -> bytes:
    common = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "bench"}
    usage = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
    chunks: list[dict[str, Any]] = [
        *({**common, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas),
        {**common, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
        {**common, "choices": [], "usage": usage},
    ]
    events = [*(f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks), b"data: [DONE]\n\n"]
    body = b"".join(b"%x\r\n%b\r\n" % (len(event), event) for event in events)
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    return head + body + b"0\r\n\r\n"


_TEXT = _answer(
    {"role": "assistant", "content": ""},
    *({"content": f"This is sentence {number} of it. "} for number in range(PIECES)),
    reason="stop",
)
_READ = _answer(
    {"role": "assistant", "content": ""},
    {"tool_calls": [{**_CALL, "function": {"name": "read_file", "arguments": ""}}]},
    {"tool_calls": [{"index": 0, "function": {"arguments": '{"file_path": "README.md"}'}}]},
    reason="tool_calls",
)


async def _serve_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
            last = json.loads(await reader.readexactly(length))["messages"][-1]
            is_prompt = last["role"] == "user"
            writer.write(_READ if is_prompt and "Read" in json.dumps(last["content"]) else _TEXT)
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def _serve() -> None:
    server = await asyncio.start_server(_serve_one, "127.0.0.1", 0, limit=2**20)
    port = server.sockets[0].getsockname()[1]
    print(f"http://127.0.0.1:{port}/v1", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve())
