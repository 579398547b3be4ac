import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.encoding.json_text import encode_ascii
from isthmus.ide.context import IdeContext
from isthmus.ide.gemini.client_wire import (
    ContextUpdated,
    Meaning,
    ReviewAccepted,
    ReviewRejected,
    UnknownNotification,
    closed_content,
    meaning,
)
from isthmus.ide.mcp.mcp_client import McpClient, ToolOutcome, answer, receive, tool_names, tool_outcome
from isthmus.ide.mcp.mcp_peer import McpPeer, Reply
from isthmus.rpc.messages import ErrorResponse, Notification, ParseError, Request, Response

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False),
    lambda children: st.lists(children) | st.dictionaries(st.text() | st.sampled_from(["id", "method"]), children),
    max_leaves=8,
)


def test_it_agrees_with_our_own_server() -> None:
    client, server = McpClient(), McpPeer("companion", "1", ())
    reply = server.receive(encode_ascii(client.initialize()))
    assert isinstance(reply, Reply)
    (answered,) = receive(encode_ascii(reply.message))
    assert isinstance(answered, Response)
    assert answered.id == 0
    completed = client.initialized(answered.result)
    assert completed == {"jsonrpc": "2.0", "method": "notifications/initialized", "params": {}}
    assert (client.server_name, client.protocol_version) == ("companion", "2025-11-25")
    assert server.client is not None
    assert server.client.name == "isthmus"


@pytest.mark.parametrize("result", [{}, {"protocolVersion": "1999-01-01"}, {"protocolVersion": 3}])
def test_an_unknown_protocol_version_is_not_agreed_on(result: dict[str, Any]) -> None:
    assert McpClient().initialized(result) is None


def test_every_request_has_an_id_of_its_own() -> None:
    client = McpClient()
    assert [client.request("m", {})["id"] for _ in range(3)] == [0, 1, 2]


def test_messages_are_told_apart() -> None:
    assert receive(b'{"id":1,"result":{"a":1}}') == (Response(1, {"a": 1}),)
    assert receive(b'{"id":1,"error":{"code":-3,"message":"no"}}') == (ErrorResponse(1, -3, "no"),)
    assert receive(b'{"method":"ping"}') == (Notification("ping", None),)
    assert receive('[{"method":"a","params":[1]},{"id":1,"result":{}}]') == (Notification("a", [1]), Response(1, {}))
    assert receive(b'{"id":"x","method":"ping"}') == (Request("x", "ping", None),)
    assert receive(b'{"id":2,"method":"roots/list"}') == (Request(2, "roots/list", None),)


def test_a_request_of_the_server_is_answered() -> None:
    assert answer(Request("x", "ping", None)) == {"jsonrpc": "2.0", "id": "x", "result": {}}
    assert answer(Request(2, "roots/list", None))["error"]["code"] == -32601


@given(json_values)
def test_whatever_json_comes_it_means_something(value: object) -> None:
    for incoming in receive(json.dumps(value)):
        assert isinstance(incoming, (Response, ErrorResponse, Notification, Request, ParseError))


@given(st.binary())
def test_whatever_bytes_come_they_mean_something(data: bytes) -> None:
    assert isinstance(receive(data), tuple)
    assert isinstance(receive(b"[" * 100_000)[0], ParseError)


def test_tools_and_results_are_read_with_suspicion() -> None:
    assert tool_names({"tools": [{"name": "a"}, {"name": 5}, 7, {}]}) == {"a"}
    assert tool_names({"tools": "a"}) == frozenset()
    assert tool_outcome({"content": []}) == ToolOutcome(None, False)
    failed = {"content": [{"type": "image"}, {"type": "text", "text": "t"}], "isError": True}
    assert tool_outcome(failed) == ToolOutcome("t", True)
    assert tool_outcome({"content": 5, "isError": "yes"}) == ToolOutcome(None, False)


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ('{"content": "final"}', "final"),
        ('{"content": ""}', ""),
        ('{"content": null}', None),
        ("{}", None),
        ("plain text", "plain text"),
        ("", ""),
        ('{"name": "a file that is JSON"}', '{"name": "a file that is JSON"}'),
        ('{"content": 5}', '{"content": 5}'),
        ("[" * 100_000, "[" * 100_000),
        ("12", "12"),
    ],
)
def test_a_final_content_is_json_first_and_else_the_text_itself(text: str, content: str | None) -> None:
    assert closed_content(ToolOutcome(text, is_error=False)) == content


def test_a_failed_close_has_no_content() -> None:
    assert closed_content(ToolOutcome("no such view", is_error=True)) is None
    assert closed_content(ToolOutcome(None, is_error=False)) is None


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (Notification("ide/contextUpdate", {}), ContextUpdated(IdeContext())),
        (Notification("ide/diffAccepted", {"filePath": "/a", "content": "c"}), ReviewAccepted("/a", "c")),
        (Notification("ide/diffAccepted", {"filePath": "/a"}), ReviewAccepted("/a", None)),
        (Notification("ide/diffRejected", {"filePath": "/a", "content": "c"}), ReviewRejected("/a")),
        (Notification("ide/diffClosed", {"filePath": "/a"}), ReviewRejected("/a")),
        (Notification("ping", None), UnknownNotification()),
    ],
)
def test_notifications_have_the_meaning_of_the_companion_protocol(told: Notification, expected: Meaning) -> None:
    assert meaning(told) == expected


@pytest.mark.parametrize(
    "params", [None, [], {"filePath": 5}, {"workspaceState": 1}, {"workspaceState": {"openFiles": 1}}]
)
@pytest.mark.parametrize("method", ["ide/contextUpdate", "ide/diffAccepted", "ide/diffRejected"])
def test_a_malformed_notification_changes_nothing(method: str, params: object) -> None:
    said = meaning(Notification(method, params))
    if isinstance(said, ContextUpdated):
        assert said.context == IdeContext()
    else:
        assert isinstance(said, UnknownNotification)
        assert method in (said.reason or "")
