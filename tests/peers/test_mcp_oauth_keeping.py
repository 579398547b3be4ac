"""Logins that last: renewed once by many, kept if the server fails, extended with scopes, ended by a logout."""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from isthmus.mcp_host.connection.connection_context import McpTimeouts
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.servers import ServerState
from isthmus.tools.port.tool_set import ToolScope
from support.mcp_hosting import hosting, status_when, write_servers
from support.mcp_tools import process_lists
from support.oauth_login import entries, let_end, log_in, shows, tokens_path
from support.oauth_mcp_server import OAuthMcpServer, oauth_mcp_server
from support.ports import free_port
from support.tool_calls import said, success_of, tool_context

pytestmark = pytest.mark.anyio


@pytest.fixture
async def server() -> AsyncGenerator[OAuthMcpServer]:
    async with oauth_mcp_server() as found:
        yield found


@pytest.mark.requirement("MCP-064", "MCP-042")
async def test_of_several_processes_one_renews_a_token_that_can_be_renewed_once(
    home: Path, workspace: Path, server: OAuthMcpServer
) -> None:
    servers = {"s": {"httpUrl": server.url}}
    async with hosting(home, servers, open_browser=shows) as host:
        await log_in(host, ToolScope(workspace))
    let_end(home)
    server.authorization.tokens.clear()
    server.authorization.answers_after = 1.0
    server.log.clear()
    found = await asyncio.gather(*(process_lists(home, workspace) for _ in range(3)))
    assert [each["tools"] for each in found] == [["whoami"]] * 3, found
    assert server.log == ["refresh_token"]


@pytest.mark.requirement("MCP-065")
async def test_a_token_that_ends_while_connected_is_renewed_for_the_next_call(
    home: Path, workspace: Path, server: OAuthMcpServer
) -> None:
    async with hosting(home, {"s": {"httpUrl": server.url}}, open_browser=shows) as host:
        scope = ToolScope(workspace)
        await log_in(host, scope)
        tool = (await host.tools(scope)).tools["whoami"]
        server.authorization.tokens.clear()  # invalid before their time
        server.log.clear()
        calls = [success_of(tool, tool_context(workspace)) for _ in range(4)]
        assert {said(call) for call in await asyncio.gather(*calls)} == {"the user"}
        assert server.log.count("refresh_token") == 1


async def test_a_login_that_ends_while_connected_is_said_by_the_call_and_the_state(
    home: Path, workspace: Path, server: OAuthMcpServer
) -> None:
    async with hosting(home, {"s": {"httpUrl": server.url}}, open_browser=shows) as host:
        scope = ToolScope(workspace)
        await log_in(host, scope)
        tool = (await host.tools(scope)).tools["whoami"]
        server.authorization.tokens.clear()
        server.authorization.renews = False
        with pytest.raises(ToolFailure) as refusal:
            await success_of(tool, tool_context(workspace))
        failure = refusal.value
        assert str(failure).startswith("whoami of the MCP server 's' was not called: its login has ended")
        assert "/mcp auth s" in str(failure)
        assert "invalid_grant" in str(failure)
        assert failure.category == "mcp_needs_login"
        assert failure.message_for("guest") == "the MCP server 's' wants a login of the user who runs this agent"
        await status_when(host, scope, "s", ServerState.NEEDS_LOGIN)
        assert entries(home) == []


@pytest.mark.requirement("MCP-059")
async def test_a_server_that_wants_more_rights_gets_a_login_with_them_and_the_ones_before(
    home: Path, workspace: Path, server: OAuthMcpServer
) -> None:
    server.wanted_scope, server.call_scope = "read", "write"
    # A client is registered for one redirect; another login on this machine may use the usual port.
    oauth = {"redirectUri": f"http://localhost:{free_port()}/oauth/callback"}
    async with hosting(home, {"s": {"httpUrl": server.url, "oauth": oauth}}, open_browser=shows) as host:
        scope = ToolScope(workspace)
        await log_in(host, scope)
        tool = (await host.tools(scope)).tools["whoami"]
        with pytest.raises(ToolFailure) as refusal:
            await success_of(tool, tool_context(workspace))
        failure = refusal.value
        assert "it wants a login with more rights (write); use /mcp auth s" in str(failure)
        assert failure.category == "mcp_needs_login"
        status = (await host.servers(scope))[0]
        assert "more rights (write)" in (status.problem or "")
        assert (await log_in(host, scope))[-1] == "s is connected; it has 1 tool."
        tool = (await host.tools(scope)).tools["whoami"]
        assert said(await success_of(tool, tool_context(workspace))) == "the user"
    assert [asked["scope"] for asked in server.authorization.asked if "state" in asked] == ["read", "read write"]
    assert server.log.count("register") == 1
    server.wanted_scope = "admin"  # needed for every request, after a restart
    async with hosting(home, {"s": {"httpUrl": server.url}}, open_browser=shows) as host:
        status = await status_when(host, scope, "s", ServerState.NEEDS_LOGIN)
        assert "more rights (admin)" in (status.problem or "")
        assert (await log_in(host, scope))[-1] == "s is connected; it has 1 tool."
    assert server.authorization.asked[-2]["scope"] == "read write admin"


