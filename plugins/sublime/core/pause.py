"""Times at which a review or a question may take the focus, and from which on it takes decisions."""

import time

PAUSE = 1.0
"""Seconds without a key or a command after which a review or a question may take the focus."""
READING = 2.0
"""Seconds after that in which it takes no decision: input that comes then was meant for the view before it."""


class Pause:
    """The time since the user's last key or command. `is_filling`: the plugin itself changes a view now."""

    def __init__(self):
        self.last_input = None
        self.is_filling = False

    def noted(self):
        """Note that the user pressed a key or ran a command."""
        if not self.is_filling:
            self.last_input = time.monotonic()

    def is_there(self):
        """Return whether the user has paused."""
        return self.last_input is None or time.monotonic() - self.last_input >= PAUSE


def readable_at():
    """Return the time from which on a view that comes to the front now takes decisions."""
    return time.monotonic() + READING


def is_readable(at):
    """Return whether the time `at` of readable_at() has come."""
    return time.monotonic() >= at
