"""Logins to MCP servers without a user: client credentials with a secret and with a key."""

import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from isthmus.mcp_host.config.entry_reader import ServerConfigError
from isthmus.mcp_host.config.server_config import ConfigContext, Origin, decode_server
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.servers import ServerState
from isthmus.tools.port.tool_set import ToolScope
from support.mcp_hosting import hosting, status_when
from support.oauth_login import tokens_path
from support.oauth_mcp_server import OAuthMcpServer, oauth_mcp_server
from support.tool_calls import success_of, tool_context

pytestmark = pytest.mark.anyio


def settings(server: OAuthMcpServer, **oauth: Any) -> dict[str, Any]:
    """Return the entry of a server that a machine logs in to."""
    url = f"{server.origin}/mcp"
    return {"s": {"httpUrl": url, "oauth": {"grantType": "client_credentials", "clientId": "robot", **oauth}}}


async def test_a_client_logs_in_with_its_secret_and_renews_a_refused_token(home: Path, workspace: Path) -> None:
    async with oauth_mcp_server() as server:
        authorization = server.authorization
        authorization.metadata = {"authorization_endpoint": None, "code_challenge_methods_supported": ["plain"]}
        authorization.add_client("robot", "", "hunter22")
        async with hosting(home, settings(server, clientSecret="hunter22", scopes=["read"])) as host:
            scope = ToolScope(workspace)
            tools = (await host.tools(scope)).tools
            await status_when(host, scope, "s", ServerState.CONNECTED)
            authorization.tokens.clear()
            name = next(iter(tools))
            await success_of(tools[name], tool_context(workspace))
            with pytest.raises(ToolFailure, match="logged in to without a user, by client_credentials as robot"):
                async for _ in host.login(scope, "s"):
                    pass
        assert [asked["grant_type"] for asked in authorization.asked] == ["client_credentials"] * 2
        assert {asked["scope"] for asked in authorization.asked} == {"read"}
    assert not tokens_path(home).exists()


async def test_a_client_logs_in_with_its_key(home: Path, workspace: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    (home / "key.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    async with oauth_mcp_server() as server:
        server.authorization.add_client("robot", "")
        server.authorization.clients["robot"]["public_key"] = key.public_key()
        async with hosting(home, settings(server, privateKeyFile=str(home / "key.pem"))) as host:
            assert (await host.tools(ToolScope(workspace))).tools
        (asked,) = server.authorization.asked
        assert asked["client_assertion_type"] == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


@pytest.mark.parametrize(
    ("oauth", "words"),
    [
        ({"clientSecret": "wrong-one"}, "refused: invalid_client: unknown client"),
        ({"privateKeyFile": "/nowhere/key.pem"}, "oauth.privateKeyFile /nowhere/key.pem cannot be read"),
        ({"privateKey": "no key at all"}, "oauth.privateKey cannot sign with ES256"),
    ],
)
async def test_a_login_that_does_not_work_says_why_and_asks_no_user(
    home: Path, workspace: Path, oauth: dict[str, Any], words: str
) -> None:
    async with oauth_mcp_server() as server:
        server.authorization.add_client("robot", "", "hunter22")
        async with hosting(home, settings(server, **oauth)) as host:
            scope = ToolScope(workspace)
            assert (await host.tools(scope)).tools == {}
            status = await status_when(host, scope, "s", ServerState.DISCONNECTED)
            assert words in (status.problem or "")
            assert "wrong-one" not in json.dumps([status.problem, status.summary, status.notes])


IDENTITY = {"idToken": "t", "issuer": "https://idp.example", "clientId": "c"}


@pytest.mark.parametrize(
    ("oauth", "origin", "words"),
    [
        ({"grantType": "password"}, Origin.USER, "grantType: expected one of authorization_code, client_credentials"),
        ({"grantType": "client_credentials"}, Origin.USER, "clientId: expected the id of a registered client"),
        ({"grantType": "client_credentials", "clientId": "c"}, Origin.USER, "clientSecret: expected a secret, or"),
        ({"grantType": "id_jag", "clientId": "c"}, Origin.USER, "identity: expected the identity provider"),
        ({"identity": {**IDENTITY, "idToken": None}}, Origin.USER, "identity.idToken: expected the ID token"),
        ({"identity": {**IDENTITY, "issuer": None}}, Origin.USER, "identity.issuer: expected the address"),
        ({"privateKeyFile": "/home/me/.ssh/id"}, Origin.PROJECT, "only your own settings file may name one"),
        ({"identity": {**IDENTITY, "idTokenFile": "/etc/passwd"}}, Origin.PROJECT, "only your own settings file"),
        ({"signingAlgorithm": "HS256"}, Origin.USER, "signingAlgorithm: expected one of ES256"),
    ],
)
def test_what_a_login_without_a_user_needs_is_said(oauth: dict[str, Any], origin: Origin, words: str) -> None:
    context = ConfigContext(origin, Path("/settings.json"), Path("/work"), {})
    with pytest.raises(ServerConfigError) as caught:
        decode_server("s", {"httpUrl": "https://m.example/mcp", "oauth": oauth}, context)
    assert words in str(caught.value)
