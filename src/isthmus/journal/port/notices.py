"""News of one process for the others that work with the same journal, and their form on the wire between them. No I/O.

A notice says where to look, and no more: what is so now is in the journal. One that is lost costs time, nothing else.
"""

import json
from dataclasses import fields
from typing import Any

from isthmus.encoding.compact_json import compact_encoder
from isthmus.encoding.json_shapes import as_list, as_object
from isthmus.record import record

MAXIMUM_BYTES = 7900
"""Maximum size of an encoded notice in bytes: PostgreSQL takes less than 8,000."""
_JSON = compact_encoder()


@record
class JournalNotice:
    """Ids of tasks by what has happened to them.

    ``events``: there are new ones; ``inboxes``: somebody left something for the task's owner; ``progress``: of a call
    or a thought; ``followed``: somebody follows the task in another process. With ``is_queue`` a task waits for a
    process. With ``is_all`` there was too much to name: everything may have changed.
    """

    events: tuple[str, ...] = ()
    inboxes: tuple[str, ...] = ()
    progress: tuple[str, ...] = ()
    followed: tuple[str, ...] = ()
    is_queue: bool = False
    is_all: bool = False

    def __bool__(self) -> bool:
        """Return whether it says anything."""
        return self != NOTHING


NOTHING = JournalNotice()
ALL = JournalNotice(is_all=True)


def encode(sender: str, notice: JournalNotice) -> str:
    """Return a notice as text; one that is too long says that everything may have changed."""
    said: dict[str, Any] = {field.name: value for field in fields(notice) if (value := getattr(notice, field.name))}
    text = _JSON({"from": sender, **said})
    return text if len(text.encode("utf-8", "replace")) <= MAXIMUM_BYTES else _JSON({"from": sender, "is_all": True})


def decode(text: str) -> tuple[str, JournalNotice]:
    """Return the sender and the notice; :data:`ALL` of an unknown sender if this version cannot read it."""
    try:
        said = as_object(json.loads(text))
    except (ValueError, RecursionError):
        return "", ALL
    sender = said.get("from")
    names = {field.name for field in fields(NOTHING)}
    if not isinstance(sender, str) or not said.keys() - {"from"} <= names:
        return "", ALL
    events, inboxes, progress, followed = (
        tuple(item for item in as_list(said.get(name)) if isinstance(item, str))
        for name in ("events", "inboxes", "progress", "followed")
    )
    return sender, JournalNotice(
        events, inboxes, progress, followed, said.get("is_queue") is True, said.get("is_all") is True
    )
