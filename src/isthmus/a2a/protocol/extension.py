"""The development-tool extension as such: its URI and version, its activation, its place in metadata objects.

Spec 2, sections 3.1 and 3.2. Sans-I/O: headers and metadata come in as plain values. Deliberately not here: what
stands inside the envelope (:mod:`isthmus.events`), and how a message or an event is written in one protocol version.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from isthmus.development_tool import EXTENSION_URI
from isthmus.errors import IsthmusError

URI = EXTENSION_URI

DESCRIPTION = (
    "An extension for interactive development tasks, enabling features like code generation, tool usage, "
    "and real-time status updates."
)

TAKES_MESSAGES_ONCE = "takes_messages_once"
"""A parameter of the extension in a card, ours: a message of a user that comes again, with the same id and content,
does not work twice. Clients may then send one again whose answer was lost."""

DEFAULT_WORKSPACE = "default_workspace"
"""A parameter of the extension in a card, ours: sessions whose AgentSettings name no folder, or that have none, work in
the server's own."""

HEADERS = ("a2a-extensions", "x-a2a-extensions")
"""Request headers that activate extensions, a comma separated list of URIs: of A2A 1.0, and of 0.3."""

_VERSION = re.compile(r"/v(\d+)(?:\.(\d+))?(?:\.(\d+))?(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?(?=/|$)")


@dataclass(frozen=True, slots=True)
class Version:
    """A Semantic Version 2.0.0, possibly abbreviated: parts that are not stated are None."""

    major: int
    minor: int | None = None
    patch: int | None = None
    prerelease: str | None = None

    def __str__(self) -> str:
        numbers = ".".join(str(part) for part in (self.major, self.minor, self.patch) if part is not None)
        return f"{numbers}-{self.prerelease}" if self.prerelease else numbers

    def serves(self, client: "Version") -> bool:
        """Return whether a server of this version can be used by a client written for version ``client``.

        The majors are the same. When both state a minor: for major 0, where anything may change, the same one, else
        the server's is not lower. What is not stated matches anything. A pre-release matches itself alone.
        """
        if self.major != client.major:
            return False
        if self.prerelease or client.prerelease:
            return self == client
        if self.minor is None or client.minor is None:
            return True
        return self.minor == client.minor if self.major == 0 else self.minor >= client.minor


class IncompatibleExtensionError(IsthmusError):
    """Both sides speak the extension, but in versions that do not fit."""

    def __init__(self, server: str, client: str) -> None:
        super().__init__(
            f"the server speaks version {_named(server)} of the development-tool extension and the client version "
            f"{_named(client)}, which do not fit together (server: {server}, client: {client})"
        )


@dataclass(frozen=True, slots=True)
class Activation:
    """Whether a request activates the extension; ``uri`` is the client's spelling of it, and the key for answers."""

    uri: str | None = None

    @property
    def active(self) -> bool:
        """The client speaks the extension."""
        return self.uri is not None


NOT_ACTIVE = Activation()
"""The client does not speak the extension."""


def version_of(uri: str) -> Version | None:
    """Return the version embedded in an extension URI (``.../v0/...``, ``.../v1.2.0/...``), None when there is none."""
    found = _VERSION.search(uri)
    if found is None:
        return None
    major, minor, patch, prerelease = found.groups()
    return Version(int(major), int(minor) if minor else None, int(patch) if patch else None, prerelease)


def is_same_extension(uri: str, other: str = URI) -> bool:
    """Return whether two URIs name the same extension, in whatever versions."""
    return uri == other or (version_of(uri) is not None and _stem(uri) == _stem(other))


def require_compatible(server: str, client: str) -> None:
    """Hold the versions embedded in two URIs of the extension against each other.

    Raises:
        IncompatibleExtensionError: they do not fit; the text names both versions.
    """
    if server == client:
        return
    ours, theirs = version_of(server), version_of(client)
    if ours is None or theirs is None or not ours.serves(theirs):
        raise IncompatibleExtensionError(server, client)


def activation(headers: Iterable[str], *metadata: Mapping[str, Any]) -> Activation:
    """Find the extension in the values of the activation headers and in the keys of metadata objects.

    Raises:
        IncompatibleExtensionError: the client asks for a version that this server does not serve.
    """
    asked = [uri.strip() for value in headers for uri in value.split(",")]
    asked += [key for mapping in metadata for key in mapping]
    spellings = [uri for uri in asked if is_same_extension(uri)]
    if not spellings:
        return Activation()
    uri = URI if URI in spellings else spellings[0]
    require_compatible(URI, uri)
    return Activation(uri)


def activated_by_card(card: Mapping[str, Any]) -> Activation:
    """What a client activates on the server of this agent card: the card's spelling, or nothing.

    Raises:
        IncompatibleExtensionError: the server speaks another version than this client.
    """
    for uri, _ in _card_extensions(card):
        if is_same_extension(uri):
            require_compatible(uri, URI)
            return Activation(uri)
    return Activation()


def says_of_extension(card: Mapping[str, Any], parameter: str) -> bool:
    """Return whether an agent card has this parameter of the extension as true."""
    return any(is_same_extension(uri) and params.get(parameter) is True for uri, params in _card_extensions(card))


def envelope(metadata: Mapping[str, Any] | None, uri: str) -> Mapping[str, Any] | None:
    """The extension's object in a metadata object: under ``uri``, or under another spelling of the same extension."""
    if not metadata:
        return None
    value = metadata.get(uri)
    if value is None:
        value = next((item for key, item in metadata.items() if is_same_extension(key)), None)
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else None


def _card_extensions(card: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the URI and the parameters of each extension that a card lists."""
    capabilities = card.get("capabilities")
    entries = cast("Mapping[str, Any]", capabilities).get("extensions") if isinstance(capabilities, Mapping) else None
    for entry in cast("list[Any]", entries) if isinstance(entries, list) else ():
        listed: Mapping[str, Any] = cast("Mapping[str, Any]", entry) if isinstance(entry, Mapping) else {}
        uri, params = listed.get("uri"), listed.get("params")
        if isinstance(uri, str):
            yield uri, cast("Mapping[str, Any]", params) if isinstance(params, Mapping) else {}


def _stem(uri: str) -> str:
    return _VERSION.sub("/v*", uri, count=1)


def _named(uri: str) -> str:
    return str(version_of(uri) or "(none)")
