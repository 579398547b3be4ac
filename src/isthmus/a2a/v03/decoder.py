"""Decoder for the items that a client receives in A2A 0.3, which their ``kind`` identifies. Sans-I/O.

The client's requests are written in :mod:`isthmus.a2a.client.wires`.
"""

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
from isthmus.a2a.protocol.vocabulary import V1_ROLES, V1_STATES
from isthmus.errors import DecodeError
from isthmus.events import ArtifactPart


def _part(part: JsonMap) -> ArtifactPart | None:
    match part.get("kind"):
        case "text" if "text" in part:
            return ArtifactPart(text=str(part["text"]))
        case "data" if "data" in part:
            return data_part(part["data"])
        case "file":
            file = optional_object(part.get("file")) or {}
            raw, url = optional_text(file.get("bytes")), optional_text(file.get("uri"))
            kind, name = optional_text(file.get("mimeType")), optional_text(file.get("name"))
            return None if raw is url is None else ArtifactPart(raw=raw, url=url, media_type=kind, filename=name)
        case _:
            return None


_READER = ItemReader(
    ItemFormat("0.3", {name: name for name in V1_STATES}, {name: name for name in V1_ROLES}, _part),
)


def decode_task(result: object) -> TaskItem:
    """Return a Task, e.g. the result of ``tasks/get``.

    Raises:
        DecodeError: it does not have the shape of a Task.
    """
    return _READER.task(result)


def decode_item(result: object) -> Item:
    """Return a stream item, or the result of ``message/send``.

    Raises:
        DecodeError: it does not have the shape of an item.
    """
    item = object_of(result, "stream item")
    match item.get("kind"):
        case "status-update":
            return _READER.status_update(item)
        case "artifact-update":
            return _READER.artifact_update(item)
        case "task":
            return _READER.task(item)
        case "message":
            return _READER.message(item)
        case kind:
            raise DecodeError("stream item.kind", "task, message, status-update or artifact-update", kind)
