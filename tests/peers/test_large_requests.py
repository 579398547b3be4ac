"""Large requests to the real server, all at once: its memory comes back, and it answers others meanwhile."""

import asyncio
import base64
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from isthmus.development_tool import EXTENSION_URI
from support.a2a_serving import rpc
from support.extended import first_of
from support.plain_http import plain_client
from support.serve_program import ServeProgram, serve_program
from support.waiting import eventually_async

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="the memory of a process is read from /proc"),
]

REQUESTS = 6
FILE_BYTES = 14_000_000
"""Size of a file, which is 19 MB as text."""
GROWTH = 100 * 1024 * 1024
"""Maximum number of bytes by which the server may have grown afterwards."""
MEANWHILE = 5
"""Number of other requests that are answered while the large ones are worked on."""
SCRIPT = """
name: practice
scenarios:
  - prompt: Wait
    replies:
      - steps: [{delay: 600}, {text: Waited.}]
  - prompt: '.'
    replies:
      - text: Seen.
"""


def memory(program: ServeProgram) -> int:
    """Return the number of bytes that a server has in memory."""
    status = Path(f"/proc/{program.process.pid}/status").read_text("ascii")
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) * 1024


def message(
    number: int, data: bytes, media_type: str, workspace: Path, method: str, words: str = "Look at it."
) -> bytes:
    """Return a request with a file."""
    file = {"bytes": base64.b64encode(data).decode(), "mimeType": media_type, "name": "file"}
    parts = [{"kind": "text", "text": words}, {"kind": "file", "file": file}]
    sent: dict[str, Any] = {
        "role": "user",
        "kind": "message",
        "messageId": f"message-{number}",
        "parts": parts,
        "metadata": {EXTENSION_URI: {"workspace_path": str(workspace)}},
    }
    return json.dumps(rpc(method, {"message": sent})).encode()


def picture(size: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + os.urandom(size)


def text(size: int) -> bytes:
    return (b"a line of a text file\n" * (size // 22 + 1))[:size]


@pytest.mark.parametrize(
    ("make", "media_type", "method"),
    first_of(
        [
            (text, "text/plain", "message/send"),
            (picture, "image/png", "message/send"),
            (text, "text/plain", "message/stream"),
        ],
        ids=["text", "picture", "stream"],
        are_rows=True,
    ),
)
async def test_memory_comes_back_and_others_are_answered(
    tmp_path: Path, workspace: Path, make: Any, media_type: str, method: str
) -> None:
    async with serve_program(tmp_path, workspace, script=SCRIPT) as program:
        headers = {"Authorization": f"Bearer {program.token}", "X-A2A-Extensions": EXTENSION_URI}
        async with plain_client(headers=headers) as http:

            async def post(number: int, size: int) -> str:
                body = await asyncio.to_thread(message, number, make(size), media_type, workspace, method)
                answer = await http.post(program.url, content=body, timeout=300)
                return answer.text

            assert "Seen." in await post(0, 1000)
            before = memory(program)
            work = [asyncio.create_task(post(number, FILE_BYTES)) for number in range(1, REQUESTS + 1)]
            answered = 0
            while not all(each.done() for each in work):
                assert (await http.get(program.url + "healthz")).json() == {"status": "ok"}
                answered += 1
            for answer in await asyncio.gather(*work):
                assert "Seen." in answer
            assert answered >= MEANWHILE
            await eventually_async(lambda: memory(program) - before < GROWTH, 60, what="the memory comes back")


@pytest.mark.extended
async def test_requests_that_wait_for_their_answers_hold_no_files(tmp_path: Path, workspace: Path) -> None:
    async with serve_program(tmp_path, workspace, script=SCRIPT) as program:
        headers = {"Authorization": f"Bearer {program.token}", "X-A2A-Extensions": EXTENSION_URI}
        async with plain_client(headers=headers) as http:

            async def post(number: int, size: int, words: str) -> None:
                body = await asyncio.to_thread(
                    message, number, picture(size), "image/png", workspace, "message/send", words
                )
                await http.post(program.url, content=body, timeout=300)

            async def at_work() -> int:
                answer = await http.get(program.url + "tasks?status=TASK_STATE_WORKING", headers={"A2A-Version": "1.0"})
                return len(answer.json()["tasks"])

            await post(0, 1000, "Look at it.")
            before = memory(program)
            posts = [asyncio.create_task(post(number, FILE_BYTES, "Wait")) for number in range(1, REQUESTS + 1)]

            async def all_at_work() -> bool:
                return await at_work() == REQUESTS

            await eventually_async(all_at_work, 120, what="every task is at work")
            await eventually_async(lambda: memory(program) - before < GROWTH, 60, what="the memory comes back")
            assert not any(each.done() for each in posts)
            for each in posts:
                each.cancel()
            await asyncio.gather(*posts, return_exceptions=True)
