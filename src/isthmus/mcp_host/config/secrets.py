"""Secrets in a server's configuration, and their removal from all texts about a server that are shown or logged.

Secrets are the values of headers, of URL queries, and of variables and options with names like key, token or password,
wherever they are used. Servers repeat them in their error output. Pure. A value of three characters or fewer does not
count as a secret.
"""

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from isthmus.mcp_host.config.server_config import HttpEndpoint, ServerConfig, StdioEndpoint

HIDDEN = "***"
SHORTEST = 4
LONGEST_LINE = 2_000
"""Maximum number of characters of a line in the summary of a server."""
_MARK = "isthmus__hidden"

_PASSWORD_IN_URL = re.compile(r"://[^\s/@:]*:[^\s/@]+@")
_SPEAKING_NAME = re.compile(r"key|token|secret|passw|pwd|credential|auth|bearer|private|session|dsn", re.IGNORECASE)


_FOLDERS = ("PWD", "OLDPWD")


def is_secret_name(name: str) -> bool:
    """Return whether a variable or an option has a name like a secret's."""
    return _SPEAKING_NAME.search(name) is not None


class Secrets:
    """The secret values of one server."""

    def __init__(self, config: ServerConfig) -> None:
        found = {value for value in _values(config) if len(value) >= SHORTEST}
        longest_first = sorted(found, key=len, reverse=True)
        self._pattern = re.compile("|".join(re.escape(value) for value in longest_first)) if found else None

    def hidden(self, text: str) -> str:
        """Return `text` with ``***`` in place of each secret."""
        return text if self._pattern is None else self._pattern.sub(HIDDEN, text)


def summary(config: ServerConfig, workspace: Path | None = None) -> tuple[str, ...]:
    """Return lines that describe how a server is reached, without secrets: its command or URL, folder and timeout.

    A folder in the workspace is shown relative to it; the workspace itself is not shown.
    """
    secrets = Secrets(config)
    match config.endpoint:
        case StdioEndpoint(command, args, env, cwd):
            lines = [f"Command: {_joined([secrets.hidden(word) for word in _shown_words(command, args)])}"]
            if cwd != workspace:
                way = cwd
                if workspace is not None and cwd.is_relative_to(workspace):
                    way = f"./{cwd.relative_to(workspace)}"
                lines.append(f"Working Directory: {way}")
            if env:
                lines.append(f"Environment: {', '.join(f'{name}={HIDDEN}' for name in env)}")
        case HttpEndpoint(url, _, headers):
            lines = [f"URL: {shown_url(url)}"]
            if headers:
                lines.append(f"Headers: {', '.join(f'{name}: {HIDDEN}' for name in headers)}")
            if config.headers_helper is not None:
                lines.append(f"Headers from: {config.headers_helper}")
    if config.timeout is not None:
        lines.append(f"Timeout: {config.timeout * 1000:g}ms")
    return tuple(_cut(secrets.hidden(line)) for line in lines)


def shown_command(command: str, args: Sequence[str]) -> str:
    """Return a command line without the secrets in its options."""
    return _joined(_shown_words(command, tuple(args)))


def _shown_words(command: str, args: tuple[str, ...]) -> list[str]:
    return [command, *(_shown_argument(args, index) for index in range(len(args)))]


def _joined(words: Sequence[str]) -> str:
    # shlex would quote asterisks, so a placeholder without them is joined.
    return shlex.join(word.replace(HIDDEN, _MARK) for word in words).replace(_MARK, HIDDEN)


def _cut(line: str) -> str:
    """Return a line, cut if it is too long: a project's configuration could fill the screen."""
    if len(line) <= LONGEST_LINE:
        return line
    return f"{line[:LONGEST_LINE]}… ({len(line) - LONGEST_LINE} more characters)"


def _values(config: ServerConfig) -> Iterator[str]:
    for name, value in config.variables:
        if _SPEAKING_NAME.search(name) and name not in _FOLDERS:
            yield value
            yield quote(value, safe="")
    oauth, identity = config.oauth, config.oauth.identity
    kept = (oauth.private_key, None if identity is None else identity.id_token)
    yield from (found.value for found in kept if found is not None and found.value)
    yield from filter(None, (oauth.client_secret, None if identity is None else identity.client_secret))
    match config.endpoint:
        case HttpEndpoint(url, _, headers):
            for value in headers.values():
                yield value
                yield value.partition(" ")[2]  # the token after "Bearer"
            yield from _values_of_url(url)
        case StdioEndpoint(_, args, env, _):
            for name, value in env.items():
                if _SPEAKING_NAME.search(name):
                    yield value
            yield from _values_of_options(args)


def _values_of_options(args: tuple[str, ...]) -> Iterator[str]:
    """Yield the secrets in options such as ``--api-key X``, ``--token=X`` and ``-e TOKEN=X``, and in URLs."""
    for index, argument in enumerate(args):
        name, separator, value = _secret_part(args, index)
        if separator and (_SPEAKING_NAME.search(name) or not name):
            yield value
            if (kind_and_token := value.partition(" "))[1]:
                yield kind_and_token[2]  # the token after "Bearer"
        yield from _values_of_url(argument)


def _secret_part(args: tuple[str, ...], index: int) -> tuple[str, str, str]:
    """Return an option's name, its separator and its secret value; all empty if the argument has no secret.

    The name is empty if the whole argument is the value of the preceding option.
    """
    argument, before = args[index], args[index - 1] if index else ""
    name, equals, value = argument.partition("=")
    if before in ("-e", "--env") and equals:
        return name, equals, value
    header, colon, text = argument.partition(":")
    if colon and (before in ("-H", "--header") or header.lower() in ("authorization", "x-api-key")):
        return header, ": ", text.strip()
    if argument.lower().startswith("bearer "):
        return argument[:6], " ", argument[7:]
    if equals and _SPEAKING_NAME.search(name) and "://" not in name:
        return name, equals, value
    is_option = before.startswith("-") and "=" not in before and _SPEAKING_NAME.search(before)
    if is_option and not argument.startswith("-"):
        return "", " ", argument
    return "", "", ""


def _shown_argument(args: tuple[str, ...], index: int) -> str:
    name, separator, _ = _secret_part(args, index)
    if separator:
        return f"{name}{separator}{HIDDEN}" if name else HIDDEN
    argument = args[index]
    if argument.lower().startswith(("http://", "https://")):
        return shown_url(argument)
    return _PASSWORD_IN_URL.sub(f"://{HIDDEN}@", argument)


def _values_of_url(url: str) -> Iterator[str]:
    """Yield the password and the values of the query, decoded and as encoded in the URL."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return
    if not parts.scheme or not parts.netloc:
        return
    for _, value in parse_qsl(parts.query):
        yield value
        yield quote(value, safe="")
    if parts.password:
        yield parts.password
        yield unquote(parts.password)


def shown_url(url: str) -> str:
    """Return a URL without its user and password, and without the values of its query."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return f"{url.partition('://')[0]}://{HIDDEN}"
    host = parts.netloc.rpartition("@")[2]
    query = "&".join(f"{name}={HIDDEN}" for name, _ in parse_qsl(parts.query, keep_blank_values=True))
    return parts._replace(netloc=host, query=query, fragment="").geturl()
