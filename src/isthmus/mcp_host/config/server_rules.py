"""Rules of all settings files on which MCP servers are used. Each file can only forbid more; the machine's too. Pure.

``mcp.allowed``, ``mcp.excluded`` and ``admin.mcp`` are Gemini CLI's and go by the servers' names. Anybody who
configures a server chooses its name, so ``isthmus.mcp.allowed`` and ``isthmus.mcp.denied`` go by its command or URL
instead. If the administrator's file has an error, no server is used, because it may have forbidden any of them.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, cast

from isthmus.mcp_host.config.enablement import enablement_key
from isthmus.mcp_host.config.entry_reader import ServerConfigError
from isthmus.mcp_host.config.server_config import HttpEndpoint, ServerConfig, StdioEndpoint
from isthmus.record import record
from isthmus.settings import keys
from isthmus.settings.setting_key import Setter, SettingKey
from isthmus.text.wildcards import matches_wildcard

_HOST = re.compile(r"[^/?#]*")
_COMMAND_KEYS = ("command", "args", "env", "cwd", "httpUrl", "url", "type")


@record
class RuleFile:
    """A settings file and its values; ``is_of_system``: the administrator wrote it."""

    path: Path
    values: Mapping[str, object]
    is_of_project: bool = False
    is_of_system: bool = False

    def get(self, key: SettingKey[None]) -> object:
        """Return the value of a key; None if the file does not have it, or may not set it.

        Raises:
            ServerConfigError: the file has another value in place of an object of the key's name.
        """
        if self.is_of_project and key.setter is Setter.USER:
            return None
        value: Any = self.values
        for name in key.name.split("."):
            if value is None:
                return None
            if not isinstance(value, dict):
                raise ServerConfigError(
                    f"{self.path}: {key.name}: expected objects {{...}} around it, received {value!r:.80}"
                )
            value = cast("dict[str, Any]", value).get(name)
        return value


@record
class _Names:
    key: str
    path: Path
    names: frozenset[str]


@record
class _Pattern:
    """One entry of ``isthmus.mcp.allowed`` or ``denied``; exactly one of the fields is set."""

    name: str | None = None
    command: tuple[str, ...] | None = None
    url: str | None = None

    def fits(self, config: ServerConfig, *, is_denial: bool = False) -> bool:
        match config.endpoint:
            case StdioEndpoint(command, args):
                if self.command is not None:
                    return self.command == (command, *args)
            case HttpEndpoint(url):
                if self.url is not None:
                    return _fits(self.url, url, is_denial=is_denial)
        return self.name is not None and enablement_key(self.name) == enablement_key(config.name)


@record
class _Patterns:
    key: str
    path: Path
    patterns: tuple[_Pattern, ...]

    def allows(self, config: ServerConfig) -> bool:
        """Return whether a list of allowed servers has a server.

        Where the list has commands, programs must be among them; where it has URLs, endpoints must.
        """
        is_program = isinstance(config.endpoint, StdioEndpoint)
        exact = [one for one in self.patterns if (one.command if is_program else one.url) is not None]
        return any(one.fits(config) for one in exact or self.patterns)


@record
class ServerRules:
    """The rules of a folder's settings files. ``closed`` is the reason why no server is used, or None."""

    closed: str | None = None
    excluded: tuple[_Names, ...] = ()
    allowed: tuple[_Names, ...] = ()
    denied_servers: tuple[_Patterns, ...] = ()
    allowed_servers: tuple[_Patterns, ...] = ()
    administrators: Mapping[str, Mapping[str, object]] = field(default_factory=dict[str, Mapping[str, object]])
    """``admin.mcp.config``: the only servers, with their URLs; empty for no such rule."""
    administrators_path: Path | None = None

    def name_refusal(self, name: str) -> str | None:
        """Return why a server of that name is not used, or None."""
        if self.closed is not None:
            return self.closed
        key = enablement_key(name)
        for rule in self.excluded:
            if key in rule.names:
                return f"{rule.key} in {rule.path} names it"
        for rule in self.allowed:
            if key not in rule.names:
                return f"{rule.key} in {rule.path} does not name it"
        if self.administrators and name not in self.administrators:
            return f"{keys.MCP_CONFIG.name} in {self.administrators_path} does not have it"
        return None

    def refusal(self, config: ServerConfig) -> str | None:
        """Return why a server is not used, or None."""
        if (reason := self.name_refusal(config.name)) is not None:
            return reason
        for rule in self.denied_servers:
            if any(pattern.fits(config, is_denial=True) for pattern in rule.patterns):
                return f"{rule.key} in {rule.path} forbids it"
        for rule in self.allowed_servers:
            if not rule.allows(config):
                return f"{rule.key} in {rule.path} does not allow it"
        return None

    def managed(self, name: str, entry: object) -> object:
        """Return the entry of a server with the administrator's URL and lists of tools in place of its own."""
        if (own := self.administrators.get(name)) is None or not isinstance(entry, dict):
            return entry
        merged = {key: value for key, value in cast("dict[str, object]", entry).items() if key not in _COMMAND_KEYS}
        merged |= {key: own[key] for key in ("url", "type") if key in own}
        merged["trust"] = merged.get("trust") is True and own.get("trust") is True
        if own.get("includeTools") or own.get("excludeTools"):
            lists = {key: own.get(key) for key in ("includeTools", "excludeTools")}
            merged = {key: value for key, value in (merged | lists).items() if value is not None}
        return merged


