"""When a review or a question may take the focus, and since when it decides."""

import time

PAUSE = 1.0
"""Seconds without a key or a command after which a review or a question may take the focus."""
READING = 2.0
"""Seconds after that in which it decides nothing: what comes then was meant for what had the focus before."""


class Pause:
    """The user's last key or command. `is_filling`: text of our own goes into a view, which is not input."""

    def __init__(self):
        self.last_input = 0.0
        self.is_filling = False

    def noted(self):
        """Note that the user pressed a key or ran a command."""
        if not self.is_filling:
            self.last_input = time.time()

    def is_there(self):
        """Return whether nothing has come for a while."""
        return time.time() - self.last_input >= PAUSE


def readable_at():
    """Return since when something that comes to the front now decides."""
    return time.time() + READING


def is_readable(at):
    return time.time() >= at
