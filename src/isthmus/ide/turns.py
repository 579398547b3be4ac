"""Port of turns: how an agent CLI's hook tells that a prompt was sent and that the agent has finished. No I/O."""

from collections.abc import Callable
from typing import TypeAlias

from isthmus.encoding.codec import JsonObject
from isthmus.record import record


@record
class TurnBegan:
    """The user has sent a prompt to the agent with this name; ``title`` is the prompt's first words."""

    agent: str
    title: str


@record
class TurnEnded:
    """The agent has finished, and waits for the next prompt."""


TurnEvent: TypeAlias = TurnBegan | TurnEnded
TurnReader: TypeAlias = Callable[[JsonObject], TurnEvent]
"""Function that reads a message of a CLI's hook; it raises DecodeError for a message that is none of this CLI's."""
