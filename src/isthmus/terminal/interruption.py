"""Ctrl-C as an ordinary exception.

A KeyboardInterrupt that leaves an asyncio task stops the whole event loop; this one is caught like any other.
"""


class Interrupted(Exception):
    """The user pressed Ctrl-C during input."""
