"""Ports that a test chooses before a server listens on them.

The system assigns ports of its ephemeral range to any process that connects or asks for a free port: a port that was
free a moment ago is soon taken, in tests that run side by side. It assigns no port below that range unasked.
"""

import random
import socket

_LOWEST, _HIGHEST = 20_000, 32_000
"""Below the ephemeral ranges of Linux (32768 on) and of macOS and Windows (49152 on)."""
_chance = random.SystemRandom()
"""Numbers that differ between the processes of a run, which may be copies of one."""


def free_port() -> int:
    """Return a port of 127.0.0.1 on which nothing listens, and that the system assigns to no process."""
    for _ in range(100):
        port = _chance.randint(_LOWEST, _HIGHEST)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError(f"no port between {_LOWEST} and {_HIGHEST} is free")
