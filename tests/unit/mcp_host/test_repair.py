"""Results of MCP servers that are not valid: what is left of them still says whether the call failed."""

from typing import Any

import pytest

from isthmus.mcp_host.connection.session_observer import validation_error
from isthmus.mcp_host.results.repair import repair


@pytest.mark.parametrize("said", [True, "true", 1])
def test_a_call_that_failed_has_failed_also_after_its_result_was_repaired(said: object) -> None:
    result: dict[str, Any] = {"content": "no such file", "isError": said}
    assert validation_error("tools/call", result) is not None
    assert repair("tools/call", result, validation_error).result == {
        "content": [{"type": "text", "text": "no such file"}],
        "isError": True,
    }


@pytest.mark.parametrize("said", [{}, {"isError": False}, {"isError": None}])
def test_a_call_that_was_done_is_done_also_after_its_result_was_repaired(said: dict[str, Any]) -> None:
    repaired = repair("tools/call", {"content": "done", **said}, validation_error)
    assert repaired.result == {"content": [{"type": "text", "text": "done"}]}


def test_a_valid_result_stays_as_it_is() -> None:
    result: dict[str, Any] = {"content": [{"type": "text", "text": "no such file"}], "isError": True}
    assert repair("tools/call", result, validation_error).result is result
