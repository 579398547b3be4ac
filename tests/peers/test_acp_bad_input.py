"""``isthmus acp`` with input that no client should send: lines are answered or ignored, and the next prompt works."""

import json
import os
import random
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.acp_client import acp_command
from support.isthmus_program import read_line

LINES = 3000
METHODS = ("initialize", "session/new", "session/load", "session/prompt", "session/cancel", "session/list", "x", "")
MEMBERS = ("sessionId", "cwd", "mcpServers", "prompt", "modeId", "cursor", "protocolVersion", "clientCapabilities")
VALUES: tuple[Any, ...] = (None, True, 0, -1, 2**70, "", "/", "\ud800", [], {}, [[]], [{"type": "text"}], {"type": 1})


class RawClient:
    """Writes lines to ``isthmus acp``, and reads the messages that it prints."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def write(self, line: bytes) -> None:
        """Write a line."""
        assert self._process.stdin is not None
        os.write(self._process.stdin.fileno(), line + b"\n")

    def answer(self, number: int) -> dict[str, Any]:
        """Return the answer to a request; every line before it must be a message, too."""
        while True:
            message = json.loads(read_line(self._process))
            assert message["jsonrpc"] == "2.0"
            if message.get("id") == number and "method" not in message:
                return message

    def request(self, number: int, method: str, **params: Any) -> dict[str, Any]:
        """Send a request, and return its answer."""
        self.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode())
        return self.answer(number)


@contextmanager
def raw_client(folder: Path, workspace: Path) -> Generator[RawClient]:
    process = subprocess.Popen(
        acp_command(folder), cwd=workspace, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    )
    with process:
        try:
            yield RawClient(process)
            assert process.stdin is not None
            process.stdin.close()
            assert process.wait(30) == 0
        finally:
            process.kill()


def generated_line(chance: random.Random, number: int) -> bytes:
    params = {name: chance.choice(VALUES) for name in chance.sample(MEMBERS, chance.randrange(5))}
    message: dict[str, Any] = {"jsonrpc": chance.choice(("2.0", "2.0", "2.0", "1.0", None))}
    message |= {"method": chance.choice(METHODS), "params": chance.choice((params, *VALUES))}
    if chance.random() < 0.8:
        message["id"] = chance.choice((number, str(number), None, 1.5, [], True))
    line = json.dumps(message).encode()
    match chance.randrange(8):
        case 0:
            return chance.randbytes(chance.randrange(80)).replace(b"\n", b"")
        case 1:
            return line[: chance.randrange(len(line))]
        case 2:
            return b"[" * chance.randrange(1000) + line
        case _:
            return line


def test_a_prompt_works_after_thousands_of_broken_lines(tmp_path: Path, workspace: Path) -> None:
    chance = random.Random(20)  # noqa: S311  to be repeated
    with raw_client(tmp_path, workspace) as client:
        for number in range(100, 100 + LINES, 100):
            for each in range(number, number + 100):
                client.write(generated_line(chance, each))
            # Nothing waits for more room in a pipe: what came is read before more is written.
            assert client.request(10, "session/list")["result"] == {"sessions": []}
        session = client.request(11, "session/new", cwd=str(workspace), mcpServers=[])["result"]["sessionId"]
        prompt = [{"type": "text", "text": "say hello"}]
        result = client.request(12, "session/prompt", sessionId=session, prompt=prompt)["result"]
        assert result["stopReason"] == "end_turn"


def test_an_error_names_the_member_as_it_is_on_the_wire(tmp_path: Path, workspace: Path) -> None:
    with raw_client(tmp_path, workspace) as client:
        error = client.request(1, "session/load", cwd=str(workspace))["error"]
        assert error == {"code": -32602, "message": "params.sessionId: expected a string, received nothing"}
        error = client.request(2, "session/new", cwd=str(workspace), mcpServers=[{"name": "x"}])["error"]
        assert error["message"] == "params.mcpServers[0].command: expected a string, received nothing"
