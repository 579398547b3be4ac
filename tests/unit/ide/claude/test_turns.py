"""Messages of Claude Code's hooks that tell of prompts and of their ends."""

import pytest

from isthmus.encoding.codec import JsonObject
from isthmus.errors import DecodeError
from isthmus.ide.claude.turns import MAXIMUM_TITLE, read_turn
from isthmus.ide.turns import TurnBegan, TurnEnded


@pytest.mark.parametrize(
    ("prompt", "title"),
    [
        ("Make it faster", "Make it faster"),
        ("\n\n  Make\tit  faster \r\nand say why", "Make it faster"),
        ("", ""),
        (" \n", ""),
        ("word " * 100, f"{'word ' * 38}word..."),
        ("x" * 1000, f"{'x' * 197}..."),
        ("x" * MAXIMUM_TITLE, "x" * MAXIMUM_TITLE),
    ],
)
def test_a_prompt_begins_a_turn_with_its_first_words(prompt: str, title: str) -> None:
    began = read_turn({"hook_event_name": "UserPromptSubmit", "prompt": prompt})
    assert began == TurnBegan("Claude Code", title)
    assert len(title) <= MAXIMUM_TITLE


def test_the_end_of_the_agents_work_ends_the_turn() -> None:
    assert read_turn({"hook_event_name": "Stop", "stop_hook_active": False}) == TurnEnded()


@pytest.mark.parametrize("message", [{}, {"hook_event_name": "UserPromptSubmit"}, {"hook_event_name": "SubagentStop"}])
def test_other_messages_are_refused(message: JsonObject) -> None:
    with pytest.raises(DecodeError, match="UserPromptSubmit, with prompt, and Stop"):
        read_turn(message)
