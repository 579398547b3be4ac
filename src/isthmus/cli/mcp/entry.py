"""Makes an entry of ``mcpServers`` from the arguments of ``isthmus mcp add``. Pure.

Streamable HTTP is written as ``httpUrl``, SSE as ``url`` with ``type``: all versions of Gemini CLI read both, even the
first ones, which do not know ``type``.
"""

import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from isthmus.programs.setup.setup import BadInputError
from isthmus.record import record

LONGEST_NAME = 64
STDIO = "stdio"
HTTP = "http"
SSE = "sse"

_URL = re.compile(r"https?://", re.IGNORECASE)
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


@record
class NewServer:
    """The arguments as given; ``timeout`` is in milliseconds."""

    name: str
    command_or_url: str
    args: tuple[str, ...] = ()
    transport: str = STDIO
    env: tuple[str, ...] = ()
    header: tuple[str, ...] = ()
    timeout: int | None = None
    trust: bool = False
    description: str | None = None
    include_tools: tuple[str, ...] = ()
    exclude_tools: tuple[str, ...] = ()


def is_url(text: str) -> bool:
    """Return whether a text begins like a URL that MCP supports."""
    return _URL.match(text) is not None


def entry(server: NewServer) -> dict[str, Any]:
    """Return the entry, with its properties in Gemini CLI's order.

    Raises:
        BadInputError: an argument is invalid; the text says what was expected.
    """
    require_name(server.name)
    _require_utf8(server)
    found = _stdio(server) if server.transport == STDIO else _http(server)
    if server.timeout is not None:
        found["timeout"] = server.timeout
    if server.trust:
        found["trust"] = True
    if server.description is not None:
        found["description"] = server.description
    for option, key, values in (
        ("--include-tools", "includeTools", server.include_tools),
        ("--exclude-tools", "excludeTools", server.exclude_tools),
    ):
        if values:
            found[key] = _names(option, values)
    return found


def _stdio(server: NewServer) -> dict[str, Any]:
    command = server.command_or_url
    if is_url(command):
        raise BadInputError(
            f"{_shown(command)} is a URL, and --transport stdio (the default) starts a command; use --transport http "
            "or --transport sse"
        )
    if not command.strip():
        raise BadInputError("expected the command that starts the server, received an empty text")
    if server.header:
        raise BadInputError("--header is for --transport http and sse; configure a command by --env and its arguments")
    found: dict[str, Any] = {"command": command}
    if server.args:
        found["args"] = list(server.args)
    if server.env:
        found["env"] = dict(_variable(text) for text in server.env)
    return found


def _http(server: NewServer) -> dict[str, Any]:
    url = server.command_or_url
    _require_url(url, server.transport)
    if server.env:
        raise BadInputError("--env is for --transport stdio: nothing is started for a URL; set headers by --header")
    if server.args:
        raise BadInputError(f"a URL takes no arguments, received {' '.join(server.args)[:80]!r} after it")
    found: dict[str, Any] = {"httpUrl": url} if server.transport == HTTP else {"url": url, "type": SSE}
    if server.header:
        found["headers"] = dict(_header(text) for text in server.header)
    return found


def require_name(name: str) -> None:
    """Raise BadInputError if a server may not have the name."""
    is_fitting = 0 < len(name) <= LONGEST_NAME and name[0].isalnum() and name.isprintable()
    if not is_fitting or not all(character.isalnum() or character in "_-." for character in name):
        raise BadInputError(
            f"the name {name[:80]!r}: expected letters, digits, '-', '_' and '.', a letter or digit first, at "
            f"most {LONGEST_NAME} characters, because it becomes a part of tool names"
        )


def _require_utf8(server: NewServer) -> None:
    parts = (server.command_or_url, server.description or "", *server.args, *server.env, *server.header)
    for text in (*parts, *server.include_tools, *server.exclude_tools):
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise BadInputError("expected UTF-8 text: an argument has other bytes, which JSON cannot hold") from error
        if "\0" in text:
            raise BadInputError("expected text without NUL characters")


def _require_url(url: str, transport: str) -> None:
    if url.startswith("$"):
        return  # A variable, whose value is known only when it is used.
    try:
        host = urlsplit(url).hostname if is_url(url) else None
    except ValueError:
        host = None
    if host is None or re.search(r"\s", url):
        example = f"https://example.com/{'sse' if transport == SSE else 'mcp'}"
        hint = "" if "://" in url else "; a command needs no --transport"
        raise BadInputError(f"--transport {transport} needs a URL such as {example}, received {_shown(url)}{hint}")


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name or name != name.strip():
        hint = f"; for the value that it has here write {name}='${name}'" if re.fullmatch(r"\w+", text) else ""
        raise BadInputError(f"--env {name[:80]!r}: expected KEY=value{hint}")
    return name, value


def _header(text: str) -> tuple[str, str]:
    name, colon, value = (part.strip() for part in text.partition(":"))
    if not colon or not _HEADER_NAME.fullmatch(name) or not value or not value.isprintable():
        # The rest may be a token, so it is not repeated.
        received = f"a text that begins with {name[:40]!r}" if colon else "a text without a colon"
        raise BadInputError(
            f'--header: expected "Name: value" on one line, e.g. "X-Api-Key: 1a2b", received {received}'
        )
    return name, value


def _names(option: str, values: Sequence[str]) -> list[str]:
    names = [part.strip() for value in values for part in value.split(",")]
    if not all(names):
        raise BadInputError(f"{option}: expected names of tools separated by commas, received {','.join(values)!r}")
    return list(dict.fromkeys(names))


def _shown(text: str) -> str:
    """Return an argument for an error's text, without the query of a URL, which may contain tokens."""
    return repr(text.partition("?")[0][:120])
