"""Messages that a client repeats because their answer was lost: recognising one, and finding its first place.

Not here: the transaction that takes a message only once, see :mod:`isthmus.journal`.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import cast

from isthmus.client import CommandMessage, PromptMessage, TaskSnapshot
from isthmus.development_tool import ToolCallConfirmation
from isthmus.encoding.codec import to_json
from isthmus.events import ConfirmationAccepted, Prompt, TaskState
from isthmus.journal.port.base import Journal
from isthmus.journal.port.task_rows import TaskRow

_CANONICAL_JSON = json.JSONEncoder(sort_keys=True).encode
_PIECE = 1 << 18
"""Maximum number of characters of a text that are written at once: other threads wait meanwhile."""
_ITEMS = 1000
"""Maximum number of items of a list that are written at once."""
_DEPTH = 4
"""Depth to which values are taken apart; the parts of a message are less deep."""


def digest_of(message: PromptMessage) -> str:
    """Return a digest of the content of a task's first message."""
    content = [message.context_id, message.task_id, message.text, [to_json(part) for part in message.parts]]
    digest = hashlib.sha256()
    for piece in _pieces(content):
        digest.update(piece.encode())
    return digest.hexdigest()


def digest_of_command(command: CommandMessage) -> str:
    """Return a digest of the content of a slash command, which no prompt has."""
    content = [command.scope.context_id, [*command.path], command.args]
    return f"command {hashlib.sha256(_CANONICAL_JSON(content).encode()).hexdigest()}"


def _pieces(value: object, depth: int = 0) -> Iterator[str]:
    """Yield the canonical JSON of a value in pieces."""
    match value:
        case str() if len(value) > _PIECE:
            yield '"'
            for start in range(0, len(value), _PIECE):
                yield _CANONICAL_JSON(value[start : start + _PIECE])[1:-1]
            yield '"'
        case list() if len(items := cast("list[object]", value)) > _ITEMS:
            yield "["
            for start in range(0, len(items), _ITEMS):
                yield f"{', ' if start else ''}{_CANONICAL_JSON(items[start : start + _ITEMS])[1:-1]}"
            yield "]"
        case list() if depth < _DEPTH:
            yield "["
            for at, item in enumerate(cast("list[object]", value)):
                yield ", " if at else ""
                yield from _pieces(item, depth + 1)
            yield "]"
        case dict() if depth < _DEPTH:
            yield "{"
            for at, (name, item) in enumerate(sorted(cast("dict[str, object]", value).items())):
                yield f"{', ' if at else ''}{_CANONICAL_JSON(name)}: "
                yield from _pieces(item, depth + 1)
            yield "}"
        case _:
            yield _CANONICAL_JSON(value)


async def begun_before(journal: Journal, user: str, message_id: str, digest: str) -> str | None:
    """Return the id of the task that began with this message, or None."""
    found = await journal.begun_by(user, message_id) if message_id else ()
    return next((task_id for task_id, known in found if known == digest), None)


def snapshot_at(snapshot: TaskSnapshot, state: TaskState, seq: int, at: float) -> TaskSnapshot:
    """Return a task as it was right after an earlier event, before that event had any effect."""
    return replace(snapshot, state=state, seq=seq, updated_at=at, error=None, reason=None, pending=(), artifacts=())


def is_same(one: Prompt, other: Prompt) -> bool:
    """Return whether two prompts of one task are the same message. Files are compared by the text that names them."""
    has_files = bool(one.media or other.media)
    return (
        bool(one.message_id)
        and (one.message_id, one.text) == (other.message_id, other.text)
        and (has_files or one.parts == other.parts)
    )


async def place_of_prompt(journal: Journal, row: TaskRow, prompt: Prompt) -> int | None:
    """Return the number of the event after which the answer to a prompt begins; None if the prompt is new.

    The first message of the task is not compared: it named no task.
    """
    if not prompt.message_id:
        return None
    same = [
        delivery
        for delivery in await journal.of_message(row.task_id, prompt.message_id)
        if isinstance(delivery.event, Prompt) and delivery.seq != 1 and is_same(delivery.event, prompt)
    ]
    taken = [delivery.seq for delivery in same if delivery.seq is not None]
    return max(taken) if taken else row.seq if same else None


async def place_of_answers(
    journal: Journal, row: TaskRow, confirmations: Sequence[ToolCallConfirmation], message_id: str
) -> int | None:
    """Return the number of the event after which the response to these answers begins; None if they are new."""
    if not message_id:
        return None
    wanted = {confirmation.tool_call_id: confirmation for confirmation in confirmations}
    place = None
    for delivery in await journal.of_message(row.task_id, message_id):
        event = delivery.event
        if isinstance(event, ConfirmationAccepted) and _is_one_of(event, wanted, message_id):
            wanted.pop(event.confirmation.tool_call_id)
            place = row.seq if delivery.seq is None else delivery.seq
    return None if wanted else place


def _is_one_of(event: ConfirmationAccepted, wanted: dict[str, ToolCallConfirmation], message_id: str) -> bool:
    return event.message_id == message_id and wanted.get(event.confirmation.tool_call_id) == event.confirmation
