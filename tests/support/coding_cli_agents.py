"""The real Gemini CLI and Qwen Code as ACP agents, with scripted models: their commands, settings and variables."""

import json
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from isthmus.acp.host.agents import gemini, qwen
from isthmus.acp.host.known_agent import KnownAgent
from support.coding_cli import cli_environment
from support.gemini_cli import SETTINGS as GEMINI_SETTINGS
from support.gemini_cli import gemini_environment
from support.gemini_wire import GeminiWire
from support.openai_wire import OpenAIWire
from support.programs import node_package, require
from support.qwen_cli import SETTINGS as QWEN_SETTINGS
from support.scripted_wire import Call, Reply, Say, ScriptedWire

CHOSEN = tuple(os.environ.get("ACP_AGENTS", "gemini").split())
"""Names of the agents of this run: gemini, and in ``make agents`` qwen."""


@dataclass(frozen=True, slots=True)
class CodingCliAgent:
    """A CLI, its model, and how a test starts it."""

    agent: KnownAgent
    wire: ScriptedWire
    command: tuple[str, ...]
    environment: Mapping[str, str]

    def writes(self, path: Path, content: str) -> None:
        """Have the model read and rewrite a file, as each CLI requires."""
        arguments = {"file_path": str(path)}
        self.wire.add(Reply.of(Say("I look. "), Call("read_file", arguments)))
        self.wire.add(Reply.of(Call("write_file", {**arguments, "content": content})))


@contextmanager
def coding_cli_agent(name: str, *, asks: bool = True) -> Generator[CodingCliAgent]:
    """Run the model of a CLI, and write the CLI's settings into HOME; check at the end that the script sufficed.

    Without ``asks`` the settings leave it to the CLI what it asks.
    """
    settings: Mapping[str, object]
    wire: ScriptedWire
    if name == "gemini":
        wire, settings, agent = GeminiWire(), GEMINI_SETTINGS, gemini.AGENT
        program = node_package("@google/gemini-cli") / "bundle" / "gemini.js"
    else:
        wire, settings, agent = OpenAIWire(), QWEN_SETTINGS, qwen.AGENT
        program = node_package("@qwen-code/qwen-code") / "cli.js"
    if not asks:
        settings = {key: value for key, value in settings.items() if key != "tools"}
    folder = Path(os.environ["HOME"]) / f".{name}"
    folder.mkdir()
    (folder / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
    with wire:
        if isinstance(wire, GeminiWire):
            environment = gemini_environment(wire)
        else:
            model = {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": wire.base_url, "OPENAI_MODEL": "scripted"}
            environment = {**cli_environment(), **model, "QWEN_CODE_NO_RELAUNCH": "true"}
        yield CodingCliAgent(agent, wire, (str(require("node")), str(program), "--acp"), environment)
        assert wire.unexpected == 0
