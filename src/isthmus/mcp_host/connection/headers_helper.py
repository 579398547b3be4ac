"""Headers that a command of the user's prints when a server is connected to: ``headersHelper``, as in Claude Code.

The command is in the user's own settings or the administrator's alone. It runs in the user's home folder, with the
variables that a server's program gets. What it prints is never quoted, because it contains tokens.
"""

import asyncio
import json
import re
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from isthmus.mcp_host.config.shell_variables import ShellVariables
from isthmus.mcp_host.connection.errors import ConnectFailedError
from isthmus.mcp_host.transports.stdio import server_environment
from isthmus.runtime.processes import end_process, start_process
from isthmus.text.visible import visible_line

HELPER_SECONDS = 10.0
"""Maximum time in seconds that the command may take."""
MAXIMUM_HELPER_BYTES = 64 * 1024
MAXIMUM_HELPER_HEADERS = 100
_SHOWN_CHARACTERS = 300
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


async def helper_headers(
    command: str,
    name: str,
    url: str,
    environment: Mapping[str, str],
    folder: Path,
    seconds: float = HELPER_SECONDS,
    inherits: ShellVariables | None = None,
) -> dict[str, str]:
    """Run the command for the server `name` at `url`, and return the headers that it prints as a JSON object.

    It gets the variables of the shell by the rule ``inherits``.

    Raises:
        ConnectFailedError: it failed, took longer than `seconds`, or printed something else.
    """
    own = {
        "ISTHMUS_MCP_SERVER_NAME": name,
        "ISTHMUS_MCP_SERVER_URL": url,
        "CLAUDE_CODE_MCP_SERVER_NAME": name,  # for commands that were written for it
        "CLAUDE_CODE_MCP_SERVER_URL": url,
    }
    try:
        process = await start_process(
            "/bin/sh", "-c", command,
            stdin=DEVNULL, stdout=PIPE, stderr=PIPE, cwd=folder, env=server_environment(environment, own, inherits),
        )  # fmt: skip
    except OSError as error:
        raise ConnectFailedError(f"its headersHelper could not be started: {error.strerror or error}") from error
    try:
        async with asyncio.timeout(seconds):
            printed, errors, status = await asyncio.gather(_read(process.stdout), _read(process.stderr), process.wait())
    except TimeoutError as error:
        raise ConnectFailedError(f"its headersHelper took longer than {seconds:g} s") from error
    finally:
        await end_process(process)
    if status != 0:
        said = visible_line(errors.decode("utf-8", "replace").strip()[-_SHOWN_CHARACTERS:])
        raise ConnectFailedError(f"its headersHelper ended with exit code {status}{': ' if said else ''}{said}")
    return _headers(printed)


async def _read(stream: asyncio.StreamReader | None) -> bytes:
    """Return what the command prints, up to one byte more than it may; read on, so that it is not held up."""
    kept = b""
    while stream is not None and (data := await stream.read(MAXIMUM_HELPER_BYTES)):
        kept = (kept + data)[: MAXIMUM_HELPER_BYTES + 1]
    return kept


def _headers(printed: bytes) -> dict[str, str]:
    problem = "its headersHelper printed something else than expected, a JSON object of at most 100 names and texts"
    if len(printed) > MAXIMUM_HELPER_BYTES:
        raise ConnectFailedError(f"its headersHelper printed more than {MAXIMUM_HELPER_BYTES} bytes")
    try:
        value: object = json.loads(printed)
    except (ValueError, RecursionError):
        # Not chained: the error's text has the output in it.
        raise ConnectFailedError(f"{problem}: it is not JSON") from None
    if not isinstance(value, dict) or len(cast("dict[str, object]", value)) > MAXIMUM_HELPER_HEADERS:
        raise ConnectFailedError(problem)
    headers: dict[str, str] = {}
    for header, text in cast("dict[str, object]", value).items():
        if not _NAME.fullmatch(header) or not isinstance(text, str) or not (text.isascii() and text.isprintable()):
            raise ConnectFailedError(f"{problem}; the header {header[:40]!r} has a wrong name or value")
        headers[header] = text
    return headers
