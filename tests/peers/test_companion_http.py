"""Requests that the companion's HTTP endpoint accepts and refuses: raw requests over a real socket."""

import asyncio
import itertools
import json
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from isthmus.ide.options import GeminiServerLimits
from support.companion import RunningCompanion, bare_agent, running_companion
from support.editor_deadlines import PATIENT_LIMITS

pytestmark = pytest.mark.anyio


async def _raw(companion: RunningCompanion, head: str, body: bytes = b"") -> bytes:
    """Return the whole response to a request written by hand."""
    reader, writer = await asyncio.open_connection("127.0.0.1", companion.ready.port)
    try:
        writer.write(head.replace("\n", "\r\n").encode() + body)
        async with asyncio.timeout(60):
            return await reader.read(65536)
    finally:
        writer.close()


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS"])
@pytest.mark.requirement("GEM-026", "GEM-027")
async def test_without_the_token_every_method_and_path_is_401(workspace: Path, method: str) -> None:
    async with running_companion(workspace) as companion:
        url = f"http://127.0.0.1:{companion.ready.port}"
        wrong = [
            {},
            {"authorization": "Bearer"},
            {"authorization": "Bearer wrong"},
            {"authorization": companion.token},
            {"authorization": f"Basic {companion.token}"},
            {"authorization": f"Bearer {companion.token}x"},
            {"authorization": f"Bearer {companion.token[:-1]}"},
        ]
        async with httpx2.AsyncClient(trust_env=False, timeout=30) as http:
            for path, headers in itertools.product(("/mcp", "/", "/elsewhere"), wrong):
                response = await http.request(method, url + path, headers=headers)
                assert response.status_code == 401, (path, headers)
                assert companion.token not in response.text


@pytest.mark.requirement("GEM-027")
async def test_the_body_of_an_unauthorized_request_is_not_waited_for(workspace: Path) -> None:
    async with running_companion(workspace) as companion:
        head = f"POST /mcp HTTP/1.1\nHost: 127.0.0.1:{companion.ready.port}\nContent-Length: 1000000\n\n"
        assert (await _raw(companion, head)).startswith(b"HTTP/1.1 401 ")


@pytest.mark.parametrize("begins", [False, True])
async def test_a_body_that_cannot_be_read_is_refused_once_and_leaves_no_traceback(
    workspace: Path, caplog: pytest.LogCaptureFixture, begins: bool
) -> None:
    async with running_companion(workspace) as companion:
        head = f"POST /mcp HTTP/1.1\nHost: 127.0.0.1:{companion.ready.port}\nTransfer-Encoding: chunked\n\n"
        broken = (b"1\r\nx\r\n" if begins else b"") + b"no size\r\n"
        answer = await _raw(companion, head, broken)
        assert answer.startswith(b"HTTP/1.1 4")
        assert answer.count(b"HTTP/1.1 ") == 1
    assert "Exception" not in caplog.text
    assert "Traceback" not in caplog.text
    assert "Fatal error" not in caplog.text


@pytest.mark.requirement("GEM-021", "GEM-027")
async def test_two_authorization_headers_are_refused(workspace: Path) -> None:
    async with running_companion(workspace) as companion:
        bearer = f"Authorization: Bearer {companion.token}\n"
        head = f"GET /mcp HTTP/1.1\nHost: 127.0.0.1:{companion.ready.port}\n{bearer}"
        assert (await _raw(companion, head + "Authorization: Bearer wrong\n\n")).startswith(b"HTTP/1.1 401 ")
        assert (await _raw(companion, head + "\n")).startswith(b"HTTP/1.1 400 ")


async def test_the_names_of_this_machine_are_accepted_as_host(workspace: Path) -> None:
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    async with running_companion(workspace) as companion, bare_agent(companion) as agent:
        for name in ("localhost", "127.0.0.1", "[::1]", "host.docker.internal", "LOCALHOST"):
            response = await agent.post(ping, host=f"{name}:{companion.ready.port}")
            assert response.status_code == 400, name  # no session: it passed the access check


async def test_other_hosts_are_refused(workspace: Path) -> None:
    async with running_companion(workspace) as companion, bare_agent(companion) as agent:
        port = companion.ready.port
        for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", "127.0.0.1:1", f"127.0.0.1.evil:{port}"):
            response = await agent.post({}, host=host)
            assert response.status_code == 403, host
            assert response.json()["error"] == "Invalid Host header"


async def test_any_origin_is_refused(workspace: Path) -> None:
    async with running_companion(workspace) as companion, bare_agent(companion) as agent:
        for origin in ("http://evil.example", "http://127.0.0.1", "null", ""):
            response = await agent.post({}, origin=origin)
            assert response.status_code == 403, origin
            assert response.json()["error"] == "Request denied by CORS policy."


@pytest.mark.requirement("GEM-004")
async def test_mcp_is_the_only_endpoint_and_other_methods_are_named_as_not_allowed(workspace: Path) -> None:
    async with running_companion(workspace) as companion, bare_agent(companion) as agent:
        assert (await agent.http.get("/")).status_code == 404
        assert (await agent.http.post("/mcp/other")).status_code == 404
        response = await agent.http.put("/mcp")
        assert response.status_code == 405
        assert response.headers["allow"] == "GET, POST, DELETE"


