"""``serve --agent COMMAND``: the agent's command, the user's consent to run it, and the engine that serves it."""

import asyncio
import contextlib
import json
import re
import shlex
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import field
from functools import partial
from pathlib import Path, PurePath
from typing import Any, cast

import click

from isthmus.a2a.serving.engine import engine_of
from isthmus.acp.host.agent_link import AgentLaunch
from isthmus.acp.host.agents import AGENTS
from isthmus.acp.host.known_agent import KnownAgent, agent_environment, known_agent
from isthmus.acp.registry import AgentCommand, UnknownAgentError, command_of
from isthmus.acp.served.agent import AcpAgent
from isthmus.agent.approval.session_policy import check_agent_settings
from isthmus.client import InvalidRequest
from isthmus.encoding.codec import JsonObject
from isthmus.encoding.jsonc import JsoncError, parse
from isthmus.engine import Engine, EngineOptions
from isthmus.engine.editor_surface import EditorPeer, EditorSurface
from isthmus.engine.followers.open_questions import QuestionOpened
from isthmus.engine.port.placement import EVERY_TASK, Placement
from isthmus.engine.port.workspaces import KEY, WorkspaceRule
from isthmus.files.locations import make_private_directory
from isthmus.parts.editor.directory import EditorDirectory
from isthmus.parts.files.task_files import HOSTED_AGENTS
from isthmus.programs.setup.setup import BadInputError, Setup
from isthmus.record import record
from isthmus.runtime.private_variables import OWN_TOKENS
from isthmus.runtime.telemetry import NO_TELEMETRY, Telemetry
from isthmus.settings.edit_file import MAXIMUM_BYTES, change_file
from isthmus.text.visible import visible_line

TRUSTED_COMMANDS = "acp-agents.json"
"""File in the data folder with the commands that the user has agreed to run."""
REGISTRY_PREFIX = "acp:"
"""Beginning of an agent's id in the public registry, in place of a command."""


@record
class HostedCommand:
    """The command of an agent.

    ``variables`` are further environment variables that it gets of ours, ``settings`` are such variables with their
    values. ``origin`` is the source of the command, if that is not the user.
    """

    words: tuple[str, ...]
    variables: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    origin: str = ""

    @property
    def shown(self) -> str:
        """The command as a user types it."""
        return AgentCommand(self.words, self.settings, "").shown

    @property
    def agent(self) -> KnownAgent:
        """Known facts about the agent."""
        return known_agent(self.words, AGENTS)

    @property
    def title(self) -> str:
        """Name of the agent for users."""
        return self.agent.title if self.agent.id else PurePath(self.words[0]).name

    @property
    def id(self) -> str:
        """Name of the agent's folder and records."""
        return self.agent.id or re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-") or "agent"


def read_command(text: str, variables: tuple[str, ...]) -> HostedCommand:
    """Return the command that the user gave.

    Raises:
        BadInputError: it is empty or not closed, or a variable holds a token of ours.
    """
    if own := sorted(OWN_TOKENS.intersection(variables)):
        raise BadInputError(f"--agent-env {own[0]}: it holds a token of Isthmus, which no agent gets")
    if text.startswith(REGISTRY_PREFIX):
        try:
            found = command_of(text.removeprefix(REGISTRY_PREFIX))
        except UnknownAgentError as error:
            raise BadInputError(f"--agent {text}: {error}") from error
        return HostedCommand(found.argv, variables, found.env, found.origin)
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise BadInputError(f"--agent {text!r}: expected a command such as 'gemini --acp': {error}") from error
    if not words:
        raise BadInputError("--agent: expected a command such as 'gemini --acp', received an empty text")
    return HostedCommand(words, variables)


def settle_consent(command: HostedCommand, data_dir: Path, environment: Mapping[str, str], *, is_trusted: bool) -> None:
    """Have the user agree to run a command once, and remember it; ``is_trusted`` is the user's agreement.

    ``environment`` is ours, of which the agent gets a part.

    Raises:
        BadInputError: the user refuses, or cannot be asked.
    """
    path = data_dir / TRUSTED_COMMANDS
    if not is_trusted:
        if command.shown in _commands_in(path):
            return
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise BadInputError(
                f"the command {visible_line(command.shown)!r} was never run here, and there is no terminal to ask at."
                f" {_RIGHTS} If you trust it, start once with --trust-agent"
            )
        click.echo("\n".join(consent_text(command, path, environment)), err=True)
        if not click.confirm("Run it, now and at later starts?", default=False, err=True):
            raise BadInputError("the command was not agreed to; nothing was started")
    make_private_directory(data_dir)
    change_file(path, lambda text: _with(text, command.shown))


_RIGHTS = "It runs with your rights, outside of any sandbox: it can read and change your files and use the network."


