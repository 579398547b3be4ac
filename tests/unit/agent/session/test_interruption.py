import ast
from pathlib import Path

import pytest

import isthmus
from isthmus.acp.served.agent import INTERRUPTED, LOST
from isthmus.acp.served.segment import LOST_QUESTION
from isthmus.agent.calls.events import interruption_events, second_interruption_events
from isthmus.agent.session.interruption import PROCESS_ENDED, UNRECORDED, begins_sentence, taken_over
from isthmus.development_tool import ToolCall, ToolCallStatus
from isthmus.events import AgentEvent, ToolCallUpdate
from isthmus.internal_events import ToolResultRecorded

SOURCE = Path(isthmus.__file__).parent
REASONS = (PROCESS_ENDED, UNRECORDED, taken_over(23.4))
CALL = ToolCall("call", ToolCallStatus.EXECUTING, "build", {})


def texts(events: tuple[AgentEvent, ...]) -> list[str]:
    """Return the texts of events for the user and for the model."""
    errors = [event.tool_call.error for event in events if isinstance(event, ToolCallUpdate)]
    results = [event.content for event in events if isinstance(event, ToolResultRecorded)]
    return [*(error.message for error in errors if error is not None), *results]


@pytest.mark.parametrize("reason", REASONS)
def test_what_broke_off_tells_users_and_models_why(reason: str) -> None:
    told = [texts(interruption_events(CALL, reason)), texts(second_interruption_events(CALL, reason))]
    told.append([text.format(begins_sentence(reason)) for text in (INTERRUPTED, LOST, LOST_QUESTION)])
    for text in (text for each in told for text in each):
        assert reason.lower() in text.lower()
        assert (PROCESS_ENDED.lower() in text.lower()) == (reason == PROCESS_ENDED)
    assert [len(each) for each in told] == [2, 2, 3]


def test_a_take_over_names_the_time_of_silence() -> None:
    assert taken_over(23.4) == "another server took the task over (the one that ran it was not heard of for 23 s)"
    assert "for 1 s)" in taken_over(-0.2), "clocks may differ a little"


def test_no_other_text_says_that_the_process_ended() -> None:
    searched = {
        room: sorted((SOURCE / room).rglob("*.py")) for room in ("agent", "engine", "acp/served", "parts", "programs")
    }
    assert all(searched.values()), "a room has moved"
    found = [
        str(file.relative_to(SOURCE))
        for files in searched.values()
        for file in files
        if any("process ended" in text for text in spoken(file))
    ]
    assert found == ["agent/session/interruption.py"]


def spoken(file: Path) -> list[str]:
    """Return the texts of a module, without its docstrings."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    silent = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    constants = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in silent]
    return [node.value for node in constants if isinstance(node.value, str)]
