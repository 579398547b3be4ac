"""Whether compactions bring a conversation anywhere: each makes it smaller, and they do not follow on each other. Pure.

Where the system prompt, the tools and the request alone fill most of a small window, each result of a tool would have
the conversation compacted, and the model would read again what the summary has lost.
"""

from collections.abc import Sequence

from isthmus.record import record

SHRINK_SHARE = 0.1
"""Minimum share of the conversation's tokens by which a compaction makes it smaller."""
GROWTH_SHARE = 0.25
"""Minimum share of the window by which a conversation grows between two compactions that bring it somewhere."""
MAXIMUM_FRUITLESS = 2
"""Number of compactions in a row that may follow on too little growth."""
FULL_SHARE = 0.95
"""Share of the window up to which a conversation that cannot be made smaller is sent as it is."""


@record
class CompactedSizes:
    """Estimated tokens of a conversation's messages before and after a compaction."""

    before: int
    after: int


def shrinks(total: int, replaced: int, summary: int) -> bool:
    """Return whether a compaction makes a conversation of ``total`` tokens smaller by the minimum share.

    ``replaced`` is the size of the part that a summary of ``summary`` tokens replaces.
    """
    return replaced - summary >= total * SHRINK_SHARE and replaced > summary


def has_grown(compactions: Sequence[CompactedSizes], now: int, window: int) -> bool:
    """Return whether messages of ``now`` tokens have grown enough since the last compaction of the turn, if any."""
    return not compactions or now - compactions[-1].after >= window * GROWTH_SHARE


def goes_in_circles(compactions: Sequence[CompactedSizes], window: int) -> bool:
    """Return whether another compaction in this turn would lead nowhere: the last ones came after too little growth."""
    last = compactions[-MAXIMUM_FRUITLESS:]
    before = compactions[-MAXIMUM_FRUITLESS - 1 : -1]
    if len(before) < MAXIMUM_FRUITLESS:
        return False
    return not any(has_grown((first,), then.before, window) for first, then in zip(before, last, strict=True))
