"""Servers of a registry that speaks the MCP registry's API (v0.1), and the entry of ``mcpServers`` for one. Pure.

Strangers publish there. A package's name is checked, so that it cannot be an option, a path or a URL of npx, uvx or
docker; options for these programs are refused, and so is every ``$``, which would fill in a variable of the user's.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from typing import Any, TypeAlias, cast
from urllib.parse import urlsplit

from isthmus.errors import IsthmusError
from isthmus.network.loopback import is_loopback
from isthmus.record import record

MAXIMUM_WAYS = 20
MAXIMUM_TEXT = 2_000
_VERSION = re.compile(r"[0-9A-Za-z][\w.+-]{0,99}")
_NPM = re.compile(r"(?:@[a-z0-9~][\w.~-]*/)?[A-Za-z0-9~][\w.~-]*", re.ASCII)
_PYPI = re.compile(r"[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?", re.ASCII)
_OCI = re.compile(r"[a-z0-9][\w./:@-]*", re.ASCII)
_VARIABLE_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_BLANK = re.compile(r"\{([^{}]*)\}")
_FIXED = {
    "npm": re.compile(r"\d+\.\d+\.\d+(?:[-+][\w.+-]*)?", re.ASCII),
    "pypi": re.compile(r"v?\d[\w.!+-]*", re.ASCII),
}
"""Versions that always name the same files; others, such as ``latest`` or ``1``, name what is the newest."""
_USUAL_PLACES = {
    "npm": "https://registry.npmjs.org",
    "pypi": "https://pypi.org",
    "oci": "https://docker.io",
}


class RegistryEntryError(IsthmusError):
    """A server of the registry cannot be used; the text says why, and quotes the registry."""


FindVersion: TypeAlias = Callable[[str, str, str], str]
"""Function that returns the version behind a name such as ``latest``, given the kind and the name of a package.

It raises RegistryEntryError.
"""


class MissingValueError(RegistryEntryError):
    """The user has to give a value."""


@record
class FoundEntry:
    """An entry of ``mcpServers``, and the reasons why packages and URLs before it in the registry are not used."""

    entry: Mapping[str, Any]
    passed_over: tuple[str, ...] = ()


@record
class RegistryServer:
    """A server of the registry. ``ways`` are its packages and its URLs, as in the registry's answer."""

    name: str
    version: str = ""
    title: str = ""
    description: str = ""
    status: str = ""
    packages: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)
    remotes: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)

    @property
    def short_name(self) -> str:
        """Name for the settings: the last part of the registry's name."""
        return re.sub(r"[^\w.-]+", "-", self.name.rpartition("/")[2]).strip("-._")[:64]

    @property
    def kinds(self) -> str:
        """The kinds of its packages and URLs, in a few words."""
        kinds = [_text(way, "registryType") for way in self.packages] + [_text(way, "type") for way in self.remotes]
        return ", ".join(dict.fromkeys(kind for kind in kinds if kind))


def registry_server(value: object) -> RegistryServer:
    """Return a server from an item of the registry's list.

    Raises:
        RegistryEntryError: it has another form.
    """
    item = _object(value)
    server = _object(item.get("server"))
    if not (name := _text(server, "name")):
        raise RegistryEntryError("the registry sent a server without a name")
    official = _object(_object(item.get("_meta")).get("io.modelcontextprotocol.registry/official"))
    return RegistryServer(
        name,
        _text(server, "version"),
        _text(server, "title"),
        _text(server, "description"),
        _text(official, "status"),
        tuple(_objects(server, "packages")),
        tuple(_objects(server, "remotes")),
    )


