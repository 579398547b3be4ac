import asyncio
import json
import re
import socket
from collections.abc import AsyncGenerator
from pathlib import Path

import httpx2
import pytest

from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.servers import ServerState
from isthmus.tools.port.tool_set import ToolScope
from support.mcp_hosting import hosting, status_when
from support.oauth_authorization import Issued
from support.oauth_login import let_end, log_in, shows, tokens_path
from support.oauth_mcp_server import OAuthMcpServer, oauth_mcp_server
from support.plain_http import plain_client
from support.tool_calls import said, success_of, tool_context
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


@pytest.fixture
async def server() -> AsyncGenerator[OAuthMcpServer]:
    async with oauth_mcp_server() as found:
        yield found


@pytest.mark.requirement("MCP-039", "MCP-043")
async def test_a_server_that_answers_401_needs_a_login_and_registers_nobody(
    home: Path, workspace: Path, server: OAuthMcpServer
) -> None:
    async with hosting(home, {"s": {"httpUrl": server.url}}, open_browser=shows) as host:
        assert (await host.tools(ToolScope(workspace))).tools == {}
        status = await status_when(host, ToolScope(workspace), "s", ServerState.NEEDS_LOGIN)
        assert "/mcp auth s" in (status.problem or "")
        assert set(server.log) == {"401"}


@pytest.mark.requirement("MCP-054")
async def test_a_server_whose_oauth_is_enabled_is_asked_nothing_before_a_login(
    home: Path, workspace: Path, server: OAuthMcpServer
) -> None:
    async with hosting(home, {"s": {"httpUrl": server.url, "oauth": {"enabled": True}}}, open_browser=shows) as host:
        scope = ToolScope(workspace)
        await host.tools(scope)
        status = await status_when(host, scope, "s", ServerState.NEEDS_LOGIN)
        assert "/mcp auth s" in (status.problem or "")
        assert server.log == []
        assert (await log_in(host, scope))[-1] == "s is connected; it has 1 tool."


@pytest.mark.requirement("MCP-041", "MCP-046", "MCP-047", "MCP-063")
async def test_a_login_registers_shows_the_page_takes_the_redirect_and_keeps_the_tokens(
    home: Path, workspace: Path, server: OAuthMcpServer
) -> None:
    other = {"serverName": "another", "token": {"accessToken": "a", "tokenType": "Bearer"}, "theirs": 1}
    tokens_path(home).write_text(json.dumps([other]))
    async with hosting(home, {"s": {"httpUrl": server.url}}, open_browser=shows) as host:
        scope = ToolScope(workspace)
        told = await log_in(host, scope)
        assert told[-1] == "s is connected; it has 1 tool."
        tools = (await host.tools(scope)).tools
        assert said(await success_of(tools["whoami"], tool_context(workspace))) == "the user"
    first, kept = json.loads(tokens_path(home).read_text())
    assert first == other
    assert (kept["serverName"], kept["mcpServerUrl"], kept["clientId"]) == (
        "s",
        server.url,
        next(iter(server.authorization.clients)),
    )
    assert tokens_path(home).stat().st_mode & 0o777 == 0o600


@pytest.mark.requirement("MCP-064", "MCP-065")
async def test_a_token_that_ended_is_renewed_after_a_restart_without_a_user(
    home: Path, workspace: Path, server: OAuthMcpServer
) -> None:
    async with hosting(home, {"s": {"httpUrl": server.url}}, open_browser=shows) as host:
        await log_in(host, ToolScope(workspace))
    let_end(home)
    server.authorization.tokens.clear()
    server.log.clear()
    async with hosting(home, {"s": {"httpUrl": server.url}}, open_browser=shows) as host:
        assert list((await host.tools(ToolScope(workspace))).tools) == ["whoami"]
    assert server.log == ["refresh_token"]
    assert json.loads(tokens_path(home).read_text())[0]["token"]["accessToken"] in server.authorization.tokens


