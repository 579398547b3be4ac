import json
from typing import Any

import pytest

from isthmus.demo.messages import lines_of
from isthmus.rpc.wire_log import WireMessage


def shown(body: Any, arrow: str = "<-", head: str = "200 OK") -> list[str]:
    return lines_of(WireMessage("A2A", arrow, head, "" if body is None else json.dumps(body)))


def test_an_answer_that_is_no_json_rpc_is_shown_itself() -> None:
    assert shown({"name": "Isthmus", "version": "1"})[1].strip() == '{"name": "Isthmus", "version": "1"}'


@pytest.mark.parametrize(
    "body",
    [
        None,
        {
            "jsonrpc": "2.0",
            "result": {"kind": "status-update", "status": {"state": "working", "message": {"parts": []}}},
        },
        {"jsonrpc": "2.0", "method": "ping"},
        {"jsonrpc": "2.0", "id": 1, "result": None},
    ],
)
def test_a_message_without_a_content_is_one_line(body: Any) -> None:
    assert len(shown(body)) == 1


def test_params_and_results_stand_for_their_messages() -> None:
    assert shown({"jsonrpc": "2.0", "method": "m", "params": {"a": 1}}, "->")[1].strip() == '{"a": 1}'
    assert shown({"jsonrpc": "2.0", "id": 1, "result": {"b": 2}})[1].strip() == '{"b": 2}'


def test_the_first_line_has_the_method_or_what_became_of_the_task() -> None:
    assert shown({"jsonrpc": "2.0", "method": "tools/call"}, "->", "POST /mcp") == ["A2A  -> POST /mcp  tools/call"]
    result = {"kind": "status-update", "status": {"state": "completed"}, "final": True}
    assert shown({"jsonrpc": "2.0", "result": result}, head="event 9")[0] == (
        "A2A  <- event 9  status-update completed final"
    )
    assert lines_of(WireMessage("IDE", "<-", "202 Accepted", "")) == ["IDE  <- 202 Accepted"]


def test_a_body_that_was_cut_is_shown_as_text() -> None:
    assert lines_of(WireMessage("IDE", "->", "POST /mcp", '{"jsonrpc')) == [
        "IDE  -> POST /mcp",
        '        "{\\"jsonrpc"',
    ]