def entry_of(
    server: RegistryServer, values: Mapping[str, str], find_version: FindVersion, *, prefers_url: bool = False
) -> FoundEntry:
    """Return the entry for the first package or URL that can be used; `values` are the user's, by name.

    Versions are fixed: `find_version` is asked for what others name.

    Raises:
        MissingValueError: the user has to give a value.
        RegistryEntryError: none can be used; the text has the reason for each.
    """
    ways = [*server.remotes, *server.packages] if prefers_url else [*server.packages, *server.remotes]
    reasons: list[str] = []
    missing: MissingValueError | None = None
    for way in ways:
        used: set[str] = set()
        try:
            is_package = "registryType" in way
            found = _package(way, values, used, find_version) if is_package else _remote(way, values, used)
        except MissingValueError as error:
            missing = missing or error
            reasons.append(str(error))
            continue
        except RegistryEntryError as error:
            reasons.append(str(error))
            continue
        if unknown := values.keys() - used:
            names = ", ".join(sorted(unknown))
            why = f". Not used, and why: {'; '.join(reasons)}" if reasons else ""
            raise RegistryEntryError(f"{_way_name(way)} has no value {names}{why}")
        return FoundEntry(found, tuple(reasons))
    if missing is not None:
        raise missing
    raise RegistryEntryError("; ".join(reasons) or "the registry names no package and no URL of it")


def _way_name(way: Mapping[str, Any]) -> str:
    if "registryType" in way:
        return f"the {_text(way, 'registryType') or 'unnamed'} package {_text(way, 'identifier')}"
    return f"the URL {_text(way, 'url')}"


def _package(
    way: Mapping[str, Any], values: Mapping[str, str], used: set[str], find_version: FindVersion
) -> dict[str, Any]:
    kind, identifier, version = _text(way, "registryType"), _text(way, "identifier"), _text(way, "version")
    where = _way_name(way)
    transport = _text(_object(way.get("transport")), "type") or "stdio"
    if transport != "stdio":
        raise RegistryEntryError(f"{where}: it speaks {transport}, expected stdio")
    if (place := _text(way, "registryBaseUrl").rstrip("/")) not in ("", _USUAL_PLACES.get(kind)):
        raise RegistryEntryError(
            f"{where}: it is published at {place}, not at {_USUAL_PLACES.get(kind, 'a known place')}"
        )
    options = [_text(option, "value") or _text(option, "name") for option in _objects(way, "runtimeArguments")]
    if [option for option in options if option not in ("-y", "--yes", "-i", "--rm", "run")]:
        raise RegistryEntryError(f"{where}: it wants to set options of the program that runs it: {' '.join(options)}")
    env = dict(_variables(where, way, values, used))
    args = [*_arguments(where, way, values, used)]
    if version and not _VERSION.fullmatch(version):
        raise RegistryEntryError(f"{where}: expected a version, received {version!r}")
    match kind:
        case "npm" if _NPM.fullmatch(identifier):
            words = ["npx", "-y", f"{identifier}@{_fixed(where, kind, identifier, version, find_version)}"]
        case "pypi" if _PYPI.fullmatch(identifier):
            words = ["uvx", f"{identifier}@{_fixed(where, kind, identifier, version, find_version)}"]
        case "oci" if _OCI.fullmatch(identifier):
            has_tag = ":" in identifier.rpartition("/")[2]
            image = identifier if has_tag or not version else f"{identifier}:{version}"
            if image.endswith(":latest") or ":" not in image.rpartition("/")[2]:
                raise RegistryEntryError(f"{where}: it names no fixed version, expected a tag other than latest")
            names = [word for name in env for word in ("-e", name)]
            words = ["docker", "run", "-i", "--rm", *names, image]
        case "npm" | "pypi" | "oci":
            raise RegistryEntryError(f"{where}: expected the name of a package")
        case _:
            raise RegistryEntryError(f"{where}: expected a package of npm, pypi or oci")
    found: dict[str, Any] = {"command": words[0], "args": [*words[1:], *args]}
    return found | ({"env": env} if env else {})


def _fixed(where: str, kind: str, identifier: str, version: str, find_version: FindVersion) -> str:
    """Return the version that a package has now, if its own names the newest one."""
    pattern = _FIXED[kind]
    if pattern.fullmatch(version):
        return version
    found = find_version(kind, identifier, version or "latest")
    if not pattern.fullmatch(found):
        raise RegistryEntryError(f"{where}: expected a fixed version, received {found[:100]!r}")
    return found


