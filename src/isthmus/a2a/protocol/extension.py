"""The development-tool extension itself: its URI and version, its activation, its object in metadata.

These are sections 3.1 and 3.2 of its document. Sans-I/O: headers and metadata come in as plain values. The messages
inside the object are in :mod:`isthmus.development_tool`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from isthmus.development_tool import EXTENSION_URI
from isthmus.errors import IsthmusError
from isthmus.record import record

URI = EXTENSION_URI

DESCRIPTION = (
    "An extension for interactive development tasks, enabling features like code generation, tool usage, "
    "and real-time status updates."
)

TAKES_MESSAGES_ONCE = "takes_messages_once"
"""Our own parameter of the extension in a card: a message with the same id and content is carried out only once.

Clients may then repeat a message whose answer was lost.
"""

DEFAULT_WORKSPACE = "default_workspace"
"""Our own parameter of the extension in a card: sessions without AgentSettings, or whose AgentSettings do not name a
folder, work in the server's folder."""

PROMPTS_HEADER = "x-isthmus-prompts"
"""Header of a client that follows a task and wants to be sent the user's later messages, too, as Tasks."""
NOTES_HEADER = "x-isthmus-notes"
"""Header of a client that wants more than the extension's document names: tokens and checkpoints in the metadata of
events, and the members of tool calls in :mod:`isthmus.a2a.protocol.notes`."""
HEADERS = ("a2a-extensions", "x-a2a-extensions")
"""Request headers that activate extensions (of A2A 1.0 and of 0.3): comma-separated lists of URIs."""

_VERSION = re.compile(r"/v(\d+)(?:\.(\d+))?(?:\.(\d+))?(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?(?=/|$)")


@record
class Version:
    """A Semantic Version 2.0.0, possibly abbreviated: parts that are left out are None."""

    major: int
    minor: int | None = None
    patch: int | None = None
    prerelease: str | None = None

    def __str__(self) -> str:
        numbers = ".".join(str(part) for part in (self.major, self.minor, self.patch) if part is not None)
        return f"{numbers}-{self.prerelease}" if self.prerelease else numbers

    def serves(self, client: "Version") -> bool:
        """Return whether a client written for version ``client`` can use a server of this version.

        The major versions must be equal. Minor versions, if both have one, must be equal for major 0, where anything
        may change; otherwise the server's must not be lower. A pre-release fits only itself.
        """
        if self.major != client.major:
            return False
        if self.prerelease or client.prerelease:
            return self == client
        if self.minor is None or client.minor is None:
            return True
        return self.minor == client.minor if self.major == 0 else self.minor >= client.minor


class IncompatibleExtensionError(IsthmusError):
    """Server and client speak incompatible versions of the extension."""

    def __init__(self, server: str, client: str) -> None:
        super().__init__(
            f"the server speaks version {_version_name(server)} of the development-tool extension and the client "
            f"version {_version_name(client)}, which are incompatible (server: {server}, client: {client})"
        )


@record
class Activation:
    """Result of looking for the extension in a request or card; ``uri`` is its URI there, or None.

    Answers use the same spelling of the URI as their request. ``is_stated``: the request itself has the URI; otherwise
    it is active because the request's task, or its session, was opened with it.
    """

    uri: str | None = None
    is_stated: bool = True

    @property
    def active(self) -> bool:
        """Whether the extension is active."""
        return self.uri is not None


NOT_ACTIVE = Activation()
"""Activation of a request without the extension."""


def version_of(uri: str) -> Version | None:
    """Return the version in the URI of an extension (``.../v0/...``, ``.../v1.2.0/...``), or None."""
    found = _VERSION.search(uri)
    if found is None:
        return None
    major, minor, patch, prerelease = found.groups()
    return Version(int(major), int(minor) if minor else None, int(patch) if patch else None, prerelease)


def is_same_extension(uri: str, other: str = URI) -> bool:
    """Return whether two URIs name the same extension, of any version."""
    return uri == other or (version_of(uri) is not None and _stem(uri) == _stem(other))


def require_compatible(server: str, client: str) -> None:
    """Check that the versions in two URIs of the extension are compatible.

    Raises:
        IncompatibleExtensionError: they are not; the text names both versions.
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
    """Return the activation that a client requests from the server of this agent card, in the card's spelling.

    Raises:
        IncompatibleExtensionError: the server speaks another version than this client.
    """
    for uri, _ in _card_extensions(card):
        if is_same_extension(uri):
            require_compatible(uri, URI)
            return Activation(uri)
    return Activation()


def has_extension_parameter(card: Mapping[str, Any], parameter: str) -> bool:
    """Return whether a parameter of the extension is true in an agent card."""
    return any(is_same_extension(uri) and params.get(parameter) is True for uri, params in _card_extensions(card))


def envelope(metadata: Mapping[str, Any] | None, uri: str) -> Mapping[str, Any] | None:
    """Return the extension's object in a metadata object, under ``uri`` or another URI of the same extension."""
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


def _version_name(uri: str) -> str:
    return str(version_of(uri) or "(none)")
