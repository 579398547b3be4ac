"""Access to the A2A server, over a real socket: token, Host, Origin, methods, sizes; the public card."""

import asyncio
import logging
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from isthmus import __version__
from isthmus.a2a.options import ServerOptions
from isthmus.a2a.protocol.extension import URI
from isthmus.a2a.server.application import application
from isthmus.a2a.server.listen import LIMITS, A2AServer, ListenError, bind, url_of
from isthmus.events import TextContent
from support.a2a_serving import TOKEN, RawClient, prompt, rpc, serving
from support.memory_agent import MemoryAgent, Wait
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


@pytest.fixture
async def server() -> AsyncIterator[RawClient]:
    async with serving(MemoryAgent()) as client:
        yield client


async def raw(server: RawClient, request: bytes) -> bytes:
    """Return the response to the bytes of a request, until the server closes or is silent for a moment."""
    port = int(server.url.rstrip("/").rsplit(":", 1)[1])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 30)
        found = re.search(rb"content-length: (\d+)", head)
        return head + (await asyncio.wait_for(reader.readexactly(int(found[1])), 30) if found else b"")
    finally:
        writer.close()


@pytest.mark.parametrize(
    ("authorization", "text"),
    [
        (None, "Authorization: Bearer TOKEN"),
        ("", "Bearer"),
        (f"Basic {TOKEN}", "Bearer"),
        ("Bearer wrong", "not this server's"),
        ("Bearer ", "not this server's"),
        (f"Bearer {TOKEN}x", "not this server's"),
        ("Bearer tökén", "not this server's"),
    ],
)
@pytest.mark.parametrize("path", ["/", "/no/such/path"])
async def test_without_the_token_every_method_and_path_is_401(
    server: RawClient, path: str, authorization: str | None, text: str
) -> None:
    line = "" if authorization is None else f"Authorization: {authorization}\r\n"
    for method in ("GET", "POST", "DELETE", "OPTIONS", "PUT"):
        request = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{line}Content-Length: 0\r\n\r\n"
        answer = await raw(server, request.encode())
        assert answer.startswith(b"HTTP/1.1 401 ")
        assert b"\r\nwww-authenticate: Bearer" in answer
        assert text.encode() in answer
        assert TOKEN.encode() not in answer


async def test_a_refusal_comes_before_the_body_is_read(server: RawClient) -> None:
    head = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000000\r\n\r\n"
    assert (await raw(server, head)).startswith(b"HTTP/1.1 401 ")


async def test_what_is_public_needs_no_token(server: RawClient) -> None:
    for path in ("/.well-known/agent-card.json", "/.well-known/agent.json", "/healthz"):
        response = await server.http.get(server.url + path[1:], headers={"Authorization": ""})
        assert response.status_code == 200
        assert (await server.http.post(server.url + path[1:])).status_code == 405
    assert (await server.http.get(server.url + "healthz")).json() == {"status": "ok"}


@pytest.mark.parametrize("path", ["/", "/.well-known/agent-card.json"])
@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil:80", "[::2]", "10.0.0.1", ""]
)
async def test_a_foreign_host_is_refused(server: RawClient, path: str, host: str) -> None:
    line = f"Host: {host}\r\n"
    request = f"GET {path} HTTP/1.1\r\n{line}Authorization: Bearer {TOKEN}\r\n\r\n"
    answer = await raw(server, request.encode())
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert b"is not a name of this server" in answer


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1234", "127.0.0.1:80", "[::1]:80", "agent.lan"])
async def test_the_names_of_the_server_are_served(host: str) -> None:
    async with serving(MemoryAgent(), ServerOptions(TOKEN, hosts=("Agent.lan",))) as server:
        request = f"GET /.well-known/agent-card.json HTTP/1.1\r\nHost: {host}\r\n\r\n"
        answer = await raw(server, request.encode())
        port = server.url.rstrip("/").rpartition(":")[2]
    assert answer.startswith(b"HTTP/1.1 200 ")
    name = host if host.endswith("]") else re.sub(":[0-9]+$", "", host)
    assert f'"url":"http://{name}:{port}/"'.encode() in answer  # regardless of the port in the request


async def test_a_server_on_every_address_is_reached_by_any_number_but_no_foreign_name() -> None:
    async with serving(MemoryAgent(), ServerOptions(TOKEN, hosts=("::",))) as server:
        for host, status in (("10.1.2.3:80", b"200"), ("[fe80::1]", b"200"), ("evil.example", b"403")):
            request = f"GET /healthz HTTP/1.1\r\nHost: {host}\r\n\r\n"
            assert (await raw(server, request.encode())).startswith(b"HTTP/1.1 " + status)


async def test_pages_of_the_public_address_are_served_behind_a_proxy() -> None:
    options = ServerOptions(TOKEN, public_url="https://agents.example/a/")
    async with serving(MemoryAgent(), options) as server:
        for origin, status in (("https://agents.example", 200), ("http://agents.example", 403)):
            response = await server.http.post(server.url, json=rpc("isthmus/tasks", {}), headers={"Origin": origin})
            assert response.status_code == status


