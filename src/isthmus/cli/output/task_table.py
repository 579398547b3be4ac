"""Tasks as a table, as text and as JSON, for ``isthmus tasks``."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from isthmus.client import HistoryMessage, state_text
from isthmus.encoding.codec import to_json
from isthmus.events import ArtifactPart, ArtifactUpdate
from isthmus.journal.port.pushes import PushRow
from isthmus.journal.port.task_rows import TaskRow
from isthmus.text.visible import visible, visible_line

SHORT_ID = 8


def task_json(row: TaskRow) -> dict[str, Any]:
    """Return the row as JSON. Times are Unix seconds; ``events`` is the number of events."""
    return {
        "id": row.task_id,
        "context_id": row.context_id,
        "user": row.user,
        "state": row.state,
        "reason": row.reason,
        "workspace": row.workspace,
        "title": row.title,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
        "events": row.seq,
        "error": row.error,
        "pending": [to_json(call) for call in row.pending],
        "parent_id": row.parent or None,
    }


def detail_json(
    row: TaskRow,
    history: Sequence[HistoryMessage],
    pushes: Sequence[PushRow] = (),
    artifacts: Sequence[ArtifactUpdate] = (),
) -> dict[str, Any]:
    """Return the row as JSON, with its conversation, its artifacts and the state of its push notifications."""
    messages = [{"role": item.role, "message_id": item.message_id, "text": item.text} for item in history]
    targets = [
        {
            "id": push.target.id,
            "to": host_of(push.target.url),
            "state": push.state,
            "delivered_seq": push.seq,
            "attempts": push.attempts,
            "error": push.error,
        }
        for push in pushes
    ]
    return {
        **task_json(row),
        "push_notifications": targets,
        "artifacts": [to_json(artifact) for artifact in artifacts],
        "history": messages,
    }


def host_of(url: str) -> str:
    """Return the scheme and host of a push URL; its path and query may be secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def task_lines(rows: Sequence[TaskRow], now: float) -> list[str]:
    """Return a table with a heading, or an empty list without rows. Users have a column if there are any."""
    if not rows:
        return []
    with_users = any(row.user for row in rows)
    table = [["ID", "STATE", "CHANGED", "EVENTS", *(["USER"] if with_users else []), "TITLE"]]
    short = _short_length([row.task_id for row in rows])
    for row in rows:
        user = [visible_line(row.user) or "-"] if with_users else []
        cells = [
            row.task_id[:short],
            _state(row),
            _when(row.updated_at, now),
            str(row.seq),
            *user,
        ]
        title = f"[of {row.parent[:short]}] {row.title}" if row.parent else row.title
        table.append([*cells, visible_line(title)])
    widths = [max(len(line[column]) for line in table) for column in range(len(table[0]) - 1)]
    return [
        "  ".join([*(cell.ljust(width) for cell, width in zip(line, widths, strict=False)), line[-1]]) for line in table
    ]


def _state(row: TaskRow) -> str:
    return state_text(row.state, row.reason, is_interrupted=row.is_interrupted)


def detail_lines(
    row: TaskRow,
    history: Sequence[HistoryMessage],
    pushes: Sequence[PushRow] = (),
    artifacts: Sequence[ArtifactUpdate] = (),
) -> list[str]:
    """Return the task as text, with its conversation, its artifacts and the state of its push notifications."""
    facts = [
        ("Task", row.task_id),
        ("Session", row.context_id),
        *([("Begun by", row.parent)] if row.parent else []),
        *([("User", row.user)] if row.user else []),
        ("State", f"{row.state}: {row.error}" if row.error else _state(row)),
        ("Folder", row.workspace),
        ("Begun", _time(row.created_at)),
        ("Changed", _time(row.updated_at)),
        ("Events", str(row.seq)),
        *(("Waits for", f"{call.tool_name}: {call.description or call.tool_call_id}") for call in row.pending),
        *(("Push", _push(push)) for push in pushes),
    ]
    lines = [f"{name + ':':<11}{visible_line(value)}" for name, value in facts]
    for item in history:
        lines += ["", f"{'You' if item.role == 'user' else 'Agent'}:", visible(item.text).rstrip()]
    for artifact in artifacts:
        name = artifact.name or artifact.artifact_id
        about = f" ({artifact.description})" if artifact.description else ""
        lines += ["", visible_line(f"Artifact {name}{about}:"), *(_part(part) for part in artifact.parts)]
    return lines


def _part(part: ArtifactPart) -> str:
    if part.text is not None:
        return visible(part.text).rstrip()
    if part.data is not None:
        return visible(json.dumps(part.data, ensure_ascii=False, indent=2))
    if part.url is not None:
        return visible_line(part.url)
    kind = part.media_type or "data"
    return visible_line(
        f"[{part.filename or 'file'}: {kind}, {len(part.raw or '')} characters of base64; export has it]"
    )


def _push(push: PushRow) -> str:
    text = f"{host_of(push.target.url)}, {push.state}, delivered up to event {push.seq}"
    return text if push.error is None else f"{text}, {push.attempts} attempts failed: {push.error}"


def _short_length(ids: Sequence[str]) -> int:
    """Return the length to which the ids can be shortened and still differ."""
    length = SHORT_ID
    while len({task_id[:length] for task_id in ids}) < len(ids):
        length += 4
    return length


def _when(at: float, now: float) -> str:
    """Return the time of day if it is today, else the date."""
    moment = datetime.fromtimestamp(at).astimezone()
    today = datetime.fromtimestamp(now).astimezone().date()
    return f"{moment:%H:%M:%S}" if moment.date() == today else f"{moment:%Y-%m-%d}"


def _time(at: float) -> str:
    return f"{datetime.fromtimestamp(at).astimezone():%Y-%m-%d %H:%M:%S %z}"
