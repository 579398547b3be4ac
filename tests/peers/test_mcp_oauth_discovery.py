"""Discovery of a login: metadata in all its places, clients of all kinds, and contradictions."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.tool_set import ToolScope
from support.mcp_hosting import hosting
from support.oauth_login import entries, let_end, log_in, shows, tokens_path
from support.oauth_mcp_server import OAuthMcpServer, oauth_mcp_server
from support.ports import free_port

pytestmark = pytest.mark.anyio

CONNECTED = "s is connected; it has 1 tool."


@pytest.fixture
async def server() -> AsyncGenerator[OAuthMcpServer]:
    async with oauth_mcp_server() as found:
        yield found


async def told_by(home: Path, workspace: Path, url: str, oauth: dict[str, Any] | None = None) -> list[str]:
    """Return the messages of a login."""
    settings = {"httpUrl": url} if oauth is None else {"httpUrl": url, "oauth": oauth}
    async with hosting(home, {"s": settings}, open_browser=shows) as host:
        return await log_in(host, ToolScope(workspace))


@pytest.mark.requirement("MCP-040", "MCP-044", "MCP-038", "MCP-048")
@pytest.mark.parametrize("published", ["oauth", "oidc", "oidc appended"])
@pytest.mark.parametrize("path", ["", "/tenant/one"])
async def test_metadata_is_found_as_oauth_and_openid_connect_at_the_root_and_below_a_path(
    home: Path, workspace: Path, published: Any, path: str
) -> None:
    async with oauth_mcp_server(path) as server:
        server.authorization.published = published
        assert (await told_by(home, workspace, server.url))[-1] == CONNECTED
        assert entries(home)[0]["tokenUrl"] == f"{server.origin}{path}/token"
        assert ("resource" in server.log, "metadata" in server.log) == (True, True)


@pytest.mark.requirement("MCP-040", "MCP-042")
async def test_a_server_that_names_no_metadata_is_asked_at_the_known_places(
    home: Path, workspace: Path, server: OAuthMcpServer
) -> None:
    server.names_metadata = False
    assert (await told_by(home, workspace, server.url))[-1] == CONNECTED
    server.publishes_resource = False
    assert (await told_by(home, workspace, server.url))[-1] == CONNECTED
    server.authorization.published = "nothing"  # as in MCP's revision of 2025-03-26
    assert (await told_by(home, workspace, server.url))[-1] == CONNECTED


@pytest.mark.requirement("MCP-057", "MCP-058", "MCP-055", "MCP-056")
async def test_what_is_configured_is_not_asked_for(home: Path, workspace: Path, server: OAuthMcpServer) -> None:
    authorization = server.authorization
    redirect = f"http://localhost:{free_port()}/oauth/callback"
    authorization.add_client("mine", redirect, "s3cret-of-mine")
    oauth = {
        "clientId": "mine",
        "clientSecret": "s3cret-of-mine",
        "authorizationUrl": f"{server.origin}/authorize?tenant=7",
        "tokenUrl": f"{server.origin}/token",
        "redirectUri": redirect,
    }
    told = await told_by(home, workspace, server.url, oauth)
    assert told[-1] == CONNECTED
    assert not {"resource", "metadata", "register"} & set(server.log)
    assert authorization.asked[0]["tenant"] == "7"
    assert authorization.asked[1]["client_secret"] == "s3cret-of-mine"
    let_end(home)
    authorization.tokens.clear()
    async with hosting(home, {"s": {"httpUrl": server.url, "oauth": oauth}}) as host:
        assert list((await host.tools(ToolScope(workspace))).tools) == ["whoami"]
    assert "s3cret" not in "".join(told) + str(entries(home))


@pytest.mark.requirement("MCP-062", "MCP-059")
async def test_audiences_scopes_and_the_resource_go_with_each_request(
    home: Path, workspace: Path, server: OAuthMcpServer
) -> None:
    server.wanted_scope = "other"
    oauth = {"audiences": ["https://one.example", "two"], "scopes": ["read", "write", "other"]}
    assert (await told_by(home, workspace, server.url, oauth))[-1] == CONNECTED
    let_end(home)
    async with hosting(home, {"s": {"httpUrl": server.url, "oauth": oauth}}) as host:
        await host.tools(ToolScope(workspace))
    authorize, code, refresh = server.authorization.asked
    assert (authorize["scope"], code["grant_type"], refresh["grant_type"]) == (
        "read write other",
        "authorization_code",
        "refresh_token",
    )
    for asked in (authorize, code, refresh):
        assert (asked["audience"], asked["resource"]) == ("https://one.example two", server.url)


async def test_a_metadata_document_is_the_client_where_the_server_takes_one(
    home: Path, workspace: Path, server: OAuthMcpServer
) -> None:
    document = "https://me.example/isthmus.json"
    assert (await told_by(home, workspace, server.url, {"clientMetadataUrl": document}))[-1] == CONNECTED
    assert entries(home)[0]["clientId"].startswith("client-")
    server.authorization.takes_documents = True
    assert (await told_by(home, workspace, server.url, {"clientMetadataUrl": document}))[-1] == CONNECTED
    assert entries(home)[0]["clientId"] == document
    assert server.log.count("register") == 1


async def test_where_nobody_is_registered_it_is_said_what_to_register(
    home: Path, workspace: Path, server: OAuthMcpServer
) -> None:
    server.authorization.registers = False
    with pytest.raises(ToolFailure, match=r"redirect URI http://localhost:\d+/oauth/callback and set oauth\.clientId"):
        await told_by(home, workspace, server.url)


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        ({"code_challenge_methods_supported": ["plain"]}, "does not support PKCE with S256"),
        ({"issuer": "https://evil.example"}, r"issuer https://evil\.example; expected http://127"),
        ({"authorization_endpoint": "file:///etc/passwd"}, "the authorization endpoint is not at an http"),
        ({"authorization_endpoint": "http://evil.example/authorize"}, "expected https://"),
        ({"token_endpoint": "http://10.0.0.1/token"}, "expected https://"),
        ({"authorization_endpoint": 7}, "has no authorization endpoint"),
    ],
)
async def test_metadata_that_cannot_be_trusted_ends_the_login_before_anything_is_shown(
    home: Path, workspace: Path, server: OAuthMcpServer, metadata: dict[str, Any], words: str
) -> None:
    server.authorization.metadata = metadata
    with pytest.raises(ToolFailure, match=words):
        await told_by(home, workspace, server.url)
    assert "authorize" not in server.log


async def test_metadata_of_another_resource_is_refused(home: Path, workspace: Path, server: OAuthMcpServer) -> None:
    server.resource = {"resource": "https://bank.example/mcp"}
    with pytest.raises(ToolFailure, match=r"describes https://bank\.example/mcp; expected http://127"):
        await told_by(home, workspace, server.url)


async def test_the_answer_must_come_from_the_server_that_was_asked(
    home: Path, workspace: Path, server: OAuthMcpServer
) -> None:
    server.authorization.sends_issuer = "https://evil.example"
    with pytest.raises(ToolFailure, match=r"comes from https://evil\.example; expected one from http://127.*\(iss\)"):
        await told_by(home, workspace, server.url)
    assert "authorization_code" not in server.log
    server.authorization.sends_issuer = server.authorization.issuer
    assert (await told_by(home, workspace, server.url))[-1] == CONNECTED


@pytest.mark.requirement("MCP-041")
async def test_a_client_that_is_forgotten_is_registered_anew_once(
    home: Path, workspace: Path, server: OAuthMcpServer
) -> None:
    authorization = server.authorization
    servers = {"s": {"httpUrl": server.url, "oauth": {"redirectUri": f"http://localhost:{free_port()}/oauth/callback"}}}
    async with hosting(home, servers, open_browser=shows) as host:
        scope = ToolScope(workspace)
        await log_in(host, scope)
        await log_in(host, scope)
        assert server.log.count("register") == 1  # the stored one is used again
        authorization.clients.clear()
        assert (await log_in(host, scope))[-1] == CONNECTED  # asked before the user is sent to a page that fails
        assert server.log.count("register") == 2
        server.log.clear()
        authorization.clients.clear()
        let_end(home)
        authorization.tokens.clear()
        await host.refresh(scope, "s")
        assert [status.state.value for status in await host.servers(scope)] == ["needs login"]
        assert entries(home) == []
        assert (await log_in(host, scope))[-1] == CONNECTED
        assert server.log.count("register") == 1


async def test_a_client_that_is_refused_with_its_code_is_registered_anew_once(
    home: Path, workspace: Path, server: OAuthMcpServer
) -> None:
    server.authorization.refuses_once = "invalid_client"
    told = await told_by(home, workspace, server.url)
    assert (sum("a new one is registered" in line for line in told), told[-1]) == (1, CONNECTED)
    assert server.log.count("register") == 2
    tokens_path(home).unlink()
    server.authorization.refuses_once = "invalid_grant"
    with pytest.raises(ToolFailure, match="refused: invalid_grant"):
        await told_by(home, workspace, server.url)
