"""The vocabulary as data: every message and event type with hypothesis strategies, and the published proto, parsed."""

import re
import typing
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from enum import Enum
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from isthmus import development_tool
from isthmus import events as events
from isthmus.encoding.codec import OneofError

MESSAGES: tuple[type, ...] = (
    development_tool.McpServerSettings,
    development_tool.AgentSettings,
    development_tool.FileDiff,
    development_tool.ToolOutput,
    development_tool.ErrorDetails,
    development_tool.ConfirmationOption,
    development_tool.ChangedLines,
    development_tool.CommandTrial,
    development_tool.ExecuteDetails,
    development_tool.McpDetails,
    development_tool.GenericDetails,
    development_tool.ConfirmationRequest,
    development_tool.ToolCall,
    development_tool.AgentThought,
    development_tool.DevelopmentToolEvent,
    development_tool.ModifiedFileDetails,
    development_tool.ToolCallConfirmation,
    development_tool.SlashCommandArgument,
    development_tool.SlashCommand,
    development_tool.GetAllSlashCommandsResponse,
    development_tool.ExecuteSlashCommandRequest,
    development_tool.ExecuteSlashCommandResponse,
)
ENUMS: tuple[type[Enum], ...] = (
    development_tool.ToolCallStatus,
    development_tool.DevelopmentToolEventKind,
    development_tool.CommandExecutionStatus,
)

T = TypeVar("T")
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@dataclass(frozen=True, slots=True)
class FieldType:
    """A field of a Python type: its bare type, its container, and its protobuf number (None outside the proto)."""

    name: str
    kind: Any
    number: int | None
    optional: bool
    repeated: bool
    required: bool


@cache
def fields_of(kind: type) -> tuple[FieldType, ...]:
    """Return the fields of a dataclass of the vocabulary."""
    hints = get_type_hints(kind, include_extras=True)
    found: list[FieldType] = []
    for field in fields(kind):
        hint, number = hints[field.name], None
        if get_origin(hint) is Annotated:
            hint, number = get_args(hint)
        members = [item for item in get_args(hint) if item is not type(None)]
        optional = type(None) in get_args(hint)
        inner = members[0] if optional else hint
        repeated = get_origin(inner) is tuple
        found.append(
            FieldType(
                field.name,
                get_args(inner)[0] if repeated else inner,
                number,
                optional,
                repeated,
                field.default is MISSING and field.default_factory is MISSING,
            )
        )
    return tuple(found)


def values_of(kind: type[T]) -> st.SearchStrategy[T]:
    """Return a strategy for a message or event type; oneofs have at most one member set."""
    return cast("st.SearchStrategy[T]", _values_of(kind))


@cache
def _values_of(kind: type) -> st.SearchStrategy[Any]:
    """Return one strategy for a type, also for a recursive one: a new one at each depth is slow to make and to use."""
    return st.deferred(lambda: _values(kind))


def example_of(kind: type[T], *names: str) -> T:
    """Return a message with its required fields and the fields ``names``."""
    chosen = {field.name: _example(field) for field in fields_of(kind) if field.required or field.name in names}
    return kind(**chosen)


def _example(field: FieldType) -> Any:
    kind = field.kind
    if get_origin(kind) is not None or kind is Mapping:
        value: Any = {"key": ["value", 1]}
    elif issubclass(kind, Enum):
        value = list(kind)[-1]
    else:
        examples: dict[type, Any] = {str: "text", int: 7, bool: True}
        value = examples[kind] if kind in examples else example_of(kind)
    return (value,) if field.repeated else value


def any_of(kinds: Sequence[type[object]]) -> st.SearchStrategy[object]:
    """Return a strategy for the values of any of these types."""
    return st.one_of(*(values_of(kind) for kind in kinds))


def _values(kind: type) -> st.SearchStrategy[Any]:
    # A message within itself at most once: two of them at each depth would seldom come to an end.
    members = {field.name: _of_field(field, 1 if field.kind is kind else 2) for field in fields_of(kind)}

    @st.composite
    def build(draw: st.DrawFn) -> Any:
        chosen = {name: draw(strategy) for name, strategy in members.items()}
        while True:
            try:
                return kind(**chosen)
            except OneofError:
                for field in reversed(fields_of(kind)):  # drop members until one is left
                    if field.optional and chosen[field.name] is not None:
                        chosen[field.name] = None
                        break

    return build()


def _of_field(field: FieldType, maximum: int) -> st.SearchStrategy[Any]:
    kind = field.kind
    if get_origin(kind) is not None or kind is Mapping:
        inner: st.SearchStrategy[Any] = st.dictionaries(st.text(max_size=5), JSON, max_size=3)
    elif issubclass(kind, Enum):
        inner = st.sampled_from(list(kind))
    elif kind in _SCALARS:
        inner = _SCALARS[kind]
    else:
        inner = values_of(kind)
    if field.repeated:
        inner = st.lists(inner, max_size=maximum).map(tuple)
    return st.none() | inner if field.optional else inner


_SCALARS: dict[type, st.SearchStrategy[Any]] = {
    str: st.text(max_size=8),
    int: st.integers(),
    float: st.floats(allow_nan=False, allow_infinity=False),
    bool: st.booleans(),
    Path: st.text(st.characters(exclude_characters="/\0", codec="utf-8"), min_size=1).map(lambda name: Path("/", name)),
}


@dataclass(frozen=True, slots=True)
class ProtoField:
    """A field of the proto: ``label`` is "", "optional" or "repeated", ``oneof`` the oneof it is a member of."""

    name: str
    kind: str
    number: int
    label: str
    oneof: str | None


@dataclass(frozen=True, slots=True)
class Proto:
    """The published proto: messages by name, enums by name with their values."""

    messages: Mapping[str, tuple[ProtoField, ...]]
    enums: Mapping[str, Mapping[str, int]]


_TOKEN = re.compile(
    r"(?P<open>(?P<what>message|enum|oneof)\s+(?P<named>\w+)\s*\{)"
    r"|(?P<close>\})"
    r"|(?:(?P<label>optional|repeated)\s+)?(?P<kind>[\w.]+)\s+(?P<field>\w+)\s*=\s*(?P<number>\d+)\s*;"
    r"|(?P<value>\w+)\s*=\s*(?P<value_number>\d+)\s*;"
)


def published_proto() -> Proto:
    """Return ``development_tool.proto`` as installed with the package."""
    text = re.sub(r"//[^\n]*", "", (files("isthmus") / "development_tool.proto").read_text(encoding="utf-8"))
    messages: dict[str, list[ProtoField]] = {}
    enums: dict[str, dict[str, int]] = {}
    scopes: list[tuple[str, str]] = []
    for token in _TOKEN.finditer(text):
        if token["open"]:
            scopes.append((token["what"], token["named"]))
            if token["what"] == "message":
                messages[token["named"]] = []
            elif token["what"] == "enum":
                enums[token["named"]] = {}
        elif token["close"]:
            scopes.pop()
        elif token["value"]:
            enums[scopes[-1][1]][token["value"]] = int(token["value_number"])
        else:
            message = next(name for what, name in reversed(scopes) if what == "message")
            oneof = scopes[-1][1] if scopes[-1][0] == "oneof" else None
            field = ProtoField(token["field"], token["kind"], int(token["number"]), token["label"] or "", oneof)
            messages[message].append(field)
    return Proto({name: tuple(items) for name, items in messages.items()}, enums)


def event_types() -> tuple[type, ...]:
    """Return every member of the union AgentEvent."""
    return typing.get_args(events.AgentEvent)
