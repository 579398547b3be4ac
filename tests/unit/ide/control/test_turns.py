"""Messages of hooks that tell of turns, on the control channel."""

from pathlib import Path

import pytest

from isthmus.editors.headless import HeadlessEditor
from isthmus.encoding.codec import JsonObject
from isthmus.errors import IsthmusError
from isthmus.ide.claude.turns import read_turn
from isthmus.ide.companion import Companion
from isthmus.ide.control.turns import note_turn

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        ({"protocol": "claude"}, "expected a message, and a protocol whose hooks tell of turns: claude"),
        ({"protocol": "gemini", "message": {}}, "expected a message, and a protocol"),
        ({"protocol": "claude", "message": {"hook_event_name": "SessionStart"}}, "UserPromptSubmit, with prompt"),
    ],
)
async def test_a_message_that_tells_of_no_turn_is_refused(workspace: Path, request_: JsonObject, text: str) -> None:
    with pytest.raises(IsthmusError, match=text):
        await note_turn(Companion(HeadlessEditor((str(workspace),))), {"claude": read_turn}, request_)
