"""``isthmus mcp login`` and ``logout`` at a terminal, where the address of the last page can be pasted."""

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import click

from isthmus.cli.mcp.connecting import own_context
from isthmus.cli.mcp.servers import load_with_editor, require, say
from isthmus.errors import IsthmusError
from isthmus.mcp_host.config.workspace_config import UnusableCause, UnusableServer
from isthmus.mcp_host.connection.connection import ServerConnection
from isthmus.mcp_host.oauth.logins import Logins
from isthmus.programs.process.browser import open_browser
from isthmus.programs.process.event_loop import run_loop
from isthmus.tools.port.failure import ToolFailure

LONGEST_PASTE = 16_384
"""Maximum length of a pasted line in bytes."""


class LoginCommandError(IsthmusError):
    """A login or logout failed; the text says why."""


@click.command("login")
@click.argument("name")
def login(name: str) -> None:
    """Log in to the MCP server NAME, which shows `Needs login` in `isthmus mcp list`.

    A page opens in your browser, or its address is printed. When you have agreed there, it leads back to this command.
    If the browser is on another machine and ends at a page that cannot be reached, paste that page's whole address here
    and press Enter. The login is stored for all sessions; `isthmus mcp logout NAME` deletes it.
    """
    run_loop(_login(name))


@click.command("logout")
@click.argument("name")
def logout(name: str) -> None:
    """Log out of the MCP server NAME: delete its login here, and revoke it at the server if that supports it."""
    run_loop(_logout(name))


async def _login(name: str) -> None:
    async with _logins(name) as (connection, logins), _pasted_lines() as pasted:
        try:
            async for line in logins.begin(connection, pasted.line):
                say(line)
        except ToolFailure as error:
            raise LoginCommandError(str(error)) from error


async def _logout(name: str) -> None:
    async with _logins(name) as (connection, logins):
        try:
            say(await logins.end(connection))
        except ToolFailure as error:
            raise LoginCommandError(str(error)) from error


@asynccontextmanager
async def _logins(name: str) -> AsyncGenerator[tuple[ServerConnection, Logins], None]:
    """Yield the connection of a server, not started, and its logins."""
    found = require(await load_with_editor(), name)
    if isinstance(found, UnusableServer):
        if found.config is None or found.cause is UnusableCause.TRUST:
            raise LoginCommandError(f"{name} is not in use: {found.problem}")
        found = found.config
    home = Path.home()
    connection = ServerConnection(found, own_context())
    logins = Logins(home, open_browser)
    try:
        yield connection, logins
    finally:
        await logins.aclose()
        await connection.aclose()


class _PastedLines:
    """Lines of standard input, read in the event loop because a thread that reads could not be stopped."""

    def __init__(self) -> None:
        self._buffer = b""
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()

    async def line(self) -> str:
        """Return the next line; raise EOFError at the end."""
        found = await self._lines.get()
        if found is None:
            self._lines.put_nowait(None)
            raise EOFError
        return found

    def read(self) -> None:
        """Read the available input."""
        try:
            data = os.read(0, LONGEST_PASTE)
        except OSError:
            data = b""
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            if text := line[:LONGEST_PASTE].decode("utf-8", "replace").strip():
                self._lines.put_nowait(text)
        self._buffer = self._buffer[:LONGEST_PASTE]
        if not data:
            asyncio.get_running_loop().remove_reader(0)
            self.end()

    def end(self) -> None:
        """Signal the end of the input."""
        self._lines.put_nowait(None)


@asynccontextmanager
async def _pasted_lines() -> AsyncGenerator[_PastedLines, None]:
    lines, loop = _PastedLines(), asyncio.get_running_loop()
    try:
        loop.add_reader(0, lines.read)
    except OSError:  # standard input is a file or /dev/null, or is closed
        lines.end()
    try:
        yield lines
    finally:
        loop.remove_reader(0)
