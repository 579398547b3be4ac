"""What the companion's HTTP endpoint lets in, refuses and survives: raw requests over a real socket."""

import asyncio
import itertools
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from isthmus.ide.review import DiffReview
from support.companion import BareAgent, RunningCompanion, bare_agent, running_companion
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


async def _raw(companion: RunningCompanion, head: str, body: bytes = b"") -> bytes:
    """The whole answer to a request written by hand."""
    reader, writer = await asyncio.open_connection("127.0.0.1", companion.ready.port)
    try:
        writer.write(head.replace("\n", "\r\n").encode() + body)
        async with asyncio.timeout(10):
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
        async with httpx2.AsyncClient(trust_env=False, timeout=10) as http:
            for path, headers in itertools.product(("/mcp", "/", "/elsewhere"), wrong):
                response = await http.request(method, url + path, headers=headers)
                assert response.status_code == 401, (path, headers)
                assert companion.token not in response.text


@pytest.mark.requirement("GEM-027")
async def test_the_body_of_an_unauthorized_request_is_not_waited_for(workspace: Path) -> None:
    async with running_companion(workspace) as companion:
        head = f"POST /mcp HTTP/1.1\nHost: 127.0.0.1:{companion.ready.port}\nContent-Length: 1000000\n\n"
        assert (await _raw(companion, head)).startswith(b"HTTP/1.1 401 ")


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
            assert response.status_code == 400, name  # no session: it got past the gate


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
    (b'{"jsonrpc":"2.0","id":1,"method":"prompts/list"}', 200, -32601),
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


@pytest.mark.requirement("GEM-002")
async def test_sessions_begin_with_initialize_and_end_with_delete(workspace: Path) -> None:
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    async with running_companion(workspace) as companion, bare_agent(companion) as agent:
        assert (await agent.post(ping)).status_code == 400
        assert (await agent.http.get("/mcp")).status_code == 400
        assert (await agent.post(ping, mcp_session_id="unknown")).status_code == 404
        no_version = await agent.post({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}})
        assert no_version.json()["error"]["code"] == -32602
        assert "mcp-session-id" not in no_version.headers
        await agent.initialize()
        assert (await agent.post(ping)).status_code == 200
        assert (await agent.http.delete("/mcp", headers=agent.session)).status_code == 200
        assert (await agent.post(ping)).status_code == 404
        assert (await agent.http.delete("/mcp", headers=agent.session)).status_code == 404


async def test_a_client_that_begins_again_and_again_is_always_let_in(workspace: Path) -> None:
    async with running_companion(workspace) as companion, bare_agent(companion) as agent:
        for _ in range(70):
            agent.session = {}
            await agent.initialize()
        assert (await agent.request("ping"))["result"] == {}


async def test_delete_ends_the_stream_and_closes_the_views_of_the_session(workspace: Path) -> None:
    async with running_companion(workspace) as companion, bare_agent(companion) as agent:
        await agent.initialize()
        async with agent.stream() as stream:
            await stream.next()
            arguments = {"filePath": str(workspace / "a"), "newContent": "new\n"}
            await agent.request("tools/call", {"name": "openDiff", "arguments": arguments})
            assert len(companion.editor.open_reviews) == 1
            await agent.http.delete("/mcp", headers=agent.session)
            await stream.ended()
        assert companion.editor.open_reviews == ()


async def test_a_new_stream_takes_the_place_of_the_old_one(workspace: Path) -> None:
    async with running_companion(workspace) as companion, bare_agent(companion) as agent:
        await agent.initialize()
        async with agent.stream() as old:
            await old.next()
            async with agent.stream() as new:
                assert (await new.next())[1]["method"] == "ide/contextUpdate"
                await old.ended()
                file = workspace / "a.py"
                file.touch()
                await companion.editor.open_file(str(file))
                _, message = await new.next()
                assert message["params"]["workspaceState"]["openFiles"][0]["path"] == str(file)


