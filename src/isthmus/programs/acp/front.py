"""Serves an agent to an ACP client on standard input and output, until the client ends."""

import asyncio
import contextlib
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from isthmus import __version__
from isthmus.acp.connection import AcpConnection
from isthmus.acp.front.server import FrontOptions, FrontServer
from isthmus.acp.front.session_options import SessionOptions
from isthmus.acp.front.wire import FrontWire
from isthmus.acp.front.wire_v1 import FrontWireV1
from isthmus.acp.v1.connection import AgentAuth, TerminalAuth
from isthmus.programs.setup.setup import Setup
from isthmus.runtime.standard_streams import StandardStreams

if TYPE_CHECKING:
    from isthmus.programs.agent.hosted_agent import HostedCommand

AUTH_METHODS = (
    AgentAuth("environment", "Keys in the environment", "The model's key is a variable such as GEMINI_API_KEY"),
    TerminalAuth("setup", "Set up a model", "Shows which model is used, and how to choose one", ("--setup",)),
)


async def serve_local(setup: Setup, incoming: int, outgoing: int, *, has_draft: bool = False) -> None:
    """Serve an agent in this process. ``has_draft``: also in the draft of version 2.

    Raises:
        JournalError: the data folder cannot be used.
    """
    from isthmus.engine.port.workspaces import WorkspaceRule
    from isthmus.parts.model_notices import efforts_to_choose
    from isthmus.programs.acp.place import LocalPlace
    from isthmus.programs.agent.local_agent import local_agent
    from isthmus.programs.agent.local_agent_options import ClientPrograms, LocalAgentOptions, McpUse
    from isthmus.programs.process.browser import open_browser

    servers: list[FrontServer] = []

    async def editor_text(path: Path) -> str | None:
        return await servers[0].editor_text(path) if servers else None

    mcp_use = McpUse(open_browser=open_browser, client_programs=ClientPrograms.OF_THE_CLIENT)
    local = LocalAgentOptions(mcp=mcp_use, editor_text=editor_text)
    async with local_agent(setup, WorkspaceRule(), local) as engine:
        effort, levels = efforts_to_choose(setup.model, setup.settings, setup.environment)
        options = FrontOptions(
            __version__,
            SessionOptions(setup.policy.mode, setup.model.name, effort=effort, levels=levels),
            can_delete=True,
            can_fork=True,
            auth_methods=AUTH_METHODS,
            wires=_wires(has_draft=has_draft),
        )
        place = LocalPlace(setup.environment, engine)
        servers.append(FrontServer(engine, place, options))
        await serve_front(servers[0], incoming, outgoing)


async def serve_hosted(
    setup: Setup, command: "HostedCommand", incoming: int, outgoing: int, *, has_draft: bool = False
) -> None:
    """Serve another author's ACP agent, whose turns and questions are then kept by us.

    Raises:
        JournalError: the data folder cannot be used.
    """
    from isthmus.engine.port.workspaces import WorkspaceRule
    from isthmus.programs.acp.place import HostedPlace
    from isthmus.programs.agent.hosted_agent import hosted_engine

    async with hosted_engine(setup, command, WorkspaceRule(), is_server=False) as engine:
        options = FrontOptions(
            __version__,
            SessionOptions(has_modes=False),
            can_delete=True,
            takes_folders=command.agent.takes_folders,
            wires=_wires(has_draft=has_draft),
        )
        place = HostedPlace(setup.environment, engine)
        await serve_front(FrontServer(engine, place, options), incoming, outgoing)


async def serve_remote(
    url: str, token: str | None, ca_file: Path | None, incoming: int, outgoing: int, *, has_draft: bool = False
) -> None:
    """Serve the agent behind an A2A server: its turns and their questions outlive this process.

    Raises:
        RemoteError: the server cannot be reached, or refuses the token.
    """
    from isthmus.a2a.client.discovery import ClientDialect
    from isthmus.a2a.client.remote_agent import RemoteAgent
    from isthmus.programs.acp.server_place import ServerPlace

    agent = await RemoteAgent.connect(url, token, ca_file=ca_file)
    # A hosted agent, which has settings of its own, has a folder for sessions that name none; our own has not.
    modes = SessionOptions(has_modes=not agent.profile.has_workspace, is_elsewhere=True)
    takes_servers = agent.dialect is ClientDialect.DEVELOPMENT_TOOL
    # Whether a hosted agent takes further folders is not known here.
    takes_folders = takes_servers and modes.has_modes
    options = FrontOptions(__version__, modes, takes_folders=takes_folders, wires=_wires(has_draft=has_draft))
    try:
        place = ServerPlace(agent, agent.url, takes_servers=takes_servers)
        await serve_front(FrontServer(agent, place, options), incoming, outgoing)
    finally:
        await agent.aclose()


def _wires(*, has_draft: bool) -> tuple[FrontWire, ...]:
    if not has_draft:
        return (FrontWireV1(),)
    from isthmus.acp.v2.wire import FrontWireV2

    return (FrontWireV1(), FrontWireV2())


async def serve_front(server: FrontServer, incoming: int, outgoing: int) -> None:
    """Serve an agent on two file descriptors until the input ends, or a signal."""
    streams = StandardStreams(incoming, outgoing)
    connection = AcpConnection(server, streams.write)
    server.attach(connection)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, streams.end)
    async with contextlib.aclosing(streams.chunks()) as chunks:
        await connection.read(chunks)
    await server.aclose()
