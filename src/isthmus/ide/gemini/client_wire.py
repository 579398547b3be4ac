"""Spec 1 as the side of the agent reads it: decisions and final contents out of what a companion sends. No I/O.

The document and the real companions differ (a final content comes as JSON or as it is, a closed view has a message of
its own in old ones): all of it is read. What the companion's side sends is in :mod:`~isthmus.ide.gemini.wire`.
"""

import json
from dataclasses import dataclass
from typing import TypeAlias, cast

from isthmus.encoding.codec import JsonObject
from isthmus.encoding.json_shapes import as_object
from isthmus.errors import DecodeError
from isthmus.ide.context import IdeContext, context_from_json, normalise
from isthmus.ide.gemini.wire import CONTEXT_UPDATE, DIFF_ACCEPTED, DIFF_REJECTED
from isthmus.ide.mcp.mcp_client import ToolOutcome
from isthmus.rpc.messages import Notification

DIFF_CLOSED = "ide/diffClosed"
"""Sent by old companions when the user closes the view."""


# What a notification means. A closed union: match with assert_never.


@dataclass(frozen=True, slots=True)
class ContextUpdated:
    """The user looks at something else; ``context`` is normalised."""

    context: IdeContext


@dataclass(frozen=True, slots=True)
class ReviewAccepted:
    """``content`` None: the companion did not say, the proposal holds."""

    file_path: str
    content: str | None


@dataclass(frozen=True, slots=True)
class ReviewRejected:
    """The user rejected, or closed the view."""

    file_path: str


@dataclass(frozen=True, slots=True)
class UnknownNotification:
    """A notification that says nothing to us; ``reason`` tells when it is malformed."""

    reason: str | None = None


Meaning: TypeAlias = ContextUpdated | ReviewAccepted | ReviewRejected | UnknownNotification


def meaning(notification: Notification) -> Meaning:
    """What a notification says. Whatever comes, this returns."""
    if notification.method == CONTEXT_UPDATE:
        try:
            return ContextUpdated(normalise(context_from_json(notification.params)))
        except DecodeError as error:
            return UnknownNotification(f"{notification.method}: {error}")
    if notification.method not in (DIFF_ACCEPTED, DIFF_REJECTED, DIFF_CLOSED):
        return UnknownNotification()
    params = as_object(notification.params)
    path = params.get("filePath")
    if not isinstance(path, str):
        return UnknownNotification(f"{notification.method}: expected filePath as a string")
    if notification.method != DIFF_ACCEPTED:
        return ReviewRejected(path)
    content = params.get("content")
    return ReviewAccepted(path, content if isinstance(content, str) else None)


def closed_content(outcome: ToolOutcome) -> str | None:
    """The final content out of closeDiff's result: JSON ``{"content": ...}``, else the text itself; None: none."""
    if outcome.is_error or outcome.text is None:
        return None
    try:
        value = json.loads(outcome.text)
    except (ValueError, RecursionError):
        return outcome.text
    if not isinstance(value, dict) or not cast(JsonObject, value).keys() <= {"content"}:
        return outcome.text
    content = cast(JsonObject, value).get("content")
    return content if content is None or isinstance(content, str) else outcome.text
