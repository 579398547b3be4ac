"""A person who logs in to MCP servers: reads what is told, opens the page, comes back with what the browser shows."""

import json
import re
import socket
from pathlib import Path
from typing import Any

import httpx2

from isthmus.mcp_host.host import McpHost
from isthmus.tools.base import ToolScope


def shows(url: str) -> bool:
    """The person has a browser at hand, and the test is it."""
    return True


def page_in(text: str) -> str | None:
    """The address of a page to log in at, in what was told."""
    found = re.search(r"https?://\S+/authorize\?\S+", text)
    return None if found is None else found[0]


def query_of_page(page: str) -> dict[str, str]:
    """The parameters of a page's address."""
    return dict(httpx2.URL(page).params)


async def log_in(host: McpHost, scope: ToolScope, name: str = "s") -> list[str]:
    """Log in as a person with a browser does; gives what was told."""
    told: list[str] = []
    async with httpx2.AsyncClient(follow_redirects=True) as browser:
        async for line in host.login(scope, name):
            told.append(line)
            if (url := page_in(line)) is not None:
                await browser.get(url)
    return told


async def ended_at(url: str) -> str:
    """The address that a browser ends at, on a machine where nobody takes the redirect."""
    async with httpx2.AsyncClient() as browser:
        answer = await browser.get(url)
    return answer.headers["location"]


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def tokens_path(home: Path) -> Path:
    return home / ".gemini" / "mcp-oauth-tokens.json"


def entries(home: Path) -> list[dict[str, Any]]:
    """What is kept."""
    return json.loads(tokens_path(home).read_text())


def let_end(home: Path) -> None:
    """Every token that is kept has ended."""
    kept = entries(home)
    for entry in kept:
        entry["token"]["expiresAt"] = 1000
    tokens_path(home).write_text(json.dumps(kept))
