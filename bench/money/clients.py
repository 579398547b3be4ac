"""The clients of the session: how each one is run for a prompt, once more for the next one, and what belongs to it.

Each prompt is a process of its own that continues the session before it.
"""

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from typing_extensions import override

from bench.gemini import PACKAGE as GEMINI_PACKAGE
from bench.gemini import SETTINGS as GEMINI_SETTINGS
from bench.money.acp_client import AcpProcess
from bench.money.opencode_server import OpenCodeServer
from bench.money.prompt import Wire
from bench.money.script import Step
from bench.processes import ROOT, program

MODELS: Mapping[Wire, str] = {
    "anthropic": "claude-sonnet-5",
    "chat": "gpt-5.5",
    "responses": "gpt-5.6-sol",
    "gemini": "gemini-3-flash-preview",
}
"""Models that every client of a wire knows: one of each way to bill."""
CLAUDE, CODEX = "ISTHMUS_CLAUDE", "ISTHMUS_CODEX"
"""Variables that name programs which are not among the peers of the tests."""
OPENCODE = ROOT / "tests" / "peers" / "node" / "node_modules" / "opencode-linux-x64" / "bin" / "opencode"
_PACKAGES: Mapping[Wire, str] = {"anthropic": "@ai-sdk/anthropic", "chat": "@ai-sdk/openai-compatible"}
"""Packages of opencode by the wires that they speak."""
_USUAL_SIZE = 150_000
"""Tokens of the conversation at the step that asks for a summary."""
_KEY = "sk-ant-api03-" + "x" * 40
SECONDS = 180
"""Maximum time of one process, or of one prompt."""
_SMALL_WINDOW = 40_000
"""Tokens of a window in which a client without a command for it summarizes its conversation."""


@dataclass(frozen=True, slots=True)
class Place:
    """Folders and address of one session; ``environment`` is of :func:`bench.processes.clean_home`."""

    environment: Mapping[str, str]
    workspace: Path
    url: str

    @property
    def home(self) -> Path:
        """Folder with the settings of the user."""
        return Path(self.environment["HOME"])


