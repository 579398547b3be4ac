"""The whole program in a terminal of its own, with a scripted model."""

import json
import os
import subprocess
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from support.isthmus_program import ISTHMUS
from support.pty_program import PtyProgram, pty_program
from support.wire_server import Answer, WireServer

PROMPT = r"(?m)^\u203a ?$"
"""Matches a screen with an empty prompt."""


class Sessions:
    """Starts the program in one folder, with one data folder and one script."""

    def __init__(self, folder: Path, script: str, workspace: Path) -> None:
        self.workspace = workspace
        self._script = folder / "script.yaml"
        self._script.write_text(script, "utf-8")
        self.data = folder / "data"

    @property
    def options(self) -> tuple[str, ...]:
        """The options that choose the model and the data folder."""
        return ("-m", f"scripted:{self._script}", "--no-ide", "--data-dir", str(self.data))

    @contextmanager
    def terminal(
        self, *arguments: str, environment: Mapping[str, str] | None = None, columns: int = 120, rows: int = 100
    ) -> Generator[PtyProgram]:
        """Start it with further arguments."""
        variables = {**os.environ, "TERM": "xterm-256color", **(environment or {})}
        command = [*ISTHMUS, *self.options, *arguments]
        with pty_program(command, folder=self.workspace, environment=variables, columns=columns, rows=rows) as terminal:
            yield terminal


def model_request(*arguments: str, folder: Path) -> str:
    """Run the program with a model provider that answers, and return the messages of its last request, as JSON."""
    done = {"choices": [{"index": 0, "delta": {"content": "Answered."}, "finish_reason": "stop"}]}
    body = f"data: {json.dumps({'id': '1', 'object': 'chat.completion.chunk', **done})}\n\ndata: [DONE]\n\n".encode()
    with WireServer(lambda request: Answer(200, {"Content-Type": "text/event-stream"}, (body,))) as server:
        ended = subprocess.run(
            [*ISTHMUS, "-m", "openai:gpt-4.1", "--no-ide", *arguments],
            cwd=folder, input="", capture_output=True, text=True, timeout=100, check=False,
            env={**os.environ, "OPENAI_API_KEY": "a-key-of-some-length", "OPENAI_BASE_URL": f"{server.base_url}/v1"},
        )  # fmt: skip
        assert ended.returncode == 0, ended.stderr
        # The program also asks a local server how large its model's context is.
        bodies = [json.loads(request.body) for request in server.requests if request.path.endswith("/chat/completions")]
        return json.dumps(bodies[-1]["messages"])
