"""Values that are messages for one protocol and not for another, and the texts of the errors."""

from types import NoneType
from typing import Any

import pytest

from isthmus.rpc.messages import (
    ErrorResponse,
    Message,
    Notification,
    ParseError,
    Request,
    Response,
    Rules,
    error_response,
    message_of,
    request,
)

STRICT = Rules(
    not_object="an object, not {received}",
    batch="no batch",
    members={
        "jsonrpc": "2.0",
        "method": "method: {received}",
        "id": "id: {received}",
        "params": "{method:.3}: {received}",
    },
    response_id_types=(int, str),
)
LOOSE = Rules("object", "batch", {"method": "method"}, (int, float, str), True, (int, NoneType))


def strict(**members: Any) -> Message:
    return message_of({"jsonrpc": "2.0", **members}, STRICT)


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({"id": 1, "method": "m"}, Request(1, "m", {})),
        ({"method": "m", "params": {"a": 1}}, Notification("m", {"a": 1})),
        ({"id": "x", "result": None}, Response("x", None)),
        ({"id": 1, "error": {"code": -1, "message": "no", "data": [1]}}, ErrorResponse(1, -1, "no", [1])),
        ({"id": 1, "error": "no"}, ErrorResponse(1, 0, "failed without a reason")),
        ({"id": 1, "error": None, "result": 1}, Response(1, 1)),
        ({"jsonrpc": "1.0", "id": 1, "method": 5}, ParseError(1, -32600, "2.0")),
        ({"id": True, "method": 5}, ParseError(None, -32600, "method: a number")),
        ({"id": True, "method": "m"}, ParseError(None, -32600, "id: a boolean")),
        ({"id": None, "method": "m"}, ParseError(None, -32600, "id: nothing")),
        ({"id": 1.5, "method": "m"}, ParseError(None, -32600, "id: a number")),
        ({"id": 1, "method": "method", "params": []}, ParseError(1, -32602, "met: a list")),
        ({"id": None, "error": {}}, ParseError(None, -32600, "method: nothing")),
        ({"id": 1}, ParseError(1, -32600, "method: nothing")),
    ],
)
def test_strict_rules_refuse_the_first_wrong_member(members: dict[str, Any], expected: Message) -> None:
    assert strict(**members) == expected


def test_loose_rules_take_what_they_do_not_check() -> None:
    assert message_of({"id": 1.5, "method": "m", "params": [1]}, LOOSE) == Request(1.5, "m", [1])
    assert message_of({"id": None, "method": "m"}, LOOSE) == Notification("m", None)
    assert message_of({"id": [], "method": "m"}, LOOSE) == Notification("m", None)
    assert message_of({"error": {"message": "what?"}}, LOOSE) == ErrorResponse(None, 0, "what?")
    assert message_of({"id": "x", "result": 1}, LOOSE) == ParseError("x", -32600, "method")


@pytest.mark.parametrize(
    ("value", "text"), [([], "no batch"), ("x", "an object, not a string"), (None, "an object, not nothing")]
)
def test_a_value_that_is_not_an_object_is_not_a_message(value: object, text: str) -> None:
    assert message_of(value, STRICT) == ParseError(None, -32600, text)


def test_members_without_a_value_are_left_out() -> None:
    assert request(1, "m", None) == {"jsonrpc": "2.0", "id": 1, "method": "m"}
    assert error_response(None, -1, "no") == {"jsonrpc": "2.0", "id": None, "error": {"code": -1, "message": "no"}}
    assert error_response(1, -1, "no", {})["error"] == {"code": -1, "message": "no", "data": {}}
