"""A small client of the Agent Client Protocol: one process that keeps its session from prompt to prompt."""

import json
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


class AcpProcess:
    """An agent over its stdin and stdout; every permission that it asks for is given.

    Raises:
        RuntimeError: the agent refused a request, or ended.
    """

    def __init__(self, command: Sequence[str], folder: Path, environment: Mapping[str, str], seconds: float) -> None:
        self._process = subprocess.Popen(
            command,
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
        )
        self._seconds = seconds
        self._number = 0
        self._request("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        made = self._request("session/new", {"cwd": str(folder), "mcpServers": []})
        self._session: str = made["sessionId"]

    def prompt(self, text: str, mode: str) -> None:
        """Choose a mode, and send a prompt; return when its turn has ended."""
        self._request("session/set_mode", {"sessionId": self._session, "modeId": mode})
        self._request("session/prompt", {"sessionId": self._session, "prompt": [{"type": "text", "text": text}]})

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()

    def _request(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params})
        timer = threading.Timer(self._seconds, self._process.kill)
        timer.start()
        try:
            return self._answer(method)
        finally:
            timer.cancel()

    def _answer(self, method: str) -> Mapping[str, Any]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            try:
                message: dict[str, Any] = json.loads(line)
            except ValueError:
                continue
            if message.get("method") == "session/request_permission":
                allowed = next(each for each in message["params"]["options"] if each["kind"].startswith("allow"))
                outcome = {"outcome": "selected", "optionId": allowed["optionId"]}
                self._send({"id": message["id"], "result": {"outcome": outcome}})
            elif message.get("id") == self._number and "method" not in message:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message.get("result") or {}
        raise RuntimeError(f"{method}: the agent ended")

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self._process.stdin.flush()
