"""What is secret in a server's configuration, and texts without it: for whatever is shown of a server or logged.

Values of headers, of URL queries, of variables and options whose names speak of keys, tokens or passwords. Servers
repeat what they were given in their error output. Pure; a value of three characters or fewer is no secret.
"""

import re
import shlex
from collections.abc import Iterator
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from isthmus.mcp_host.config import HttpEndpoint, ServerConfig, StdioEndpoint

HIDDEN = "***"
SHORTEST = 4
_MARK = "isthmus__hidden"

_SPEAKING_NAME = re.compile(r"key|token|secret|passw|pwd|credential|auth|bearer|private|session|dsn", re.IGNORECASE)


class Secrets:
    """The secret values of one server."""

    def __init__(self, config: ServerConfig) -> None:
        found = {value for value in _values(config) if len(value) >= SHORTEST}
        longest_first = sorted(found, key=len, reverse=True)
        self._pattern = re.compile("|".join(re.escape(value) for value in longest_first)) if found else None

    def hidden(self, text: str) -> str:
        """`text` with ``***`` for each secret."""
        return text if self._pattern is None else self._pattern.sub(HIDDEN, text)


def summary(config: ServerConfig) -> tuple[str, ...]:
    """Lines that say how a server is reached, without secrets: its command or URL, its folder, its timeout."""
    secrets = Secrets(config)
    match config.endpoint:
        case StdioEndpoint(command, args, env, cwd):
            # Stars would be quoted.
            shown = shlex.join(secrets.hidden(word).replace(HIDDEN, _MARK) for word in (command, *args))
            lines = [f"Command: {shown.replace(_MARK, HIDDEN)}", f"Working Directory: {cwd}"]
            if env:
                lines.append(f"Environment: {', '.join(f'{name}={HIDDEN}' for name in env)}")
        case HttpEndpoint(url, _, headers):
            lines = [f"URL: {_shown_url(url)}"]
            if headers:
                lines.append(f"Headers: {', '.join(f'{name}: {HIDDEN}' for name in headers)}")
    if config.timeout is not None:
        lines.append(f"Timeout: {config.timeout * 1000:g}ms")
    return tuple(lines)


def _values(config: ServerConfig) -> Iterator[str]:
    if config.oauth.client_secret:
        yield config.oauth.client_secret
    match config.endpoint:
        case HttpEndpoint(url, _, headers):
            for value in headers.values():
                yield value
                yield value.partition(" ")[2]  # the token after "Bearer"
            parts = urlsplit(url)
            for _, value in parse_qsl(parts.query):
                yield value
                yield quote(value, safe="")
            if parts.password:
                yield parts.password
                yield unquote(parts.password)
        case StdioEndpoint(_, args, env, _):
            for name, value in env.items():
                if _SPEAKING_NAME.search(name):
                    yield value
            yield from _values_of_options(args)


def _values_of_options(args: tuple[str, ...]) -> Iterator[str]:
    """The values of options such as ``--api-key X``, ``--token=X`` and ``-e TOKEN=X``."""
    for index, argument in enumerate(args):
        name, equals, value = argument.partition("=")
        if equals:
            if _SPEAKING_NAME.search(name):
                yield value
        elif argument.startswith("-") and _SPEAKING_NAME.search(argument) and index + 1 < len(args):
            if not args[index + 1].startswith("-"):
                yield args[index + 1]
        elif argument.lower().startswith(("authorization:", "bearer ", "x-api-key:")):
            yield re.split(r"[:\s]\s*", argument, maxsplit=1)[1]


def _shown_url(url: str) -> str:
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    query = "&".join(f"{name}={HIDDEN}" for name, _ in parse_qsl(parts.query, keep_blank_values=True))
    return parts._replace(netloc=host, query=query, fragment="").geturl()
