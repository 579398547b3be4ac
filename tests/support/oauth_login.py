"""A user who logs in to MCP servers: reads the messages, opens the page, returns with the browser's final page."""

import json
import re
from pathlib import Path
from typing import Any

import httpx2

from isthmus.mcp_host.host import McpHost
from isthmus.tools.port.tool_set import ToolScope
from support.plain_http import plain_client


def shows(url: str) -> bool:
    """Return True, as for a user with a browser: the test plays it."""
    return True


def page_in(text: str) -> str | None:
    """Return the address of the login page in a message."""
    found = re.search(r"https?://\S+/authorize\?\S+", text)
    return None if found is None else found[0]


def query_of_page(page: str) -> dict[str, str]:
    """Return the parameters of a page's address."""
    return dict(httpx2.URL(page).params)


async def log_in(host: McpHost, scope: ToolScope, name: str = "s") -> list[str]:
    """Log in as a user with a browser does; return the messages."""
    told: list[str] = []
    async with plain_client(follow_redirects=True) as browser:
        async for line in host.login(scope, name):
            told.append(line)
            if (url := page_in(line)) is not None:
                await browser.get(url)
    return told


async def ended_at(url: str) -> str:
    """Return the last address of a browser, on a machine where nothing listens for the redirect."""
    async with plain_client() as browser:
        answer = await browser.get(url)
    return answer.headers["location"]


def tokens_path(home: Path) -> Path:
    return home / ".gemini" / "mcp-oauth-tokens.json"


def entries(home: Path) -> list[dict[str, Any]]:
    """Return the stored logins."""
    return json.loads(tokens_path(home).read_text())


def let_end(home: Path, *servers: str) -> None:
    """Let the stored tokens of these servers expire; of all servers if none is given."""
    kept = entries(home)
    for entry in kept:
        if not servers or entry["serverName"] in servers:
            entry["token"]["expiresAt"] = 1000
    tokens_path(home).write_text(json.dumps(kept))
