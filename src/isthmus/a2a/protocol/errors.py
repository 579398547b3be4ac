"""Errors of A2A: the table of all codes, which 0.3 and 1.0 share, and the JSON-RPC errors for expected failures."""

from collections.abc import Mapping
from types import MappingProxyType

from isthmus.a2a.protocol.extension import URI, IncompatibleExtensionError
from isthmus.a2a.protocol.jsonrpc import (
    CONTENT_TYPE_NOT_SUPPORTED,
    EXTENSION_REQUIRED,
    INVALID_AGENT_RESPONSE,
    LIMIT_REACHED,
    NO_EXTENDED_CARD,
    PUSH_NOT_SUPPORTED,
    TASK_NOT_CANCELABLE,
    TASK_NOT_FOUND,
    UNAVAILABLE,
    UNSUPPORTED_OPERATION,
    VERSION_NOT_SUPPORTED,
)
from isthmus.client import (
    ContentNotSupported,
    InvalidRequest,
    LimitReached,
    TaskNotCancelable,
    TaskNotFound,
    TaskNotResumable,
)
from isthmus.errors import IsthmusError, Unavailable
from isthmus.record import record
from isthmus.rpc.messages import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    RpcError,
)


@record
class ErrorNames:
    """Names and HTTP statuses of one error code.

    The document of 0.3 does not define HTTP statuses for errors; ours are the Python SDK's.
    """

    v1_reason: str
    """``google.rpc.ErrorInfo.reason`` in 1.0."""
    v03_status: int
    v03_type: str
    """Name in the document of 0.3, which is the ``type`` of an error over HTTP."""
    v1_status: int
    v1_name: str
    """Name of the status in ``google.rpc``."""


ERRORS: Mapping[int, ErrorNames] = MappingProxyType(
    {
        PARSE_ERROR: ErrorNames("PARSE_ERROR", 400, "JSONParseError", 400, "INVALID_ARGUMENT"),
        INVALID_REQUEST: ErrorNames("INVALID_REQUEST", 400, "InvalidRequestError", 400, "INVALID_ARGUMENT"),
        METHOD_NOT_FOUND: ErrorNames("METHOD_NOT_FOUND", 404, "MethodNotFoundError", 404, "NOT_FOUND"),
        INVALID_PARAMS: ErrorNames("INVALID_PARAMS", 422, "InvalidParamsError", 400, "INVALID_ARGUMENT"),
        INTERNAL_ERROR: ErrorNames("INTERNAL_ERROR", 500, "InternalError", 500, "INTERNAL"),
        LIMIT_REACHED: ErrorNames("LIMIT_REACHED", 429, "LimitReachedError", 429, "RESOURCE_EXHAUSTED"),
        UNAVAILABLE: ErrorNames("UNAVAILABLE", 503, "UnavailableError", 503, "UNAVAILABLE"),
        TASK_NOT_FOUND: ErrorNames("TASK_NOT_FOUND", 404, "TaskNotFoundError", 404, "NOT_FOUND"),
        TASK_NOT_CANCELABLE: ErrorNames(
            "TASK_NOT_CANCELABLE", 409, "TaskNotCancelableError", 400, "FAILED_PRECONDITION"
        ),
        PUSH_NOT_SUPPORTED: ErrorNames(
            "PUSH_NOTIFICATION_NOT_SUPPORTED", 501, "PushNotificationNotSupportedError", 400, "FAILED_PRECONDITION"
        ),
        UNSUPPORTED_OPERATION: ErrorNames(
            "UNSUPPORTED_OPERATION", 501, "UnsupportedOperationError", 400, "FAILED_PRECONDITION"
        ),
        CONTENT_TYPE_NOT_SUPPORTED: ErrorNames(
            "CONTENT_TYPE_NOT_SUPPORTED", 415, "ContentTypeNotSupportedError", 415, "INVALID_ARGUMENT"
        ),
        INVALID_AGENT_RESPONSE: ErrorNames("INVALID_AGENT_RESPONSE", 502, "InvalidAgentResponseError", 500, "INTERNAL"),
        NO_EXTENDED_CARD: ErrorNames(
            "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
            404,
            "AuthenticatedExtendedCardNotConfiguredError",
            400,
            "FAILED_PRECONDITION",
        ),
        EXTENSION_REQUIRED: ErrorNames(
            "EXTENSION_SUPPORT_REQUIRED", 400, "ExtensionSupportRequiredError", 400, "FAILED_PRECONDITION"
        ),
        VERSION_NOT_SUPPORTED: ErrorNames(
            "VERSION_NOT_SUPPORTED", 400, "VersionNotSupportedError", 400, "FAILED_PRECONDITION"
        ),
    }
)
"""All errors of A2A by their JSON-RPC code."""


RETRY_AFTER_SECONDS = 5
"""Time in seconds after which a client is told to ask again for what is not available at the moment."""


def retry_headers(error: RpcError) -> Mapping[str, str]:
    """Return the header Retry-After for what is not available at the moment; none for any other error."""
    return {"Retry-After": str(RETRY_AFTER_SECONDS)} if error.code == UNAVAILABLE else {}


def names_of(code: int) -> ErrorNames:
    """Return the names of an error code; for an unknown one as for an internal error."""
    return ERRORS.get(code, ERRORS[INTERNAL_ERROR])


def rpc_error(error: IsthmusError) -> RpcError:
    """Return the JSON-RPC error that reports an expected failure."""
    match error:
        case RpcError():
            return error
        case TaskNotFound():
            return RpcError(TASK_NOT_FOUND, f"Task not found: {error}")
        case TaskNotCancelable():
            return RpcError(TASK_NOT_CANCELABLE, str(error))
        case TaskNotResumable():
            return RpcError(UNSUPPORTED_OPERATION, str(error))
        case ContentNotSupported():
            return RpcError(CONTENT_TYPE_NOT_SUPPORTED, str(error))
        case InvalidRequest():
            return RpcError(INVALID_PARAMS, str(error))
        case LimitReached():
            return RpcError(LIMIT_REACHED, str(error))
        case Unavailable():
            return RpcError(UNAVAILABLE, str(error))
        case IncompatibleExtensionError():
            return RpcError(INVALID_REQUEST, str(error), {"uri": URI})
        case _:
            return RpcError(INTERNAL_ERROR, str(error))


def internal_error() -> RpcError:
    """Return the error that reports a bug; it reveals no internals."""
    return RpcError(INTERNAL_ERROR, "internal error; the server's log has the details")


def push_not_supported() -> RpcError:
    """Return the error of every method of push notifications on a server that sends none."""
    return RpcError(PUSH_NOT_SUPPORTED, "this server does not send push notifications")
