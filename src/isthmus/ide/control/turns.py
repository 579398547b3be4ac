"""Turns of agents, as the hooks of their CLIs tell of them on the control channel.

The hook (:mod:`isthmus.ide.permission_hook`) does not wait for the answer, so that no prompt waits for a comparison of
the workspace.
"""

from collections.abc import Mapping
from typing import Final, assert_never, cast

from isthmus.encoding.codec import JsonObject
from isthmus.ide.companion import Companion
from isthmus.ide.control.commands import ControlCommandError
from isthmus.ide.turns import TurnBegan, TurnEnded, TurnReader

TURN: Final = "turn"
"""Name of the command that the hook sends."""


async def note_turn(companion: Companion, readers: Mapping[str, TurnReader], request: JsonObject) -> JsonObject:
    """Begin or end a turn of what agents write, as the hook's ``message`` in a ``protocol`` tells.

    Raises:
        IsthmusError: the message cannot be read, or what agents write is not followed.
    """
    protocol, message = request.get("protocol"), request.get("message")
    reader = readers.get(protocol) if isinstance(protocol, str) else None
    if reader is None or not isinstance(message, dict):
        expected = ", ".join(readers) or "none"
        raise ControlCommandError(f"expected a message, and a protocol whose hooks tell of turns: {expected}")
    event = reader(cast(JsonObject, message))
    match event:
        case TurnBegan(agent, title):
            await companion.written.begin_turn(agent, title)
        case TurnEnded():
            await companion.written.end_turn()
        case _:
            assert_never(event)
    return {}