@pytest.mark.parametrize("way", ["slow", "failing"])
async def test_a_token_endpoint_that_fails_costs_one_server_and_no_login(
    home: Path, workspace: Path, server: OAuthMcpServer, way: str
) -> None:
    async with oauth_mcp_server() as other:
        servers = {"s": {"httpUrl": server.url}, "other": {"httpUrl": other.url}}
        async with hosting(home, servers, open_browser=shows) as host:
            await log_in(host, ToolScope(workspace))
            await log_in(host, ToolScope(workspace), "other")
        before = tokens_path(home).read_text()
        let_end(home, "s")
        server.authorization.tokens.clear()
        if way == "slow":
            server.authorization.answers_after = 60
        else:
            server.authorization.fails_with = 503
        async with hosting(home, servers, timeouts=McpTimeouts(token_seconds=3)) as host:
            scope = ToolScope(workspace)
            assert [tool.partition("__")[2] or tool for tool in (await host.tools(scope)).tools] == ["whoami"]
            status = await status_when(host, scope, "s", ServerState.DISCONNECTED)
            expected = "did not answer within 3 s" if way == "slow" else "answered HTTP 503"
            assert "it cannot be logged in to now: the token endpoint" in (status.problem or "")
            assert expected in (status.problem or "")
            kept = [entry["token"]["refreshToken"] for entry in json.loads(before)]
            assert not any(token in (status.problem or "") for token in kept)
            assert entries(home)[0]["token"]["refreshToken"] == kept[0]
            server.authorization.answers_after, server.authorization.fails_with = 0, None
            await host.refresh(scope, "s")
            await status_when(host, scope, "s", ServerState.CONNECTED)


@pytest.mark.requirement("MCP-037", "MCP-061", "MCP-039", "MCP-048")
@pytest.mark.parametrize("parameter", [None, "access_token"])
async def test_a_server_over_sse_gets_its_login_by_header_or_a_url_parameter_never_logged(
    home: Path, workspace: Path, server: OAuthMcpServer, parameter: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.parameter = parameter
    settings: dict[str, Any] = {"url": server.sse_url, "type": "sse"}
    if parameter is not None:
        settings["oauth"] = {"tokenParamName": parameter}
    async with hosting(home, {"s": settings}, open_browser=shows) as host:
        scope = ToolScope(workspace)
        await status_when(host, scope, "s", ServerState.NEEDS_LOGIN)
        assert (await log_in(host, scope))[-1] == "s is connected; it has 1 tool."
        tool = (await host.tools(scope)).tools["whoami"]
        assert said(await success_of(tool, tool_context(workspace))) == "the user"
        for sent in server.headers:
            assert ("authorization" in sent) == (parameter is None)
        shown = "\n".join([*(record.getMessage() for record in caplog.records), str(await host.servers(scope))])
        token = entries(home)[0]["token"]
        assert token["accessToken"] not in shown
        assert token["refreshToken"] not in shown
        server.authorization.tokens.clear()
        server.authorization.renews = False
        with pytest.raises(ToolFailure, match="/mcp auth s"):
            await success_of(tool, tool_context(workspace))
        await status_when(host, scope, "s", ServerState.NEEDS_LOGIN)


async def test_a_logout_revokes_and_forgets(home: Path, workspace: Path, server: OAuthMcpServer) -> None:
    async with hosting(home, {"s": {"httpUrl": server.url}}, open_browser=shows) as host:
        scope = ToolScope(workspace)
        await log_in(host, scope)
        assert await host.logout(scope, "s") == "Logged out of s; its server has revoked the tokens."
        assert (server.authorization.tokens, server.authorization.refreshing, entries(home)) == ({}, {}, [])
        await status_when(host, scope, "s", ServerState.NEEDS_LOGIN)
        assert await host.logout(scope, "s") == "Nobody was logged in to s."
        await log_in(host, scope)
        server.authorization.metadata = {"revocation_endpoint": None}
        await log_in(host, scope)
        assert "has not revoked the token" in await host.logout(scope, "s")


@pytest.mark.requirement("MCP-063", "MCP-064")
async def test_a_login_that_gemini_cli_made_is_used_and_renewed(
    home: Path, workspace: Path, server: OAuthMcpServer
) -> None:
    server.authorization.add_client("geminis", "http://localhost:1/oauth/callback")
    given = server.authorization.issue()
    server.authorization.tokens.clear()
    entry = {
        "serverName": "s",
        "token": {
            "accessToken": given["access_token"],
            "tokenType": "Bearer",
            "refreshToken": given["refresh_token"],
            "expiresAt": 1000,
        },
        "clientId": "geminis",
        "tokenUrl": f"{server.origin}/token",
        "mcpServerUrl": server.url,
        "updatedAt": 1,
    }
    tokens_path(home).write_text(json.dumps([entry]))
    async with hosting(home, {"s": {"httpUrl": server.url}}) as host:
        assert list((await host.tools(ToolScope(workspace))).tools) == ["whoami"]
    kept = entries(home)[0]
    assert (kept["clientId"], kept["tokenUrl"], kept["mcpServerUrl"]) == (
        "geminis",
        f"{server.origin}/token",
        server.url,
    )
    assert kept["token"]["accessToken"] in server.authorization.tokens


async def test_a_login_is_not_sent_to_another_url_of_the_same_name(
    home: Path, workspace: Path, server: OAuthMcpServer
) -> None:
    async with hosting(home, {"s": {"httpUrl": server.url}}, open_browser=shows) as host:
        await log_in(host, ToolScope(workspace))
    async with oauth_mcp_server() as other:
        write_servers(home, {"s": {"httpUrl": other.url}})
        found = await process_lists(home, workspace)
        assert found["servers"]["s"][0] == "needs login"
        assert other.headers == []
        assert set(other.log) == {"401"}


async def test_a_file_of_tokens_that_cannot_be_read_is_set_aside(
    home: Path, workspace: Path, server: OAuthMcpServer
) -> None:
    tokens_path(home).write_text("{ half of it")
    async with hosting(home, {"s": {"httpUrl": server.url}}, open_browser=shows) as host:
        assert (await log_in(host, ToolScope(workspace)))[-1] == "s is connected; it has 1 tool."
    assert tokens_path(home).with_suffix(".json.broken").read_text() == "{ half of it"
