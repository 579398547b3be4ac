"""Turns of Claude Code (2.1), as its hooks UserPromptSubmit and Stop tell of them.

After an interruption by the user no hook tells of the end; the next prompt begins the next turn.
"""

from typing import Final

from isthmus.encoding.codec import JsonObject
from isthmus.errors import DecodeError
from isthmus.ide.claude.discovery.cli_choice import CLAUDE_CODE
from isthmus.ide.turns import TurnBegan, TurnEnded, TurnEvent

BEGIN_EVENT: Final = "UserPromptSubmit"
END_EVENT: Final = "Stop"
MAXIMUM_TITLE: Final = 200
"""Maximum number of characters of a prompt that are the title of its turn."""


def read_turn(message: JsonObject) -> TurnEvent:
    """Return what a message of the hooks tells.

    Raises:
        DecodeError: the message is none of these hooks.
    """
    event, prompt = message.get("hook_event_name"), message.get("prompt")
    if event == BEGIN_EVENT and isinstance(prompt, str):
        return TurnBegan(CLAUDE_CODE, _title(prompt))
    if event == END_EVENT:
        return TurnEnded()
    raise DecodeError("message", f"one of the hooks {BEGIN_EVENT}, with prompt, and {END_EVENT}", event)


def _title(prompt: str) -> str:
    """Return the first line of a prompt that is not empty, shortened at the end of a word if possible."""
    line = next((" ".join(line.split()) for line in prompt.splitlines() if line.strip()), "")
    if len(line) <= MAXIMUM_TITLE:
        return line
    whole = line[: MAXIMUM_TITLE - 3]
    return f"{whole.rpartition(' ')[0] or whole}..."
