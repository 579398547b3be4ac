"""ACP agents whose processes a test kills: the scripted one, and the real Gemini CLI, Qwen Code and OpenCode.

Prompts have the form ``prompt 7 edit``. A real agent's model changes a file by ``edit``, so that a repetition would
show, appends to another by a command with ``run``, and only answers ``hello``. It is asked once for each step.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil

from isthmus.runtime.group_guard import MARK
from support.acp_hosting import PROGRAM, prompts
from support.coding_cli import cli_environment
from support.gemini_cli import SETTINGS as GEMINI_SETTINGS
from support.gemini_cli import gemini_environment
from support.gemini_wire import GeminiWire
from support.openai_wire import OpenAIWire
from support.opencode_cli import configured
from support.programs import NODE_PEERS, node_package, require
from support.qwen_cli import SETTINGS as QWEN_SETTINGS
from support.scripted_wire import Call, Reply, Say, Script, ScriptedWire
from support.wire_server import Answer, Pause, WireRequest

_PROMPT = re.compile(r"prompt (\d+) (edit|run|hello)")
_LOG = "ran.txt"
"""File to which commands append."""
ORIGINAL = "one\ntwo\n"
_STREAM_SECONDS = 0.1
"""Time between two events of a model's stream: there is something to interrupt."""


def no_changes(_: int) -> Sequence[int]:
    """Return that no step was seen, for agents whose models do not exist."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KilledAgent:
    """An agent, as a test starts it and looks at what it does."""

    command: tuple[str, ...]
    allow: str
    """Option that allows a call once."""
    start_seconds: float
    """Time that it takes to start on a quiet machine, roughly."""
    edited: Callable[[int], str]
    """Returns the text of the file after the edit of a prompt."""
    received: Callable[[int], int]
    """Returns how often the agent has begun with a prompt."""
    steps: Callable[[int], Sequence[int]] = no_changes
    """Returns how often the model was asked for each step of a prompt."""
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    kinds: tuple[str, ...] = ("edit",)

    @property
    def arguments(self) -> tuple[str, ...]:
        """Arguments of ``isthmus serve``."""
        passed = [word for name in self.environment for word in ("--agent-env", name)]
        return ("--agent", shlex.join(self.command), "--trust-agent", *passed)


@dataclass(frozen=True, slots=True)
class Tools:
    """Calls of an agent's tools that read and edit a file, and run a command."""

    read: Callable[[str], Call]
    edit: Callable[[str, str, str], Call]
    run: Callable[[str], Call]


class Model:
    """A model of a real agent: it answers by what the request contains alone, and counts how often it was asked."""

    def __init__(self, tools: Tools, workspace: Path) -> None:
        self.asked: Counter[tuple[int, int]] = Counter()
        self.wire: ScriptedWire | None = None
        self._tools = tools
        self._workspace = workspace

    def received(self, number: int) -> int:
        """Return how often it was asked about a prompt that had no result yet."""
        return self.asked[number, 0]

    def steps(self, number: int) -> Sequence[int]:
        """Return how often it was asked for each step of a prompt."""
        return [count for (prompt, _), count in self.asked.items() if prompt == number]

    def reply(self, request: WireRequest) -> Script:
        """Return the next step of the last prompt, in pieces with pauses between them."""
        body = request.json
        number, kind, done = _last_prompt(body)
        if not body.get("tools") or number < 0:
            return Reply.of(Say("A title"))
        self.asked[number, done] += 1
        assert self.wire is not None
        step = self._step(number, kind, done)
        if isinstance(step, Call) and self.wire.provider == "openai":
            step = replace(step, id=f"call_{number}_{done}")  # Qwen Code ignores a call whose id it has seen
        reply = Reply.of(Say(f"Step {done} ", f"of {number}. "), step)
        pieces = [piece for event in self.wire.events(reply, request) for piece in (Pause(_STREAM_SECONDS), event)]
        return Answer(200, {"content-type": "text/event-stream"}, tuple(pieces))

    def _step(self, number: int, kind: str, done: int) -> Call | Say:
        path = str(self._workspace / "a.txt")
        match kind, done:
            case "edit", 0:
                return self._tools.read(path)
            case "edit", 1:
                return self._tools.edit(path, "two", f"{number}\ntwo")
            case "run", 0:
                return self._tools.run(f"echo begin {number} >> {_LOG}; sleep 0.3; echo end {number} >> {_LOG}")
            case _:
                return Say(f"You said: prompt {number} {kind}")


def _last_prompt(body: Mapping[str, Any]) -> tuple[int, str, int]:
    """Return the number and the kind of the last prompt in a model's request, and how many results followed it."""
    number, kind, done = -1, "", 0
    for item in body.get("messages") or body.get("contents") or ():
        text = json.dumps(item)
        if item["role"] == "tool" or "functionResponse" in text:
            done += 1
        elif item["role"] == "user" and (found := _PROMPT.findall(text)):
            number, kind, done = int(found[-1][0]), found[-1][1], 0
    return number, kind, done


def agent_processes() -> Sequence[psutil.Process]:
    """Return the processes of all agents of this test, without those that they started."""
    marked = [process for process in psutil.process_iter() if _is_marked(process)]
    pids = {process.pid for process in marked}
    found: list[psutil.Process] = []
    for process in marked:
        with suppress(psutil.Error):
            if process.ppid() not in pids:
                found.append(process)
    return found