async def test_a_quiet_stream_is_kept_alive(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isthmus.ide.http_transport.KEEP_ALIVE_SECONDS", 0.05)
    async with running_companion(workspace) as companion, bare_agent(companion) as agent:
        await agent.initialize()
        headers = {"accept": "text/event-stream", **agent.session}
        async with asyncio.timeout(10), agent.http.stream("GET", "/mcp", headers=headers) as response:
            lines = response.aiter_lines()
            async for line in lines:
                if line == ": keep-alive":
                    break


async def test_a_connection_that_says_nothing_is_closed_and_a_quiet_stream_is_not(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("isthmus.ide.http_server.SILENT_TICKS", 1)
    async with running_companion(workspace) as companion, bare_agent(companion) as agent:
        await agent.initialize()
        async with agent.stream() as stream:
            await stream.next()
            assert await _raw(companion, "POST /mcp HTTP/1.1\n") == b""
            file = workspace / "a.py"
            file.touch()
            await companion.editor.open_file(str(file))
            assert (await stream.next())[1]["method"] == "ide/contextUpdate"


async def test_a_call_that_the_client_cancels_is_stopped_and_not_answered(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_companion(workspace) as companion, bare_agent(companion) as agent:
        entered = asyncio.Event()

        async def hang(review: DiffReview) -> None:
            entered.set()
            await asyncio.Event().wait()

        monkeypatch.setattr(companion.editor, "open_diff", hang)
        await agent.initialize()
        arguments = {"filePath": str(workspace / "a"), "newContent": "new\n"}
        call = {
            "jsonrpc": "2.0",
            "id": 7,
            "method": "tools/call",
            "params": {"name": "openDiff", "arguments": arguments},
        }
        waiting = asyncio.create_task(agent.post(call))
        async with asyncio.timeout(10):
            await entered.wait()
            cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
            assert (await agent.post(cancelled)).status_code == 202
            answer = await waiting
        assert (answer.status_code, answer.content) == (202, b"")
        assert (await agent.request("ping"))["result"] == {}


@pytest.mark.requirement("GEM-086")
async def test_streams_end_properly_when_the_companion_stops(workspace: Path) -> None:
    async with running_companion(workspace) as companion, bare_agent(companion) as agent:
        await agent.initialize()
        async with agent.stream() as stream:
            await stream.next()
            companion.host.stop()
            await stream.ended()


async def test_clients_are_told_to_come_back_soon_but_to_give_a_restart_its_time(workspace: Path) -> None:
    async with running_companion(workspace) as companion, bare_agent(companion) as agent:
        await agent.initialize()
        headers = {"accept": "text/event-stream", **agent.session}
        async with agent.http.stream("GET", "/mcp", headers=headers) as response:
            lines = response.aiter_lines()
            assert await anext(lines) == "retry: 1000"
            companion.host.stop()
            async with asyncio.timeout(10):
                assert [line async for line in lines if line.startswith("retry")] == ["retry: 5000"]


async def test_a_decision_right_before_the_editor_quits_is_still_delivered(workspace: Path) -> None:
    async with running_companion(workspace) as companion, bare_agent(companion) as agent:
        await agent.initialize()
        async with agent.stream() as stream:
            await stream.next()
            arguments = {"filePath": str(workspace / "a"), "newContent": "new\n"}
            await agent.request("tools/call", {"name": "openDiff", "arguments": arguments})
            companion.editor.accept_diff(companion.editor.open_reviews[0].id)
            companion.editor.quit()
            _, message = await stream.until("ide/diffAccepted")
            assert message["params"]["content"] == "new\n"
            await stream.ended()
        await asyncio.wait_for(companion.task, 10)
        assert not Path(companion.ready.discovery_file).exists()


def _look_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both lives of a companion are in this process: make the former one look dead."""

    def nobody_is_alive(pid: int) -> bool:
        return False

    monkeypatch.setattr("isthmus.ide.survival.process_is_alive", nobody_is_alive)


async def test_a_restart_takes_over_port_token_and_sessions(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_companion(workspace) as companion, bare_agent(companion) as agent:
        await agent.initialize()
        async with agent.stream() as stream:
            last, _ = await stream.next()
        token, port = companion.token, companion.ready.port
    _look_dead(monkeypatch)
    async with running_companion(workspace) as again, bare_agent(again) as healed:
        assert (again.ready.port, again.token, again.ready.taken_over) == (port, token, True)
        healed.session = agent.session
        async with healed.stream(last) as stream:
            assert (await stream.next())[1]["method"] == "ide/contextUpdate"
            arguments = {"filePath": str(workspace / "a"), "newContent": "new\n"}
            answer = await healed.request("tools/call", {"name": "openDiff", "arguments": arguments})
            assert answer["result"] == {"content": []}
            again.editor.reject_diff(again.editor.open_reviews[0].id)
            await stream.until("ide/diffRejected")


async def test_a_fresh_start_takes_nothing_over(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_companion(workspace) as companion, bare_agent(companion) as agent:
        await agent.initialize()
        token = companion.token
    _look_dead(monkeypatch)
    async with running_companion(workspace, fresh=True) as again, bare_agent(again) as stranger:
        assert again.token != token
        assert not again.ready.taken_over
        stranger.session = agent.session
        assert (await stranger.post({"jsonrpc": "2.0", "id": 1, "method": "ping"})).status_code == 404


async def test_another_workspace_takes_nothing_over(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_companion(workspace) as companion:
        token = companion.token
    _look_dead(monkeypatch)
    async with running_companion(tmp_path) as again:
        assert again.token != token


async def test_the_discovery_file_comes_back_when_somebody_removes_it(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("isthmus.ide.host.HOUSEKEEPING_SECONDS", 0.05)
    async with running_companion(workspace) as companion:
        path = Path(companion.ready.discovery_file)
        path.unlink()
        await eventually_async(path.exists, what="the file is back")


async def test_views_of_an_agent_that_went_away_are_closed_and_those_of_others_stay(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("isthmus.ide.host.HOUSEKEEPING_SECONDS", 0.05)
    monkeypatch.setattr("isthmus.ide.session.LOST_STREAM_SECONDS", 0.2)

    async def propose(agent: BareAgent, name: str) -> None:
        arguments = {"filePath": str(workspace / name), "newContent": "new\n"}
        await agent.request("tools/call", {"name": "openDiff", "arguments": arguments})

    async with (
        running_companion(workspace) as companion,
        bare_agent(companion) as stays,
        bare_agent(companion) as leaves,
    ):
        await stays.initialize()
        await leaves.initialize()
        async with stays.stream() as stream:
            await stream.next()
            await propose(stays, "stays")
            async with leaves.stream() as other:
                await other.next()
                await propose(leaves, "leaves")
            await eventually_async(lambda: len(companion.editor.open_reviews) == 1, what="one view is closed")
            assert companion.editor.open_reviews[0].file_path == str(workspace / "stays")
