"""Settings of a server reach it: variables in every place, folders, headers."""

import json
import os
import sys
from pathlib import Path

import pytest

from isthmus.tools.port.servers import ServerState
from isthmus.tools.port.tool_set import ToolScope
from support.mcp_hosting import SCRIPTED, hosting, status_when, write_servers
from support.oauth_authorization import Issued
from support.oauth_login import log_in, shows
from support.oauth_mcp_server import oauth_mcp_server
from support.ports import free_port
from support.tool_calls import said, success_of, tool_context

pytestmark = pytest.mark.anyio


def trusted(folder: Path) -> bool:
    """Return True: the user trusts every folder."""
    return True


@pytest.mark.requirement("MCP-071", "MCP-026", "MCP-027", "MCP-028")
async def test_a_program_gets_its_variables_and_runs_in_the_folder_of_whichever_file(
    home: Path, workspace: Path
) -> None:
    (workspace / "mcp-servers" / "python").mkdir(parents=True)
    variables = {"MY_PYTHON": sys.executable, "MY_SERVER": str(SCRIPTED), "DB_CONNECTION_STRING": "db", "EMPTY": ""}
    entry = {
        "command": "${MY_PYTHON}",
        "args": ["-S", "$MY_SERVER", "${MY_WAY:-where}"],
        "cwd": "./mcp-servers/${MY_FOLDER:-python}",
        "env": {"NAME": "$DB_CONNECTION_STRING, ${DB_CONNECTION_STRING} and ${EMPTY:-a default}"},
    }
    write_servers(workspace, {"project": entry})
    (workspace / ".mcp.json").write_text(json.dumps({"mcpServers": {"other-agents": entry}}), encoding="utf-8")
    async with hosting(home, {"user": entry}, environment={**os.environ, **variables}, trusts=trusted) as host:
        scope = ToolScope(workspace)
        tools = (await host.tools(scope)).tools
        assert list(tools) == ["ok", "project__ok", "other-agents__ok"]
        for tool in tools.values():
            told = said(await success_of(tool, tool_context(workspace)))
            assert told == f"db, db and a default in {workspace / 'mcp-servers' / 'python'}"
        marks = {status.name: status.notes for status in await host.servers(scope)}
    assert marks["other-agents"] == ("Configured in: .mcp.json",)
    assert (marks["user"], marks["project"]) == ((), ())


@pytest.mark.requirement("MCP-024", "MCP-021", "MCP-022")
async def test_urls_and_headers_are_filled_from_variables_in_every_request_and_transport(
    home: Path, workspace: Path
) -> None:
    async with oauth_mcp_server() as server:
        server.authorization.tokens["fixed"] = Issued(float("inf"))
        variables = {"MY_ORIGIN": server.origin, "MY_TOKEN": "fixed"}
        headers = {"Authorization": "Bearer $MY_TOKEN", "X-Custom-Header": "${NOT_SET_HERE:-custom}"}
        servers = {
            "http": {"httpUrl": "$MY_ORIGIN/${MY_PATH:-mcp}", "headers": headers},
            "sse": {"url": "${MY_ORIGIN}/sse", "type": "sse", "headers": headers},
        }
        for name, configured in servers.items():
            server.headers.clear()
            async with hosting(home, {name: configured}, environment={**os.environ, **variables}) as host:
                scope = ToolScope(workspace)
                (tool,) = (await host.tools(scope)).tools.values()
                await status_when(host, scope, name, ServerState.CONNECTED)
                assert said(await success_of(tool, tool_context(workspace))) == "the user"
            assert "401" not in server.log
            assert len(server.headers) >= 4
            sent = {(one["authorization"], one["x-custom-header"]) for one in server.headers}
            assert sent == {("Bearer fixed", "custom")}


@pytest.mark.requirement("MCP-055", "MCP-056", "MCP-057", "MCP-058")
async def test_a_client_secret_need_not_stand_in_the_file(home: Path, workspace: Path) -> None:
    async with oauth_mcp_server() as server:
        redirect = f"http://localhost:{free_port()}/oauth/callback"
        server.authorization.add_client("mine", redirect, "s3cret-of-mine")
        variables = {"MY_ORIGIN": server.origin, "MY_SECRET": "s3cret-of-mine", "MY_CLIENT": "mine"}
        oauth = {
            "clientId": "$MY_CLIENT",
            "clientSecret": "${MY_SECRET}",
            "authorizationUrl": "$MY_ORIGIN/authorize",
            "tokenUrl": "$MY_ORIGIN/token",
            "redirectUri": redirect,
            "scopes": ["${MY_SCOPE:-read}"],
        }
        servers = {
            "s": {"httpUrl": server.url, "oauth": oauth},
            "unset": {"httpUrl": server.url, "oauth": {"clientSecret": "$NOT_SET_HERE"}},
        }
        environment = {**os.environ, **variables}
        async with hosting(home, servers, environment=environment, open_browser=shows) as host:
            scope = ToolScope(workspace)
            assert (await log_in(host, scope))[-1] == "s is connected; it has 1 tool."
            status = await status_when(host, scope, "unset", ServerState.DISCONNECTED)
            assert "mcpServers.unset.oauth.clientSecret: $NOT_SET_HERE is not set" in (status.problem or "")
        asked = server.authorization.asked
        assert (asked[0]["client_id"], asked[0]["scope"]) == ("mine", "read")
        assert asked[1]["client_secret"] == "s3cret-of-mine"