def consent_text(command: HostedCommand, path: Path, environment: Mapping[str, str]) -> Sequence[str]:
    """Return the lines that a user reads before agreeing to run a command; the agreement is kept in ``path``."""
    variables = {*agent_environment(environment, command.agent, command.variables), *command.settings}
    return [
        f"{visible_line(command.title)} is started by this command, once for each conversation and in its folder:",
        "",
        f"  {visible_line(command.shown)}",
        *([f"  ({visible_line(command.origin)})"] if command.origin else []),
        "",
        _RIGHTS,
        command.agent.unasked or "Its own settings decide what it asks you before it acts.",
        f"It gets these environment variables: {', '.join(sorted(map(visible_line, variables))) or 'none'}.",
        f"Your agreement covers exactly this command. It is kept in {visible_line(str(path))}.",
    ]


def _commands_in(path: Path) -> tuple[str, ...]:
    try:
        return _decoded(path.read_bytes()[:MAXIMUM_BYTES].decode())
    except (OSError, UnicodeDecodeError, JsoncError):
        return ()


def _with(text: str, command: str) -> str:
    return json.dumps(list(dict.fromkeys((*_decoded(text), command))), indent=2, ensure_ascii=False) + "\n"


def _decoded(text: str) -> tuple[str, ...]:
    value: object = parse(text) if text.strip() else []
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return tuple(item for item in items if isinstance(item, str))


_SETTINGS = ("allowed_tools", "model", "approval_mode", "context_files", "effort")


async def check_workspace_alone(value: JsonObject, folder: Path, brings_programs: bool) -> None:
    """Check AgentSettings for an agent of another author, which has settings of its own.

    Raises:
        InvalidRequest: they are malformed, or contain more than a workspace.
    """
    _require_none(value, ("mcp_servers", *_SETTINGS))


async def check_workspace_and_servers(value: JsonObject, folder: Path, brings_programs: bool) -> None:
    """Check AgentSettings of the user's own client, which may bring MCP servers for the agent.

    Raises:
        InvalidRequest: they are malformed, or contain more.
    """
    _require_none(value, _SETTINGS)


def _require_none(value: JsonObject, names: Sequence[str]) -> None:
    settings = check_agent_settings(value)
    for name in names:
        if getattr(settings, name):
            raise InvalidRequest(f"{name}: this agent has settings of its own; expected {KEY} alone")


@contextlib.asynccontextmanager
async def hosted_engine(
    setup: Setup,
    command: HostedCommand,
    rule: WorkspaceRule,
    *,
    is_server: bool = True,
    placement: Placement = EVERY_TASK,
    telemetry: Telemetry = NO_TELEMETRY,
) -> AsyncGenerator[Engine]:
    """Run an engine whose agent is started by a command. ``placement`` says which tasks run here.

    A server takes over the tasks of ended processes. Otherwise the client is the user's own, who may bring MCP servers.
    ``telemetry`` takes what happens.

    Raises:
        BadInputError: there is a budget of the run.
        JournalError: the data folder cannot be used.
    """
    if setup.run_budget is not None:
        raise BadInputError(
            "--max-budget-usd cannot be used with --agent: what the models of another agent cost is not known before"
            " its work has ended. Leave it out, or limit the agent in its own settings"
        )
    folder = setup.data_dir / HOSTED_AGENTS / command.id
    environment = {**agent_environment(setup.environment, command.agent, command.variables), **command.settings}
    launch = AgentLaunch(command.words, environment, command.agent)
    editors = EditorDirectory(setup.environment) if setup.use_ide else None
    context = editors.context if editors is not None else None
    agent = AcpAgent(command.id, launch, passes_servers=not is_server, editor_context=context)
    check = check_workspace_alone if is_server else check_workspace_and_servers
    maximum = setup.journal_maximum_size
    options = EngineOptions(
        rule,
        takes_over=is_server,
        maximum_size=maximum,
        check_settings=check,
        placement=placement,
        telemetry=telemetry,
    )
    names = (f"ACP agent {command.id}",)
    async with contextlib.AsyncExitStack() as stack:
        if editors is not None:
            stack.push_async_callback(editors.aclose)
        stack.push_async_callback(agent.aclose)
        engine = await stack.enter_async_context(engine_of(agent, folder, setup.journal, names, options))
        if editors is not None:
            await stack.enter_async_context(_reviewed_in(editors, engine))
        yield engine


@contextlib.asynccontextmanager
async def _reviewed_in(editors: EditorDirectory, engine: Engine) -> AsyncGenerator[None]:
    """Show the agent's edits of the local user's tasks in the editor of their folder, too."""

    async def find(question: QuestionOpened) -> EditorPeer | None:
        return None if question.user else await editors.find(Path(question.workspace))

    for_user = partial(engine.for_user, workspaces=WorkspaceRule())
    surface = asyncio.create_task(EditorSurface(for_user, engine.questions, find).run(), name="reviews in editors")
    try:
        yield
    finally:
        surface.cancel()
        await asyncio.gather(surface, return_exceptions=True)
