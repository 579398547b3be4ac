"""Conversion of tool names to names that a provider accepts, and back. Pure.

MCP tools keep dots and may have names that a provider refuses; one refused name would make every request with its tool
fail. The rest of the program uses the tool's own name; the provider receives another one, which depends only on the
request. Not here: the tools' own names, see :mod:`isthmus.mcp_host.catalogue.tool_names`.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TypeVar

from isthmus.models.port.base import (
    Done,
    Message,
    ModelRequest,
    ModelToolResult,
    StreamItem,
    ToolRequest,
    ToolRequestStarted,
)
from isthmus.record import record

_DIGITS = 8
_PartT = TypeVar("_PartT")


@record
class NameRule:
    """Tool names that a provider accepts: at most ``maximum`` characters of the regular-expression class ``allowed``.

    ``begins`` is the class of the first character; None if it may be any allowed one.
    """

    allowed: str = "A-Za-z0-9_-"
    maximum: int = 64
    begins: str | None = None

    def fits(self, name: str) -> bool:
        """Return whether the provider accepts a name unchanged."""
        return _fits(self.allowed, self.maximum, self.begins, name)

    def fit(self, name: str) -> str:
        """Return the name with ``_`` in place of refused characters, cut at its end if it is too long."""
        wire_name = re.sub(f"[^{self.allowed}]", "_", name)
        if not wire_name or (self.begins and not re.match(f"[{self.begins}]", wire_name)):
            wire_name = f"_{wire_name}"
        return wire_name[: self.maximum]


@lru_cache(1024)
def _fits(allowed: str, maximum: int, begins: str | None, name: str) -> bool:
    # Cached, since each request has the same names.
    first = f"(?=[{begins}])" if begins else ""
    return re.fullmatch(f"{first}[{allowed}]{{1,{maximum}}}", name) is not None


class WireNames:
    """The names of one request; each name that the provider refuses has a distinct replacement."""

    def __init__(self, request: ModelRequest, rule: NameRule) -> None:
        names = list(dict.fromkeys(_names_of(request)))
        taken = {name for name in names if rule.fits(name)}
        self._wire: dict[str, str] = {}
        for name in names:
            if name in taken:
                continue
            wire = rule.fit(name)
            if wire in taken or len(name) > rule.maximum:
                digest = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:_DIGITS]
                wire = f"{wire[: rule.maximum - _DIGITS - 1]}_{digest}"
            number = 2
            while wire in taken:
                end = f"_{number}"
                wire, number = f"{rule.fit(name)[: rule.maximum - len(end)]}{end}", number + 1
            taken.add(wire)
            self._wire[name] = wire
        self._own: Mapping[str, str] = {wire: name for name, wire in self._wire.items()}

    def sent(self, request: ModelRequest) -> ModelRequest:
        """Return the request with the provider's names."""
        if not self._wire:
            return request
        return replace(
            request,
            messages=tuple(_rename(message, self._wire) for message in request.messages),
            tools=tuple(replace(tool, name=self._wire.get(tool.name, tool.name)) for tool in request.tools),
        )

    def restore(self, item: StreamItem) -> StreamItem:
        """Return a received item with the tools' own names."""
        if not self._own:
            return item
        if isinstance(item, ToolRequestStarted):
            return replace(item, name=self._own.get(item.name, item.name))
        if isinstance(item, Done):
            return replace(item, message=_rename(item.message, self._own))
        return item


def _names_of(request: ModelRequest) -> Iterable[str]:
    for tool in request.tools:
        yield tool.name
    for message in request.messages:
        for part in message.parts:
            if isinstance(part, ToolRequest | ModelToolResult):
                yield part.name


def _rename(message: Message, names: Mapping[str, str]) -> Message:
    return replace(message, parts=tuple(_rename_part(part, names) for part in message.parts))


def _rename_part(part: _PartT, names: Mapping[str, str]) -> _PartT:
    if isinstance(part, ToolRequest | ModelToolResult) and part.name in names:
        return replace(part, name=names[part.name])
    return part