@dataclass(slots=True)
class Client:
    """A command-line agent on one wire; ``memory`` is the name of the file with the user's instructions."""

    wire: Wire
    name: str
    memory: str

    def missing(self) -> str:
        """Return why the client cannot be run; empty if it can."""
        return ""

    def prepare(self, place: Place) -> Mapping[str, str]:
        """Write its settings, and return its environment."""
        raise NotImplementedError

    def commands(self, place: Place, step: Step) -> list[list[str]]:
        """Return the commands that run a step, one after the other; clients with one process override :meth:`run`."""
        raise NotImplementedError

    def run(self, place: Place, variables: Mapping[str, str], step: Step) -> Iterator[str]:
        """Run a step, and yield what went wrong; processes that take too long are ended."""
        for command in self.commands(place, step):
            try:
                done = subprocess.run(
                    command, cwd=place.workspace, env=dict(variables), stdin=subprocess.DEVNULL, capture_output=True,
                    text=True, encoding="utf-8", errors="replace", check=False, timeout=SECONDS,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                yield f"it did not end within {SECONDS} s"
                continue
            if done.returncode:
                yield f"it ended with {done.returncode}: {done.stdout[-600:]}\n{done.stderr[-600:]}"

    def close(self) -> None:
        """End what goes on after a step."""


class Isthmus(Client):
    """Our agent."""

    def __init__(self, wire: Wire) -> None:
        super().__init__(wire, "isthmus", "AGENTS.md")

    @override
    def prepare(self, place: Place) -> Mapping[str, str]:
        openai = {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": f"{place.url}/v1"}
        match self.wire:
            case "anthropic":
                return {"ANTHROPIC_API_KEY": _KEY, "ANTHROPIC_BASE_URL": place.url}
            case "gemini":
                return {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": place.url}
            case "chat" | "responses":
                return openai

    @override
    def commands(self, place: Place, step: Step) -> list[list[str]]:
        provider = {"chat": "openai"}.get(self.wire, self.wire)
        mode = "plan" if step.kind == "plan" else "yolo"
        common = [program("isthmus"), "-m", f"{provider}:{MODELS[self.wire]}", "--no-ide"]
        again = ["--continue"] if step.number > 1 else []
        run = [*common, *again, "--approval-mode", mode, "-p", step.prompt]
        return [[*common, *again, "-p", "/compress"], run] if step.kind == "compact" else [run]


class ClaudeCode(Client):
    """Claude Code, whose path ISTHMUS_CLAUDE names."""

    def __init__(self) -> None:
        super().__init__("anthropic", "Claude Code", "CLAUDE.md")

    @override
    def missing(self) -> str:
        return _missing(CLAUDE)

    @override
    def prepare(self, place: Place) -> Mapping[str, str]:
        project = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
        settings = {
            "hasCompletedOnboarding": True,
            "theme": "dark",
            "customApiKeyResponses": {"approved": [_KEY[-20:]], "rejected": []},
            "projects": {str(place.workspace): project},
        }
        (place.home / ".claude.json").write_text(json.dumps(settings), encoding="utf-8")
        return {
            "ANTHROPIC_BASE_URL": place.url,
            "ANTHROPIC_API_KEY": _KEY,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        }

    @override
    def commands(self, place: Place, step: Step) -> list[list[str]]:
        mode = "plan" if step.kind == "plan" else "acceptEdits"
        common = [os.environ[CLAUDE], "-p", "--model", MODELS["anthropic"], "--allowedTools", "Read,Edit,Bash"]
        again = ["--continue"] if step.number > 1 else []
        run = [*common, "--permission-mode", mode, *again, "--", step.prompt]
        return [[*common, *again, "--", "/compact"], run] if step.kind == "compact" else [run]


class GeminiCli(Client):
    """Gemini CLI, of the peers of the tests."""

    def __init__(self) -> None:
        super().__init__("gemini", "Gemini CLI", "GEMINI.md")

    @override
    def missing(self) -> str:
        return "" if GEMINI_PACKAGE.is_dir() else f"{GEMINI_PACKAGE} is missing; `make peers` installs it"

    @override
    def prepare(self, place: Place) -> Mapping[str, str]:
        self._settings(place)
        return {
            "GEMINI_API_KEY": "none",
            "GOOGLE_GEMINI_BASE_URL": place.url,
            "GEMINI_CLI_NO_RELAUNCH": "1",
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
            "RES_OPTIONS": "timeout:1 attempts:1",
        }

    @override
    def commands(self, place: Place, step: Step) -> list[list[str]]:
        self._settings(place, _SMALL_WINDOW if step.kind == "compact" else 0)
        again = ["--resume", "latest"] if step.number > 1 else []
        mode = "plan" if step.kind == "plan" else "yolo"
        command = [program("node"), str(GEMINI_PACKAGE / "bundle" / "gemini.js"), "--model", MODELS["gemini"]]
        return [[*command, *again, "--approval-mode", mode, "--prompt", step.prompt]]

    def _settings(self, place: Place, window: int = 0) -> None:
        model = {"name": MODELS["gemini"], **({"compressionThreshold": window / 1_000_000} if window else {})}
        path = place.home / ".gemini" / "settings.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({**GEMINI_SETTINGS, "model": model}), encoding="utf-8")


class GeminiCliOverAcp(GeminiCli):
    """Gemini CLI as one process for the whole session, behind the Agent Client Protocol.

    It shows what the CLI costs without its way to continue a session, which sends results of tools twice. Over this
    protocol it has no command that summarizes; it does so by itself at about the size that others have then.
    """

    def __init__(self) -> None:
        super().__init__()
        self.name = "Gemini ACP"
        self._process: AcpProcess | None = None

    @override
    def prepare(self, place: Place) -> Mapping[str, str]:
        variables = super().prepare(place)
        self._settings(place, _USUAL_SIZE)
        return variables

    @override
    def run(self, place: Place, variables: Mapping[str, str], step: Step) -> Iterator[str]:
        try:
            if self._process is None:
                command = [program("node"), str(GEMINI_PACKAGE / "bundle" / "gemini.js"), "--acp"]
                self._process = AcpProcess([*command, "--model", MODELS["gemini"]], place.workspace, variables, SECONDS)
            mode = "plan" if step.kind == "plan" else "yolo"
            self._process.prompt(step.prompt, mode)
        except RuntimeError as error:
            yield str(error)

    @override
    def close(self) -> None:
        if self._process is not None:
            self._process.close()
            self._process = None


class OpenCode(Client):
    """OpenCode, of the peers of the tests, with the provider of a wire, as one server for the whole session."""

    def __init__(self, wire: Wire) -> None:
        super().__init__(wire, "opencode", "AGENTS.md")
        self._server: OpenCodeServer | None = None

    @override
    def missing(self) -> str:
        return "" if OPENCODE.is_file() else f"{OPENCODE} is missing; `make peers` installs it"

    @override
    def prepare(self, place: Place) -> Mapping[str, str]:
        self._settings(place)
        return {
            "OPENCODE_CONFIG": str(self._path(place)),
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "RES_OPTIONS": "timeout:1 attempts:1",
        }

    @override
    def run(self, place: Place, variables: Mapping[str, str], step: Step) -> Iterator[str]:
        try:
            if self._server is None:
                self._server = OpenCodeServer(OPENCODE, place.workspace, variables, SECONDS)
            if step.kind == "compact":
                self._server.summarize(*self._names())
            self._server.prompt(step.prompt, "plan" if step.kind == "plan" else "build", *self._names())
        except RuntimeError as error:
            yield str(error)

    @override
    def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    def _names(self) -> tuple[str, str]:
        """Return the names of the provider and the model."""
        return "anthropic" if self.wire == "anthropic" else "bench", MODELS[self.wire]

    def _path(self, place: Place) -> Path:
        return place.home / "opencode.json"

    def _settings(self, place: Place) -> None:
        owner, name = self._names()
        limit = {"context": 1_000_000, "output": 32_000}
        options = {"baseURL": f"{place.url}/v1", "apiKey": _KEY}
        media = {"input": ["text", "image"], "output": ["text"]}
        models = {name: {"name": name, "limit": limit, "attachment": True, "tool_call": True, "modalities": media}}
        provider = {"npm": _PACKAGES[self.wire], "options": options, "models": models}
        settings = {
            "provider": {owner: provider},
            "model": f"{owner}/{name}",
            "small_model": f"{owner}/{name}",
            "autoupdate": False,
            "share": "disabled",
        }
        self._path(place).write_text(json.dumps(settings), encoding="utf-8")


class Codex(Client):
    """Codex, whose path ISTHMUS_CODEX names."""

    def __init__(self) -> None:
        super().__init__("responses", "Codex", "AGENTS.md")

    @override
    def missing(self) -> str:
        return _missing(CODEX)

    @override
    def prepare(self, place: Place) -> Mapping[str, str]:
        folder = place.home / ".codex"
        folder.mkdir()
        lines = [
            f'model = "{MODELS["responses"]}"',
            'model_provider = "bench"',
            'approval_policy = "never"',
            "[model_providers.bench]",
            'name = "bench"',
            f'base_url = "{place.url}/v1"',
            'env_key = "OPENAI_API_KEY"',
            'wire_api = "responses"',
            "supports_websockets = false",
        ]
        (folder / "config.toml").write_text("\n".join([*lines, ""]), encoding="utf-8")
        return {"CODEX_HOME": str(folder), "OPENAI_API_KEY": "none"}

    @override
    def commands(self, place: Place, step: Step) -> list[list[str]]:
        sandbox = "read-only" if step.kind == "plan" else "danger-full-access"
        command = [os.environ[CODEX], "exec", "--skip-git-repo-check"]
        again = ["resume", "--last"] if step.number > 1 else []
        small = ["-c", f"model_auto_compact_token_limit={_SMALL_WINDOW}"] if step.kind == "compact" else []
        return [[*command, *again, "-c", f'sandbox_mode="{sandbox}"', *small, step.prompt]]


def _missing(variable: str) -> str:
    path = os.environ.get(variable, "")
    return "" if path and Path(path).is_file() else f"{variable} does not name its program"


def every_client() -> list[Client]:
    """Return our agent and its peers, wire by wire; ours comes first."""
    return [
        *(Isthmus("anthropic"), ClaudeCode(), OpenCode("anthropic")),
        *(Isthmus("chat"), OpenCode("chat")),
        *(Isthmus("responses"), Codex()),
        *(Isthmus("gemini"), GeminiCli(), GeminiCliOverAcp()),
    ]
