"""Wire format of the Gemini CLI companion protocol: tools, requests, responses and notifications. No I/O.

Where the document and the real clients differ, both are supported: see :func:`close_diff_result` and
:func:`decision_notification`. Clients are recognised by ``clientInfo.name``.
"""

import json
from pathlib import PurePath
from typing import assert_never

from isthmus.encoding.codec import JsonObject
from isthmus.ide import context
from isthmus.ide.file_uri import is_file_name
from isthmus.ide.gemini.discovery import GEMINI_CLI, QWEN_CODE
from isthmus.ide.mcp.mcp_peer import CallToolResult, ClientInfo, ToolDefinition
from isthmus.ide.mcp.tool_names import CLOSE_DIFF, OPEN_DIFF
from isthmus.ide.reviews.review import Accepted, Closed, DiffReview, Open, Rejected
from isthmus.record import record
from isthmus.rpc.messages import JsonMessage, notification

CONTEXT_UPDATE = "ide/contextUpdate"
DIFF_ACCEPTED = "ide/diffAccepted"
DIFF_REJECTED = "ide/diffRejected"

REAL_CLIENTS = frozenset({"streamable-http-client", "stdio-client"})
"""Values of ``clientInfo.name`` in Gemini CLI, Qwen Code and their forks."""
REASON = "reason"
"""Field of ``ide/diffRejected`` with the user's words, for our own clients alone: the protocol has none."""

_FILE_PATH = {"type": "string", "description": "The absolute path of the file."}

TOOLS = (
    ToolDefinition(
        OPEN_DIFF,
        "Open a diff view for a file so that the user can review, edit, accept or reject the proposed content. "
        "Returns at once; the outcome follows as ide/diffAccepted or ide/diffRejected.",
        {
            "type": "object",
            "properties": {
                "filePath": _FILE_PATH,
                "newContent": {"type": "string", "description": "The proposed new content of the whole file."},
            },
            "required": ["filePath", "newContent"],
        },
    ),
    ToolDefinition(
        CLOSE_DIFF,
        "Close the open diff view of a file and return the text that is in it.",
        {
            "type": "object",
            "properties": {
                "filePath": _FILE_PATH,
                "suppressNotification": {
                    "type": "boolean",
                    "description": "Sent by real clients; the answer is then a JSON object with the key content.",
                },
            },
            "required": ["filePath"],
        },
    ),
)


class ArgumentError(ValueError):
    """Invalid arguments of a tool call; the text states what was expected."""


@record
class OpenDiffRequest:
    """Arguments of openDiff."""

    file_path: str
    new_content: str


@record
class CloseDiffRequest:
    """Arguments of closeDiff."""

    file_path: str
    suppress_notification: bool = False


def open_diff_request(arguments: JsonObject) -> OpenDiffRequest:
    """Read the arguments of openDiff.

    Raises:
        ArgumentError: a field is missing, mistyped, or the path is not absolute.
    """
    new_content = arguments.get("newContent")
    if not isinstance(new_content, str):
        raise ArgumentError("openDiff: expected newContent as a string, the proposed content of the whole file")
    return OpenDiffRequest(_file_path(OPEN_DIFF, arguments), new_content)


def close_diff_request(arguments: JsonObject) -> CloseDiffRequest:
    """Read the arguments of closeDiff.

    Raises:
        ArgumentError: filePath is missing, mistyped or not absolute.
    """
    return CloseDiffRequest(_file_path(CLOSE_DIFF, arguments), arguments.get("suppressNotification") is True)


def _file_path(tool: str, arguments: JsonObject) -> str:
    path = arguments.get("filePath")
    if not isinstance(path, str) or not PurePath(path).is_absolute() or not is_file_name(path):
        shown = f"{path!r}"[:200] if path is not None else "nothing"
        raise ArgumentError(f"{tool}: expected filePath as the absolute path of a file, received {shown}")
    return path


def close_diff_result(request: CloseDiffRequest, client_name: str, closed: DiffReview | None) -> CallToolResult:
    """Return the result of closeDiff.

    The document requires one text block with the final content. Real clients parse that text as JSON
    ``{"content": ...}`` and would otherwise lose the user's edits; they are recognised by name or by
    ``suppressNotification``. If no view is open, clients of the document receive an error, and real ones ``{}``.
    """
    as_json = client_name in REAL_CLIENTS or request.suppress_notification
    content = final_content(closed) if closed is not None else None
    if as_json:
        return CallToolResult.text(json.dumps({} if content is None else {"content": content}))
    if content is None:
        return CallToolResult.error(f"closeDiff: no diff view is open for {request.file_path}")
    return CallToolResult.text(content)


def final_content(review: DiffReview) -> str | None:
    """Return the final text of a review; None if it is open or rejected."""
    match review.state:
        case Accepted(content) | Closed(content):
            return content
        case Open() | Rejected():
            return None
        case _:
            assert_never(review.state)


@record
class DecisionMessage:
    """Message to the client about a decision, with a warning to the user if it differs from the decision."""

    message: JsonMessage
    warning: str | None = None


def decision_notification(review: DiffReview, client_name: str) -> DecisionMessage | None:
    """Return the notification of the user's decision; None if the client itself closed the review.

    Real clients ignore an empty ``content`` and would write their proposal, so an accepted empty text is sent to them
    as a rejection.
    """
    match review.state:
        case Accepted(content):
            if not content and review.proposed and client_name in REAL_CLIENTS:
                warning = (
                    # The most important words first: editors cut a message to one line.
                    "sent as rejected, this agent takes no empty file (it would write its proposal): "
                    f"{review.file_path}"
                )
                return DecisionMessage(notification(DIFF_REJECTED, {"filePath": review.file_path}), warning)
            return DecisionMessage(notification(DIFF_ACCEPTED, {"filePath": review.file_path, "content": content}))
        case Rejected(reason=reason):
            words = {REASON: reason} if reason else {}
            return DecisionMessage(notification(DIFF_REJECTED, {"filePath": review.file_path, **words}))
        case Closed() | Open():
            return None
        case _:
            assert_never(review.state)


def context_notification(latest: context.IdeContext) -> JsonMessage:
    """Return the context as ``ide/contextUpdate``."""
    return notification(CONTEXT_UPDATE, context.to_json(latest))


def client_title(client: ClientInfo | None) -> str:
    """Return the name of a client for users.

    Qwen Code sends the same name as Gemini CLI, from which it descends. It is recognised by the default version 1.0.0,
    which it never set, with a protocol version newer than the first Gemini CLI that set its own version.
    """
    if client is None or client.name not in REAL_CLIENTS:
        return client.title if client is not None else "agent"
    is_qwen = client.version == "1.0.0" and client.protocol_version >= "2025-11-25"
    return QWEN_CODE if is_qwen else GEMINI_CLI
