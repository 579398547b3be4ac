"""Every front shows all of what a tried command changed, and what a yes does with it."""

from collections.abc import Callable

import pytest

from isthmus.a2a.protocol.text_questions import question_text
from isthmus.acp.front.tool_calls import call_state
from isthmus.development_tool import (
    CommandTrial,
    ConfirmationOption,
    ConfirmationRequest,
    ExecuteDetails,
    ToolCall,
    ToolCallStatus,
)
from isthmus.encoding.codec import from_json, to_camel_json, to_json
from isthmus.programs.mcp.questions import shown
from isthmus.terminal.questions.questions import question_of
from isthmus.terminal.screen.blocks import question_block
from isthmus.terminal.screen.screen import ASCII

CHANGES = (
    "In a copy of the folder it changed:\n  changed a.py (1 line)\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-old\n+new\n"
)
OPTIONS = (ConfirmationOption("proceed_once", "Allow these changes"), ConfirmationOption("cancel", "Reject"))


def call(trial: CommandTrial | None) -> ToolCall:
    request = ConfirmationRequest(OPTIONS, execute_details=ExecuteDetails("make", "/w", trial))
    return ToolCall("a", ToolCallStatus.PENDING, "run_shell_command", {"command": "make"}, confirmation_request=request)


def in_terminal(asked: ToolCall) -> str:
    return "\n".join(line.plain.strip() for line in question_block(question_of(asked), "/w", 80, ASCII))


def in_acp(asked: ToolCall) -> str:
    return str(to_camel_json(call_state(asked, "/w"))).replace("\\n", "\n")


FRONTS: dict[str, Callable[[ToolCall], str]] = {
    "terminal": in_terminal,
    "acp": in_acp,
    "a2a text": question_text,
    "mcp": shown,
}


@pytest.mark.parametrize("front", FRONTS)
def test_each_changed_line_and_the_command_are_shown(front: str) -> None:
    text = FRONTS[front](call(CommandTrial("id", CHANGES, ("a.py",))))
    assert "make" in text
    for line in CHANGES.split("\n"):
        assert line.strip() in text
    assert "+new" not in FRONTS[front](call(None))


@pytest.mark.parametrize("front", FRONTS)
def test_the_reason_why_the_effect_is_not_known_is_shown(front: str) -> None:
    assert "it asked for the network" in FRONTS[front](call(CommandTrial("", "It: it asked for the network.")))


def test_the_terminal_says_whether_a_yes_runs_the_command() -> None:
    assert "Keep what a command changed" in in_terminal(call(CommandTrial("id", CHANGES)))
    assert "ran in a copy of /w" in in_terminal(call(CommandTrial("id", CHANGES)))
    assert "Run a command" in in_terminal(call(CommandTrial("", "reason")))


def test_a_question_is_read_again_as_it_was_stored() -> None:
    asked = call(CommandTrial("id", CHANGES, ("a.py",)))
    assert from_json(ToolCall, to_json(asked)) == asked
    former = ToolCall("a", ToolCallStatus.PENDING, "x", {}, confirmation_request=call(None).confirmation_request)
    assert from_json(ToolCall, to_json(former)) == former