async def test_pages_of_other_origins_are_refused(server: RawClient) -> None:
    own = server.url.rstrip("/")
    other_scheme = own.replace("http://", "https://")
    other_name = own.replace("127.0.0.1", "localhost")
    for origin in ("https://evil.example", "null", "http://127.0.0.1:1", other_name, other_scheme):
        response = await server.http.post(server.url, json=rpc("isthmus/tasks", {}), headers={"Origin": origin})
        assert response.status_code == 403
        assert "access-control-allow-origin" not in response.headers
    response = await server.http.post(server.url, json=rpc("isthmus/tasks", {}), headers={"Origin": own})
    assert response.json()["result"] == {"tasks": []}


async def test_a_body_over_the_limit_is_413_whether_its_length_is_stated_or_not() -> None:
    async with serving(MemoryAgent(), ServerOptions(TOKEN, body_limit=1000)) as server:
        stated = await server.http.post(server.url, content=b"x" * 1001)

        async def chunks() -> AsyncIterator[bytes]:
            for _ in range(3):
                yield b"x" * 500

        chunked = await server.http.post(server.url, content=chunks())
        fitting = await server.http.post(server.url, content=b"x" * 1000)
    assert (stated.status_code, chunked.status_code, fitting.status_code) == (413, 413, 200)
    assert stated.json() == chunked.json() == {"error": "the request is larger than 1000 bytes"}
    assert fitting.json()["error"]["code"] == -32700


async def test_a_request_that_only_reads_has_no_large_body(server: RawClient) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(6):
            yield b"x" * 50_000

    answer = await server.http.request("GET", server.url + "tasks", content=chunks())
    assert answer.status_code == 413


