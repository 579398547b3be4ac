"""Servers over HTTP that speak the 2026-07-28 revision alone, however they refuse the handshake."""

from pathlib import Path

import pytest

from isthmus.tools.base import ToolScope
from isthmus.tools.servers import ServerState
from support.hostile_http_mcp_server import hostile_http
from support.mcp_hosting import hosting, status_when
from support.modern_http_mcp_server import ANSWERED, LOGIN, REFUSALS, modern_http
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
        assert gate.methods.count("initialize") == 1
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
            assert handler.methods == ["initialize"]


async def test_where_neither_revision_works_the_refusal_of_the_handshake_is_told(home: Path, workspace: Path) -> None:
    with hostile_http("refused-hello") as (url, handler):
        async with hosting(home, {"s": {"httpUrl": url}}) as host:
            scope = ToolScope(workspace)
            assert (await host.tools(scope)).tools == {}
            found = await status_when(host, scope, "s", ServerState.DISCONNECTED)
            assert "answered initialize with HTTP 400 (this server wants flowers)" in (found.problem or "")
            assert "server/discover" in handler.methods
