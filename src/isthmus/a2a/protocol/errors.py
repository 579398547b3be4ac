"""The JSON-RPC errors that tell clients of expected failures; the codes are the same in A2A 0.3 and 1.0."""

from isthmus.a2a.protocol.extension import URI, IncompatibleExtensionError
from isthmus.a2a.protocol.jsonrpc import (
    CONTENT_TYPE_NOT_SUPPORTED,
    LIMIT_REACHED,
    PUSH_NOT_SUPPORTED,
    TASK_NOT_CANCELABLE,
    TASK_NOT_FOUND,
    UNSUPPORTED_OPERATION,
)
from isthmus.client import (
    ContentNotSupported,
    InvalidRequest,
    LimitReached,
    TaskNotCancelable,
    TaskNotFound,
    TaskNotResumable,
)
from isthmus.errors import IsthmusError
from isthmus.rpc.messages import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, RpcError


def rpc_error(error: IsthmusError) -> RpcError:
    """Return the JSON-RPC error that tells a client of an expected failure."""
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
        case IncompatibleExtensionError():
            return RpcError(INVALID_REQUEST, str(error), {"uri": URI})
        case _:
            return RpcError(INTERNAL_ERROR, str(error))


def bug() -> RpcError:
    """Return the error for what should not have happened; it tells nothing of the inside."""
    return RpcError(INTERNAL_ERROR, "internal error; the server's log has the details")


def no_push() -> RpcError:
    """Return the error of whatever has to do with push notifications, where there are none."""
    return RpcError(PUSH_NOT_SUPPORTED, "this server sends no push notifications")
