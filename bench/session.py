"""A session in a terminal: `isthmus` beside `gemini`, against the same endpoint: start, a long answer, many turns.

The terminal is a pseudo-terminal of 80x24 cells. CPU and memory are the whole process tree's.
"""

import itertools
import json
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from bench.figures import Figure, beside
from bench.gemini import MODEL, GeminiCli
from bench.processes import ROOT, clean_home, program, tree_cpu, tree_memory

if TYPE_CHECKING:
    from support.pty_program import PtyProgram
    from support.wire_server import Answer, WireRequest

ROUNDS = 1
TOKENS = 6_000
"""Number of pieces of the long answer."""
TOKENS_PER_SECOND = 100
TURNS = 60
CHARACTERS_PER_TOKEN = 4
"""Rough size of a token, to compare the sizes of two requests."""
WIDTH, HEIGHT = 80, 24
STREAM_SECONDS = TOKENS / TOKENS_PER_SECOND * 3 + 60
"""Maximum time in seconds for the long answer."""
TYPING_SECONDS = 0.2
LONG, SHORT = "tell me a long story", "short question"
LAST = "the end of the story"


@dataclass(frozen=True, slots=True)
class SessionUsage:
    """One session. CPU in seconds, memory in MiB, bytes written to the terminal, tokens of the first request."""

    start_cpu: float
    start_memory: float
    answer_cpu: float
    answer_memory: float
    answer_bytes: float
    turns_memory: float
    fixed_tokens: float


@dataclass(frozen=True, slots=True)
class TerminalAgent:
    """A command for a terminal; ``prompt`` matches its screen when it waits for a prompt."""

    command: Sequence[str]
    environment: Mapping[str, str]
    prompt: str


def run(rounds: int | None) -> list[Figure]:
    """Run interleaved rounds and return medians."""
    sys.path.append(str(ROOT / "tests"))  # the endpoint and the terminal run in this process
    from support.wire_server import WireServer

    with clean_home() as environment, WireServer(answer) as server:
        gemini = GeminiCli(environment, server.base_url)
        ours = {**environment, "GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": server.base_url}
        agents = {
            "isthmus": TerminalAgent(
                [program("isthmus"), "-m", f"gemini:{MODEL}", "--no-ide"], ours, r"(?m)^\u203a ?$"
            ),
            "gemini": TerminalAgent(gemini.command(), gemini.environment, r"Type your message"),
        }
        found: dict[str, list[SessionUsage]] = {name: [] for name in agents}
        for agent in agents.values():
            begun_session(agent)  # the first run writes byte code, databases and caches
        for _ in range(rounds or ROUNDS):
            for name, agent in agents.items():
                found[name].append(session(agent, server.requests))
    peer = f"gemini {gemini.version}"
    return [
        _figure("start to prompt, CPU", "s", peer, found, lambda usage: usage.start_cpu),
        _figure("start to prompt, memory", "MiB", peer, found, lambda usage: usage.start_memory),
        _figure(f"{TOKENS:,} tokens, CPU", "s", peer, found, lambda usage: usage.answer_cpu),
        _figure(f"{TOKENS:,} tokens, to the terminal", "kB", peer, found, lambda usage: usage.answer_bytes / 1000),
        _figure(f"{TOKENS:,} tokens, memory", "MiB", peer, found, lambda usage: usage.answer_memory),
        _figure(f"{TURNS} turns, memory", "MiB", peer, found, lambda usage: usage.turns_memory),
        _figure("first request, fixed tokens", "", peer, found, lambda usage: usage.fixed_tokens),
    ]


def _figure(
    name: str, unit: str, peer: str, found: Mapping[str, Sequence[SessionUsage]], value: Callable[[SessionUsage], float]
) -> Figure:
    ours, peers = (median(value(usage) for usage in found[agent]) for agent in ("isthmus", "gemini"))
    return beside(name, ours, unit, peer, peers, at_most=1)


