"""Errors of a WebSocket client: it gets the reason or is cut off, and the others notice nothing."""

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.frames import Frame, Opcode

from isthmus.ide.options import ClaudeServerLimits
from support.claude_cli import AUTHORIZATION, CLIENT_INFO, Lock, claude_cli, locks
from support.companion import running_companion
from support.editor_deadlines import PATIENT_LIMITS
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

_PING = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"})


def _lock(folder: Path) -> Lock:
    (lock,) = [lock for lock in locks() if lock.holds(folder)]
    return lock


@asynccontextmanager
async def _client(lock: Lock, **headers: str) -> AsyncGenerator[ClientConnection]:
    """Open a WebSocket with the token, and with other headers in its place or beside it."""
    given = {AUTHORIZATION: str(lock.token), **{name.replace("_", "-"): value for name, value in headers.items()}}
    address = f"ws://127.0.0.1:{lock.port}"
    async with connect(
        address, additional_headers={k: v for k, v in given.items() if v}, proxy=None, ping_interval=None,
        max_size=None, compression=None,
    ) as connection:  # fmt: skip
        yield connection


async def _answer(connection: ClientConnection) -> dict[str, Any]:
    return json.loads(await asyncio.wait_for(connection.recv(), 30))


async def _initialize(connection: ClientConnection) -> None:
    params = {"protocolVersion": "2025-11-25", "clientInfo": CLIENT_INFO}
    await connection.send(json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}))
    assert (await _answer(connection))["result"]["protocolVersion"] == "2025-11-25"


async def _closed_with(connection: ClientConnection) -> int | None:
    await asyncio.wait_for(connection.wait_closed(), 30)
    return connection.close_code


@pytest.mark.requirement("CLD-012", "CLD-013", "CLD-014", "CLD-080")
@pytest.mark.parametrize(
    ("headers", "status", "text"),
    [
        ({AUTHORIZATION: ""}, 401, "Missing authentication header: x-claude-code-ide-authorization"),
        ({AUTHORIZATION: "550e8400-e29b-41d4-a716-446655440000"}, 401, "Invalid authentication token"),
        ({"authorization": "Bearer x", AUTHORIZATION: "x" * 5000}, 401, "Invalid authentication token"),
        ({"Origin": "http://127.0.0.1"}, 403, "no Origin header"),
        ({"Origin": "null"}, 403, "no Origin header"),
    ],
    ids=["no token", "another token", "a long token", "a web page", "a web page of a file"],
)
async def test_who_may_not_in_is_told_why_before_any_message(
    workspace: Path, headers: dict[str, str], status: int, text: str
) -> None:
    async with running_companion(workspace):
        lock = _lock(workspace)
        with pytest.raises(InvalidStatus) as refused:
            async with _client(lock, **headers):
                pass
        response = refused.value.response
        assert response.status_code == status
        assert text in bytes(response.body or b"").decode()
        assert str(lock.token) not in bytes(response.body or b"").decode()
        async with claude_cli(workspace) as cli:
            assert cli.tools


async def _raw(lock: Lock, head: str) -> bytes:
    """Return the response to a request head, up to its status line."""
    reader, writer = await asyncio.open_connection("127.0.0.1", lock.port)
    try:
        writer.write(head.replace("\n", "\r\n").encode())
        await writer.drain()
        return (await asyncio.wait_for(reader.read(), 30)).partition(b"\r\n")[0]
    finally:
        writer.close()


_UPGRADE = (
    "GET / HTTP/1.1\nUpgrade: websocket\nConnection: Upgrade\nSec-WebSocket-Version: 13\n"
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\n"
)