@pytest.mark.parametrize("declared", [True, False])
async def test_a_body_over_ten_megabytes_is_413_and_the_session_goes_on(workspace: Path, declared: bool) -> None:
    async with running_companion(workspace) as companion, bare_agent(companion) as agent:
        await agent.initialize()
        size = 10 * 1024 * 1024 + 1

        async def chunks() -> AsyncGenerator[bytes]:
            for _ in range(11):
                yield b" " * (size // 11 + 1)

        headers = {"content-type": "application/json", **agent.session}
        content: Any = b" " * size if declared else chunks()
        response = await agent.http.post("/mcp", content=content, headers=headers)
        assert response.status_code == 413
        assert "10485760" in response.text
        assert (await agent.request("ping"))["result"] == {}


async def test_a_proposal_of_five_megabytes_comes_back_whole(workspace: Path) -> None:
    text = "x" * 79 + "\n"
    text *= 5 * 1024 * 1024 // len(text)
    file = workspace / "large.txt"
    async with running_companion(workspace) as companion, bare_agent(companion) as agent:
        await agent.initialize()
        arguments = {"filePath": str(file), "newContent": text}
        await agent.request("tools/call", {"name": "openDiff", "arguments": arguments})
        response = await agent.request("tools/call", {"name": "closeDiff", "arguments": {"filePath": str(file)}})
        assert json.loads(response["result"]["content"][0]["text"])["content"] == text


_WRONG_MESSAGES = [
    (b"", 400, -32700),
    (b"{", 400, -32700),
    (b"\xff\xfe", 400, -32700),
    (b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}', 400, -32700),
    (b"[" * 100_000, 400, -32700),
    (b'{"a":' * 100_000, 400, -32700),
    (b"9" * 10_000, 400, -32700),
    (b"[]", 400, -32600),
    (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', 400, -32600),
    (b'"text"', 400, -32600),
    (b'{"id":1,"method":"ping"}', 400, -32600),
    (b'{"jsonrpc":"2.0","id":1}', 400, -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":2}', 400, -32600),
    (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', 400, -32600),
    (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', 400, -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', 200, -32602),
    (b'{"jsonrpc":"2.0","id":1,"method":"prompts/get"}', 200, -32601),
    (b'{"jsonrpc":"2.0","id":1,"method":"initialize"}', 200, -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"2"}}', 200, -32602),
    (b'{"jsonrpc":"2.0","id":1,"method":"tools/call"}', 200, -32602),
    (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"rm"}}', 200, -32602),
    (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"openDiff","arguments":[]}}', 200, -32602),
]


@pytest.mark.requirement("GEM-002")
async def test_a_wrong_message_gets_its_json_rpc_error_and_the_session_goes_on(workspace: Path) -> None:
    async with running_companion(workspace) as companion, bare_agent(companion) as agent:
        await agent.initialize()
        for body, status, code in _WRONG_MESSAGES:
            response = await agent.post(body)
            assert (response.status_code, response.json()["error"]["code"]) == (status, code), body[:100]
            assert (await agent.request("ping"))["result"] == {}


@pytest.mark.requirement("GEM-002")
@pytest.mark.parametrize(
    ("asked", "agreed"),
    [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2099-01-01", "2025-11-25"),
    ],
)
async def test_a_known_protocol_version_is_agreed_on_and_else_the_latest_offered(
    workspace: Path, asked: str, agreed: str
) -> None:
    async with running_companion(workspace) as companion, bare_agent(companion) as agent:
        answer = await agent.initialize(asked)
        assert answer["result"]["protocolVersion"] == agreed
        assert (await agent.request("ping", mcp_protocol_version=agreed))["result"] == {}
        refused = await agent.post({"jsonrpc": "2.0", "id": 1, "method": "ping"}, mcp_protocol_version="1999-01-01")
        assert refused.status_code == 400


async def test_a_connection_that_says_nothing_is_closed_and_a_quiet_stream_is_not(workspace: Path) -> None:
    limits = replace(PATIENT_LIMITS, gemini=GeminiServerLimits(head_seconds=0.1))
    async with running_companion(workspace, limits=limits) as companion, bare_agent(companion) as agent:
        await agent.initialize()
        async with agent.stream() as stream:
            await stream.next()
            assert await _raw(companion, "POST /mcp HTTP/1.1\n") == b""
            file = workspace / "a.py"
            file.touch()
            await companion.editor.open_file(str(file))
            assert (await stream.next())[1]["method"] == "ide/contextUpdate"


@pytest.mark.parametrize("rest", ["GET /mc", "the first bytes of a body"])
async def test_a_connection_that_only_begins_a_request_after_an_answer_is_closed(workspace: Path, rest: str) -> None:
    limits = replace(PATIENT_LIMITS, gemini=GeminiServerLimits(head_seconds=0.1))
    length = 0 if rest.startswith("GET") else 1000
    async with running_companion(workspace, limits=limits) as companion:
        reader, writer = await asyncio.open_connection("127.0.0.1", companion.ready.port)
        writer.write(f"POST /mcp HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n".encode())
        async with asyncio.timeout(30):
            assert await reader.readline() == b"HTTP/1.1 401 Unauthorized\r\n"
            writer.write(rest.encode())
            await reader.read()
        writer.close()


async def test_a_body_that_never_ends_is_cut_off_with_the_companion_and_no_fault_of_it(
    workspace: Path, caplog: pytest.LogCaptureFixture
) -> None:
    limits = replace(PATIENT_LIMITS, gemini=GeminiServerLimits(grace_seconds=0.05))
    async with running_companion(workspace, limits=limits) as companion:
        head = f"POST /mcp HTTP/1.1\nhost: 127.0.0.1:{companion.ready.port}\nauthorization: Bearer {companion.token}\n"
        more = "expect: 100-continue\ncontent-type: application/json\ncontent-length: 100\n\n"
        reader, writer = await asyncio.open_connection("127.0.0.1", companion.ready.port)
        writer.write((head + more).replace("\n", "\r\n").encode())
        async with asyncio.timeout(30):
            assert await reader.readline() == b"HTTP/1.1 100 Continue\r\n"
            await companion.end()
            await reader.read()
        writer.close()
    assert "Exception" not in caplog.text
