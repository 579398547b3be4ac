"""A2A 0.3 and 1.0 over HTTP and JSON: the paths and the errors of each. The paths distinguish the versions.

0.3 has its paths below ``/v1``, as in its SDKs. Its errors are objects with the ``code`` of JSON-RPC, which clients in
JavaScript read, the document's name as ``type``, which those in Python read, ``message`` and ``data``; its messages and
tasks are in :mod:`isthmus.a2a.v03.proto_json`. 1.0 has errors as ``google.rpc.Status``.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from isthmus.a2a.protocol.errors import names_of
from isthmus.a2a.protocol.extension_requests import LIST
from isthmus.a2a.server.rest import MEDIA_TYPE, RestBinding, routes_of
from isthmus.a2a.v03.operations import SEND, STREAM
from isthmus.a2a.v03.proto_json import push_params, send_params
from isthmus.rpc.messages import RpcError

# --- A2A 0.3 ----------------------------------------------------------------------------------------------------------

_TASK_V03 = r"/v1/tasks/(?P<id>[^/:]+)"
# 0.3 calls the task `taskId` where a config is set, and `id` elsewhere.
_PUSHES_V03 = r"/v1/tasks/(?P<taskId>(?P<id>[^/:]+))/pushNotificationConfigs"
_PUSH = "tasks/pushNotificationConfig"
_SET = f"{_PUSH}/set"
_ROUTES_V03 = routes_of(
    {
        r"/v1/message:send": {"POST": SEND},
        r"/v1/message:stream": {"POST": STREAM},
        r"/v1/tasks": {"GET": LIST},
        _TASK_V03: {"GET": "tasks/get"},
        rf"{_TASK_V03}:cancel": {"POST": "tasks/cancel"},
        rf"{_TASK_V03}:subscribe": {"GET": "tasks/resubscribe", "POST": "tasks/resubscribe"},
        _PUSHES_V03: {"POST": _SET, "GET": f"{_PUSH}/list"},
        rf"{_PUSHES_V03}/(?P<pushNotificationConfigId>[^/]+)": {
            "GET": f"{_PUSH}/get",
            "DELETE": f"{_PUSH}/delete",
        },
        r"/v1/card": {"GET": "agent/getAuthenticatedExtendedCard"},
    }
)


def _params_v03(method: str, body: Mapping[str, Any]) -> dict[str, Any]:
    match method:
        case "message/send" | "message/stream":
            return send_params(body)
        case "tasks/pushNotificationConfig/set":
            return push_params(body)
        case _:
            return dict(body)


def _error_v03(error: RpcError) -> tuple[int, object]:
    found = names_of(error.code)
    content: dict[str, Any] = {"code": error.code, "type": found.v03_type, "message": str(error)}
    if error.data is not None:
        content["data"] = error.data
    return found.v03_status, content


def _refusal_v03(status: int, message: str) -> object:
    return {"code": status, "message": message}


REST_V03 = RestBinding("0.3", _ROUTES_V03, _params_v03, _error_v03, _refusal_v03)


# --- A2A 1.0 ----------------------------------------------------------------------------------------------------------

A2A_MEDIA_TYPE = "application/a2a+json"
"""Media type for clients that accept it and not ``application/json``."""

_TASK_V1 = r"/tasks/(?P<id>[^/:]+)"
_PUSHES_V1 = r"/tasks/(?P<taskId>[^/:]+)/pushNotificationConfigs"
_ROUTES_V1 = routes_of(
    {
        r"/message:send": {"POST": "SendMessage"},
        r"/message:stream": {"POST": "SendStreamingMessage"},
        r"/tasks": {"GET": "ListTasks"},
        _TASK_V1: {"GET": "GetTask"},
        rf"{_TASK_V1}:cancel": {"POST": "CancelTask"},
        # Documents of 1.0 have GET; earlier ones have POST.
        rf"{_TASK_V1}:subscribe": {"GET": "SubscribeToTask", "POST": "SubscribeToTask"},
        _PUSHES_V1: {"POST": "CreateTaskPushNotificationConfig", "GET": "ListTaskPushNotificationConfigs"},
        # A client chooses this id, so it may contain a colon.
        rf"{_PUSHES_V1}/(?P<id>[^/]+)": {
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
        503: "UNAVAILABLE",
    }
)
"""Name in ``google.rpc`` for a refusal that has only an HTTP status."""


def _params_v1(method: str, body: Mapping[str, Any]) -> dict[str, Any]:
    del method
    return dict(body)


def _error_v1(error: RpcError) -> tuple[int, object]:
    found = names_of(error.code)
    content: dict[str, Any] = {"code": found.v1_status, "status": found.v1_name, "message": str(error)}
    if error.data is not None:
        content["details"] = error.data
    return found.v1_status, {"error": content}


def _refusal_v1(status: int, message: str) -> object:
    return {"error": {"code": status, "status": _HTTP_STATUSES.get(status, "INTERNAL"), "message": message}}


REST_V1 = RestBinding("1.0", _ROUTES_V1, _params_v1, _error_v1, _refusal_v1, (MEDIA_TYPE, A2A_MEDIA_TYPE))


# --- Choice -----------------------------------------------------------------------------------------------------------


def binding_of(path: str) -> RestBinding:
    """Return the binding of a path in its sent form; the one of 1.0 for an unknown path."""
    return REST_V03 if path.startswith("/v1/") else REST_V1


def allowed_methods(path: str) -> tuple[str, ...]:
    """Return the HTTP methods of a path in its sent form; none for a path outside A2A."""
    found = binding_of(path).find(path)
    return () if found is None else tuple(found[1])
