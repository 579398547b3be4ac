"""Statuses and names of errors over HTTP and JSON, in each version of A2A."""

from typing import Any, cast

import pytest

from isthmus.a2a.server.rest_bindings import REST_V03, REST_V1
from isthmus.rpc.messages import RpcError


@pytest.mark.parametrize(
    ("code", "old", "new"),
    [
        (-32700, (400, "JSONParseError"), (400, "INVALID_ARGUMENT")),
        (-32600, (400, "InvalidRequestError"), (400, "INVALID_ARGUMENT")),
        (-32601, (404, "MethodNotFoundError"), (404, "NOT_FOUND")),
        (-32602, (422, "InvalidParamsError"), (400, "INVALID_ARGUMENT")),
        (-32603, (500, "InternalError"), (500, "INTERNAL")),
        (-32000, (429, "LimitReachedError"), (429, "RESOURCE_EXHAUSTED")),
        (-32001, (404, "TaskNotFoundError"), (404, "NOT_FOUND")),
        (-32002, (409, "TaskNotCancelableError"), (400, "FAILED_PRECONDITION")),
        (-32003, (501, "PushNotificationNotSupportedError"), (400, "FAILED_PRECONDITION")),
        (-32004, (501, "UnsupportedOperationError"), (400, "FAILED_PRECONDITION")),
        (-32005, (415, "ContentTypeNotSupportedError"), (415, "INVALID_ARGUMENT")),
        (-32006, (502, "InvalidAgentResponseError"), (500, "INTERNAL")),
        (-32007, (404, "AuthenticatedExtendedCardNotConfiguredError"), (400, "FAILED_PRECONDITION")),
        (-32008, (400, "ExtensionSupportRequiredError"), (400, "FAILED_PRECONDITION")),
        (-32009, (400, "VersionNotSupportedError"), (400, "FAILED_PRECONDITION")),
        (-32099, (500, "InternalError"), (500, "INTERNAL")),
    ],
)
def test_each_error_has_the_status_and_the_name_of_each_version(
    code: int, old: tuple[int, str], new: tuple[int, str]
) -> None:
    error = RpcError(code, "it failed", {"more": 1})
    status, content = REST_V03.error(error)
    assert (status, content) == (old[0], {"code": code, "type": old[1], "message": "it failed", "data": {"more": 1}})
    status, content = REST_V1.error(error)
    told = cast("dict[str, Any]", content)["error"]
    assert (status, told) == (
        new[0],
        {"code": new[0], "status": new[1], "message": "it failed", "details": {"more": 1}},
    )
