from typing import Any

import pytest

from isthmus.mcp_host.diagnosis.examination import Step, ending, self_description, steps
from isthmus.mcp_host.diagnosis.server_log import ServerLog
from isthmus.mcp_host.diagnosis.trace import MAXIMUM_ENTRIES, MAXIMUM_TEXT, Trace, TraceKind

INITIALIZE: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}


def hide(text: str) -> str:
    return text.replace('hunter"22', "***")


def test_steps_are_what_was_opened_and_each_request_with_its_answer() -> None:
    trace = Trace()
    trace.happened(TraceKind.OPENING, "start the program")
    trace.happened(TraceKind.OPEN)
    trace.message(TraceKind.SENT, INITIALIZE, 60)
    # A request of the server's own with the same id is not the answer.
    trace.message(TraceKind.RECEIVED, {"jsonrpc": "2.0", "id": 1, "method": "ping"}, 40)
    trace.message(TraceKind.SENT, {"jsonrpc": "2.0", "id": 1, "result": {}}, 30)
    trace.message(TraceKind.RECEIVED, {"jsonrpc": "2.0", "id": 1, "error": {"code": -1, "message": "no"}}, 50)
    trace.message(TraceKind.SENT, {"jsonrpc": "2.0", "method": "notifications/initialized"}, 20)
    trace.message(TraceKind.SENT, {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}, 30)
    trace.message(TraceKind.SENT, {"jsonrpc": "2.0", "id": "l", "method": "subscriptions/listen"}, 30)
    found = steps(trace.entries)
    assert [(step.name, step.seconds is not None, step.is_error) for step in found] == [
        ("start the program", True, False),
        ("initialize", True, True),
        ("tools/list", False, False),
    ]
    answer = next(entry for entry in trace.entries if entry.is_error)
    assert (answer.method, answer.id, answer.size) == ("initialize", 1, 50)


def test_a_program_that_does_not_start_has_a_step_without_an_end() -> None:
    trace = Trace()
    trace.happened(TraceKind.OPENING, "speak streamable HTTP")
    trace.happened(TraceKind.OPENING, "open an event stream (SSE)")
    assert steps(trace.entries) == (
        Step("speak streamable HTTP", None),
        Step("open an event stream (SSE)", None),
    )


def test_a_server_describes_itself_in_either_handshake() -> None:
    trace = Trace()
    assert self_description(trace.entries) is None
    trace.message(TraceKind.SENT, INITIALIZE, 1)
    capabilities = {"tools": {"listChanged": True, "other": False}, "logging": {}, "odd": 7}
    server = {"name": "n", "version": "2", "title": "The server"}
    result = {"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": server}
    trace.message(TraceKind.RECEIVED, {"jsonrpc": "2.0", "id": 1, "result": result}, 1)
    found = self_description(trace.entries)
    assert found is not None
    assert (found.protocol, found.name, found.version) == ("2025-06-18", "The server", "2")
    assert found.capabilities == ("tools (listChanged)", "logging", "odd")
    trace.message(TraceKind.SENT, {"jsonrpc": "2.0", "id": 2, "method": "server/discover"}, 1)
    discovered = {"supportedVersions": ["a", "b"], "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "modern"}}}
    trace.message(TraceKind.RECEIVED, {"jsonrpc": "2.0", "id": 2, "result": discovered}, 1)
    found = self_description(trace.entries)
    assert found is not None
    assert (found.protocol, found.name, found.capabilities) == ("a, b", "modern", ())


@pytest.mark.parametrize("before", [0, MAXIMUM_TEXT - 60, MAXIMUM_TEXT - 50])
def test_secrets_are_hidden_whatever_json_makes_of_them_and_wherever_a_text_is_cut(before: int) -> None:
    trace = Trace(hide)
    said: dict[str, Any] = {"id": 1, "method": "x", "params": {"a": ["b" * before, {"c": 'with hunter"22 in it'}]}}
    trace.message(TraceKind.SENT, said, 9)
    trace.happened(TraceKind.BROKEN, 'hunter"22 again')
    for entry in trace.entries:
        assert "hunter" not in entry.text
        assert len(entry.text) <= MAXIMUM_TEXT
    assert before or "***" in trace.entries[0].text


def test_of_too_many_entries_the_first_are_kept_and_the_others_counted() -> None:
    trace = Trace()
    for number in range(MAXIMUM_ENTRIES + 7):
        trace.message(TraceKind.RECEIVED, {"jsonrpc": "2.0", "method": f"notifications/{number}"}, 1)
    assert (len(trace.entries), trace.dropped) == (MAXIMUM_ENTRIES, 7)


def test_only_a_program_that_ended_by_itself_has_an_ending() -> None:
    trace, log = Trace(), ServerLog()
    log.exit_code = -15
    assert ending(trace.entries, log) == ""
    trace.happened(TraceKind.CLOSED)
    assert ending(trace.entries, log) == " by signal 15"
