"""A silent log for the websockets library: at its finer levels it writes the headers of requests, tokens too."""

import logging


def quiet_log() -> logging.Logger:
    """Return a log for one connection or server that writes nothing."""
    quiet = logging.getLogger("isthmus.websockets")
    quiet.setLevel(logging.CRITICAL)
    return quiet
