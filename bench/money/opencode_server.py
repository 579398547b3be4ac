"""opencode as one server for the whole session, over HTTP: a process for each prompt takes 10 s of a processor."""

import re
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx2


class OpenCodeServer:
    """A server with one session.

    Raises:
        RuntimeError: the server did not start within ``seconds``, or refused a request.
    """

    def __init__(self, program: Path, folder: Path, environment: Mapping[str, str], seconds: float) -> None:
        self._process = subprocess.Popen(
            [program, "serve", "--port", "0", "--hostname", "127.0.0.1"],
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
        )
        self._seconds = seconds
        timer = threading.Timer(seconds, self._process.kill)
        timer.start()
        try:
            self._url = self._address()
        finally:
            timer.cancel()
        self._session: str = self._post("/session", {})["id"]

    def prompt(self, text: str, agent: str, provider: str, model: str) -> None:
        """Send a prompt for one of its agents, ``build`` or ``plan``; return when the turn has ended."""
        chosen = {"providerID": provider, "modelID": model}
        body = {"agent": agent, "model": chosen, "parts": [{"type": "text", "text": text}]}
        self._post(f"/session/{self._session}/message", body)

    def summarize(self, provider: str, model: str) -> None:
        """Have it summarize the session."""
        self._post(f"/session/{self._session}/summarize", {"providerID": provider, "modelID": model})

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()

    def _address(self) -> str:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if found := re.search(r"http://\S+", line):
                return found[0]
        raise RuntimeError("opencode did not print the address of its server")

    def _post(self, path: str, body: Mapping[str, Any]) -> Any:
        try:
            answer = httpx2.post(f"{self._url}{path}", json=body, timeout=self._seconds)
            answer.raise_for_status()
            return answer.json()
        except (httpx2.HTTPError, ValueError) as error:
            raise RuntimeError(f"opencode, {path}: {error}") from error
