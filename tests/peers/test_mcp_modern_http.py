"""Servers over HTTP that speak only the 2026-07-28 revision, however they refuse the handshake."""

import contextlib
from pathlib import Path

import pytest

from isthmus.mcp_host.connection.connection_context import McpTimeouts
from isthmus.mcp_host.host import McpHost
from isthmus.tools.port.servers import ServerState
from isthmus.tools.port.tool_set import ToolScope
from support.hostile_http_mcp_server import QUESTIONS, hostile_http
from support.mcp_hosting import hosting, status_when
from support.modern_http_mcp_server import ANSWERED, LOGIN, REFUSALS, UNWILLING, modern_http
from support.ports import free_port
from support.tool_calls import said, success_of, tool_context
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("MCP-005", "MCP-006")
@pytest.mark.parametrize("way", [*REFUSALS, ANSWERED])
async def test_a_server_of_the_new_revision_is_used_however_it_refuses_the_handshake(
    home: Path, workspace: Path, way: str
) -> None:
    async with modern_http(way) as (url, gate), hosting(home, {"modern": {"httpUrl": url}}) as host:
        scope = ToolScope(workspace)
        tools = (await host.tools(scope)).tools
        await status_when(host, scope, "modern", ServerState.CONNECTED)
        assert said(await success_of(tools["add"], tool_context(workspace), a=2, b=3)) == "5"
        assert gate.methods[0] == "server/discover"
        assert gate.revisions[0] == "2026-07-28"
        assert gate.methods.count("initialize") == (0 if way == UNWILLING else 1)
        assert said(await success_of(tools["grow"], tool_context(workspace))) == "grown"

        async def has_grown() -> bool:
            return "grown" in (await host.tools(scope)).tools

        await eventually_async(has_grown)


async def test_a_server_of_the_new_revision_that_wants_a_login_is_said_to_want_one(home: Path, workspace: Path) -> None:
    async with modern_http(LOGIN) as (url, _), hosting(home, {"modern": {"httpUrl": url}}) as host:
        scope = ToolScope(workspace)
        assert (await host.tools(scope)).tools == {}
        status = await status_when(host, scope, "modern", ServerState.NEEDS_LOGIN)
        assert "/mcp auth modern" in (status.problem or "")


async def test_a_url_of_unknown_transport_is_asked_for_the_new_revision_before_sse(home: Path, workspace: Path) -> None:
    async with modern_http("page of HTTP 404") as (url, _), hosting(home, {"modern": {"url": url}}) as host:
        scope = ToolScope(workspace)
        tools = (await host.tools(scope)).tools
        assert said(await success_of(tools["add"], tool_context(workspace), a=2, b=3)) == "5"


@pytest.mark.parametrize(("way", "status"), [("busy-hello", 503), ("forbidden-hello", 403)])
async def test_a_failure_that_says_nothing_of_the_revision_is_told_as_it_is(
    home: Path, workspace: Path, way: str, status: int
) -> None:
    with hostile_http(way) as (url, handler):
        async with hosting(home, {"s": {"httpUrl": url}}) as host:
            scope = ToolScope(workspace)
            assert (await host.tools(scope)).tools == {}
            found = await status_when(host, scope, "s", ServerState.DISCONNECTED)
            assert f"answered initialize with HTTP {status}" in (found.problem or "")
            assert handler.methods == ["server/discover", "initialize"]


@pytest.mark.requirement("MCP-005", "MCP-006")
async def test_older_servers_are_used_whatever_they_answer_before_the_handshake(
    home: Path, workspace: Path, tmp_path: Path
) -> None:
    """Check that they are asked once: the next connection and the next start begin with the handshake."""
    # Some never answer, and are waited for; on a loaded machine the question itself may take a second to reach them.
    timeouts = McpTimeouts(discover_seconds=5)
    scope, cache = ToolScope(workspace), tmp_path / "cache"
    with contextlib.ExitStack() as stack:
        found = {way: stack.enter_context(hostile_http(way)) for way in QUESTIONS}
        servers = {way: {"httpUrl": url, "timeout": 60_000} for way, (url, _) in found.items()}

        async def openings(host: McpHost) -> dict[str, list[str]]:
            """Return the first request to each of the servers since the last time."""
            await host.tools(scope)
            for way in QUESTIONS:
                await status_when(host, scope, way, ServerState.CONNECTED)
            sent = {
                way: [method for method in handler.methods if method in ("server/discover", "initialize")]
                for way, (_, handler) in found.items()
            }
            for _, handler in found.values():
                handler.methods.clear()
            return sent

        async with hosting(home, servers, cache=cache, timeouts=timeouts) as host:
            assert await openings(host) == {way: ["server/discover", "initialize"] for way in QUESTIONS}
            await host.refresh(scope)
            assert await openings(host) == {way: ["initialize"] for way in QUESTIONS}
            await eventually_async(lambda: len(list(cache.glob("*.json"))) == len(QUESTIONS))
        async with hosting(home, servers, cache=cache, timeouts=timeouts) as host:
            assert await openings(host) == {way: ["initialize"] for way in QUESTIONS}
        assert not any("notifications/cancelled" in handler.methods for _, handler in found.values())


async def test_a_server_that_became_one_of_the_new_revision_is_used_at_the_next_start(
    home: Path, workspace: Path, tmp_path: Path
) -> None:
    scope, cache, port = ToolScope(workspace), tmp_path / "cache", free_port()
    with hostile_http("plain", port) as (url, _):
        servers = {"s": {"httpUrl": url}}
        async with hosting(home, servers, cache=cache) as host:
            assert list((await host.tools(scope)).tools) == ["ok"]
            await eventually_async(lambda: list(cache.glob("*.json")))
    async with modern_http("method not found", port) as (url, _), hosting(home, servers, cache=cache) as host:
        await host.tools(scope)
        await status_when(host, scope, "s", ServerState.CONNECTED)
        assert sorted((await host.tools(scope)).tools) == ["add", "grow"]


async def test_where_neither_revision_works_the_refusal_of_the_handshake_is_told(home: Path, workspace: Path) -> None:
    with hostile_http("refused-hello") as (url, handler):
        async with hosting(home, {"s": {"httpUrl": url}}) as host:
            scope = ToolScope(workspace)
            assert (await host.tools(scope)).tools == {}
            found = await status_when(host, scope, "s", ServerState.DISCONNECTED)
            assert "answered initialize with HTTP 400 (this server wants flowers)" in (found.problem or "")
            assert handler.methods[:2] == ["server/discover", "initialize"]
