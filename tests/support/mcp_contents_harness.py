"""A harness with the real MCP host and test servers that have prompts, resources and instructions."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from isthmus.tools.builtin import builtin_tools
from support.command_harness import CommandHarness, OpenHarness
from support.mcp_hosting import hosting, scripted


def contents_server(folder: Path, **settings: Any) -> dict[str, Any]:
    """Return the configuration of a server whose folder is `folder`."""
    folder.mkdir(exist_ok=True)
    return scripted("contents", str(folder), **settings)


def write_listing(folder: Path, **listings: Any) -> None:
    """Make the server of `folder` list these items instead of its own."""
    folder.mkdir(exist_ok=True)
    (folder / "listings.json").write_text(json.dumps(listings))


def asked(folder: Path) -> list[Any]:
    """Return the requests to the server of `folder`: methods and parameters."""
    file = folder / "asked"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


@asynccontextmanager
async def harness_with(
    open_harness: OpenHarness, tmp_path: Path, servers: dict[str, Any], wait_seconds: float = 20.0, **options: Any
) -> AsyncGenerator[CommandHarness]:
    """Start a harness whose user has these servers."""
    user = tmp_path / "user"
    user.mkdir(exist_ok=True)
    async with (
        hosting(user, servers, builtin_tools(), wait_seconds=wait_seconds) as host,
        open_harness(mcp=host, **options) as harness,
    ):
        yield harness
