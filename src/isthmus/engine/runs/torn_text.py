"""Torn text: the text in the middle of which a task's work broke off. It is void once it begins again.

Not here: beginning it again, see :mod:`isthmus.engine.runs.segment`.
"""

from isthmus.events import Prompt, RetryNotice, StateChange, TaskState, TextContent, Thought
from isthmus.journal.port.base import Journal

SEARCHED_EVENTS = 16
"""Maximum number of a task's last events that are searched."""


async def torn_text(journal: Journal, task_id: str, seq: int) -> str | None:
    """Return the message id of the text that was under way at event `seq`, the last one before the work broke off.

    None if there was none: any event ends a text, except the model's thoughts, and retries with their states.
    """
    for delivery in reversed(await journal.events(task_id, max(0, seq - SEARCHED_EVENTS), SEARCHED_EVENTS)):
        match delivery.event:
            case TextContent(message_id):
                return message_id
            case Thought() | RetryNotice() | Prompt() | StateChange(TaskState.WORKING):
                continue
            case _:
                return None
    return None