def _remote(way: Mapping[str, Any], values: Mapping[str, str], used: set[str]) -> dict[str, Any]:
    kind = _text(way, "type")
    url = _filled(f"the URL {_text(way, 'url')}", _text(way, "url"), way, values, used)
    host = _host(url)
    if host is None:
        raise RegistryEntryError(f"the URL {url}: expected https")
    headers: dict[str, str] = {}
    for header in _objects(way, "headers"):
        name = _text(header, "name")
        if not _HEADER_NAME.fullmatch(name):
            raise RegistryEntryError(f"the URL {url}: expected the name of a header, received {name!r}")
        if (value := _value(f"the header {name}", name, header, values, used)) is not None:
            headers[name] = value
    match kind:
        case "streamable-http":
            found: dict[str, Any] = {"httpUrl": url}
        case "sse":
            found = {"url": url, "type": "sse"}
        case _:
            raise RegistryEntryError(f"the URL {url}: expected streamable-http or sse, received {kind!r}")
    return found | ({"headers": headers} if headers else {})


def _host(url: str) -> str | None:
    """Return the host of a URL that may be used, else None."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return None
    if host is None or parts.username is not None or not url.isprintable() or " " in url:
        return None
    return host if parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host)) else None


def _variables(
    where: str, way: Mapping[str, Any], values: Mapping[str, str], used: set[str]
) -> Iterator[tuple[str, str]]:
    for variable in _objects(way, "environmentVariables"):
        name = _text(variable, "name")
        if not _VARIABLE_NAME.fullmatch(name):
            raise RegistryEntryError(f"{where}: expected the name of a variable, received {name!r}")
        try:
            value = _value(f"{where}: {name}", name, variable, values, used)
        except MissingValueError:
            value = f"${{{name}}}"  # the user's own variable of that name, so that no secret is written
        if value is not None:
            yield name, value


def _arguments(where: str, way: Mapping[str, Any], values: Mapping[str, str], used: set[str]) -> Iterator[str]:
    for argument in _objects(way, "packageArguments"):
        option = _text(argument, "name") if _text(argument, "type") == "named" else ""
        name = option.lstrip("-") or _text(argument, "valueHint") or "argument"
        value = _value(f"{where}: {option or name}", name, argument, values, used)
        if value is None:
            if option and not {"value", "default", "isRequired", "valueHint"} & argument.keys():
                yield _plain(where, option)  # a switch
            continue
        if option:
            yield _plain(where, option)
        yield value


def _value(where: str, name: str, value: Mapping[str, Any], values: Mapping[str, str], used: set[str]) -> str | None:
    """Return the user's value, else the registry's, else None for one that is not required."""
    if name in values:
        used.add(name)
        choices = [choice for choice in value.get("choices") or () if isinstance(choice, str)]
        if choices and values[name] not in choices:
            raise RegistryEntryError(f"{where}: expected one of {', '.join(choices)}")
        return values[name]
    if "value" in value:
        return _filled(where, _text(value, "value"), value, values, used)
    if "default" in value:
        return _plain(where, _text(value, "default"))
    if value.get("isRequired") is True:
        raise MissingValueError(_ask(where, name, value))
    return None


def _filled(where: str, text: str, around: Mapping[str, Any], values: Mapping[str, str], used: set[str]) -> str:
    """Return a text with its ``{blanks}`` filled by the user's values, else by defaults."""
    variables = _object(around.get("variables"))

    def fill(found: re.Match[str]) -> str:
        name = found[1]
        if name in values:
            used.add(name)
            return values[name]
        if (default := _text(_object(variables.get(name)), "default")) != "":
            return _plain(where, default)
        raise MissingValueError(_ask(where, name, _object(variables.get(name))))

    return _BLANK.sub(fill, _plain(where, text))


def _ask(where: str, name: str, value: Mapping[str, Any]) -> str:
    about = _text(value, "description")[:200]
    return f"{where} needs a value{f' ({about})' if about else ''}: --set {name}=VALUE"


def _plain(where: str, text: str) -> str:
    if "$" in text:
        raise RegistryEntryError(f"{where}: it has a $, which would fill in one of your variables")
    return text


def _object(value: object) -> Mapping[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _objects(value: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    found: object = value.get(key)
    items = cast("list[object]", found) if isinstance(found, list) else []
    return [_object(item) for item in items[:MAXIMUM_WAYS]]


def _text(value: Mapping[str, Any], key: str) -> str:
    found: object = value.get(key)
    if isinstance(found, bool | int | float):
        return str(found)
    return found[:MAXIMUM_TEXT] if isinstance(found, str) else ""