async def test_another_host_and_what_is_no_upgrade_are_refused(workspace: Path) -> None:
    async with running_companion(workspace):
        lock = _lock(workspace)
        token = f"{AUTHORIZATION}: {lock.token}\n"
        host = f"Host: 127.0.0.1:{lock.port}\n"
        assert b" 403 " in await _raw(lock, f"{_UPGRADE}{token}Host: evil.example:{lock.port}\n\n")
        assert b" 403 " in await _raw(lock, f"{_UPGRADE}{token}\n")
        assert b" 401 " in await _raw(lock, f"{_UPGRADE}{token}{token}{host}\n")
        assert b" 426 " in await _raw(lock, f"GET / HTTP/1.1\n{token}{host}\n")
        assert b" 101 " not in await _raw(lock, f"POST / HTTP/1.1\n{token}{host}Content-Length: 2\n\n{{}}")
        assert b" 101 " not in await _raw(lock, "no http at all\n\n")
        assert b" 101 " not in await _raw(lock, f"GET / HTTP/1.1\nX: {'x' * 100_000}\n\n")
        async with claude_cli(workspace) as cli:
            assert cli.tools


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("", -32700),
        ("{", -32700),
        ('{"jsonrpc":"2.0","id":NaN,"method":"ping"}', -32700),
        ("[" * 100_000, -32700),
        ('{"a":' * 100_000, -32700),
        ("9" * 10_000, -32700),
        ("[]", -32600),
        (f"[{_PING}]", -32600),
        ('"text"', -32600),
        ('{"id":1,"method":"ping"}', -32600),
        ('{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600),
        ('{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32602),
        ('{"jsonrpc":"2.0","id":1,"method":"nothing"}', -32601),
        ('{"jsonrpc":"2.0","id":1,"method":"tools/list"}', -32600),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_a_wrong_message_gets_its_json_rpc_error_and_the_connection_goes_on(
    workspace: Path, message: str, code: int
) -> None:
    async with running_companion(workspace), _client(_lock(workspace)) as connection:
        await connection.send(message)
        assert (await _answer(connection))["error"]["code"] == code
        await connection.send(_PING)
        assert await _answer(connection) == {"jsonrpc": "2.0", "id": 1, "result": {}}


async def test_fragments_are_put_together(workspace: Path) -> None:
    async with running_companion(workspace), _client(_lock(workspace)) as connection:
        await connection.send([_PING[:5], _PING[5:9], _PING[9:]])
        assert (await _answer(connection))["result"] == {}


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        (Frame(Opcode.BINARY, _PING.encode()), 1003),
        (Frame(Opcode.TEXT, b"\xff\xfe"), 1007),
        (Frame(Opcode.TEXT, b"x" * 70_000), 1009),
        (Frame(Opcode.TEXT, _PING.encode(), rsv1=True), 1002),
        (Frame(Opcode.CONT, b"x"), 1002),
        (Frame(Opcode(0x9), b"x" * 200), 1002),
    ],
    ids=["binary", "not UTF-8", "over the cap", "compressed", "a rest of nothing", "a long ping"],
)
async def test_a_wrong_frame_closes_its_connection_with_the_code_for_it(
    workspace: Path, frame: Frame, code: int
) -> None:
    limits = replace(PATIENT_LIMITS, claude=ClaudeServerLimits(maximum_message_bytes=64 * 1024))
    async with running_companion(workspace, limits=limits), claude_cli(workspace) as cli:
        async with _client(_lock(workspace)) as connection:
            await _initialize(connection)
            connection.transport.write(_serialized(frame))
            assert await _closed_with(connection) == code
        assert await cli.begin_turn() == 0


def _serialized(frame: Frame) -> bytes:
    """Return the frame, masked as a client's, also where the library would not send it."""
    head = (0x80 if frame.fin else 0) | (0x40 if frame.rsv1 else 0) | frame.opcode
    size = len(frame.data)
    length = bytes([0x80 | size]) if size < 126 else bytes([0x80 | 126]) + size.to_bytes(2) if size < 65_536 else None
    return bytes([head]) + (length or bytes([0x80 | 127]) + size.to_bytes(8)) + bytes(4) + bytes(frame.data)


async def test_a_message_in_many_fragments_counts_as_a_whole(workspace: Path) -> None:
    limits = replace(PATIENT_LIMITS, claude=ClaudeServerLimits(maximum_message_bytes=64 * 1024))
    async with running_companion(workspace, limits=limits), _client(_lock(workspace)) as connection:
        with contextlib.suppress(ConnectionClosed):
            await connection.send("x" * 10_000 for _ in range(10))
        assert await _closed_with(connection) == 1009


async def test_a_client_that_floods_without_reading_does_not_hold_up_another(workspace: Path) -> None:
    async with running_companion(workspace), _client(_lock(workspace)) as connection:
        await _initialize(connection)
        connection.transport.pause_reading()
        # The response to each wrong message is larger than the message.
        flood = asyncio.create_task(_send_for_ever(connection, json.dumps({"jsonrpc": "1", "id": "x" * 2000})))
        try:
            async with claude_cli(workspace) as cli:
                for _ in range(50):
                    assert json.loads(await cli.text("getWorkspaceFolders"))["success"]
            assert not flood.done()
        finally:
            flood.cancel()
            connection.transport.abort()


async def _send_for_ever(connection: ClientConnection, message: str) -> None:
    with contextlib.suppress(ConnectionClosed):
        while True:
            await connection.send(message)


