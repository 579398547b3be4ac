"""Errors of A2A over HTTP and JSON, in 0.3 and 1.0.

The document of 0.3 does not define HTTP statuses for errors; we use those of the Python SDK.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from isthmus.a2a.protocol.jsonrpc import (
    CONTENT_TYPE_NOT_SUPPORTED,
    EXTENSION_REQUIRED,
    INVALID_AGENT_RESPONSE,
    LIMIT_REACHED,
    NO_EXTENDED_CARD,
    PUSH_NOT_SUPPORTED,
    TASK_NOT_CANCELABLE,
    TASK_NOT_FOUND,
    UNSUPPORTED_OPERATION,
    VERSION_NOT_SUPPORTED,
)
from isthmus.rpc.messages import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR


@dataclass(frozen=True, slots=True)
class RestError:
    """An error over HTTP: in 0.3 a status and the document's name, in 1.0 a status and the name in ``google.rpc``."""

    v03_status: int
    v03_type: str
    v1_status: int
    v1_name: str


_ERRORS: Mapping[int, RestError] = MappingProxyType(
    {
        PARSE_ERROR: RestError(400, "JSONParseError", 400, "INVALID_ARGUMENT"),
        INVALID_REQUEST: RestError(400, "InvalidRequestError", 400, "INVALID_ARGUMENT"),
        METHOD_NOT_FOUND: RestError(404, "MethodNotFoundError", 404, "NOT_FOUND"),
        INVALID_PARAMS: RestError(422, "InvalidParamsError", 400, "INVALID_ARGUMENT"),
        INTERNAL_ERROR: RestError(500, "InternalError", 500, "INTERNAL"),
        LIMIT_REACHED: RestError(429, "LimitReachedError", 429, "RESOURCE_EXHAUSTED"),
        TASK_NOT_FOUND: RestError(404, "TaskNotFoundError", 404, "NOT_FOUND"),
        TASK_NOT_CANCELABLE: RestError(409, "TaskNotCancelableError", 400, "FAILED_PRECONDITION"),
        PUSH_NOT_SUPPORTED: RestError(501, "PushNotificationNotSupportedError", 400, "FAILED_PRECONDITION"),
        UNSUPPORTED_OPERATION: RestError(501, "UnsupportedOperationError", 400, "FAILED_PRECONDITION"),
        CONTENT_TYPE_NOT_SUPPORTED: RestError(415, "ContentTypeNotSupportedError", 415, "INVALID_ARGUMENT"),
        INVALID_AGENT_RESPONSE: RestError(502, "InvalidAgentResponseError", 500, "INTERNAL"),
        NO_EXTENDED_CARD: RestError(404, "AuthenticatedExtendedCardNotConfiguredError", 400, "FAILED_PRECONDITION"),
        EXTENSION_REQUIRED: RestError(400, "ExtensionSupportRequiredError", 400, "FAILED_PRECONDITION"),
        VERSION_NOT_SUPPORTED: RestError(400, "VersionNotSupportedError", 400, "FAILED_PRECONDITION"),
    }
)


def rest_error(code: int) -> RestError:
    """Return the HTTP form of an error of JSON-RPC; an unknown code is an internal error."""
    return _ERRORS.get(code, _ERRORS[INTERNAL_ERROR])
