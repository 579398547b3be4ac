"""Connections without a token lock no user out, regardless of their number and frequency.

FLOOD_SECONDS is the duration of each flood, on every listener; the default is a sample. The servers have 1,024
descriptors.
"""

import json
import os
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from websockets.sync.client import connect

from support.certificates import make_certificate
from support.claude_cli import AUTHORIZATION, locks
from support.isthmus_program import ISTHMUS, read_line
from support.limited_program import limited_program
from support.plain_request import plain_request
from support.serve_program import EDIT_SCRIPT

SECONDS = float(os.environ.get("FLOOD_SECONDS", "0.3"))
_REQUEST = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n"
_HANDSHAKE = b"GET / HTTP/1.1\r\nUpgrade: websocket\r\n"
_HELLO = bytes.fromhex("160301020001")
_FLOODS = (
    ("serve with TLS", b""),
    ("serve with TLS", _HELLO),
    ("companion, WebSocket", b"G"),
    ("companion, WebSocket", b""),
    ("companion, WebSocket", _HANDSHAKE),
    ("serve with TLS", b"G"),
    ("serve with TLS", b"\x16"),
    *((kind, beginning) for kind in ("serve", "companion, HTTP", "review page") for beginning in (b"", b"P", _REQUEST)),
)
"""Listeners, and the bytes that each connection of the flood sends before it is silent."""
FLOODS = _FLOODS if "FLOOD_SECONDS" in os.environ else _FLOODS[:3]
CONNECTIONS = 3_000
ADDRESSES = ("127.0.0.1", "127.0.0.2")
LONGEST_WAIT = 1.0 if "FLOOD_SECONDS" in os.environ else 5.0
"""Maximum seconds until a user is served; more in the sample, as other tests use the processors."""
MOST_LINES = 100
FLOOD = Path(__file__).resolve().parents[1] / "support" / "connection_flood.py"
REVIEW_PAGE = FLOOD.with_name("review_page_program.py")

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="floods from 127.0.0.2 as well, which only Linux has"),
    pytest.mark.timeout(120 + SECONDS * 2),
]


@dataclass(frozen=True, slots=True)
class Listening:
    """A server under test: its address, and a function with which a user visits it on a connection of its own."""

    process: "subprocess.Popen[str]"
    log: Path
    port: int
    visit: Callable[[], None]


@contextmanager
def _serve(folder: Path, *, has_tls: bool) -> Generator[Listening]:
    (folder / "script.yaml").write_text(EDIT_SCRIPT, encoding="utf-8")
    options: list[str] = []
    tls = None
    if has_tls:
        files = make_certificate(folder)
        options = ["--tls-cert", str(files.certificate), "--tls-key", str(files.key)]
        tls = ssl.create_default_context(cafile=str(files.certificate))
    command = ("serve", "--port", "0", "--no-ide", "--token-file", "token", "--data-dir", "data")
    with limited_program(
        folder, *ISTHMUS, *command, "-m", "scripted:script.yaml", "--log-level", "warning", *options
    ) as (
        process,
        log,
    ):
        port = int(read_line(process).rstrip("/").rpartition(":")[2])
        token = (folder / "token").read_text(encoding="utf-8").strip()
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"id": "none"}})
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

        def visit() -> None:
            status, answer = plain_request(port, "POST", "/", headers, body, tls)
            assert (status, json.loads(answer)["error"]["code"]) == (200, -32001)

        yield Listening(process, log, port, visit)


@contextmanager
def _companion(folder: Path, *, protocol: str) -> Generator[Listening]:
    with limited_program(folder, *ISTHMUS, "companion", "--editor", "headless", "--json") as (process, log):
        ready = json.loads(read_line(process))
        if protocol == "claude":
            (lock,) = locks()

            def attach() -> None:
                headers = {AUTHORIZATION: lock.token or ""}
                with connect(f"ws://127.0.0.1:{lock.port}", additional_headers=headers, compression=None) as client:
                    client.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}))
                    assert json.loads(client.recv(10))["id"] == 1

            yield Listening(process, log, lock.port, attach)
            return
        discovered = json.loads(Path(ready["discovery_file"]).read_text(encoding="utf-8"))
        headers = {"Authorization": f"Bearer {discovered['authToken']}", "Content-Type": "application/json"}

        def ask() -> None:
            status, _ = plain_request(
                ready["port"], "POST", "/mcp", headers, '{"jsonrpc":"2.0","id":1,"method":"ping"}'
            )
            assert status == 400  # there is no session; without the token it would be 401

        yield Listening(process, log, ready["port"], ask)


@contextmanager
def _review_page(folder: Path) -> Generator[Listening]:
    with limited_program(folder, sys.executable, str(REVIEW_PAGE)) as (process, log):
        visit = json.loads(read_line(process))

        def look() -> None:
            status, _ = plain_request(visit["port"], "GET", visit["path"], {"Cookie": visit["cookie"]})
            assert status == 200

        yield Listening(process, log, visit["port"], look)


@contextmanager
def _flood(port: int, beginning: bytes) -> "Generator[subprocess.Popen[str]]":
    command = [sys.executable, str(FLOOD), str(port), str(CONNECTIONS), beginning.hex(), *ADDRESSES]
    flood = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")
    with flood:
        yield flood


@pytest.mark.parametrize(("kind", "beginning"), FLOODS)
def test_a_user_is_served_amid_3000_recurring_connections_without_a_request(
    tmp_path: Path, kind: str, beginning: bytes
) -> None:
    servers = {
        "serve": lambda: _serve(tmp_path, has_tls=False),
        "serve with TLS": lambda: _serve(tmp_path, has_tls=True),
        "companion, HTTP": lambda: _companion(tmp_path, protocol="gemini"),
        "companion, WebSocket": lambda: _companion(tmp_path, protocol="claude"),
        "review page": lambda: _review_page(tmp_path),
    }
    with servers[kind]() as server:
        server.visit()
        waits: list[float] = []
        with _flood(server.port, beginning) as flood:
            read_line(flood)  # all have been opened once
            end = time.monotonic() + SECONDS
            while not waits or time.monotonic() < end:
                began = time.monotonic()
                server.visit()
                waits.append(time.monotonic() - began)
            told, _ = flood.communicate("")
        lines = server.log.read_text(encoding="utf-8").splitlines()
        waits.sort()
        print(
            f"{kind}, {beginning!r}: {len(waits)} visits, median {waits[len(waits) // 2] * 1000:.0f} ms, "
            f"longest {waits[-1] * 1000:.0f} ms, {told.strip()}, {len(lines)} lines"
        )
        assert waits[-1] < LONGEST_WAIT
        assert len(lines) < MOST_LINES
        assert "Traceback" not in "\n".join(lines)
        assert server.process.poll() is None