async def test_a_client_that_does_not_read_the_answers_to_its_pings_is_cut_off(workspace: Path) -> None:
    limits = replace(PATIENT_LIMITS, claude=ClaudeServerLimits(maximum_unread_bytes=256 * 1024))
    async with running_companion(workspace, limits=limits), claude_cli(workspace) as cli:
        async with _client(_lock(workspace)) as connection:
            connection.transport.pause_reading()
            pings = Frame(Opcode.PING, b"x" * 125).serialize(mask=True) * 1000

            async def cut_off() -> bool:
                connection.transport.write(pings)
                await asyncio.sleep(0)
                return connection.transport.is_closing()

            await eventually_async(cut_off, what="the end of the connection")
        assert await cli.begin_turn() == 0


async def test_a_peer_that_answers_no_ping_is_gone_and_its_views_too(workspace: Path) -> None:
    file = workspace / "a.py"
    file.write_text("one\n", encoding="utf-8")
    limits = replace(PATIENT_LIMITS, claude=ClaudeServerLimits(ping_seconds=1.0))
    async with running_companion(workspace, limits=limits) as companion:
        async with _client(_lock(workspace)) as connection:
            await _initialize(connection)
            names = ("old_file_path", "new_file_path", "new_file_contents")
            arguments = {**dict.fromkeys(names, str(file)), "tab_name": "t"}
            params = {"name": "openDiff", "arguments": arguments}
            await connection.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}))
            await eventually_async(lambda: companion.editor.open_reviews, what="a review")
            connection.transport.pause_reading()
            await eventually_async(lambda: not companion.editor.open_reviews, what="no review")
            connection.transport.abort()
        async with claude_cli(workspace) as cli:
            assert await cli.begin_turn() == 0


async def test_only_so_many_clients_are_attached_at_once(workspace: Path) -> None:
    limits = replace(PATIENT_LIMITS, claude=ClaudeServerLimits(maximum_clients=2))
    async with running_companion(workspace, limits=limits), claude_cli(workspace):
        lock = _lock(workspace)
        async with _client(lock):
            with pytest.raises(InvalidStatus) as refused:
                async with _client(lock):
                    pass
            assert refused.value.response.status_code == 503

        async def let_in() -> bool:
            with contextlib.suppress(InvalidStatus):
                async with _client(lock):
                    return True
            return False

        await eventually_async(let_in, what="room for another client")


async def test_connections_that_say_nothing_are_few_and_end(workspace: Path) -> None:
    limits = replace(PATIENT_LIMITS, claude=ClaudeServerLimits(head_seconds=2.0, maximum_unproven=3, defer_seconds=0))
    async with running_companion(workspace, limits=limits):
        lock = _lock(workspace)
        silent = [await asyncio.open_connection("127.0.0.1", lock.port) for _ in range(6)]
        try:
            for reader, _ in silent:  # those over the cap at once, the others after their time limit
                with contextlib.suppress(ConnectionResetError):
                    assert await asyncio.wait_for(reader.read(), 30) == b""
        finally:
            for _, writer in silent:
                writer.close()
        async with claude_cli(workspace) as cli:
            assert cli.tools


async def test_no_token_gets_into_the_log(workspace: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    logging.getLogger("websockets.client").setLevel(logging.INFO)  # the test's own end
    async with running_companion(workspace), claude_cli(workspace) as cli:
        with contextlib.suppress(InvalidStatus):
            async with _client(_lock(workspace), Origin="http://evil.example"):
                pass
        await cli.begin_turn()
        assert str(cli.lock.token) not in caplog.text


async def test_a_call_under_the_id_of_one_that_was_cancelled_a_moment_ago_is_answered(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closing, go_on = asyncio.Event(), asyncio.Event()

    async with running_companion(workspace) as companion, _client(_lock(workspace)) as connection:
        await _initialize(connection)
        close = companion.editor.close_diff

        async def slowly(review_id: str) -> str | None:
            closing.set()
            await go_on.wait()
            return await close(review_id)

        async def propose(name: str) -> None:
            path = str(workspace / name)
            arguments = {"old_file_path": path, "new_file_path": path, "new_file_contents": "new\n", "tab_name": name}
            call = {"jsonrpc": "2.0", "id": 7, "method": "tools/call"}
            await connection.send(json.dumps(call | {"params": {"name": "openDiff", "arguments": arguments}}))
            await eventually_async(
                lambda: any(review.tab_name == name for review in companion.editor.open_reviews), what="a view"
            )

        await propose("a.py")
        monkeypatch.setattr(companion.editor, "close_diff", slowly)
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
        await connection.send(json.dumps(cancelled))
        await asyncio.wait_for(closing.wait(), 30)
        await propose("b.py")
        go_on.set()
        await eventually_async(lambda: len(companion.editor.open_reviews) == 1, what="the first view is closed")
        companion.editor.accept_diff(companion.editor.open_reviews[0].id)
        answer = await _answer(connection)
        assert (answer["id"], answer["result"]["content"][0]["text"]) == (7, "FILE_SAVED")
