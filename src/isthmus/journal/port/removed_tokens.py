"""Model tokens and costs of removed tasks, which count for the rest of their day: removing tasks gives nothing back.

A row says how much a removed task has used on the day of its removal. It has the task's id and user, and goes
with the first removal on a later day. It belongs to one journal and its day, and is not copied to others.
"""

import json
from collections.abc import Iterable

from isthmus.events import AgentEvent, event_from_json
from isthmus.internal_events import Compacted, ModelReply, ModelUsed
from isthmus.record import record

DAY = 86_400
"""Length of a day in seconds."""
TYPES = (ModelReply.__name__, ModelUsed.__name__, Compacted.__name__)
"""Types of the events that report tokens and costs, as they are stored."""
FORGET = "DELETE FROM removed_tokens WHERE begun < ?"
NOTE = (
    'INSERT INTO removed_tokens ("user", task, begun, tokens, cost) VALUES (?, ?, ?, ?, ?)'
    ' ON CONFLICT ("user", task, begun) DO UPDATE SET tokens = removed_tokens.tokens + excluded.tokens,'
    " cost = removed_tokens.cost + excluded.cost"
)
USED = 'SELECT task, tokens, cost FROM removed_tokens WHERE "user" = ? AND begun = ?'
BODIES = f"SELECT body FROM events WHERE task = ? AND at >= ? AND type IN ({', '.join('?' * len(TYPES))})"


@record
class Used:
    """Use of models: tokens of input and output, and their cost in picodollars, as far as it is known.

    ``unpriced`` is the number of requests whose cost is not known.
    """

    tokens: int = 0
    cost: int = 0
    unpriced: int = 0

    def __add__(self, other: "Used") -> "Used":
        return Used(self.tokens + other.tokens, self.cost + other.cost, self.unpriced + other.unpriced)


@record
class UsedToday(Used):
    """Use on the day that began at ``begun``, in Unix seconds."""

    begun: int = 0


def day_of(now: float) -> int:
    """Return the Unix time in seconds at which the day of ``now`` began by UTC."""
    return int(now) // DAY * DAY


def used_of(event: AgentEvent) -> Used:
    """Return what an event reports, as /stats counts it; nothing for what the events of a subagent's task report."""
    match event:
        case ModelReply() | Compacted():
            return Used(event.input_tokens + event.output_tokens, event.cost or 0, event.cost is None)
        case ModelUsed(subtask=""):
            unpriced = event.requests if event.cost is None else event.unpriced
            return Used(event.input_tokens + event.output_tokens, event.cost or 0, unpriced)
        case _:
            return Used()


def used_in(bodies: Iterable[str]) -> Used:
    """Return what stored events report."""
    return sum((used_of(event_from_json(json.loads(body))) for body in bodies), Used())