async def test_a_client_that_sends_a_large_body_to_its_end_reads_why_it_is_refused() -> None:
    async with serving(MemoryAgent(), ServerOptions(TOKEN, body_limit=1000)) as server:
        for headers in ({}, {"Authorization": "Bearer wrong"}):
            response = await server.http.post(server.url, content=b"x" * 30_000_000, headers=headers)
            assert response.status_code == (401 if headers else 413)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "begun"),
    [(b"", b""), (b"", b"POST / HT"), (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", b"POST / HT")],
)
async def test_a_request_whose_head_does_not_come_is_not_waited_for(before: bytes, begun: bytes) -> None:
    limits = replace(LIMITS, head_seconds=2 if before else 0.1, defer_seconds=0)  # the first request may take its time
    async with serving(MemoryAgent(), limits=limits) as server:
        port = int(server.url.rstrip("/").rsplit(":", 1)[1])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            if before:
                writer.write(before)
                await asyncio.wait_for(reader.readuntil(b'{"status":"ok"}'), 30)
            writer.write(begun)
            assert await asyncio.wait_for(reader.read(), 30) == b""
        finally:
            writer.close()


@pytest.mark.slow
async def test_a_stream_may_last_longer_than_the_head_of_a_request(tmp_path: Path) -> None:
    gate = asyncio.Event()
    agent = MemoryAgent(lambda _: (Wait(gate), TextContent("t", "late")))
    async with serving(agent, limits=replace(LIMITS, head_seconds=0.5)) as server:
        await server.http.get(server.url + "healthz")  # the connection exists now, and its next head comes at once
        async with server.opened("message/stream", prompt("wait", tmp_path)) as items:
            await anext(items)
            asyncio.get_running_loop().call_later(1, gate.set)
            rest = [item async for item in items]
        assert rest[-1].state == "completed"


async def test_requests_that_are_none_are_one_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    upgrade = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"
    async with serving(MemoryAgent()) as server:
        for _ in range(5):
            assert (await raw(server, b"nonsense\r\n\r\n")).startswith(b"HTTP/1.1 400 ")
            assert (await raw(server, upgrade)).startswith(b"HTTP/1.1 401 ")
    lines = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(lines) <= 2
    assert not [line for line in lines if "pip install" in line]


async def test_a_body_that_does_not_come_is_not_waited_for() -> None:
    async with serving(MemoryAgent(), ServerOptions(TOKEN, body_deadline=0.05)) as server:
        head = f"POST / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: 5\r\n\r\n"
        assert (await raw(server, head.encode())).startswith(b"HTTP/1.1 408 ")


async def test_other_paths_and_methods_are_named(server: RawClient) -> None:
    assert (await server.http.get(server.url + "nowhere")).status_code == 404
    response = await server.http.get(server.url)
    assert (response.status_code, response.headers["allow"]) == (405, "POST")


@pytest.mark.requirement("A2A-011", "A2A-012", "A2A-013", "A2A-014")
async def test_the_card_is_as_the_sample_has_it(server: RawClient) -> None:
    card = (await server.http.get(server.url + ".well-known/agent-card.json")).json()
    assert card["description"] == "An agent that generates code based on natural language instructions."
    assert card["name"] == "Isthmus"
    assert card["capabilities"]["streaming"] is True
    (extension,) = card["capabilities"]["extensions"]
    assert extension["uri"] == URI
    assert extension["description"].startswith("An extension for interactive development tasks")


@pytest.mark.requirement("A2A-015", "A2A-016")
async def test_the_card_requires_the_extension_in_its_version(server: RawClient) -> None:
    card = (await server.http.get(server.url + ".well-known/agent-card.json")).json()
    (extension,) = card["capabilities"]["extensions"]
    assert extension["required"] is True
    assert "/v0/" in extension["uri"]


async def test_the_card_says_where_and_how_the_server_is_reached(server: RawClient) -> None:
    card = (await server.http.get(server.url + ".well-known/agent-card.json")).json()
    assert (card["url"], card["preferredTransport"], card["protocolVersion"]) == (server.url, "JSONRPC", "0.3.0")
    assert card["version"] == __version__
    assert card["securitySchemes"]["bearer"].items() >= {"type": "http", "scheme": "bearer"}.items()
    async with serving(MemoryAgent(), ServerOptions(TOKEN, public_url="https://agents.example/a/")) as behind:
        card = (await behind.http.get(behind.url + ".well-known/agent.json")).json()
        by_name = await behind.http.get(behind.url + "healthz", headers={"Host": "agents.example"})
    assert by_name.status_code == 200
    assert card["url"] == "https://agents.example/a/"


@pytest.mark.parametrize(
    "headers",
    [
        {"A2A-Extensions": URI},
        {"X-A2A-Extensions": f"https://example.org/other,{URI}"},
        {"a2a-extensions": f"{URI} ,"},
    ],
)
async def test_activation_is_echoed(server: RawClient, headers: dict[str, str]) -> None:
    response = await server.http.post(server.url, json=rpc("isthmus/tasks", {}), headers=headers)
    assert response.headers["a2a-extensions"] == response.headers["x-a2a-extensions"] == URI


async def test_nothing_is_echoed_to_a_client_that_asks_for_nothing(server: RawClient) -> None:
    response = await server.http.post(server.url, json=rpc("isthmus/tasks", {}))
    assert "a2a-extensions" not in response.headers


async def test_a_taken_port_is_named(server: RawClient) -> None:
    port = int(server.url.rstrip("/").rsplit(":", 1)[1])
    with pytest.raises(ListenError, match=f"port {port} on 127.0.0.1 is already in use"):
        bind("127.0.0.1", port)


@pytest.mark.parametrize(("host", "port"), [("no.such.host.invalid", 0), ("192.0.2.1", 0), ("127.0.0.1", 99999)])
async def test_an_address_that_cannot_be_had_is_named(host: str, port: int) -> None:
    with pytest.raises(ListenError, match=re.escape(f"{host!r}, port {port}")):
        bind(host, port)


async def test_any_free_port_is_told_by_the_url() -> None:
    with bind("127.0.0.1", 0) as first, bind("127.0.0.1", 0) as second:
        assert url_of(first) != url_of(second)
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", url_of(first))


@pytest.mark.slow
async def test_a_servers_end_closes_idle_connections_and_cuts_off_what_exceeds_grace(
    caplog: pytest.LogCaptureFixture,
) -> None:
    agent = MemoryAgent()
    limits = replace(LIMITS, grace_seconds=1)
    server = A2AServer(application(agent, ServerOptions(TOKEN)), bind("127.0.0.1", 0), limits=limits)
    running = asyncio.create_task(server.run_until_stopped())
    port = int(server.url.rstrip("/").rsplit(":", 1)[1])
    (idle, idle_writer), (stuck, stuck_writer) = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
    try:
        idle_writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await asyncio.wait_for(idle.readuntil(b'{"status":"ok"}'), 30)
        head = f"POST / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: 5\r\n\r\n"
        stuck_writer.write(head.encode())
        await eventually_async(lambda: len(server.server_state.tasks) == 1)
        server.stop()
        assert await asyncio.wait_for(idle.read(), 30) == b""
        await asyncio.wait_for(stuck.read(), 30)
        await asyncio.wait_for(running, 30)
        assert not server.server_state.connections
        assert not server.server_state.tasks
        assert "Traceback" not in caplog.text
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)
    finally:
        for writer in (idle_writer, stuck_writer):
            writer.close()
        await agent.aclose()


async def test_the_extension_header_is_not_needed_where_the_metadata_has_the_key(server: RawClient) -> None:
    message = {"role": "user", "messageId": "m", "parts": [{"kind": "text", "text": "hello"}]}
    params = {"message": {**message, "metadata": {URI: {"workspace_path": "/"}}}}
    response = await server.http.post(server.url, json=rpc("message/send", params))
    assert response.headers["a2a-extensions"] == URI
    assert URI in response.json()["result"]["metadata"]
    outer = {"message": message, "metadata": {URI: {"workspace_path": "/"}}}
    assert URI in (await server.result("message/send", outer, {}))["metadata"]
