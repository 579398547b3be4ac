from typing import Any

import pytest

from isthmus.demo.frames import lines_of
from isthmus.demo.relay import Frame


def shown(body: Any, kind: str = "response") -> list[str]:
    return lines_of(Frame(0.0, "A2A", kind, "200 OK", body))


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
def test_a_frame_without_a_content_is_one_line(body: Any) -> None:
    assert len(shown(body)) == 1


def test_params_and_results_stand_for_their_frames() -> None:
    assert shown({"jsonrpc": "2.0", "method": "m", "params": {"a": 1}}, "request")[1].strip() == '{"a": 1}'
    assert shown({"jsonrpc": "2.0", "id": 1, "result": {"b": 2}})[1].strip() == '{"b": 2}'
