"""Connections whose TLS handshake was cancelled."""

import ast
import asyncio
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest

import isthmus
from isthmus.network.handshakes import close_cancelled_handshake

pytestmark = pytest.mark.anyio

CLIENTS = {"AsyncClient", "PatientClient"}


async def test_the_connection_of_a_cancelled_handshake_is_closed() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def keep_silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert await reader.read(1)
        begun.set()
        with suppress(ConnectionError):
            await reader.read()
        ended.set()
        writer.close()

    listening = await asyncio.start_server(keep_silent, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    async with listening, httpx2.AsyncClient(event_hooks={"request": [close_cancelled_handshake]}) as client:
        asking = asyncio.create_task(client.get(f"https://127.0.0.1:{port}/"))
        await begun.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        async with asyncio.timeout(10):
            await ended.wait()


def _made_clients() -> Iterator[tuple[str, ast.Call]]:
    source = Path(isthmus.__file__).parent
    for path in sorted(source.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in CLIENTS:
                yield f"{path.relative_to(source)}:{node.lineno}", node


def test_each_http_client_of_the_program_closes_cancelled_handshakes() -> None:
    made = dict(_made_clients())
    assert len(made) >= 10
    assert [place for place, call in made.items() if "close_cancelled_handshake" not in ast.unparse(call)] == []
