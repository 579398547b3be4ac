"""The whole program in a terminal of its own, with a scripted model."""

import json
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.isthmus_program import InProcess
from support.loaded_program import LoadedProgram
from support.pty_program import PtyProgram
from support.wire_server import Answer, WireServer

PROMPT = r"(?m)^\u203a ?$"
"""Matches a screen with an empty prompt."""


class Sessions:
    """Starts the program in one folder, with one data folder and one script."""

    def __init__(self, folder: Path, script: str, workspace: Path, loaded: LoadedProgram) -> None:
        self._loaded = loaded
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
        with self._loaded.terminal(
            *self.options, *arguments, folder=self.workspace, environment=variables, columns=columns, rows=rows
        ) as terminal:
            yield terminal


def model_request(run: InProcess, *arguments: str) -> str:
    """Run a command with a model provider that answers, and return the messages of its last request, as JSON."""
    done = {"choices": [{"index": 0, "delta": {"content": "Answered."}, "finish_reason": "stop"}]}
    body = f"data: {json.dumps({'id': '1', 'object': 'chat.completion.chunk', **done})}\n\ndata: [DONE]\n\n".encode()
    with (
        WireServer(lambda request: Answer(200, {"Content-Type": "text/event-stream"}, (body,))) as server,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("OPENAI_API_KEY", "a-key-of-some-length")
        patch.setenv("OPENAI_BASE_URL", f"{server.base_url}/v1")
        status, _, errors = run("-m", "openai:gpt-4.1", "--no-ide", *arguments)
        assert status == 0, errors
        # The program also asks a local server how large its model's context is.
        bodies = [json.loads(request.body) for request in server.requests if request.path.endswith("/chat/completions")]
        return json.dumps(bodies[-1]["messages"])
