"""Refusals of the workbench's API: each has a code, for which the page has words in the language of its user."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from starlette.responses import Response

from isthmus.a2a.server.users.auth import Refusal
from isthmus.web.http.json_response import json_response


class RefusalCode(StrEnum):
    """Reason why the API refuses a request, for programs."""

    BAD_REQUEST = "BAD_REQUEST"
    NOT_FOUND = "NOT_FOUND"
    WRONG_METHOD = "WRONG_METHOD"
    TOO_LARGE = "TOO_LARGE"
    TOO_SLOW = "TOO_SLOW"
    TOO_MANY_STREAMS = "TOO_MANY_STREAMS"
    UNAVAILABLE = "UNAVAILABLE"
    OWNER_ONLY = "OWNER_ONLY"
    PAIRED_ONLY = "PAIRED_ONLY"
    # devices
    WRONG_CODE = "WRONG_CODE"
    TOO_MANY_CODES = "TOO_MANY_CODES"
    CODE_WITHDRAWN = "CODE_WITHDRAWN"
    TOO_MANY_DEVICES = "TOO_MANY_DEVICES"
    NO_SUCH_DEVICE = "NO_SUCH_DEVICE"
    DEVICES_UNUSABLE = "DEVICES_UNUSABLE"
    # sessions
    NO_SUCH_SESSION = "NO_SUCH_SESSION"
    MESSAGE_GONE = "MESSAGE_GONE"
    MESSAGE_NOT_KEPT = "MESSAGE_NOT_KEPT"
    MESSAGE_NOT_SENT = "MESSAGE_NOT_SENT"
    NOT_COMPLETED = "NOT_COMPLETED"
    NO_SUCH_PICTURE = "NO_SUCH_PICTURE"
    NOT_DRAWN = "NOT_DRAWN"
    # folders, tools and settings
    NOT_SHOWN = "NOT_SHOWN"
    TRUST_CHANGED = "TRUST_CHANGED"
    TRUST_NOT_STORED = "TRUST_NOT_STORED"
    # notifications
    NO_NOTIFICATIONS = "NO_NOTIFICATIONS"
    NOTIFICATIONS_OFF = "NOTIFICATIONS_OFF"
    NOTIFICATION_SPENT = "NOTIFICATION_SPENT"
    # companions
    COMPANION_ENDED = "COMPANION_ENDED"
    COMPANION_REFUSED = "COMPANION_REFUSED"
    CHANGED_MEANWHILE = "CHANGED_MEANWHILE"
    QUESTION_GONE = "QUESTION_GONE"


STATUSES: Mapping[RefusalCode, int] = MappingProxyType(
    {
        RefusalCode.BAD_REQUEST: 400,
        RefusalCode.NOT_FOUND: 404,
        RefusalCode.WRONG_METHOD: 405,
        RefusalCode.TOO_LARGE: 413,
        RefusalCode.TOO_SLOW: 408,
        RefusalCode.TOO_MANY_STREAMS: 429,
        RefusalCode.UNAVAILABLE: 503,
        RefusalCode.OWNER_ONLY: 403,
        RefusalCode.PAIRED_ONLY: 403,
        RefusalCode.WRONG_CODE: 403,
        RefusalCode.TOO_MANY_CODES: 429,
        RefusalCode.CODE_WITHDRAWN: 403,
        RefusalCode.TOO_MANY_DEVICES: 409,
        RefusalCode.NO_SUCH_DEVICE: 404,
        RefusalCode.DEVICES_UNUSABLE: 503,
        RefusalCode.NO_SUCH_SESSION: 404,
        RefusalCode.MESSAGE_GONE: 404,
        RefusalCode.MESSAGE_NOT_KEPT: 400,
        RefusalCode.MESSAGE_NOT_SENT: 409,
        RefusalCode.NOT_COMPLETED: 400,
        RefusalCode.NO_SUCH_PICTURE: 404,
        RefusalCode.NOT_DRAWN: 415,
        RefusalCode.NOT_SHOWN: 403,
        RefusalCode.TRUST_CHANGED: 409,
        RefusalCode.TRUST_NOT_STORED: 500,
        RefusalCode.NO_NOTIFICATIONS: 400,
        RefusalCode.NOTIFICATIONS_OFF: 409,
        RefusalCode.NOTIFICATION_SPENT: 403,
        RefusalCode.COMPANION_ENDED: 404,
        RefusalCode.COMPANION_REFUSED: 403,
        RefusalCode.CHANGED_MEANWHILE: 409,
        RefusalCode.QUESTION_GONE: 409,
    }
)
"""HTTP status of each reason."""


def refusal(code: RefusalCode, message: str, headers: Mapping[str, str] | None = None) -> Refusal:
    """Return a refusal with the status of its code."""
    return Refusal(STATUSES[code], message, headers or {}, code)


def refused(given: Refusal, more: Mapping[str, Any] | None = None) -> Response:
    """Return the answer to a request that is refused, with further members; without a code its status says why."""
    code = {"code": given.code} if given.code else {}
    return json_response({"error": given.message, **code, **(more or {})}, given.status, given.headers)
