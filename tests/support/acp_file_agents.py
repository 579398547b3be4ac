"""The real hosted agents, by their names, with models that change one file for each prompt."""

import os
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from isthmus.acp.host.agents import opencode
from isthmus.acp.host.known_agent import KnownAgent
from isthmus.acp.host.limits import HostLimits
from support.acp_hosting import AcpHosting, acp_hosting
from support.coding_cli_agents import coding_cli_agent
from support.installed_agents import INSTALLED, AgentScript, installed_agent, program_of
from support.openai_wire import OpenAIWire
from support.opencode_cli import configured
from support.programs import node_package
from support.scripted_wire import Call, Reply, Say, ScriptedWire
from support.wire_server import WireRequest

EVERYTHING = "ACP_AGENTS" in os.environ
"""Whether this is the long run, ``make agents``."""
HOSTED = ("gemini", "qwen", "opencode", *INSTALLED)
"""Names of the agents of this run; Claude Agent and Codex are installed by ``make agents`` alone."""


@dataclass(frozen=True, slots=True)
class FileTools:
    """Calls of an agent's tools. ``write`` gets the text before, or None, and the text after."""

    read: Callable[[str], Call] | None
    write: Callable[[str, str | None, str], Call]
    delete: Callable[[str], Call]


@dataclass(frozen=True, slots=True)
class FileAgent:
    """A real agent, how it is started, and its model."""

    name: str
    agent: KnownAgent
    command: tuple[str, ...]
    environment: Mapping[str, str]
    model: AgentScript | ScriptedWire

    @asynccontextmanager
    async def hosted(self, folder: Path) -> AsyncGenerator[AcpHosting]:
        """Serve it."""
        limits, variables = HostLimits(cancel_seconds=20), tuple(self.environment)
        served = acp_hosting(folder, agent=self.agent, limits=limits, command=self.command, variables=variables)
        async with served as hosting:
            yield hosting

    def changes(self, path: Path, before: str | None, after: str | None) -> None:
        """Have the model write a file, or delete it, and then say that it is done; drop what it still had to say."""
        tools, shown = TOOLS[self.name], str(path)
        calls = [tools.delete(shown) if after is None else tools.write(shown, before, after)]
        if before is not None and after is not None and tools.read is not None:
            calls.insert(0, tools.read(shown))
        self._does(calls)

    def reads(self, path: Path) -> None:
        """Have the model read a file, and then say that it is done."""
        read = TOOLS[self.name].read
        assert read is not None
        self._does([read(str(path))])

    def says(self) -> None:
        """Have the model say that it is done."""
        self._does([])

    def _does(self, calls: Sequence[Call]) -> None:
        self.model.forget()
        for number, call in enumerate(calls):
            # Some agents leave out a call whose id they have seen. Gemini CLI names the tool in its own ids.
            own = None if self.name == "gemini" else f"toolu_{len(self.requests)}_{number}"
            self.model.add(Reply.of(replace(call, id=own)))
        self.model.add(Reply.of(Say("Done.")))

    @property
    def requests(self) -> Sequence[WireRequest]:
        """Requests that the model received."""
        return self.model.requests if isinstance(self.model, AgentScript) else self.model.model_requests


@contextmanager
def file_agent(name: str, folder: Path, *, asks: bool = True) -> Generator[FileAgent]:
    """Run the model of an agent. ``asks``: its settings tell it to ask before each change; else it decides that."""
    match name:
        case "gemini" | "qwen":
            with coding_cli_agent(name, asks=asks) as cli:
                yield FileAgent(name, cli.agent, cli.command, cli.environment, cli.wire)
        case "opencode":
            script = AgentScript()
            with OpenAIWire(script) as wire:
                command = (str(node_package("opencode-linux-x64") / "bin" / "opencode"), "acp")
                environment = {"OPENCODE_CONFIG": str(configured(wire.base_url, folder, asks=asks))}
                yield FileAgent(name, opencode.AGENT, command, environment, script)
        case _:
            with installed_agent(name, asks=asks) as peer:
                yield FileAgent(name, peer.agent, program_of(name), peer.environment, peer.script)


def _patch(path: str, before: str | None, after: str) -> Call:
    """Return Codex's call that replaces a whole file."""
    lines = [f"*** Add File: {path}"]
    if before is not None:
        lines = [f"*** Update File: {path}", "@@", *(f"-{line}" for line in before.splitlines())]
    lines += [f"+{line}" for line in after.splitlines()]
    return Call("apply_patch", "\n".join(("*** Begin Patch", *lines, "*** End Patch", "")))


_GEMINI = FileTools(
    read=lambda path: Call("read_file", {"file_path": path}),
    write=lambda path, _, after: Call("write_file", {"file_path": path, "content": after}),
    delete=lambda path: Call("run_shell_command", {"command": f"rm {path}", "is_background": False}),
)
TOOLS = {
    "gemini": _GEMINI,
    "qwen": _GEMINI,
    "opencode": FileTools(
        read=lambda path: Call("read", {"filePath": path}),
        write=lambda path, _, after: Call("write", {"filePath": path, "content": after}),
        delete=lambda path: Call("bash", {"command": f"rm {path}", "description": "Delete it"}),
    ),
    "claude": FileTools(
        read=lambda path: Call("Read", {"file_path": path}),
        write=lambda path, _, after: Call("Write", {"file_path": path, "content": after}),
        delete=lambda path: Call("Bash", {"command": f"rm {path}", "description": "Delete it"}),
    ),
    "codex": FileTools(
        read=None,
        write=_patch,
        delete=lambda path: Call("apply_patch", f"*** Begin Patch\n*** Delete File: {path}\n*** End Patch\n"),
    ),
}
