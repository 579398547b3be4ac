"""Where the websockets library logs to: nowhere. At its finer levels it writes the headers of requests, tokens too."""

import logging


def quiet_log() -> logging.Logger:
    """Return a log for one connection or server, which keeps everything to itself."""
    quiet = logging.getLogger("isthmus.websockets")
    quiet.setLevel(logging.CRITICAL)
    return quiet
