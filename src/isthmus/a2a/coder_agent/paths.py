"""The paths of gemini-cli-a2a-server beside ``/``, which are served in :mod:`isthmus.a2a.coder_agent.routes`."""

import re
from collections.abc import Mapping

TASK = re.compile(r"/tasks/([^/]{1,200})/metadata")
_METHODS: Mapping[str, str] = {
    "/listCommands": "GET",
    "/executeCommand": "POST",
    "/tasks": "POST",
    "/tasks/metadata": "GET",
}


def methods_of(path: str) -> tuple[str, ...]:
    """Return the HTTP methods of a path of this dialect; none for another path."""
    method = _METHODS.get(path) or ("GET" if TASK.fullmatch(path) else None)
    return () if method is None else (method,)
