"""Reads an agent card as a client and chooses the interface and the dialect. Sans-I/O.

Cards of A2A 0.3 (and 0.2) have a main interface and additional ones, and cards of 1.0 a list. Cards for both versions
have both. :mod:`isthmus.a2a.client.card` fetches them.
"""

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any

from isthmus.a2a.coder_agent.vocabulary import KEY
from isthmus.a2a.protocol.extension import (
    DEFAULT_WORKSPACE,
    TAKES_MESSAGES_ONCE,
    Activation,
    activated_by_card,
    has_extension_parameter,
)
from isthmus.a2a.protocol.items import objects_of, optional_object, optional_text
from isthmus.errors import IsthmusError
from isthmus.record import record

GEMINI_CARD = "Gemini SDLC Agent"
"""Name in the card of gemini-cli-a2a-server; nothing else in the card identifies its dialect."""


class NoInterfaceError(IsthmusError):
    """A card offers no interface that this client speaks."""


class ClientDialect(Enum):
    """The way in which a server sends tool calls and their questions."""

    DEVELOPMENT_TOOL = "development-tool"
    """The development-tool extension."""
    CODER_AGENT = KEY
    """The dialect of gemini-cli-a2a-server."""
    PLAIN = "plain"
    """Plain A2A: texts, artifacts and states."""


@record
class Interface:
    """An interface of an agent: ``binding`` is ``JSONRPC``, ``HTTP+JSON`` or ``GRPC``; ``version`` e.g. ``0.3.0``."""

    url: str
    binding: str
    version: str
    tenant: str = ""

    @property
    def major(self) -> str:
        """Version whose wire the interface has, ``0.3`` or ``1.0``; otherwise the stated version."""
        numbers = self.version.split(".")
        if numbers[0] == "1":
            return "1.0"
        return "0.3" if numbers[:2] in (["0", "2"], ["0", "3"]) else self.version

    def __str__(self) -> str:
        return f"{self.binding} {self.version} at {self.url}"


@record
class ServerProfile:
    """Everything that the client uses of a server's card."""

    interface: Interface
    activation: Activation
    """The extension as the card spells it."""
    dialect: ClientDialect
    streams: bool
    pushes: bool
    """Whether the server sends push notifications."""
    name: str = ""
    rpc: Interface | None = None
    """Interface of JSON-RPC in the same version, for commands, which HTTP+JSON does not have."""
    takes_messages_once: bool = False
    """Whether a repeated message is carried out only once."""
    has_workspace: bool = False
    """Whether sessions need not name a folder."""


def is_card(value: object) -> bool:
    """Return whether the value looks like an agent card of any version."""
    card = optional_object(value) or {}
    return isinstance(card.get("capabilities"), Mapping) and ("url" in card or "supportedInterfaces" in card)


def read_card(card: Mapping[str, Any], protocol: str | None = None, binding: str | None = None) -> ServerProfile:
    """Return the profile of the server with this card; ``protocol`` (0.3, 1.0) and ``binding`` override the choice.

    Raises:
        NoInterfaceError: the card offers no interface that this client speaks; the text lists the offered ones.
        IncompatibleExtensionError: the server speaks an incompatible version of the extension.
    """
    activation = activated_by_card(card)
    name = str(card.get("name") or "")
    dialect = ClientDialect.PLAIN
    if activation.active:
        dialect = ClientDialect.DEVELOPMENT_TOOL
    elif name == GEMINI_CARD:
        dialect = ClientDialect.CODER_AGENT
    capabilities = optional_object(card.get("capabilities")) or {}
    offered = tuple(_interfaces(card))
    interface = _choose(offered, protocol, binding, has_extension=activation.active)
    beside = (item for item in offered if item.binding == "JSONRPC" and item.major == interface.major)
    rpc = next(beside, None) if interface.binding == "HTTP+JSON" else None
    streams, pushes = capabilities.get("streaming") is True, capabilities.get("pushNotifications") is True
    # Servers with the development-tool extension always stream (section 2).
    streams = streams or activation.active
    is_once, has_workspace = (has_extension_parameter(card, each) for each in (TAKES_MESSAGES_ONCE, DEFAULT_WORKSPACE))
    return ServerProfile(interface, activation, dialect, streams, pushes, name, rpc, is_once, has_workspace)


def _interfaces(card: Mapping[str, Any]) -> Iterator[Interface]:
    for item in objects_of(card.get("supportedInterfaces")):
        binding, version = str(item.get("protocolBinding") or ""), str(item.get("protocolVersion") or "1.0")
        yield Interface(str(item.get("url") or ""), binding.upper(), version, str(item.get("tenant") or ""))
    url = optional_text(card.get("url"))
    if url is not None:
        version = str(card.get("protocolVersion") or "0.3.0")
        yield Interface(url, str(card.get("preferredTransport") or "JSONRPC").upper(), version)
        for item in objects_of(card.get("additionalInterfaces")):
            yield Interface(str(item.get("url") or url), str(item.get("transport") or "").upper(), version)


def _choose(
    offered: tuple[Interface, ...], protocol: str | None, wanted_binding: str | None, *, has_extension: bool
) -> Interface:
    # The extension was written for 0.3, where streams announce their end; without it the newer version is better.
    versions = ("0.3", "1.0") if has_extension else ("1.0", "0.3")
    wanted = [("JSONRPC", version) for version in versions] + [("HTTP+JSON", "1.0")]
    for binding, version in wanted:
        if protocol not in (None, version) or wanted_binding not in (None, binding):
            continue
        for interface in offered:
            if interface.binding == binding and interface.major == version:
                return interface
    listed = ", ".join(dict.fromkeys(f"{item.binding or '(no binding)'} {item.version}" for item in offered))
    needed = "JSONRPC 0.3, JSONRPC 1.0 and HTTP+JSON 1.0"
    if protocol is not None or wanted_binding is not None:
        needed = f"{needed}, and was asked to use {' '.join(filter(None, (wanted_binding, protocol)))}"
    raise NoInterfaceError(f"the agent card offers {listed or 'no interface'}; this client speaks {needed}")
