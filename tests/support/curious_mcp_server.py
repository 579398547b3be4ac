"""An MCP server on stdio whose tools try what a sandbox may forbid, and say how that went; a program.

``python curious_mcp_server.py [EXIT_CODE]``: with an exit code it complains on standard error and ends at once.
"""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

from mcp.server.mcpserver import MCPServer

server = MCPServer("curious")


@server.tool()
def write(path: str, text: str) -> str:
    """Write a file."""
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        return f"no: {error.strerror}"
    return "written"


@server.tool()
def read(path: str) -> str:
    """Read a file."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        return f"no: {error.strerror}"


@server.tool()
def connect(port: int) -> str:
    """Connect to a port of 127.0.0.1."""
    try:
        socket.create_connection(("127.0.0.1", port), 5).close()
    except OSError as error:
        return f"no: {error.strerror}"
    return "connected"


@server.tool()
def variables() -> str:
    """The names of the environment, sorted."""
    return " ".join(sorted(os.environ))


@server.tool()
def end(pid: int) -> str:
    """Kill a process."""
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError as error:
        return f"no: {error.strerror}"
    return "killed"


@server.tool()
def leave_behind(mark: str) -> str:
    """Start a process that leaves the group, and one that does not."""
    subprocess.Popen(["sleep", mark], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True)
    subprocess.Popen(["sleep", mark], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    return "started"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.stderr.write("something is missing\n")
        sys.exit(int(sys.argv[1]))
    server.run()
    Path("ended").write_text("as it should", encoding="utf-8")
