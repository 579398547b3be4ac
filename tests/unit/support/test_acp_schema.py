"""The judge of what our side of ACP sends: it finds what the schema forbids, and members that it does not know."""

from typing import Any

import pytest

from support import acp_schema

TEXT = {"type": "text", "text": "x"}


def test_messages_that_fit_pass() -> None:
    acp_schema.check_update({"sessionUpdate": "agent_message_chunk", "content": TEXT, "messageId": "m"})
    acp_schema.check_message({"jsonrpc": "2.0", "id": 1, "result": {"stopReason": "end_turn"}}, "session/prompt")
    usage = {"totalTokens": 3, "inputTokens": 1, "outputTokens": 2}
    with_usage = {"stopReason": "end_turn", "usage": usage}
    acp_schema.check_message({"jsonrpc": "2.0", "id": 1, "result": with_usage}, "session/prompt")
    acp_schema.check_message({"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "not JSON"}})
    acp_schema.check_message({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 1}})


@pytest.mark.parametrize(
    "update",
    [
        {"sessionUpdate": "agent_message_chunk"},
        {"sessionUpdate": "agent_message_chunk", "content": {"type": "text"}},
        {"sessionUpdate": "agent_message_chunk", "content": TEXT, "message_id": "m"},
        {"sessionUpdate": "tool_call", "toolCallId": "c"},
        {"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": 5},
        {"sessionUpdate": "tool_call_update", "toolCallId": "c", "raw_input": {}},
        {"sessionUpdate": "plan", "entries": None},
    ],
)
def test_updates_that_do_not_fit_are_found(update: dict[str, Any]) -> None:
    with pytest.raises(AssertionError):
        acp_schema.check_update(update)


@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "1.0", "id": 1, "result": {"stopReason": "end_turn"}},
        {"jsonrpc": "2.0", "id": 1, "result": {"stopReason": 5}},
        {"jsonrpc": "2.0", "id": 1, "result": {"stop_reason": "end_turn"}},
        {"jsonrpc": "2.0", "id": 1, "result": {"stopReason": "end_turn"}, "extra": 1},
        {"jsonrpc": "2.0", "id": 1, "error": {"message": "no code"}},
        {"jsonrpc": "2.0", "method": "session/request_permission", "id": 1, "params": {"sessionId": "s"}},
        {"jsonrpc": "2.0", "method": "no/such", "params": {}},
        {"jsonrpc": "2.0"},
    ],
)
def test_messages_that_do_not_fit_are_found(message: dict[str, Any]) -> None:
    with pytest.raises(AssertionError):
        acp_schema.check_message(message, "session/prompt")
