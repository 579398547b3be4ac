"""Programs that end although a login or a connection waits for a name server, keyring or token endpoint that hangs."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from isthmus.tools.port.tool_set import ToolScope
from support.mcp_hosting import SUPPORT, hosting, write_servers
from support.oauth_login import let_end, log_in, shows
from support.oauth_mcp_server import oauth_mcp_server

pytestmark = pytest.mark.anyio

STUCK = (sys.executable, str(SUPPORT / "stuck_isthmus_program.py"))
UNRESOLVED = {"s": {"httpUrl": "https://stuck.example/mcp", "timeout": 5000}}
DEADLINE = 80
"""Time limit in seconds; a program that hangs does so forever."""


@pytest.fixture
def home() -> Path:
    return Path.home()


async def ended(workspace: Path, *command: str) -> tuple[int | None, str]:
    """Return the exit status and all output of a program that ends in time."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=workspace,
        env={**os.environ, "STUCK": str(workspace)},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        out, _ = await asyncio.wait_for(process.communicate(), DEADLINE)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode, out.decode()


@pytest.mark.parametrize(
    ("command", "status", "words"),
    [
        (("mcp", "list"), 0, "no answer to initialize"),
        (("mcp", "login", "s"), 1, "no answer within"),
        (("-p", "hello", "-m", "demo"), 0, ""),
    ],
)
async def test_a_name_server_that_never_answers_does_not_hold_up_the_end(
    home: Path, workspace: Path, command: tuple[str, ...], status: int, words: str
) -> None:
    write_servers(home, UNRESOLVED)
    found, said = await ended(workspace, *STUCK, *command)
    assert (workspace / "resolver").exists(), said
    assert found == status, said
    assert words in said


async def test_a_keyring_that_never_answers_does_not_hold_up_the_end(home: Path, workspace: Path) -> None:
    settings: dict[str, Any] = {
        "mcpServers": {"s": {"httpUrl": "http://127.0.0.1:1/mcp", "timeout": 5000}},
        "isthmus": {"tokenStore": "keyring"},
    }
    (home / ".gemini").mkdir()
    (home / ".gemini" / "settings.json").write_text(json.dumps(settings))
    found, said = await ended(workspace, *STUCK, "mcp", "list")
    assert (workspace / "keyring").exists(), said
    assert (found, "no answer" in said) == (0, True), said


async def test_a_token_endpoint_that_never_answers_does_not_hold_up_the_end(home: Path, workspace: Path) -> None:
    async with oauth_mcp_server() as server:
        async with hosting(home, {"s": {"httpUrl": server.url}}, open_browser=shows) as host:
            await log_in(host, ToolScope(workspace))
        let_end(home)
        server.authorization.answers_after = 3600
        found, said = await ended(workspace, *STUCK, "mcp", "list")
        assert (found, "did not answer within" in said) == (0, True), said
