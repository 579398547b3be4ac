"""Model tokens of removed tasks, which count for the rest of their day: removing tasks gives no tokens back.

A row says how many tokens a removed task has used on the day of its removal. It has the task's id and user, and goes
with the first removal on a later day. It belongs to one journal and its day, and is not copied to others.
"""

import json
from collections.abc import Iterable

from isthmus.events import AgentEvent, event_from_json
from isthmus.internal_events import Compacted, ModelReply, ModelUsed

DAY = 86_400
"""Length of a day in seconds."""
TYPES = (ModelReply.__name__, ModelUsed.__name__, Compacted.__name__)
"""Types of the events that report tokens, as they are stored."""
FORGET = "DELETE FROM removed_tokens WHERE begun < ?"
NOTE = (
    'INSERT INTO removed_tokens ("user", task, begun, tokens) VALUES (?, ?, ?, ?)'
    ' ON CONFLICT ("user", task, begun) DO UPDATE SET tokens = removed_tokens.tokens + excluded.tokens'
)
USED = 'SELECT task, tokens FROM removed_tokens WHERE "user" = ? AND begun = ?'
BODIES = f"SELECT body FROM events WHERE task = ? AND at >= ? AND type IN ({', '.join('?' * len(TYPES))})"


def day_of(now: float) -> int:
    """Return the Unix time in seconds at which the day of ``now`` began by UTC."""
    return int(now) // DAY * DAY


def tokens_of(event: AgentEvent) -> int:
    """Return the input and output tokens that an event reports, as /stats counts them."""
    match event:
        case ModelReply() | ModelUsed() | Compacted():
            return event.input_tokens + event.output_tokens
        case _:
            return 0


def tokens_in(bodies: Iterable[str]) -> int:
    """Return the tokens that stored events report."""
    return sum(tokens_of(event_from_json(json.loads(body))) for body in bodies)
