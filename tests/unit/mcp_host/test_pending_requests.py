from typing import Any

import pytest
from mcp_types import JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from isthmus.mcp_host.connection.pending_requests import MAXIMUM_REQUESTS, UnansweredRequests

pytestmark = pytest.mark.anyio


def request(number: int) -> JSONRPCRequest:
    return JSONRPCRequest(jsonrpc="2.0", id=number, method="ping")


async def test_what_is_asked_beyond_is_passed_over_until_something_is_answered(
    caplog: pytest.LogCaptureFixture,
) -> None:
    asked = UnansweredRequests("noisy", patience_seconds=0.01)
    caplog.set_level("INFO", "isthmus.mcp")
    assert all([await asked.admits(request(number)) for number in range(MAXIMUM_REQUESTS)])
    assert [await asked.admits(request(1_000 + number)) for number in range(3)] == [False] * 3
    assert len(caplog.records) == 1
    assert "noisy" in caplog.text
    asked.sent(JSONRPCResponse(jsonrpc="2.0", id=7, result={}))
    assert await asked.admits(request(2_000))


async def test_a_question_that_the_server_takes_back_does_not_count() -> None:
    asked = UnansweredRequests("noisy", patience_seconds=0.01)
    for number in range(3 * MAXIMUM_REQUESTS):
        assert await asked.admits(request(number))
        params: dict[str, Any] = {"requestId": number}
        assert await asked.admits(JSONRPCNotification(jsonrpc="2.0", method="notifications/cancelled", params=params))


async def test_answers_and_notifications_always_pass() -> None:
    asked = UnansweredRequests("noisy")
    for number in range(2 * MAXIMUM_REQUESTS):
        assert await asked.admits(JSONRPCResponse(jsonrpc="2.0", id=number, result={}))
