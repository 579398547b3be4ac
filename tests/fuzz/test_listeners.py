"""Random bytes of strangers and users at the listeners: no traceback, no hang, no lost descriptor, no 5xx by mistake.

`isthmus serve`, the companion's HTTP server and its WebSocket server run as programs, as users run them. After every
batch of connections a good request is served.
"""

import json
import random
import re
import socket
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from websockets.sync.client import connect

from support.claude_cli import AUTHORIZATION, locks
from support.fuzzing import TIMEOUT, cases
from support.isthmus_program import ISTHMUS, read_line
from support.limited_program import limited_program
from support.plain_request import plain_request
from support.waiting import eventually

pytestmark = pytest.mark.timeout(TIMEOUT)

SHARE = 0.2 / 3
"""Share of the whole run for each of the three."""
BATCH = 48
DOCUMENTED = (503, 505)
"""5xx statuses that a server may send on purpose: at a limit, and for HTTP/1.0 where a WebSocket should begin."""
SILENCE_SECONDS = 0.01
"""Seconds to wait for more bytes of a response once all requests are sent; half a request gets none."""


@dataclass(frozen=True, slots=True)
class Listening:
    """A server under test: its process and error output, its address, headers of a user, and a valid request."""

    process: psutil.Process
    log: Path
    port: int
    token: str
    path: str
    serve_one: Callable[[], None]


@contextmanager
def _serve(folder: Path) -> Generator[Listening]:
    command = ("serve", "--port", "0", "--no-ide", "--token-file", "token", "--data-dir", "data", "-m", "demo")
    with limited_program(folder, *ISTHMUS, *command, "--log-level", "warning") as (process, log):
        port = int(read_line(process).rstrip("/").rpartition(":")[2])
        token = "Authorization: Bearer " + (folder / "token").read_text(encoding="utf-8").strip()

        def get_task() -> None:
            body = '{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"id":"none"}}'
            assert plain_request(port, "POST", "/", dict([token.split(": ")]), body)[0] == 200

        yield Listening(psutil.Process(process.pid), log, port, token, "/", get_task)


@contextmanager
def _companion(folder: Path, protocol: str) -> Generator[Listening]:
    with limited_program(folder, *ISTHMUS, "companion", "--editor", "headless", "--json") as (process, log):
        ready = json.loads(read_line(process))
        if protocol == "claude":
            (lock,) = locks()
            token = f"{AUTHORIZATION}: {lock.token}"

            def ping() -> None:
                headers = {AUTHORIZATION: lock.token or ""}
                with connect(f"ws://127.0.0.1:{lock.port}", additional_headers=headers, compression=None) as client:
                    client.send('{"jsonrpc":"2.0","id":1,"method":"ping"}')
                    assert json.loads(client.recv(60))["id"] == 1

            yield Listening(psutil.Process(process.pid), log, lock.port, token, "/", ping)
            return
        secret = json.loads(Path(ready["discovery_file"]).read_text(encoding="utf-8"))["authToken"]

        def post() -> None:
            headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}
            answer = plain_request(ready["port"], "POST", "/mcp", headers, '{"jsonrpc":"2.0","id":1,"method":"ping"}')
            assert answer[0] == 400  # outside of a session; without the token it would be 401

        token = f"Authorization: Bearer {secret}"
        yield Listening(psutil.Process(process.pid), log, ready["port"], token, "/mcp", post)


METHODS = ("GET", "POST", "DELETE", "PUT", "HEAD", "OPTIONS", "CONNECT", "PRI", "get", "", "G\0T")
TARGETS = (
    "/",
    "/mcp",
    "//",
    "/%00",
    "/%",
    "*",
    "http://evil.example/",
    "/message:send",
    "/v1/message:send",
    "/.well-known/agent-card.json",
)
HEADERS = (
    "Content-Length: {}", "Content-Length: -1", "Content-Length: 1e9", "Content-Length: 99999999999999999999",
    "Transfer-Encoding: chunked", "Transfer-Encoding: gzip, chunked", "Content-Type: application/json",
    "Content-Type: ;;;", "Content-Encoding: gzip", "Expect: 100-continue", "Expect: nothing", "Connection: upgrade",
    "Connection: close", "Upgrade: websocket", "Upgrade: h2c", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Version: x",
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", "Sec-WebSocket-Key: short", "Sec-WebSocket-Protocol: mcp, x",
    "Accept: text/event-stream", "Accept: ,", "Origin: null", "Last-Event-ID: -1", "Mcp-Session-Id: none",
    "Mcp-Protocol-Version: 1999", "A2A-Version: 1.0", "A2A-Version: 99", "A2A-Extensions: ,,,", "Cookie: a",
    "X-Long: " + "x" * 9000, "No colon", ": nameless", "Bad\0name: x", "Folded: a\r\n b", "Authorization: Bearer wrong",
    "Host: evil.example", "X: \xff\xfe",
)  # fmt: skip
BODIES = (
    "", "{}", "[]", "null", "[" * 3000, '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}',
    '{"jsonrpc":"2.0","id":{},"method":"tools/call","params":[]}', '{"jsonrpc":"2.0","id":1,"method":"message/send"}',
    '{"jsonrpc":"2.0","id":1,"method":"message/stream","params":{"message":{"role":"user","parts":[{"kind":"x"}]}}}',
    '{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"id":"\\ud800"}}', "\xff\xfe", '{"id":1e999}', "5\r\nhello",
    '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}', "0\r\n\r\n", "ffffffffffff\r\n",
)  # fmt: skip


