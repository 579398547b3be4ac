"""The text in the middle of which a task's work broke off: it is void when it is begun again.

Deliberately not here: who begins it again (:mod:`isthmus.engine.task_run`).
"""

from isthmus.events import Prompt, RetryNotice, TextContent, Thought
from isthmus.journal.base import Journal

SEARCHED_EVENTS = 16
"""Maximum number of a task's last events that are searched."""


async def torn_text(journal: Journal, task_id: str, seq: int) -> str | None:
    """Return the message id of the text that was under way at event `seq`, the last one before the work broke off.

    None where something else was: an event other than the model's own thinking and retries ends a text.
    """
    for delivery in reversed(await journal.events(task_id, max(0, seq - SEARCHED_EVENTS), SEARCHED_EVENTS)):
        match delivery.event:
            case TextContent(message_id):
                return message_id
            case Thought() | RetryNotice() | Prompt():
                continue
            case _:
                return None
    return None
