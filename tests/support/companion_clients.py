"""Clients of a companion program: a plain request, and an agent that proposes an edit."""

import http.client
import subprocess
import sys
from pathlib import Path

from support import agent_program
from support.isthmus_program import CompanionProgram


def status_at(port: int) -> int:
    """Return the HTTP status of a request without a token."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", "/mcp")
        return connection.getresponse().status
    finally:
        connection.close()


def proposing_agent(companion: CompanionProgram, file: Path, *command: str) -> "subprocess.Popen[str]":
    """Start an agent that proposes a content for `file`, then runs `command` below itself, if given."""
    token = companion.discovered["authToken"]
    program = [sys.executable, str(Path(agent_program.__file__)), companion.url, token, str(file), "new\n", *command]
    return subprocess.Popen(program, cwd=file.parent, stdout=subprocess.PIPE, text=True, encoding="utf-8")
