"""A2A 1.0, what a client receives: JSON into items, by the member that is set. Sans-I/O.

Numbers come as protobuf has them: what is whole is read as a whole number, also where a server sends ``1.0``.
Deliberately not here: what an item means (:mod:`isthmus.a2a.protocol.stream_decoder`) and what the client sends
(:mod:`isthmus.a2a.client.wires`).
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


def _part(part: JsonMap) -> ArtifactPart | None:
    kind, name = optional_text(part.get("mediaType")), optional_text(part.get("filename"))
    if "text" in part:
        return ArtifactPart(text=str(part["text"]), media_type=kind, filename=name)
    if "data" in part:
        return data_part(whole(part["data"]), kind, name)
    raw, url = optional_text(part.get("raw")), optional_text(part.get("url"))
    return None if raw is url is None else ArtifactPart(raw=raw, url=url, media_type=kind, filename=name)


_READER = ItemReader(ItemFormat("1.0", V03_STATES, V03_ROLES, _part))


def decode_task(result: object) -> TaskItem:
    """Return a Task, e.g. the result of ``GetTask``.

    Raises:
        DecodeError: another shape.
    """
    return _READER.task(_with_whole_metadata(result))


def decode_item(result: object) -> Item:
    """Return a StreamResponse, or the SendMessageResponse, which has the same members.

    Raises:
        DecodeError: another shape.
    """
    item = object_of(result, "stream item")
    if "statusUpdate" in item:
        return _READER.status_update(_with_whole_metadata(item["statusUpdate"]))
    if "artifactUpdate" in item:
        return _READER.artifact_update(item["artifactUpdate"])
    if "task" in item:
        return decode_task(item["task"])
    if "message" in item:
        return _READER.message(item["message"])
    raise DecodeError("stream item", "one of task, message, statusUpdate and artifactUpdate", sorted(item)[:5])


def whole(value: Any) -> Any:
    """Return the value with every float that is a whole number as an int, as protobuf's Struct has doubles alone."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < _WHOLE_LIMIT else value
    if isinstance(value, Mapping):
        return {name: whole(item) for name, item in cast("JsonMap", value).items()}
    if isinstance(value, list):
        return [whole(item) for item in cast("list[Any]", value)]
    return value


def _with_whole_metadata(value: object) -> object:
    source = optional_object(value)
    if source is None or "metadata" not in source:
        return value
    return {**source, "metadata": whole(source["metadata"])}
