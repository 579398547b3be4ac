"""The real Claude Agent and Codex as ACP agents, with scripted models. `make agents` installs them: they are large.

ISTHMUS_CLAUDE_AGENT_ACP and ISTHMUS_CODEX_ACP are the paths of their programs, read before the first test hides them.
"""

import json
import os
import threading
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from isthmus.acp.host.agents import claude_agent_acp, codex_acp
from isthmus.acp.host.known_agent import KnownAgent
from isthmus.acp.host.limits import HostLimits
from support.acp_hosting import AcpHosting, acp_hosting
from support.anthropic_wire import AnthropicWire
from support.programs import require
from support.responses_wire import ResponsesWire
from support.scripted_wire import Call, Reply, Say
from support.wire_server import WireRequest

PROGRAMS = {
    "claude": os.environ.get("ISTHMUS_CLAUDE_AGENT_ACP", ""),
    "codex": os.environ.get("ISTHMUS_CODEX_ACP", ""),
}
"""Path of each program; empty if it is not installed."""
INSTALLED = tuple(name for name, path in PROGRAMS.items() if path)
COLORS = [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]
CODEX_ASKS = """
approval_policy = "on-request"
sandbox_mode = "read-only"
"""
CODEX_SETTINGS = """
model = "gpt-5.5"
model_provider = "test"
[features]
default_mode_request_user_input = true
[model_providers.test]
name = "test"
base_url = "{url}"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
request_max_retries = 0
stream_max_retries = 0
"""


@dataclass(slots=True)
class AgentScript:
    """Answers of a model: a list for the agent's turns, and a title for whatever else the agent asks the model for."""

    replies: list[Reply] = field(default_factory=list[Reply])
    requests: list[WireRequest] = field(default_factory=list[WireRequest])
    """Requests of turns."""
    otherwise: Reply | None = None
    """The answer when the list is used up."""
    unexpected: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, request: WireRequest) -> Reply:
        if not request.json.get("tools") or b"[SUGGESTION MODE" in request.body:
            return Reply.of(Say("A title"))
        with self._lock:
            self.requests.append(request)
            if self.replies:
                return self.replies.pop(0)
            if self.otherwise is not None:
                return self.otherwise
            self.unexpected += 1
            return Reply.of(Say("The script has no more replies."))

    def add(self, *replies: Reply) -> None:
        """Add replies at the end of the list."""
        with self._lock:
            self.replies.extend(replies)

    def forget(self) -> None:
        """Remove the replies that were not requested yet."""
        with self._lock:
            self.replies.clear()


@dataclass(slots=True)
class InstalledAgent:
    """A real agent and its model. Calls of the model have ids of their own, by ``number``."""

    name: str
    agent: KnownAgent
    script: AgentScript
    environment: Mapping[str, str]
    number: int = 0

    @property
    def is_claude(self) -> bool:
        """Whether it is Claude Agent."""
        return self.name == "claude"

    def edits(self, path: Path) -> None:
        """Have the model change "two" to "TWO" in a file of three lines."""
        if self.is_claude:
            change = {"file_path": str(path), "old_string": "two", "new_string": "TWO"}
            self.script.add(Reply.of(Say("I look. "), self._call("Read", {"file_path": str(path)})))
            self.script.add(Reply.of(self._call("Edit", change)))
        else:
            patch = f"*** Begin Patch\n*** Update File: {path}\n@@\n one\n-two\n+TWO\n three\n*** End Patch\n"
            self.script.add(Reply.of(Say("I change it. "), self._call("apply_patch", patch)))

    def runs(self, command: str) -> None:
        """Have the model run a command that the agent must ask about."""
        if self.is_claude:
            self.script.add(Reply.of(self._call("Bash", {"command": command, "description": "a test"})))
        else:
            asked = {"cmd": command, "sandbox_permissions": "require_escalated", "justification": "a test"}
            self.script.add(Reply.of(self._call("exec_command", asked)))

    def asks(self) -> None:
        """Have the model ask the user for a color."""
        question = {"header": "Color", "question": "Which color?", "options": COLORS}
        if self.is_claude:
            questions = [{**question, "multiSelect": False}]
            self.script.add(Reply.of(self._call("AskUserQuestion", {"questions": questions})))
        else:
            self.script.add(Reply.of(self._call("request_user_input", {"questions": [{**question, "id": "color"}]})))

    def says(self, *texts: str) -> None:
        """Have the model say something."""
        self.script.add(Reply.of(Say(*texts)))

    @property
    def told(self) -> str:
        """What the model received last, as JSON."""
        return json.dumps(self.script.requests[-1].json)

    @asynccontextmanager
    async def hosted(self, folder: Path) -> AsyncGenerator[AcpHosting]:
        """Serve it."""
        limits = HostLimits(cancel_seconds=20, commands_seconds=60)  # it may start slowly beside other tests
        variables, command = tuple(self.environment), program_of(self.name)
        hosted = acp_hosting(folder, agent=self.agent, limits=limits, command=command, variables=variables)
        async with hosted as hosting:
            yield hosting

    def _call(self, name: str, arguments: Mapping[str, object] | str) -> Call:
        self.number += 1
        return Call(name, arguments, id=f"toolu_{self.number}")


def program_of(name: str) -> tuple[str, ...]:
    """Return the command of an agent."""
    path = PROGRAMS[name]
    return (str(require("node")), path) if path.endswith(".js") else (path,)


@contextmanager
def installed_agent(name: str, *, asks: bool = True) -> Generator[InstalledAgent]:
    """Run the model of an agent, and write the agent's settings into HOME.

    If it ``asks``, they tell it to ask before each change: by themselves both leave most of that to their models.
    """
    script = AgentScript()
    with AnthropicWire(script) if name == "claude" else ResponsesWire(script) as wire:
        folder = Path(os.environ["HOME"], f".{name}")
        folder.mkdir(exist_ok=True)
        if name == "claude":
            settings = {"permissions": {"defaultMode": "default"}} if asks else {}
            (folder / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
            environment = {
                "ANTHROPIC_BASE_URL": wire.base_url,
                "ANTHROPIC_API_KEY": "sk-ant-api03-" + "x" * 40,
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "IS_SANDBOX": "1",  # tests may run as root, which it refuses otherwise
            }
            yield InstalledAgent(name, claude_agent_acp.AGENT, script, environment)
        else:
            settings = (CODEX_ASKS if asks else "") + CODEX_SETTINGS.format(url=wire.base_url)
            (folder / "config.toml").write_text(settings, encoding="utf-8")
            environment = {"OPENAI_API_KEY": "none", **({"INITIAL_AGENT_MODE": "read-only"} if asks else {})}
            yield InstalledAgent(name, codex_acp.AGENT, script, environment)
