"""Logins in a keyring: keyring itself with a backend from PyPI, and the behaviour without one."""

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from isthmus.tools.port.tool_set import ToolScope
from support.mcp_hosting import hosting
from support.mcp_tools import process_lists
from support.oauth_login import entries, let_end, log_in, shows, tokens_path
from support.oauth_mcp_server import OAuthMcpServer, oauth_mcp_server

pytestmark = pytest.mark.anyio

BACKEND = "keyrings.alt.file.PlaintextKeyring"


@pytest.fixture
async def server() -> AsyncGenerator[OAuthMcpServer]:
    async with oauth_mcp_server() as found:
        yield found


def want_keyring(home: Path) -> None:
    path = home / ".gemini" / "settings.json"
    value: dict[str, Any] = json.loads(path.read_text())
    path.write_text(json.dumps({**value, "isthmus": {"tokenStore": "keyring"}}))


@pytest.mark.extended
async def test_a_login_moves_into_the_keyring_and_is_renewed_there(
    home: Path, workspace: Path, server: OAuthMcpServer
) -> None:
    async with hosting(home, {"s": {"httpUrl": server.url}}, open_browser=shows) as host:
        await log_in(host, ToolScope(workspace))
    let_end(home)
    server.authorization.tokens.clear()
    want_keyring(home)
    environment = {"PYTHON_KEYRING_BACKEND": BACKEND, "XDG_DATA_HOME": str(home / "data")}
    for _ in range(2):
        assert (await process_lists(home, workspace, **environment))["tools"] == ["whoami"]
    assert server.log.count("refresh_token") == 1
    assert entries(home) == []
    assert await asyncio.to_thread(lambda: list((home / "data").rglob("keyring_pass.cfg")))


async def test_without_a_keyring_the_file_is_used_and_that_is_said(
    home: Path,
    workspace: Path,
    server: OAuthMcpServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    import keyring
    from keyring.backends.fail import Keyring

    before = keyring.get_keyring()
    keyring.set_keyring(Keyring())
    try:
        async with hosting(home, {"s": {"httpUrl": server.url}}, open_browser=shows) as host:
            want_keyring(home)
            told = await log_in(host, ToolScope(workspace))
    finally:
        keyring.set_keyring(before)
    assert f"The login is stored in {tokens_path(home)}." in told
    assert len(entries(home)) == 1
    assert "isthmus.tokenStore is keyring, and there is none on this machine" in caplog.text