def _request(chance: random.Random, server: Listening) -> bytes:
    """Return a request or garbage; half of them with the token."""
    if chance.random() < 0.15:
        return chance.randbytes(chance.randrange(300))
    method = chance.choice(METHODS) if chance.random() < 0.3 else chance.choice(("GET", "POST"))
    target = chance.choice(TARGETS) if chance.random() < 0.4 else server.path
    body = chance.choice(BODIES)
    if chance.random() < 0.3:
        body = "".join(
            chance.choice((character, "", "\0", "{")) if chance.random() < 0.1 else character for character in body
        )
    lines = [f"{method} {target} HTTP/{chance.choice(('1.1', '1.1', '1.1', '1.0', '2.0', '9'))}"]
    if chance.random() < 0.9:
        lines.append(f"Host: 127.0.0.1:{server.port}")
    if chance.random() < 0.5:
        lines.append(server.token)
    lines += [chance.choice(HEADERS).replace("{}", str(len(body))) for _ in range(chance.randrange(6))]
    if chance.random() < 0.6:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body.encode('latin-1', 'replace'))}"]
    whole = ("\r\n".join(lines) + "\r\n\r\n" + body).encode("latin-1", "replace")
    return whole[: chance.randrange(len(whole) + 1)] if chance.random() < 0.2 else whole


def _frames(chance: random.Random, server: Listening) -> bytes:
    """Return an upgrade with the token, and frames after it, valid and invalid ones."""
    head = (
        f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n{server.token}\r\nConnection: Upgrade\r\n"
        "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    ).encode()
    frames = b""
    for _ in range(chance.randrange(1, 8)):
        payload = chance.choice(BODIES).encode("latin-1", "replace")
        if chance.random() < 0.3:
            payload = chance.randbytes(chance.randrange(200))
        opcode = chance.choice((1, 1, 1, 2, 0, 8, 9, 10, 3, 15)) | chance.choice((0x80, 0x80, 0x80, 0, 0xC0))
        mask = chance.randbytes(4)
        size = len(payload)
        length = bytes([0x80 | size]) if size < 126 else bytes([0x80 | 126]) + (size % 65536).to_bytes(2, "big")
        masked = bytes(byte ^ mask[at % 4] for at, byte in enumerate(payload))
        frames += chance.choice((bytes([opcode]) + length + mask + masked, chance.randbytes(chance.randrange(20))))
    return head + frames


def _answers(chance: random.Random, server: Listening, requests: list[bytes]) -> list[bytes]:
    """Send each on a connection of its own, all at once and in pieces, and return the response to each."""
    answers: list[bytes] = []
    with ExitStack() as opened:
        clients = [
            opened.enter_context(socket.create_connection(("127.0.0.1", server.port), 60)) for _ in range(len(requests))
        ]
        for client, data in zip(clients, requests, strict=True):
            cut = chance.randrange(len(data) + 1)
            with suppress(OSError):
                client.sendall(data[:cut])
                client.sendall(data[cut:])
            client.settimeout(SILENCE_SECONDS)
        for client in clients:
            received = b""
            with suppress(OSError):
                while len(received) < 100_000 and (more := client.recv(65536)):
                    received += more
            answers.append(received)
    return answers


@pytest.mark.parametrize("kind", ["serve", "companion, HTTP", "companion, WebSocket"])
def test_whatever_comes_the_next_good_request_is_served(tmp_path: Path, kind: str) -> None:
    servers = {
        "serve": lambda: _serve(tmp_path),
        "companion, HTTP": lambda: _companion(tmp_path, "gemini"),
        "companion, WebSocket": lambda: _companion(tmp_path, "claude"),
    }
    with servers[kind]() as server:
        server.serve_one()
        before = server.process.num_fds()
        for chance in cases(f"listeners, {kind}", SHARE):
            frames = 0.6 if kind == "companion, WebSocket" else 0.0
            requests = [(_frames if chance.random() < frames else _request)(chance, server) for _ in range(BATCH)]
            for data, answer in zip(requests, _answers(chance, server, requests), strict=True):
                for status in map(int, re.findall(rb"HTTP/1\.[01] (5\d\d)", answer)):
                    assert status in DOCUMENTED, (data, answer)
            server.serve_one()
        eventually(lambda: server.process.num_fds() <= before + 2, what="closed descriptors")
        log = server.log.read_text(encoding="utf-8", errors="replace")
        assert "Traceback" not in log
        assert "Exception" not in log
        assert len(log.splitlines()) < 100
