"""The real Gemini CLI as a peer: its command, a home in which it asks nothing, and an endpoint that answers at once."""

import json
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from bench.processes import ROOT, program, python_program, server

PACKAGE = ROOT / "tests" / "peers" / "node" / "node_modules" / "@google" / "gemini-cli"
MODEL = "gemini-2.5-flash"
SETTINGS = {
    "ide": {"enabled": False, "hasSeenNudge": True},
    "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
    "general": {
        "enableAutoUpdate": False,
        "enableAutoUpdateNotification": False,
        "checkpointing": {"enabled": False},
    },
    "model": {"name": MODEL},
}


class GeminiCli:
    """The command and environment of Gemini CLI, in a home of :func:`bench.processes.clean_home`."""

    def __init__(self, environment: Mapping[str, str], endpoint: str | None = None) -> None:
        self._bundle = PACKAGE / "bundle" / "gemini.js"
        if not self._bundle.is_file():
            raise RuntimeError(f"the Gemini CLI is not in {PACKAGE}; `make peers` installs it")
        self.version: str = json.loads((PACKAGE / "package.json").read_text(encoding="utf-8"))["version"]
        settings = Path(environment["HOME"]) / ".gemini" / "settings.json"
        settings.parent.mkdir(exist_ok=True)
        settings.write_text(json.dumps(SETTINGS), encoding="utf-8")
        more = {"GOOGLE_GEMINI_BASE_URL": endpoint} if endpoint else {}
        # Offline, every look-up stalls until the resolver's timeout.
        self.environment = {**environment, "GEMINI_API_KEY": "none", "RES_OPTIONS": "timeout:1 attempts:1", **more}

    def command(self, *arguments: str) -> list[str]:
        """Return the command as npm starts it: with its own relaunch, unless GEMINI_CLI_NO_RELAUNCH is set."""
        return [program("node"), str(self._bundle), *arguments]


@contextmanager
def endpoint(environment: Mapping[str, str]) -> Generator[str]:
    """Run a Gemini endpoint that answers every prompt at once, in its own process, and yield its URL."""
    script = Path(environment["TMPDIR"]) / "replies.yaml"
    script.write_text("- {text: Hello., finish: stop}\n", encoding="utf-8")
    with server(python_program("support.gemini_wire", "--script", str(script)), environment) as running:
        yield running.first_line
