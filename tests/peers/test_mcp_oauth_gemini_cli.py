"""The real Gemini CLI and Isthmus with a shared file of logins."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from isthmus.tools.port.tool_set import ToolScope
from support.mcp_hosting import hosting
from support.oauth_login import entries, let_end, log_in, shows
from support.oauth_mcp_server import OAuthMcpServer, oauth_mcp_server
from support.programs import node_package, require

pytestmark = pytest.mark.anyio


async def gemini_lists(home: Path, workspace: Path, url: str) -> str:
    """Return the output of ``gemini mcp list`` about the server."""
    settings: dict[str, Any] = {
        "mcpServers": {"s": {"httpUrl": url}},
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
    }
    (home / ".gemini" / "settings.json").write_text(json.dumps(settings))
    process = await asyncio.create_subprocess_exec(
        str(require("node")),
        str(node_package("@google/gemini-cli") / "bundle" / "gemini.js"),
        "mcp",
        "list",
        cwd=workspace,
        env={
            "HOME": str(home),
            "PATH": os.environ["PATH"],
            "GEMINI_API_KEY": "x",
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await asyncio.wait_for(process.communicate(), 90)
    return out.decode()


@pytest.mark.requirement("MCP-063")
async def test_a_login_made_here_is_used_and_renewed_by_gemini_cli_and_used_here_again(
    tmp_path: Path, workspace: Path
) -> None:
    home = tmp_path / "user"
    (home / ".gemini").mkdir(parents=True)
    async with oauth_mcp_server() as server:
        async with hosting(home, {"s": {"httpUrl": server.url}}, open_browser=shows) as host:
            await log_in(host, ToolScope(workspace))
        server.log.clear()
        assert "Connected" in await gemini_lists(home, workspace, server.url)
        assert server.log == []
        forget_tokens(home, server)
        assert "Connected" in await gemini_lists(home, workspace, server.url)
        assert server.log == ["refresh_token"]
        assert "isthmus" not in entries(home)[0]  # it rewrites an entry; the rest is enough
        forget_tokens(home, server)
        async with hosting(home, {"s": {"httpUrl": server.url}}) as host:
            assert list((await host.tools(ToolScope(workspace))).tools) == ["whoami"]
        assert server.log == ["refresh_token"]


def forget_tokens(home: Path, server: OAuthMcpServer) -> None:
    """Let every token expire."""
    let_end(home)
    server.authorization.tokens.clear()
    server.log.clear()
