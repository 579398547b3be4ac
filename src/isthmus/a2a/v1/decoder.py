"""Decoder for the items that a client receives in A2A 1.0, which the member that is set identifies. Sans-I/O.

Servers that use protobuf may send a whole number as ``1.0``; it is read as an int. The client's requests are written in
:mod:`isthmus.a2a.client.wires`.
"""

from collections.abc import Mapping
from typing import Any, cast

from isthmus.a2a.protocol.items import (
    Item,
    ItemFormat,
    ItemReader,
    JsonMap,
    TaskItem,
    data_part,
    object_of,
    optional_object,
    optional_text,
)
from isthmus.a2a.protocol.vocabulary import V03_ROLES, V03_STATES
from isthmus.errors import DecodeError
from isthmus.events import ArtifactPart

_WHOLE_LIMIT = 2**53
"""Limit below which a float holds every whole number exactly."""


def _part(part: JsonMap) -> ArtifactPart | None:
    kind, name = optional_text(part.get("mediaType")), optional_text(part.get("filename"))
    if "text" in part:
        return ArtifactPart(text=str(part["text"]), media_type=kind, filename=name)
    if "data" in part:
        return data_part(with_ints(part["data"]), kind, name)
    raw, url = optional_text(part.get("raw")), optional_text(part.get("url"))
    return None if raw is url is None else ArtifactPart(raw=raw, url=url, media_type=kind, filename=name)


_READER = ItemReader(ItemFormat("1.0", V03_STATES, V03_ROLES, _part))


def decode_task(result: object) -> TaskItem:
    """Return a Task, e.g. the result of ``GetTask``.

    Raises:
        DecodeError: it does not have the shape of a Task.
    """
    return _READER.task(_with_int_metadata(result))


def decode_item(result: object) -> Item:
    """Return the item in a StreamResponse, or in a SendMessageResponse, which has the same members.

    Raises:
        DecodeError: it does not have the shape of an item.
    """
    item = object_of(result, "stream item")
    if "statusUpdate" in item:
        return _READER.status_update(_with_int_metadata(item["statusUpdate"]))
    if "artifactUpdate" in item:
        return _READER.artifact_update(item["artifactUpdate"])
    if "task" in item:
        return decode_task(item["task"])
    if "message" in item:
        return _READER.message(item["message"])
    raise DecodeError("stream item", "one of task, message, statusUpdate and artifactUpdate", sorted(item)[:5])


def with_ints(value: Any) -> Any:
    """Return a JSON value with every whole float as an int; protobuf's Struct has only doubles."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < _WHOLE_LIMIT else value
    if isinstance(value, Mapping):
        return {name: with_ints(item) for name, item in cast("JsonMap", value).items()}
    if isinstance(value, list):
        return [with_ints(item) for item in cast("list[Any]", value)]
    return value


def _with_int_metadata(value: object) -> object:
    source = optional_object(value)
    if source is None or "metadata" not in source:
        return value
    return {**source, "metadata": with_ints(source["metadata"])}
