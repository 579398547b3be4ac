"""An MCP server on stdio whose tools try what a sandbox may forbid, and say how that went; a program.

``python curious_mcp_server.py [EXIT_CODE]``: with an exit code it complains on standard error and ends at once. It does
without the SDK, which takes longer to start than all that is tried.
"""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


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
    """The names of the environment, sorted."""
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


def answer(method: str, params: Any) -> dict[str, Any] | None:
    """The result of a request; None where there is no such method."""
    match method:
        case "initialize":
            info = {"name": "curious", "version": "1"}
            return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            schema = {"type": "object"}
            return {"tools": [{"name": name, "inputSchema": schema} for name in TOOLS]}
        case "tools/call":
            return {"content": [{"type": "text", "text": TOOLS[params["name"]](**params["arguments"])}]}
        case _:
            return None


def serve() -> None:
    """Answer each request until there are no more."""
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:
            result = answer(request["method"], request.get("params"))
            kept = {"error": {"code": -32601, "message": "no such method"}} if result is None else {"result": result}
            print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **kept}), flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.stderr.write("something is missing\n")
        sys.exit(int(sys.argv[1]))
    serve()
    Path("ended").write_text("as it should", encoding="utf-8")
