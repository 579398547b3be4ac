"""URLs from clients, over real sockets: the address that was checked is the one that is called."""

import asyncio
from typing import Any

import httpx2
import pytest

from isthmus.a2a.push.targets import PushRule
from isthmus.network.checked_transport import AddressRefusedError, CheckedTransport
from support.wire_server import Answer, WireServer

pytestmark = pytest.mark.anyio

THIS_MACHINE = [
    "localhost",
    "127.1",
    "2130706433",
    "0x7f000001",
    "017700000001",
    "0",
    "127.0.0.1.",
    "[::1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
]


@pytest.mark.parametrize("host", THIS_MACHINE)
async def test_every_spelling_of_this_machine_is_refused_before_anything_is_sent(host: str) -> None:
    with WireServer(lambda _: Answer(200)) as server:
        port = httpx2.URL(server.base_url).port
        async with httpx2.AsyncClient(transport=CheckedTransport(PushRule().refusal)) as client:
            with pytest.raises(httpx2.ConnectError):
                await client.get(f"http://{host}:{port}/")
        assert server.requests == []


async def test_a_name_is_resolved_once_and_its_checked_address_called(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    asked: list[str] = []
    resolve = loop.getaddrinfo

    async def changing_its_mind(host: str, port: int, **more: Any) -> Any:
        asked.append(host)
        return await resolve("127.0.0.1" if len(asked) == 1 else "127.9.9.9", port, **more)

    monkeypatch.setattr(loop, "getaddrinfo", changing_its_mind)
    with WireServer(lambda _: Answer(200)) as server:
        rule = PushRule.of(["127.0.0.1"]).refusal
        port = httpx2.URL(server.base_url).port
        async with httpx2.AsyncClient(transport=CheckedTransport(rule)) as client:
            assert (await client.get(f"http://rebinding.example:{port}/")).status_code == 200
            assert server.requests[0].headers["host"] == f"rebinding.example:{port}"
            with pytest.raises(AddressRefusedError, match="loopback"):
                await client.get(f"http://rebinding.example:{port}/")
        assert [host for host in asked if "rebinding" in host] == ["rebinding.example"] * 2
        assert len(server.requests) == 1


@pytest.mark.parametrize("host", ["x" * 64 + ".example", ".".join(["a" * 60] * 5), "no-such-name.invalid"])
async def test_a_name_that_cannot_be_resolved_is_a_connection_that_fails(host: str) -> None:
    async with httpx2.AsyncClient(transport=CheckedTransport(PushRule().refusal)) as client:
        with pytest.raises(httpx2.ConnectError):
            await client.get(f"http://{host}/")
