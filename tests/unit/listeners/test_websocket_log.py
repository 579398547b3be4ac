"""Tokens are in no log, even with the most verbose level."""

import asyncio
import logging

import pytest

from isthmus.editors.jupyter.server import JupyterServer, ServerAddress
from isthmus.editors.jupyter.server_kernel import server_kernel
from isthmus.ide.claude.connection import ClaudeConnection, ClaudeEndpoint
from isthmus.ide.clients.ide_client import IdeError
from isthmus.ide.editor import EditorError

pytestmark = pytest.mark.anyio

TOKEN = "token-of-this-test"


async def _refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")
    writer.close()


@pytest.mark.parametrize("whom", ["an IDE", "a kernel"])
async def test_the_token_that_is_sent_is_not_logged(whom: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with await asyncio.start_server(_refuse, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        if whom == "an IDE":
            connection = ClaudeConnection(ClaudeEndpoint(port, TOKEN), lambda _told: None)
            with pytest.raises(IdeError, match="refused with 401"):
                await connection.open(30)
            await connection.aclose()
        else:
            jupyter = JupyterServer(ServerAddress(f"http://127.0.0.1:{port}/", TOKEN, "/"))
            with pytest.raises(EditorError, match="cannot be reached"):
                await server_kernel(jupyter, "kernel").execute("1")
            await jupyter.aclose()
    assert TOKEN not in caplog.text
