"""``probes-its-sandbox [EXIT_CODE]``: a server whose tools try what a sandbox may forbid, and tell how it ended.

With an exit code it writes to standard error and ends at once.
"""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stdio_server import StdioServer


def write(path: str, text: str) -> str:
    """Write a file."""
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        return f"no: {error.strerror}"
    return "written"


def read(path: str) -> str:
    """Read a file."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        return f"no: {error.strerror}"


def connect(port: int) -> str:
    """Connect to a port of 127.0.0.1."""
    try:
        socket.create_connection(("127.0.0.1", port), 5).close()
    except OSError as error:
        return f"no: {error.strerror}"
    return "connected"


def variables() -> str:
    """Return the names of the environment variables, sorted."""
    return " ".join(sorted(os.environ))


def end(pid: int) -> str:
    """Kill a process."""
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError as error:
        return f"no: {error.strerror}"
    return "killed"


def leave_behind(mark: str) -> str:
    """Start a process that leaves the group, and one that does not."""
    subprocess.Popen(["sleep", mark], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True)
    subprocess.Popen(["sleep", mark], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    return "started"


TOOLS: dict[str, Callable[..., str]] = {
    found.__name__: found for found in (write, read, connect, variables, end, leave_behind)
}


class Server(StdioServer):
    def run(self) -> None:
        if self.arguments:
            sys.stderr.write("something is missing\n")
            sys.exit(int(self.arguments[0]))
        super().run()
        Path("ended").write_text("as it should", encoding="utf-8")

    def listing(self) -> dict[str, Any]:
        return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]}

    def text_of(self, tool: str, arguments: dict[str, Any]) -> str:
        return TOOLS[tool](**arguments)