def children_of_agents() -> Sequence[psutil.Process]:
    """Return the processes that agents of this test started, apart from commands."""
    return [process for process, is_command in _descendants() if not is_command]


def commands_of_agents() -> Sequence[psutil.Process]:
    """Return the processes of commands that agents of this test run, with their shells."""
    return [process for process, is_command in _descendants() if is_command]


def _descendants() -> Sequence[tuple[psutil.Process, bool]]:
    found: list[tuple[psutil.Process, bool]] = []
    for agent in agent_processes():
        with suppress(psutil.Error):
            for process in agent.children(recursive=True):
                words = " ".join(process.cmdline())
                found.append((process, _LOG in words or words.startswith("sleep")))
    return found


def _is_marked(process: psutil.Process) -> bool:
    try:
        environment = process.environ()
        return MARK in environment and environment.get("HOME") == os.environ["HOME"]
    except psutil.Error:
        return False


@contextmanager
def killed_agent(name: str, folder: Path, workspace: Path) -> Generator[KilledAgent]:
    """Return an agent by its name; the model of a real one answers until the end of the ``with`` block."""
    if name == "scripted":
        command = (sys.executable, str(PROGRAM))
        yield KilledAgent(
            command=command,
            allow="once",
            start_seconds=0.2,
            edited=lambda _: ORIGINAL.replace("two", "TWO"),
            received=lambda number: sum(f"prompt {number} " in prompt for prompt in prompts()),
        )
        return
    bin_folder = NODE_PEERS / "node_modules" / ".bin"
    environment = {**cli_environment(), "PATH": os.pathsep.join([_folder_of_node(), os.environ["PATH"]])}
    match name:
        case "gemini":
            node_package("@google/gemini-cli")
            model = Model(_GEMINI, workspace)
            wire, command, allow = GeminiWire(model.reply), (str(bin_folder / "gemini"), "--acp"), "proceed_once"
            _write_settings(".gemini", GEMINI_SETTINGS)
        case "qwen":
            node_package("@qwen-code/qwen-code")
            model = Model(_QWEN, workspace)
            wire, command, allow = OpenAIWire(model.reply), (str(bin_folder / "qwen"), "--acp"), "proceed_once"
            _write_settings(".qwen", QWEN_SETTINGS)
        case "opencode":
            program = node_package("opencode-linux-x64") / "bin" / "opencode"
            model = Model(_OPENCODE, workspace)
            wire, command, allow = OpenAIWire(model.reply), (str(program), "acp"), "once"
        case _:
            raise AssertionError(f"expected scripted, gemini, qwen or opencode as the agent, received {name!r}")
    model.wire = wire
    with wire:
        if isinstance(wire, GeminiWire):
            environment = {**gemini_environment(wire), "PATH": environment["PATH"]}
            del environment["GEMINI_CLI_NO_RELAUNCH"]  # it starts itself again, as with users
        elif name == "qwen":
            environment |= {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": wire.base_url, "OPENAI_MODEL": "scripted"}
        else:
            environment |= {"OPENCODE_CONFIG": str(configured(wire.base_url, folder))}
        yield KilledAgent(
            command=command,
            allow=allow,
            start_seconds=4,
            edited=lambda number: ORIGINAL.replace("two", f"{number}\ntwo"),
            received=model.received,
            steps=model.steps,
            environment=environment,
            kinds=("edit", "run"),
        )


def _folder_of_node() -> str:
    """Return the folder of the program itself: one in a virtual environment may be a script that starts it."""
    command = [require("node"), "-p", "process.execPath"]
    return str(Path(subprocess.run(command, check=True, capture_output=True, encoding="utf-8").stdout.strip()).parent)


def _write_settings(folder: str, settings: Mapping[str, Any]) -> None:
    path = Path(os.environ["HOME"]) / folder / "settings.json"
    path.parent.mkdir()
    path.write_text(json.dumps(settings), encoding="utf-8")


def _old_and_new(old: str, new: str) -> Mapping[str, str]:
    return {"old_string": old, "new_string": new}


_GEMINI = Tools(
    read=lambda path: Call("read_file", {"file_path": path}),
    edit=lambda path, old, new: Call(
        "replace", {"file_path": path, "instruction": "Insert a line.", **_old_and_new(old, new)}
    ),
    run=lambda command: Call("run_shell_command", {"command": command, "description": "Run it"}),
)
_QWEN = Tools(
    read=_GEMINI.read,
    edit=lambda path, old, new: Call("edit", {"file_path": path, **_old_and_new(old, new)}),
    run=lambda command: Call("run_shell_command", {"command": command, "description": "Run", "is_background": False}),
)
_OPENCODE = Tools(
    read=lambda path: Call("read", {"filePath": path}),
    edit=lambda path, old, new: Call("edit", {"filePath": path, "oldString": old, "newString": new}),
    # Without the timeout, in milliseconds, OpenCode waits two minutes for a command that was killed.
    run=lambda command: Call("bash", {"command": command, "description": "Run it", "timeout": 5000}),
)