@pytest.mark.requirement("MCP-066", "MCP-053")
async def test_a_token_that_is_not_renewed_is_forgotten_and_the_server_needs_a_login(
    home: Path, workspace: Path, server: OAuthMcpServer
) -> None:
    async with hosting(home, {"s": {"httpUrl": server.url}}, open_browser=shows) as host:
        await log_in(host, ToolScope(workspace))
    let_end(home)
    server.authorization.tokens.clear()
    server.authorization.renews = False
    async with hosting(home, {"s": {"httpUrl": server.url}}, open_browser=shows) as host:
        scope = ToolScope(workspace)
        await host.tools(scope)
        await status_when(host, scope, "s", ServerState.NEEDS_LOGIN)
        assert json.loads(tokens_path(home).read_text()) == []
        server.authorization.renews = True
        assert (await log_in(host, scope))[-1] == "s is connected; it has 1 tool."


def port_7777() -> socket.socket | None:
    """Return the port, bound; None while another login of this machine has it, for a moment."""
    taken = socket.socket()
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        taken.bind(("127.0.0.1", 7777))
        taken.listen()
    except OSError:
        taken.close()
        return None
    return taken


@pytest.mark.requirement("MCP-049", "MCP-060")
async def test_the_redirect_comes_to_port_7777_or_to_another_when_that_is_taken(
    home: Path, workspace: Path, server: OAuthMcpServer
) -> None:
    async with hosting(home, {"s": {"httpUrl": server.url}}, open_browser=shows) as host:
        taken = await eventually_async(port_7777, 60, what="port 7777")
        assert taken is not None
        with taken:
            told = await log_in(host, ToolScope(workspace))
        assert "redirect_uri=http%3A%2F%2Flocalhost%3A" in told[0]
        assert "redirect_uri=http%3A%2F%2Flocalhost%3A7777" not in told[0]

        async def comes_there() -> bool:
            """Return whether the redirect arrives: another login of this machine may have the port again."""
            told = await log_in(host, ToolScope(workspace))
            return "redirect_uri=http%3A%2F%2Flocalhost%3A7777%2Foauth%2Fcallback" in told[0]

        await eventually_async(comes_there, 60, what="a redirect to port 7777")
    registered = [client["redirect_uris"][0] for client in server.authorization.clients.values()]
    assert registered == [asked["redirect_uri"] for asked in server.authorization.asked if "state" in asked]


async def test_a_redirect_with_another_state_is_refused(home: Path, workspace: Path, server: OAuthMcpServer) -> None:
    async with (
        hosting(home, {"s": {"httpUrl": server.url}}, open_browser=shows) as host,
        plain_client() as browser,
    ):
        lines = host.login(ToolScope(workspace), "s")
        url = re.search(r"http://\S+/authorize\S+", await anext(lines))
        assert url is not None
        redirect_uri = httpx2.URL(url[0]).params["redirect_uri"]
        assert (await browser.get(f"{redirect_uri}?code=x&state=guessed")).status_code == 400
        assert (await browser.get(redirect_uri.replace("callback", "other"))).status_code == 404
        await asyncio.wait_for(lines.aclose(), 30)


async def test_a_program_and_an_unknown_server_have_no_login(home: Path, workspace: Path) -> None:
    async with hosting(home, {"s": {"command": "true"}}) as host:
        for name, words in (("s", "nothing to log in to"), ("t", "no MCP server is named 't'")):
            with pytest.raises(ToolFailure, match=words):
                await anext(host.login(ToolScope(workspace), name))


@pytest.mark.requirement("MCP-075", "MCP-024")
async def test_configured_headers_go_with_every_request(
    home: Path, workspace: Path, server: OAuthMcpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_TOKEN", "fixed")
    server.authorization.tokens["fixed"] = Issued(float("inf"))
    headers = {"Authorization": "Bearer $MY_TOKEN", "X-Custom-Header": "custom", "Content-Type": "application/json"}
    async with hosting(home, {"s": {"httpUrl": server.url, "headers": headers}}) as host:
        tools = (await host.tools(ToolScope(workspace))).tools
        assert said(await success_of(tools["whoami"], tool_context(workspace))) == "the user"
    assert "401" not in server.log
    assert len(server.headers) >= 4
    for sent in server.headers:
        assert (sent["authorization"], sent["x-custom-header"]) == ("Bearer fixed", "custom")
        assert sent["content-type"] == "application/json"
