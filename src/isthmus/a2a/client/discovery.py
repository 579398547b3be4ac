"""An agent card as a client reads it: which interface it can speak there, and in what manner. Sans-I/O.

Cards of A2A 0.3 (and 0.2) have one interface on top and others beside it, cards of 1.0 a list, cards for both have
both. Deliberately not here: fetching (:mod:`isthmus.a2a.client.connection`), and the card that we serve
(:mod:`isthmus.a2a.server.card`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from isthmus.a2a.coder_agent.vocabulary import KEY
from isthmus.a2a.protocol.extension import (
    DEFAULT_WORKSPACE,
    TAKES_MESSAGES_ONCE,
    Activation,
    activated_by_card,
    says_of_extension,
)
from isthmus.a2a.protocol.items import objects_of, optional_object, optional_text
from isthmus.errors import IsthmusError

GEMINI_CARD = "Gemini SDLC Agent"
"""The name in the card of gemini-cli-a2a-server, which says nothing else of how it wants to be spoken to."""


class NoInterfaceError(IsthmusError):
    """A card offers nothing that this client speaks."""


class ClientDialect(Enum):
    """How tool calls and their questions are spoken of."""

    DEVELOPMENT_TOOL = "development-tool"
    """The extension of spec 2."""
    CODER_AGENT = KEY
    """The dialect of gemini-cli-a2a-server."""
    PLAIN = "plain"
    """Texts, artifacts and states alone."""


@dataclass(frozen=True, slots=True)
class Interface:
    """One way to reach an agent: ``binding`` is ``JSONRPC``, ``HTTP+JSON`` or ``GRPC``; ``version`` e.g. ``0.3.0``."""

    url: str
    binding: str
    version: str
    tenant: str = ""

    @property
    def major(self) -> str:
        """``0.3`` or ``1.0`` for what has the wire of that version; else the version itself."""
        numbers = self.version.split(".")
        if numbers[0] == "1":
            return "1.0"
        return "0.3" if numbers[:2] in (["0", "2"], ["0", "3"]) else self.version

    def __str__(self) -> str:
        return f"{self.binding} {self.version} at {self.url}"


@dataclass(frozen=True, slots=True)
class ServerProfile:
    """What a card says that matters here. ``activation`` is the extension as its card spells it.

    ``rpc`` is JSON-RPC of the same version, beside HTTP+JSON, which has no commands. ``takes_messages_once``: a message
    that is sent again does not work twice. ``has_workspace``: sessions need not name a folder.
    """

    interface: Interface
    activation: Activation
    manner: ClientDialect
    streams: bool
    pushes: bool
    name: str = ""
    rpc: Interface | None = None
    takes_messages_once: bool = False
    has_workspace: bool = False


def is_card(value: object) -> bool:
    """Return whether the value looks like an agent card of any version."""
    card = optional_object(value) or {}
    return isinstance(card.get("capabilities"), Mapping) and ("url" in card or "supportedInterfaces" in card)


def read_card(card: Mapping[str, Any], protocol: str | None = None, binding: str | None = None) -> ServerProfile:
    """What to use of the server of this card; ``protocol`` (0.3, 1.0) and ``binding`` leave the choice to the caller.

    Raises:
        NoInterfaceError: nothing that this client speaks is offered; the text names what is.
        IncompatibleExtensionError: the server speaks another version of the extension.
    """
    activation = activated_by_card(card)
    name = str(card.get("name") or "")
    manner = ClientDialect.PLAIN
    if activation.active:
        manner = ClientDialect.DEVELOPMENT_TOOL
    elif name == GEMINI_CARD:
        manner = ClientDialect.CODER_AGENT
    capabilities = optional_object(card.get("capabilities")) or {}
    offered = tuple(_interfaces(card))
    interface = _choose(offered, protocol, binding, has_extension=activation.active)
    beside = (item for item in offered if item.binding == "JSONRPC" and item.major == interface.major)
    rpc = next(beside, None) if interface.binding == "HTTP+JSON" else None
    streams, pushes = capabilities.get("streaming") is True, capabilities.get("pushNotifications") is True
    # The extension streams always (spec 2, section 2).
    streams = streams or activation.active
    is_once, has_workspace = (says_of_extension(card, each) for each in (TAKES_MESSAGES_ONCE, DEFAULT_WORKSPACE))
    return ServerProfile(interface, activation, manner, streams, pushes, name, rpc, is_once, has_workspace)


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
    # The extension was written for 0.3, where a stream says that it ends; else the newer version is the better one.
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
        needed = f"{needed}, and was told to use {' '.join(filter(None, (wanted_binding, protocol)))}"
    raise NoInterfaceError(f"the agent card offers {listed or 'no interface'}; this client speaks {needed}")
