"""JSON-RPC errors that report expected failures to clients; A2A 0.3 and 1.0 have the same codes."""

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
