"""Agents of the public registry of the Agent Client Protocol, and the commands that start them.

It reads a copy of the registry that is part of Isthmus and has a date. It asks no server, downloads nothing and starts
nothing. Packages of npm and PyPI are fetched by npx and uvx when their command runs; programs that the registry offers
as archives are named alone, and the user installs them.
"""

import difflib
import shlex
from collections.abc import Mapping
from dataclasses import field
from functools import cache
from importlib import resources
from typing import Any

from isthmus.acp.host.agents import AGENTS
from isthmus.encoding.codec import from_json
from isthmus.encoding.json_text import decode
from isthmus.errors import IsthmusError
from isthmus.record import record

ALIASES: Mapping[str, str] = {
    "claude": "claude-acp",
    "claude-code": "claude-acp",
    "codex": "codex-acp",
    "copilot": "github-copilot-cli",
    "gemini-cli": "gemini",
    "qwen": "qwen-code",
}
"""Ids of agents by other names under which their programs are known."""
NEAREST_NAMES = 3
"""Maximum number of similar names in a message about an unknown one."""


@record
class RegistryPackage:
    """A package of npm or PyPI with its version, the arguments of its program, and variables of its environment."""

    package: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])


@record
class RegistryBinary:
    """A program that the registry offers as archives, one for each platform; ``cmd`` is its name without a folder."""

    cmd: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])


@record
class Distribution:
    """Ways in which an agent is published; an entry has at least one."""

    npx: RegistryPackage | None = None
    uvx: RegistryPackage | None = None
    binary: RegistryBinary | None = None


@record
class RegistryEntry:
    """An agent in the registry."""

    id: str
    name: str
    version: str
    description: str
    distribution: Distribution


@record
class Registry:
    """A copy of the registry; ``date`` is its day in the form of ISO 8601, ``source`` the registry's address."""

    source: str
    date: str
    agents: tuple[RegistryEntry, ...]


@record
class AgentCommand:
    """The command that starts an agent, and variables for its environment."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    origin: str
    """Source of the command, for the user who is asked whether it may run."""

    @property
    def shown(self) -> str:
        """The command as a user would type it."""
        variables = [f"{name}={shlex.quote(value)}" for name, value in self.env.items()]
        return " ".join([*variables, shlex.join(self.argv)])


class UnknownAgentError(IsthmusError):
    """The registry has no agent of this name, or none that can be started by a package manager."""


@cache
def registry() -> Registry:
    """Return the copy of the registry that is part of Isthmus."""
    data: Any = decode(resources.files("isthmus.acp").joinpath("host", "registry.json").read_bytes())
    return from_json(Registry, data)


def command_of(name: str) -> AgentCommand:
    """Return the command that starts the agent with this id or alias; the case of letters does not matter.

    Raises:
        UnknownAgentError: there is no such agent, or it is published as archives alone.
    """
    copy = registry()
    known = {entry.id: entry for entry in copy.agents}
    wanted = name.casefold()
    entry = known.get(ALIASES.get(wanted, wanted))
    if entry is None:
        raise UnknownAgentError(_unknown(name, copy))
    origin = f"{entry.name} {entry.version}, ACP registry of {copy.date}"
    published = entry.distribution
    if published.npx is not None:
        package, _, version = published.npx.package.rpartition("@")
        tested = next((agent.tested for agent in AGENTS if agent.id == entry.id and agent.tested), version)
        if tested != version:
            origin = (
                f"{entry.name} {tested}, with which Isthmus is tested ({version} in the ACP registry of {copy.date})"
            )
        argv = ("npx", "--yes", f"{package}@{tested}", *published.npx.args)
        return AgentCommand(argv, published.npx.env, f"{origin}, npm package {package}@{tested}")
    if published.uvx is not None:
        argv = ("uvx", published.uvx.package, *published.uvx.args)
        return AgentCommand(argv, published.uvx.env, f"{origin}, PyPI package {published.uvx.package}")
    raise UnknownAgentError(_not_a_package(entry))


def _unknown(name: str, copy: Registry) -> str:
    ids = {entry.id: entry.id for entry in copy.agents} | {entry.name.casefold(): entry.id for entry in copy.agents}
    wanted = name.casefold()[:100]
    near = [ids[found] for found in difflib.get_close_matches(wanted, ids, NEAREST_NAMES)]
    near += [each for each in ids.values() if wanted in each.split("-")]
    nearest = list(dict.fromkeys(near))[:NEAREST_NAMES]
    similar = f"; similar ones are {', '.join(nearest)}" if nearest else ""
    return (
        f"expected the id of an agent in the ACP registry of {copy.date}, received {name[:100]!r}{similar}. "
        f'Give the command that starts the agent instead, for example "gemini --acp"'
    )


def _not_a_package(entry: RegistryEntry) -> str:
    program = entry.distribution.binary
    command = AgentCommand((program.cmd, *program.args), program.env, "").shown if program else entry.id
    return (
        f"expected an agent that is published as a package of npm or PyPI; {entry.name} is published as archives, "
        f'which Isthmus does not download. Install it and give the command that starts it: "{command}"'
    )
