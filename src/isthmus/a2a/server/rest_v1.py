"""A2A 1.0 over HTTP and JSON: paths, and errors as ``google.rpc.Status``."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from isthmus.a2a.server.rest import MEDIA_TYPE, RestBinding, routes_of
from isthmus.a2a.server.rest_errors import rest_error
from isthmus.rpc.messages import RpcError

A2A_MEDIA_TYPE = "application/a2a+json"
"""Media type for clients that accept it and not ``application/json``."""

_TASK = r"/tasks/(?P<id>[^/:]+)"
_PUSHES = r"/tasks/(?P<taskId>[^/:]+)/pushNotificationConfigs"
_ROUTES = routes_of(
    {
        r"/message:send": {"POST": "SendMessage"},
        r"/message:stream": {"POST": "SendStreamingMessage"},
        r"/tasks": {"GET": "ListTasks"},
        _TASK: {"GET": "GetTask"},
        rf"{_TASK}:cancel": {"POST": "CancelTask"},
        # Documents of 1.0 have GET; earlier ones have POST.
        rf"{_TASK}:subscribe": {"GET": "SubscribeToTask", "POST": "SubscribeToTask"},
        _PUSHES: {"POST": "CreateTaskPushNotificationConfig", "GET": "ListTaskPushNotificationConfigs"},
        # A client chooses this id, so it may contain a colon.
        rf"{_PUSHES}/(?P<id>[^/]+)": {
            "GET": "GetTaskPushNotificationConfig",
            "DELETE": "DeleteTaskPushNotificationConfig",
        },
        r"/extendedAgentCard": {"GET": "GetExtendedAgentCard"},
    }
)
_HTTP_STATUSES: Mapping[int, str] = MappingProxyType(
    {
        401: "UNAUTHENTICATED",
        403: "PERMISSION_DENIED",
        404: "NOT_FOUND",
        405: "UNIMPLEMENTED",
        408: "DEADLINE_EXCEEDED",
        413: "INVALID_ARGUMENT",
        415: "INVALID_ARGUMENT",
        429: "RESOURCE_EXHAUSTED",
    }
)
"""Name in ``google.rpc`` for a refusal that has only an HTTP status."""


def _params(method: str, body: Mapping[str, Any]) -> dict[str, Any]:
    del method
    return dict(body)


def _error(error: RpcError) -> tuple[int, object]:
    found = rest_error(error.code)
    content: dict[str, Any] = {"code": found.v1_status, "status": found.v1_name, "message": str(error)}
    if error.data is not None:
        content["details"] = error.data
    return found.v1_status, {"error": content}


def _refusal(status: int, message: str) -> object:
    return {"error": {"code": status, "status": _HTTP_STATUSES.get(status, "INTERNAL"), "message": message}}


REST_V1 = RestBinding("1.0", _ROUTES, _params, _error, _refusal, (MEDIA_TYPE, A2A_MEDIA_TYPE))
