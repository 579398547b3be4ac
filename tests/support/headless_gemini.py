"""The real Gemini CLI with one prompt and no user, as a judge of what its settings mean."""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from support.gemini_cli import SETTINGS, gemini_environment
from support.gemini_wire import GeminiWire
from support.programs import node_package, require
from support.scripted_wire import Script

SECONDS = 120


class RunHere(Protocol):
    """Function that runs Isthmus in the process of the test, with a scripted model of Gemini's.

    Returns the exit status, the output, the errors, and the requests that the model got.
    """

    def __call__(self, *arguments: str, replies: Sequence[Script]) -> tuple[int, str, str, list[Any]]: ...


def gemini_settings(settings: Mapping[str, Any]) -> None:
    """Write the settings of the user, with those that the CLI needs to run here."""
    file = Path.home() / ".gemini" / "settings.json"
    file.parent.mkdir(exist_ok=True)
    values = {**SETTINGS, "ide": {"enabled": False, "hasSeenNudge": True}, **settings}
    file.write_text(json.dumps(values), encoding="utf-8")


def run_gemini_cli(
    folder: Path, *arguments: str, replies: Sequence[Script]
) -> tuple["subprocess.CompletedProcess[str]", list[Any]]:
    """Run the CLI to its end; return the process, and the requests that the model got."""
    program = node_package("@google/gemini-cli") / "bundle" / "gemini.js"
    with GeminiWire(replies) as wire:
        environment = {**os.environ, **gemini_environment(wire), "GEMINI_CLI_TRUST_WORKSPACE": "true"}
        done = subprocess.run(
            [str(require("node")), str(program), *arguments],
            cwd=folder, env=environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, encoding="utf-8", check=False, timeout=SECONDS,
        )  # fmt: skip
        return done, [request.json for request in wire.model_requests]
