"""Beginning of the requests to a model: system prompt and tools, and what the model has been told of them since.

A provider computes an unchanged beginning once. So it stays as it was at the first request, also in later processes,
and what would read otherwise is told behind the conversation. Not here: what has changed, see
:mod:`isthmus.agent.prompt_changes`.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from isthmus.encoding.codec import JsonObject, from_json, to_json, well_formed
from isthmus.encoding.shared_objects import SharedObjects
from isthmus.internal_events import PromptBegun, PromptChanged, PromptSection
from isthmus.models.port.base import SESSION_UPDATE, Message, Text, ToolSpec

CLOSING = "</session_update>"
"""Last line of a text that tells the model of a change; its first one is SESSION_UPDATE."""
KEPT_LISTS = 8
"""Maximum number of lists of tools whose JSON form is kept for further sessions."""


class PromptPrefix:
    """Beginning of the requests to one model.

    Attributes:
        sections: sections of the system prompt, as they are sent.
        tools: the tools that are sent.
        told: the text of each section as the model knows it.
        known_tools: the tools as the model knows them, by name; those that cannot be called now are left out.
        has_stale_changes: the conversation tells of changes to what it was before, which do not hold for this one.
    """

    def __init__(
        self,
        sections: tuple[PromptSection, ...],
        tools: tuple[ToolSpec, ...],
        told: Mapping[str, str] | None = None,
        known_tools: Mapping[str, ToolSpec] | None = None,
        *,
        has_stale_changes: bool = False,
    ) -> None:
        self.has_stale_changes = has_stale_changes
        self.sections = sections
        self.tools = tools
        self.told = told if told is not None else {section.name: section.text for section in sections}
        self.known_tools = known_tools if known_tools is not None else {tool.name: tool for tool in tools}

    @classmethod
    def of(cls, begun: PromptBegun, messages: Iterable[Message]) -> "PromptPrefix":
        """Return the beginning of which an event tells, for a conversation with these messages."""
        tools = begun.tools
        # Sessions with the same tools have the same objects, whose JSON providers' bodies contain again and again.
        specs = tools.each(spec_from_json) if isinstance(tools, SharedObjects) else tuple(map(spec_from_json, tools))
        return cls(begun.sections, specs, has_stale_changes=_tells_of_changes(messages))

    @cached_property
    def system(self) -> str:
        """The system prompt."""
        return "".join(section.text for section in self.sections)

    def after(self, change: PromptChanged) -> "PromptPrefix":
        """Return the same beginning, after the model was told of a change."""
        if change.is_reset:
            return PromptPrefix(self.sections, self.tools).after(replace(change, is_reset=False))
        told = {**self.told, **{section.name: section.text for section in change.sections}}
        kept = {name: tool for name, tool in self.known_tools.items() if name not in change.gone}
        new = {tool.name: tool for tool in map(spec_from_json, change.tools)}
        stale = self.has_stale_changes
        return PromptPrefix(self.sections, self.tools, told, {**kept, **new}, has_stale_changes=stale)

    def before(self, messages: Iterable[Message]) -> "PromptPrefix":
        """Return the same beginning for another conversation, with these messages."""
        return PromptPrefix(self.sections, self.tools, has_stale_changes=_tells_of_changes(messages))


class KnownSpecs:
    """The JSON form of lists of tools, made once for all sessions that have the same tools."""

    def __init__(self) -> None:
        self._known: deque[tuple[tuple[ToolSpec, ...], SharedObjects]] = deque(maxlen=KEPT_LISTS)

    def as_json(self, specs: Sequence[ToolSpec]) -> SharedObjects:
        """Return the JSON form of some tools."""
        wanted = tuple(specs)
        for known, found in self._known:
            if known == wanted:
                return found
        made = SharedObjects(well_formed(spec_to_json(spec)) for spec in wanted)
        self._known.append((wanted, made))
        return made


def _tells_of_changes(messages: Iterable[Message]) -> bool:
    return any(is_update(part) for message in messages if message.role == "user" for part in message.parts)


def is_update(part: object) -> bool:
    """Return whether a part of a message tells of a change."""
    return isinstance(part, Text) and part.text.startswith(f"{SESSION_UPDATE}\n") and part.text.endswith(f"\n{CLOSING}")


def spec_to_json(spec: ToolSpec) -> JsonObject:
    """Return the JSON form of a tool for the journal; the schemas are unchanged."""
    return to_json(spec)


def spec_from_json(value: JsonObject) -> ToolSpec:
    """Return the tool of a JSON form that :func:`spec_to_json` made.

    Raises:
        DecodeError: a field is missing or has another type.
    """
    return from_json(ToolSpec, value)
