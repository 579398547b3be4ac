"""Decodes a companion's messages in the Gemini CLI companion protocol: decisions and final contents. No I/O.

Real companions differ from the document and from each other: the final content is JSON or plain text, and old ones have
a separate message for a closed view. All forms are accepted. The companion's side is :mod:`~isthmus.ide.gemini.wire`.
"""

import json
from typing import TypeAlias, cast

from isthmus.encoding.codec import JsonObject
from isthmus.encoding.json_shapes import as_object
from isthmus.errors import DecodeError
from isthmus.ide.context import IdeContext, context_from_json, normalise
from isthmus.ide.gemini.wire import CONTEXT_UPDATE, DIFF_ACCEPTED, DIFF_REJECTED, REASON
from isthmus.ide.mcp.mcp_client import ToolOutcome
from isthmus.record import record
from isthmus.rpc.messages import Notification

DIFF_CLOSED = "ide/diffClosed"
"""Notification of old companions that the user closed the view."""


# The meaning of a notification. A closed union: match with assert_never.


@record
class ContextUpdated:
    """The user's focus changed; ``context`` is normalised."""

    context: IdeContext


@record
class ReviewAccepted:
    """The user accepted; ``content`` is None if the companion sent none, so that the proposal applies."""

    file_path: str
    content: str | None


@record
class ReviewRejected:
    """The user rejected, or closed the view; ``reason`` has their words, which only our own companion sends."""

    file_path: str
    reason: str = ""


@record
class UnknownNotification:
    """A notification to ignore; ``reason`` is set if it is malformed."""

    reason: str | None = None


Meaning: TypeAlias = ContextUpdated | ReviewAccepted | ReviewRejected | UnknownNotification


def meaning(notification: Notification) -> Meaning:
    """Return the meaning of a notification, without raising on any input."""
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
        reason = params.get(REASON)
        return ReviewRejected(path, reason if isinstance(reason, str) else "")
    content = params.get("content")
    return ReviewAccepted(path, content if isinstance(content, str) else None)


def closed_content(outcome: ToolOutcome) -> str | None:
    """Return the content in the result of closeDiff: from JSON ``{"content": ...}``, or otherwise the whole text."""
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
