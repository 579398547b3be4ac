"""Paths of a conversation whose files are in another folder now: of the same session, on another machine."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, cast

from isthmus.agent.session.open_calls import OpenCalls
from isthmus.agent.session.session import Session


def move_paths(session: Session, folders: Sequence[str], folder: str) -> None:
    """Put ``folder`` in the place of each of the ``folders``, wherever a message or a call of the session names it."""
    for former in folders:
        if former == folder:
            continue
        pattern = re.compile(rf"{re.escape(former)}(?![\w.-])")
        session.conversation.messages = [_moved(message, pattern, folder) for message in session.messages]
        session.calls = OpenCalls((call_id, _moved(item, pattern, folder)) for call_id, item in session.calls.items())


def _moved(value: Any, pattern: re.Pattern[str], folder: str) -> Any:
    """Return a value with the folder in each text of it; the value itself if none has to change."""
    if type(value) is str:
        moved = pattern.sub(lambda _: folder, value)
        return value if moved == value else moved
    if isinstance(value, Path):
        moved = pattern.sub(lambda _: folder, str(value))
        return value if moved == str(value) else Path(moved)
    if is_dataclass(value) and not isinstance(value, type):
        found = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
        new = {name: _moved(item, pattern, folder) for name, item in found.items()}
        return value if _is_same(new.values(), found.values()) else replace(value, **new)
    if isinstance(value, Mapping):
        items = cast("Mapping[str, Any]", value)
        entries = {key: _moved(item, pattern, folder) for key, item in items.items()}
        return items if _is_same(entries.values(), items.values()) else entries
    if isinstance(value, list | tuple):
        parts = cast("Sequence[Any]", value)
        changed = [_moved(item, pattern, folder) for item in parts]
        if _is_same(changed, parts):
            return parts
        return changed if isinstance(value, list) else tuple(changed)
    return value


def _is_same(new: Iterable[Any], old: Iterable[Any]) -> bool:
    return all(one is item for one, item in zip(new, old, strict=True))
