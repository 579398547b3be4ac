"""A2A 0.3 over HTTP and JSON: paths below ``/v1``, as in the SDKs of 0.3, and errors.

An error is an object with the ``code`` of JSON-RPC, which clients in JavaScript read, the document's name as ``type``,
which those in Python read, ``message`` and ``data``. Messages and tasks are in :mod:`isthmus.a2a.v03.proto_json`.
"""

from collections.abc import Mapping
from typing import Any

from isthmus.a2a.protocol.extension_requests import LIST
from isthmus.a2a.server.rest import RestBinding, routes_of
from isthmus.a2a.server.rest_errors import rest_error
from isthmus.a2a.v03.operations import SEND, STREAM
from isthmus.a2a.v03.proto_json import push_params, send_params
from isthmus.rpc.messages import RpcError

_TASK = r"/v1/tasks/(?P<id>[^/:]+)"
# 0.3 calls the task `taskId` where a config is set, and `id` elsewhere.
_PUSHES = r"/v1/tasks/(?P<taskId>(?P<id>[^/:]+))/pushNotificationConfigs"
_PUSH = "tasks/pushNotificationConfig"
_SET = f"{_PUSH}/set"
_ROUTES = routes_of(
    {
        r"/v1/message:send": {"POST": SEND},
        r"/v1/message:stream": {"POST": STREAM},
        r"/v1/tasks": {"GET": LIST},
        _TASK: {"GET": "tasks/get"},
        rf"{_TASK}:cancel": {"POST": "tasks/cancel"},
        rf"{_TASK}:subscribe": {"GET": "tasks/resubscribe", "POST": "tasks/resubscribe"},
        _PUSHES: {"POST": _SET, "GET": f"{_PUSH}/list"},
        rf"{_PUSHES}/(?P<pushNotificationConfigId>[^/]+)": {
            "GET": f"{_PUSH}/get",
            "DELETE": f"{_PUSH}/delete",
        },
        r"/v1/card": {"GET": "agent/getAuthenticatedExtendedCard"},
    }
)


def _params(method: str, body: Mapping[str, Any]) -> dict[str, Any]:
    match method:
        case "message/send" | "message/stream":
            return send_params(body)
        case "tasks/pushNotificationConfig/set":
            return push_params(body)
        case _:
            return dict(body)


def _error(error: RpcError) -> tuple[int, object]:
    found = rest_error(error.code)
    content: dict[str, Any] = {"code": error.code, "type": found.v03_type, "message": str(error)}
    if error.data is not None:
        content["data"] = error.data
    return found.v03_status, content


def _refusal(status: int, message: str) -> object:
    return {"code": status, "message": message}


REST_V03 = RestBinding("0.3", _ROUTES, _params, _error, _refusal)
