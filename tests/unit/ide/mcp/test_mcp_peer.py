"""The MCP server peer, message by message."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.encoding.json_text import encode_ascii
from isthmus.ide.mcp.mcp_peer import (
    MAXIMUM_CALLS,
    MAXIMUM_NAME,
    PROTOCOL_VERSIONS,
    CallTool,
    CallToolResult,
    CancelCall,
    ClientInfo,
    Ignored,
    McpPeer,
    Received,
    Reply,
    ToolDefinition,
)
from isthmus.ide.mcp.tool_names import ANSWERED_BY
from isthmus.rpc.messages import Notification

_TOOL = ToolDefinition("openDiff", "Opens a diff.", {"type": "object"})


def _peer(*, initialized: bool = True) -> McpPeer:
    client = ClientInfo("client", "1", "2025-06-18") if initialized else None
    return McpPeer("server", "0.1", (_TOOL,), client)


def _receive(peer: McpPeer, **message: Any) -> Received:
    return peer.receive(json.dumps({"jsonrpc": "2.0", **message}).encode())


def _call(peer: McpPeer, request_id: Any = 1, **params: Any) -> Received:
    return _receive(peer, id=request_id, method="tools/call", params={"name": "openDiff", **params})


def _error(received: Received) -> int:
    assert isinstance(received, Reply)
    return received.message["error"]["code"]


def test_the_name_of_a_client_is_one_line_that_changes_nothing_around_it() -> None:
    peer = _peer(initialized=False)
    info = {"name": "a\nb\u202e\x1b[2J", "version": "\t1"}
    _receive(peer, id=0, method="initialize", params={"protocolVersion": "2025-06-18", "clientInfo": info})
    assert peer.client == ClientInfo("a\u240ab\\u202e\u241b[2J", "\u24091", "2025-06-18")


@pytest.mark.parametrize("version", PROTOCOL_VERSIONS)
def test_initialize_agrees_on_a_known_version_and_remembers_the_client(version: str) -> None:
    peer = _peer(initialized=False)
    info = {"name": "someone", "version": "3", "title": "Some One"}
    received = _receive(peer, id=0, method="initialize", params={"protocolVersion": version, "clientInfo": info})
    assert received == Reply(
        {
            "jsonrpc": "2.0",
            "id": 0,
            "result": {
                "protocolVersion": version,
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "server", "version": "0.1"},
            },
        }
    )
    assert peer.client == ClientInfo("someone", "3", version)


def test_initialize_offers_the_latest_version_when_it_does_not_know_the_asked_one() -> None:
    received = _receive(_peer(initialized=False), id="a", method="initialize", params={"protocolVersion": "2026-07-28"})
    assert isinstance(received, Reply)
    assert received.message["result"]["protocolVersion"] == "2025-11-25"


def test_initialize_happens_once_and_needs_a_version() -> None:
    assert _error(_receive(_peer(), id=1, method="initialize", params={"protocolVersion": "2025-06-18"})) == -32600
    peer = _peer(initialized=False)
    assert _error(_receive(peer, id=1, method="initialize", params={"protocolVersion": 5})) == -32602
    assert peer.client is None


@pytest.mark.parametrize("method", ["tools/list", "tools/call"])
def test_tools_need_an_initialized_connection_and_ping_does_not(method: str) -> None:
    peer = _peer(initialized=False)
    assert _error(_receive(peer, id=1, method=method, params={"name": "openDiff"})) == -32600
    assert _receive(peer, id=2, method="ping") == Reply({"jsonrpc": "2.0", "id": 2, "result": {}})


def test_tools_are_listed_with_their_schemas() -> None:
    received = _receive(_peer(), id=1, method="tools/list")
    assert isinstance(received, Reply)
    assert received.message["result"] == {
        "tools": [{"name": "openDiff", "description": "Opens a diff.", "inputSchema": {"type": "object"}}]
    }


def test_a_call_is_handed_out_and_its_result_becomes_the_response() -> None:
    peer = _peer()
    assert _call(peer, "x", arguments={"a": 1}, _meta={"progressToken": 7}) == CallTool("x", "openDiff", {"a": 1}, 7)
    assert peer.finish("x", CallToolResult.error("no")) == {
        "jsonrpc": "2.0",
        "id": "x",
        "result": {"content": [{"type": "text", "text": "no"}], "isError": True},
    }
    assert peer.finish("x", CallToolResult()) is None


@pytest.mark.parametrize(
    ("told", "read"),
    [("terminal", "terminal"), ("a\x1b[2J\nb" + 100 * "c", None), (7, ""), ({"by": "x"}, ""), ("", "")],
)
def test_where_a_question_was_answered_is_a_short_line_of_text(told: object, read: str | None) -> None:
    call = _call(_peer(), "x", _meta={ANSWERED_BY: told})
    assert isinstance(call, CallTool)
    assert read is None or call.answered_by == read
    assert len(call.answered_by) <= MAXIMUM_NAME
    assert call.answered_by.isprintable()


def test_only_so_many_calls_run_at_once_and_the_next_is_refused_until_one_has_ended() -> None:
    peer = _peer()
    for number in range(MAXIMUM_CALLS):
        assert _call(peer, number) == CallTool(number, "openDiff", {})
    assert _error(_call(peer, "more")) == -32000
    assert peer.finish(0, CallToolResult()) is not None
    assert _call(peer, "more") == CallTool("more", "openDiff", {})


def test_a_server_may_declare_capabilities_of_its_own() -> None:
    peer = McpPeer("server", "0.1", (_TOOL,), capabilities={"tools": {"listChanged": True}})
    received = _receive(peer, id=0, method="initialize", params={"protocolVersion": "2024-11-05"})
    assert isinstance(received, Reply)
    assert received.message["result"]["capabilities"] == {"tools": {"listChanged": True}}


def test_clients_that_ask_for_prompts_and_resources_unasked_get_empty_lists() -> None:
    for method, key in (
        ("prompts/list", "prompts"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
    ):
        assert _receive(_peer(), id=1, method=method) == Reply({"jsonrpc": "2.0", "id": 1, "result": {key: []}})


def test_a_message_may_come_as_text_too() -> None:
    assert _peer().receive('{"jsonrpc":"2.0","id":1,"method":"ping"}') == Reply(
        {"jsonrpc": "2.0", "id": 1, "result": {}}
    )


def test_calls_run_side_by_side_and_an_id_is_not_used_twice_at_once() -> None:
    peer = _peer()
    assert _call(peer, 1) == CallTool(1, "openDiff", {})
    assert _error(_call(peer, 1)) == -32600
    assert _call(peer, "1") == CallTool("1", "openDiff", {})
    assert peer.finish("1", CallToolResult()) is not None
    assert peer.finish(1, CallToolResult()) is not None
    assert _call(peer, 1) == CallTool(1, "openDiff", {})


def test_a_cancelled_call_is_stopped_and_not_answered() -> None:
    peer = _peer()
    _call(peer, 1)
    cancelled = {"method": "notifications/cancelled", "params": {"requestId": 1, "reason": "Esc"}}
    assert _receive(peer, **cancelled) == CancelCall(1)
    assert peer.finish(1, CallToolResult()) is None
    assert _receive(peer, **cancelled) == Ignored()
    _call(peer, 1)  # to which True is equal
    unknowns: list[Any] = [7, None, [], {}, True, 1.0, "1"]
    for unknown in unknowns:
        assert _receive(peer, method="notifications/cancelled", params={"requestId": unknown}) == Ignored()


def test_notifications_and_responses_are_never_answered() -> None:
    peer = _peer()
    assert _receive(peer, method="notifications/initialized") == Notification("notifications/initialized", {})
    assert _receive(peer, method="ide_connected", params={"pid": 1}) == Notification("ide_connected", {"pid": 1})
    assert _receive(peer, method="anything", params=[1]) == Ignored()
    assert _receive(peer, id=1, result={}) == Ignored()
    assert _receive(peer, id=1, error={"code": 1, "message": ""}) == Ignored()


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
_MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | _JSON,
        "id": _JSON,
        "method": st.sampled_from(["initialize", "ping", "tools/list", "tools/call", "notifications/cancelled"])
        | _JSON,
        "params": st.fixed_dictionaries({}, optional={"name": st.just("openDiff") | _JSON, "arguments": _JSON}) | _JSON,
        "result": _JSON,
    },
)


@pytest.mark.slow
@given(st.lists(_MESSAGES | _JSON | st.binary()), st.booleans())
def test_whatever_comes_there_is_one_outcome_that_can_be_sent_and_the_peer_goes_on(
    messages: list[Any], initialized: bool
) -> None:
    peer = _peer(initialized=initialized)
    for message in messages:
        received = peer.receive(message if isinstance(message, bytes) else json.dumps(message).encode())
        if isinstance(received, Reply):
            assert json.loads(encode_ascii(received.message))["jsonrpc"] == "2.0"
    assert _receive(peer, id=1, method="ping") == Reply({"jsonrpc": "2.0", "id": 1, "result": {}})


def test_unpaired_surrogates_and_line_separators_pass_both_ways() -> None:
    text = "\ud83d \u2028 \x00 é"
    peer = _peer()
    received = _call(peer, 1, arguments={"newContent": text})
    assert received == CallTool(1, "openDiff", {"newContent": text})
    message = peer.finish(1, CallToolResult.text(text))
    assert message is not None
    encoded = encode_ascii(message)
    assert b"\n" not in encoded
    assert json.loads(encoded)["result"]["content"][0]["text"] == text