def answer(request: "WireRequest") -> "Answer":
    """Return the model's answer: a long one in many pieces, or a short one at once."""
    from support.wire_server import Answer, Pause

    if request.path.endswith(":countTokens"):
        return Answer.json({"totalTokens": 10})
    text = request.body.decode("utf-8", "replace")
    # Gemini CLI asks a model about the conversation, too; those requests have no tools.
    is_long = _is_of_the_agent(request) and SHORT not in text
    if not request.path.endswith(":streamGenerateContent"):
        return Answer.json(_chunk("{}", is_last=True))
    if not is_long:
        asked = re.findall(rf"{SHORT} (\d+)", text)
        return _stream([_chunk(f"Answer to {asked[-1] if asked else 0}.", is_last=True)])
    words = [f"word{number} " + ("\n" if number % 20 == 19 else "") for number in range(TOKENS)]
    chunks = [*(_chunk(word) for word in words), _chunk(LAST, is_last=True)]
    pieces = [(_event(chunk), Pause(1 / TOKENS_PER_SECOND)) for chunk in chunks]
    return Answer(200, {"content-type": "text/event-stream"}, tuple(itertools.chain.from_iterable(pieces)))


def _is_of_the_agent(request: "WireRequest") -> bool:
    return LONG.encode() in request.body and b'"functionDeclarations"' in request.body


def _stream(chunks: Sequence[Mapping[str, Any]]) -> "Answer":
    from support.wire_server import Answer

    return Answer(200, {"content-type": "text/event-stream"}, tuple(map(_event, chunks)))


def _event(chunk: Mapping[str, Any]) -> bytes:
    return b"data: " + json.dumps(chunk).encode() + b"\r\n\r\n"


def _chunk(text: str, *, is_last: bool = False) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"parts": [{"text": text}], "role": "model"}, "index": 0}
    if is_last:
        candidate["finishReason"] = "STOP"
    usage = {"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110}
    return {"candidates": [candidate], "modelVersion": MODEL, "usageMetadata": usage}


def begun_session(agent: TerminalAgent) -> None:
    """Start an agent, wait for its prompt and end it."""
    with _terminal(agent) as terminal:
        terminal.wait_for(agent.prompt, 60)


def session(agent: TerminalAgent, requests: Sequence["WireRequest"]) -> SessionUsage:
    """Hold one session with an agent, and return what it used; ``requests`` are the endpoint's so far."""
    before = len(requests)
    with _terminal(agent) as terminal:
        terminal.wait_for(agent.prompt, 60)
        pid = terminal.process.pid
        start_cpu, start_memory = tree_cpu(pid), tree_memory(pid)
        written = len(terminal.received)
        _type(terminal, LONG)
        terminal.wait_for(LAST, STREAM_SECONDS)
        terminal.wait_for(agent.prompt, 60)
        answer_cpu, answer_memory = tree_cpu(pid) - start_cpu, tree_memory(pid)
        answer_bytes = len(terminal.received) - written
        for number in range(1, TURNS + 1):
            _type(terminal, f"{SHORT} {number}")
            terminal.wait_for(rf"Answer to {number}\.", 60).wait_for(agent.prompt, 60)
        turns_memory = tree_memory(pid)
    first = next(request for request in requests[before:] if _is_of_the_agent(request))
    sizes = {key: len(json.dumps(first.json.get(key, ""))) for key in ("systemInstruction", "tools", "contents")}
    fixed = sum(sizes.values()) / CHARACTERS_PER_TOKEN
    return SessionUsage(start_cpu, start_memory, answer_cpu, answer_memory, answer_bytes, turns_memory, fixed)


def _type(terminal: "PtyProgram", prompt: str) -> None:
    """Type a prompt, and send it as slowly as a user: Gemini CLI takes a fast Enter for a part of a paste."""
    terminal.press(prompt).wait_for(rf"{prompt}\b")
    time.sleep(TYPING_SECONDS)
    terminal.press("\r")


def _terminal(agent: TerminalAgent) -> Any:
    from support.pty_program import pty_program

    folder = Path(agent.environment["PWD"])
    return pty_program(agent.command, folder=folder, environment=agent.environment, columns=WIDTH, rows=HEIGHT)
