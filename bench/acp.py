"""An agent over ACP: `isthmus acp` beside `gemini --acp` and `opencode acp`, against the same endpoint.

Ready is the answer to `session/new`, after `initialize`; the first update is about the first prompt's text.
"""

import itertools
import json
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Any

import psutil

from bench.figures import Figure, beside
from bench.gemini import MODEL, GeminiCli
from bench.processes import ROOT, clean_home, program, tree_cpu, tree_memory

ROUNDS = 3
CHUNKS = 2000
"""Number of pieces in which the model's long answer is streamed."""
OPENCODE = ROOT / "tests" / "peers" / "node" / "node_modules" / "opencode-linux-x64"


@dataclass(frozen=True, slots=True)
class AcpUsage:
    """One run of an agent. CPU is its process tree's in seconds, memory in MiB after the long answer."""

    ready_cpu: float
    ready_seconds: float
    first_update_seconds: float
    answer_cpu: float
    updates: int
    memory: float


@dataclass(frozen=True, slots=True)
class AcpAgent:
    """A command that speaks ACP, and its environment."""

    command: Sequence[str]
    environment: Mapping[str, str]


def run(rounds: int | None) -> list[Figure]:
    """Run interleaved rounds and return medians."""
    sys.path.append(str(ROOT / "tests"))  # the endpoints run in this process
    from support.gemini_wire import GeminiWire

    chunks = [f"word {number} " for number in range(CHUNKS)]
    with clean_home() as environment, GeminiWire(_replies(chunks)) as wire, _openai(chunks) as openai_url:
        agents = _agents(environment, wire.base_url, openai_url)
        found: dict[str, list[AcpUsage]] = {name: [] for name in agents}
        for name in agents:
            _measure(agents[name])  # writes byte code, databases and caches
        for _ in range(rounds or ROUNDS):
            for name, agent in agents.items():
                found[name].append(_measure(agent))
    return list(_figures(found))


def _figures(found: Mapping[str, Sequence[AcpUsage]]) -> Generator[Figure]:
    kinds: Sequence[tuple[str, Callable[[AcpUsage], float], str]] = (
        ("ready, CPU", lambda usage: usage.ready_cpu, "s"),
        ("ready", lambda usage: usage.ready_seconds, "s"),
        ("start to first update", lambda usage: usage.ready_seconds + usage.first_update_seconds, "s"),
        (f"an answer in {CHUNKS} pieces, CPU", lambda usage: usage.answer_cpu, "s"),
        ("memory after it", lambda usage: usage.memory, "MiB"),
    )
    peers = [name for name in found if name != "isthmus"]
    fastest = min(median(usage.ready_cpu for usage in found[name]) for name in peers)
    for kind, value, unit in kinds:
        ours = median(map(value, found["isthmus"]))
        for name in peers:
            theirs = median(map(value, found[name]))
            is_goal = kind == "ready, CPU" and theirs == fastest
            yield beside(kind, ours, unit, name, theirs, at_most=0.25 if is_goal else None)
    yield Figure("updates of that answer", median(usage.updates for usage in found["isthmus"]), "")


def _agents(environment: Mapping[str, str], gemini_url: str, openai_url: str) -> dict[str, AcpAgent]:
    gemini = GeminiCli(environment, gemini_url)
    with_key = {**environment, "GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": gemini_url}
    agents = {
        "isthmus": AcpAgent([program("isthmus"), "acp", "-m", f"gemini:{MODEL}"], with_key),
        f"gemini {gemini.version} --acp": AcpAgent(gemini.command("--acp"), gemini.environment),
    }
    binary = OPENCODE / "bin" / "opencode"
    if binary.is_file():
        version = json.loads((OPENCODE / "package.json").read_text(encoding="utf-8"))["version"]
        agents[f"opencode {version} acp"] = AcpAgent([str(binary), "acp"], _opencode(environment, openai_url))
    return agents


def _opencode(environment: Mapping[str, str], url: str) -> dict[str, str]:
    """Return the environment in which OpenCode uses an endpoint of ours, and looks for nothing elsewhere."""
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": url, "apiKey": "none"},
        "models": {"practice": {"name": "practice"}},
    }
    config = {
        "provider": {"practice": provider},
        "model": "practice/practice",
        "autoupdate": False,
        "share": "disabled",
    }
    return {**environment, "OPENCODE_CONFIG_CONTENT": json.dumps(config), "OPENCODE_DISABLE_MODELS_FETCH": "1"}


def _replies(chunks: Sequence[str]) -> Callable[[Any], Any]:
    from support.scripted_wire import Reply, Say

    def reply(request: Any) -> Any:
        return Reply.of(Say(*chunks)) if b"at length" in request.body else Reply.of(Say("Hello."))

    return reply


@contextmanager
def _openai(chunks: Sequence[str]) -> Generator[str]:
    from support.openai_wire import OpenAIWire

    with OpenAIWire(_replies(chunks)) as wire:
        yield wire.base_url


def _measure(agent: AcpAgent) -> AcpUsage:
    """Start an agent, and run a short and a long prompt."""
    begin = time.monotonic()
    process = subprocess.Popen(
        agent.command,
        env=dict(agent.environment),
        cwd=agent.environment["PWD"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        client = _Client(process)
        client.request("initialize", protocolVersion=1, clientCapabilities={})
        session_id = client.request("session/new", cwd=agent.environment["PWD"], mcpServers=[])["sessionId"]
        ready_seconds, ready_cpu = time.monotonic() - begin, tree_cpu(process.pid)
        asked = time.monotonic()
        client.prompt(session_id, "Say hello.")
        first = client.first_text_at - asked
        before = tree_cpu(process.pid)
        updates = client.prompt(session_id, "Explain at length.")
        cpu = tree_cpu(process.pid) - before
        return AcpUsage(ready_cpu, ready_seconds, first, cpu, updates, tree_memory(process.pid))
    finally:
        for child in psutil.Process(process.pid).children(recursive=True):
            child.kill()
        process.kill()
        process.communicate()


class _Client:
    """A client that sends one request after another, and answers no question."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process
        self._ids = itertools.count(1)
        self.first_text_at = time.monotonic()
        self._texts = 0

    def prompt(self, session_id: str, text: str) -> int:
        """Run a prompt to its end, and return the number of updates with text."""
        self._texts = 0
        response = self.request("session/prompt", sessionId=session_id, prompt=[{"type": "text", "text": text}])
        if response.get("stopReason") != "end_turn" or not self._texts:
            raise RuntimeError(f"expected an answer in texts, received {response}")
        return self._texts

    def request(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request and return its result."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        number = next(self._ids)
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()
        while line := self._process.stdout.readline():
            received: dict[str, Any] = json.loads(line)
            update = received.get("params", {}).get("update", {})
            if update.get("sessionUpdate") == "agent_message_chunk":
                self.first_text_at = self.first_text_at if self._texts else time.monotonic()
                self._texts += 1
            if received.get("id") == number and "method" not in received:
                if "result" not in received:
                    raise RuntimeError(f"{method}: {received}")
                return received["result"]
        raise RuntimeError(f"{method}: the agent ended with status {self._process.wait(10)}")