NO_SERVER_RULES = ServerRules()
"""Rules that forbid nothing."""


def server_rules(files: Sequence[RuleFile], problems: list[str], closed: str | None = None) -> ServerRules:
    """Return the rules of the files; append to `problems` a line for each rule that cannot be read.

    ``closed`` is a reason why no server is used.
    """
    excluded: list[_Names] = []
    allowed: list[_Names] = []
    denied_servers: list[_Patterns] = []
    allowed_servers: list[_Patterns] = []
    administrators: Mapping[str, Mapping[str, object]] = {}
    administrators_path: Path | None = None
    for file in files:
        try:
            excluded += _names(file, keys.MCP_EXCLUDED)
            allowed += _names(file, keys.MCP_ALLOWED)
            denied_servers += _patterns(file, keys.MCP_DENIED_BY_URL)
            allowed_servers += _patterns(file, keys.MCP_ALLOWED_BY_URL)
            if file.get(keys.MCP_ENABLED) is False:
                closed = closed or f"{keys.MCP_ENABLED.name} in {file.path} is false"
            if not administrators and (config := _administrators(file)):
                administrators, administrators_path = config, file.path
        except ServerConfigError as error:
            problems.append(str(error))
            if file.is_of_system:
                closed = f"the administrator's rules cannot be read: {error}"
    return ServerRules(
        closed,
        tuple(excluded),
        tuple(allowed),
        tuple(denied_servers),
        tuple(allowed_servers),
        administrators,
        administrators_path,
    )


def _names(file: RuleFile, key: SettingKey[None]) -> tuple[_Names, ...]:
    """Return the rule of a file that names servers, if the file has it."""
    if (value := file.get(key)) is None:
        return ()
    if not _is_list_of_strings(value):
        raise ServerConfigError(f"{file.path}: {key.name}: expected a list of server names, received {value!r:.80}")
    return (_Names(key.name, file.path, frozenset(map(enablement_key, cast("list[str]", value)))),)


def _is_list_of_strings(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in cast("list[object]", value))


def _patterns(file: RuleFile, key: SettingKey[None]) -> tuple[_Patterns, ...]:
    """Return the rule of a file that describes servers, if the file has it."""
    if (value := file.get(key)) is None:
        return ()
    where = f"{file.path}: {key.name}"
    if not isinstance(value, list):
        raise ServerConfigError(f"{where}: expected a list of objects {{...}}, received {value!r:.80}")
    patterns = tuple(_pattern(where, item) for item in cast("list[object]", value))
    return (_Patterns(key.name, file.path, patterns),)


def _pattern(where: str, value: object) -> _Pattern:
    entry = cast("dict[str, object]", value) if isinstance(value, dict) else {}
    match list(entry.items()):
        case [("serverName", str(name))]:
            return _Pattern(name=name)
        case [("serverCommand", command)] if command and _is_list_of_strings(command):
            return _Pattern(command=tuple(cast("list[str]", command)))
        case [("serverUrl", str(url))] if "://" in url:
            return _Pattern(url=url)
        case _:
            raise ServerConfigError(
                f"{where}: expected one of serverName (a name), serverCommand (a list: the command and arguments) "
                f"and serverUrl (a URL, perhaps with *), received {value!r:.80}"
            )


def _fits(pattern: str, url: str, *, is_denial: bool) -> bool:
    """Return whether a URL fits a pattern, in which ``*`` stands for any characters.

    A ``*`` in the host does not go beyond it: otherwise the path of a URL could pass for an allowed host.
    """
    wanted, given = _parts(pattern), _parts(url)
    host = given[1].lower()
    if "@" in host or "\\" in host:
        if not is_denial:
            return False  # Programs do not agree on the host of such a URL.
        host = host.rpartition("@")[2]
    hosts = matches_wildcard(wanted[0].lower(), given[0].lower()) and matches_wildcard(wanted[1].lower(), host)
    return hosts and matches_wildcard(wanted[2], given[2])


def _parts(url: str) -> tuple[str, str, str]:
    """Return scheme, host with port, and the rest."""
    scheme, _, rest = url.partition("://")
    host = _HOST.match(rest)
    end = 0 if host is None else host.end()
    return scheme, rest[:end], rest[end:]


def _administrators(file: RuleFile) -> Mapping[str, Mapping[str, object]]:
    value = file.get(keys.MCP_CONFIG)
    if value is None:
        return {}
    where = f"{file.path}: {keys.MCP_CONFIG.name}"
    if not isinstance(value, dict):
        raise ServerConfigError(f"{where}: expected an object {{...}}, received {value!r:.80}")
    servers = cast("dict[str, object]", value)
    for name, entry in servers.items():
        if not isinstance(entry, dict) or not isinstance(cast("dict[str, object]", entry).get("url"), str):
            raise ServerConfigError(f"{where}.{name:.80}: expected an object with url")
    return cast("dict[str, Mapping[str, object]]", servers)
