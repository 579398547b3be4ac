"""Serve your own agent over A2A, with everything that the agent of Isthmus has.

Its tasks are kept in a journal, survive ``kill -9``, and need no process while they wait for a user. Clients of each
protocol version and dialect can follow, answer and resume them. ``serve`` is a whole program; ``asgi_application`` is a
part of yours. The interface that your agent implements is in :mod:`isthmus.agent.hosted`.
"""

import asyncio
import contextlib
import re
import sys
import time
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from isthmus.a2a.blocked_loop import warn_when_blocked
from isthmus.a2a.options import TEXT_MODES, Identity, ServerOptions, Skill
from isthmus.agent.hosted import AUTHORS_CALLER, AgentPort, HostedAgent
from isthmus.encoding.codec import JsonObject
from isthmus.files.locations import data_directory, make_private_directory
from isthmus.record import record

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.types import Receive, Scope, Send

    from isthmus.a2a.server.application import Application
    from isthmus.a2a.server.auth import Authenticate
    from isthmus.engine import Engine
    from isthmus.engine.agents import Agent


@record
class Hosting:
    """Options of a served agent.

    Users whose tokens were made with ``isthmus serve token add NAME --data-dir FOLDER`` are let in when ``workspaces``
    says where they may work.
    """

    name: str = "Agent"
    description: str = "An agent served by Isthmus."
    version: str = "1"
    skills: tuple[Skill, ...] = ()
    folder: Path | None = None
    """Folder of the journal and the token; by default one for agents of this name in the user's data folder.

    Two agents never share a folder: that of an agent with another name is refused, except for ``former_names``.
    """
    workspace: Path | None = None
    """Folder for sessions that name none; by default the current one."""
    workspaces: tuple[Path, ...] = ()
    """Folders in and below which sessions may work; empty: anywhere, or in ``workspace`` with ``authenticate``."""
    token: str | None = None
    """Bearer token of the owner, instead of the one in the token file."""
    public_url: str | None = None
    hosts: tuple[str, ...] = ()
    requires_extension: bool = False
    """Whether the card requires clients to speak the development-tool extension; other clients are served anyway."""
    pushes_to: tuple[str, ...] = ()
    """Private names and networks that push notifications may go to, besides all public ones."""
    former_names: tuple[str, ...] = ()
    authenticate: "Authenticate | None" = None
    """Async function that authenticates requests instead of tokens, in a program that knows its users already.

    It takes a :class:`~isthmus.a2a.server.auth.RequestHead` and returns the user's name (empty for the owner), or None
    to refuse.
    """
    security_schemes: Mapping[str, JsonObject] | None = None
    """Security schemes in the card, by name, as OpenAPI writes them; ``{}``: none is needed, None: a bearer token."""
    input_modes: tuple[str, ...] = TEXT_MODES
    """Media types that the agent reads; clients choose an agent by them."""
    output_modes: tuple[str, ...] = TEXT_MODES
    """Media types that the agent produces."""
    versions: tuple[str, ...] = ("0.3", "1.0")
    """Versions of A2A whose members the card has when a request states none; both versions are always served.

    A card checker that allows no unknown members needs ``("1.0",)``.
    """
    server: ServerOptions | None = field(default=None)
    """All other options of the server; token, hosts, public_url and identity are filled in."""

    def data_folder(self) -> Path:
        """Return the folder of the journal and the token."""
        word = re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-") or "agent"
        return self.folder if self.folder is not None else data_directory() / "agents" / word


def serve(agent: AgentPort, hosting: Hosting | None = None, *, host: str = "127.0.0.1", port: int = 0) -> None:
    """Serve ``agent`` until a signal; port 0 takes any free one. Print the URL once it listens, and the token's file.

    Raises:
        ListenError: the address is taken.
        JournalError: the folder cannot be used.
    """
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(agent, hosting or Hosting(), host, port))


def asgi_application(agent: AgentPort, hosting: Hosting | None = None) -> "HostedApplication":
    """Return the ASGI application that serves ``agent``; run it with any ASGI server, with ``lifespan`` on."""
    return HostedApplication(agent, hosting or Hosting())


class HostedApplication:
    """The ASGI application of :func:`asgi_application`. It opens the journal at startup and closes it at shutdown.

    A mounted application gets no lifespan events: use ``async with hosted:`` in the lifespan of the outer application.
    Without that the first request opens the journal, and until then tasks of an ended process are not resumed.
    """

    def __init__(self, agent: AgentPort, hosting: Hosting) -> None:
        self._agent = agent
        self._hosting = hosting
        self._running = contextlib.AsyncExitStack()
        self._application: Application | None = None
        self._opening = asyncio.Lock()

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Serve one connection of the ASGI server."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        await (await self.open())(scope, receive, send)

    async def __aenter__(self) -> Self:
        """Open the journal and start serving.

        Raises:
            JournalError: the folder cannot be used, or is another agent's.
        """
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def open(self) -> "Application":
        """Return the application that serves requests; open it first if that has not happened."""
        async with self._opening:
            if self._application is None:
                self._application = await self._open()
            return self._application

    async def aclose(self) -> None:
        """End every stream and close the journal; running tasks are resumed at the next start."""
        if self._application is not None:
            self._application.close_streams()
        self._application = None
        await self._running.aclose()

    def engine_agent(self) -> "Agent":
        """Return the agent as the engine runs it."""
        return HostedAgent(self._agent)

    async def _open(self) -> "Application":
        from isthmus.a2a.push.sender import PushSender
        from isthmus.a2a.push.service import pushing
        from isthmus.a2a.push.targets import PushRule
        from isthmus.a2a.server.application import application
        from isthmus.a2a.server.probes import Probes
        from isthmus.a2a.server.users_file import FILE, UsersFile
        from isthmus.a2a.token_file import TOKEN_FILE, ensure_token_file
        from isthmus.a2a.wires import Wires
        from isthmus.engine.readiness import Readiness

        hosting = self._hosting
        folder = hosting.data_folder()
        make_private_directory(folder)
        is_trusting = hosting.authenticate is not None
        token = hosting.token or ("" if is_trusting else ensure_token_file(folder / TOKEN_FILE))
        options = hosting.server or ServerOptions(token)
        wires = Wires.of(options)
        sender = PushSender(PushRule.of(hosting.pushes_to))
        engine = await self._running.enter_async_context(_engine(self.engine_agent(), hosting, folder))
        users = UsersFile(folder / FILE) if hosting.workspaces and not is_trusting else None

        def is_served(name: str) -> bool:
            return not name or is_trusting or (users is not None and users.table().has_user(name, time.time()))

        push = await self._running.enter_async_context(pushing(engine, sender, wires, is_served=is_served))
        identity = Identity(
            hosting.name,
            hosting.description,
            hosting.version,
            hosting.skills,
            hosting.requires_extension,
            hosting.security_schemes,
            hosting.versions,
            hosting.input_modes,
            hosting.output_modes,
            default_workspace=True,
        )
        return application(
            engine,
            replace(options, token=token, hosts=hosting.hosts, public_url=hosting.public_url, identity=identity),
            for_user=engine.for_user,
            users=users.table if users is not None else None,
            push=push,
            wires=wires,
            authenticate=hosting.authenticate,
            probes=Probes(Readiness(engine)),
        )

    async def _lifespan(self, receive: "Receive", send: "Send") -> None:
        await receive()
        try:
            await self.open()
        except Exception as error:  # reported by ASGI's own message, which makes servers exit
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.aclose()
        await send({"type": "lifespan.shutdown.complete"})


@contextlib.asynccontextmanager
async def _engine(agent: "Agent", hosting: Hosting, folder: Path) -> "AsyncGenerator[Engine]":
    from isthmus.engine import Engine, EngineOptions
    from isthmus.engine.workspaces import WorkspaceRule
    from isthmus.journal.sqlite import SqliteJournal

    workspace = (hosting.workspace or Path.cwd()).resolve()
    only = (workspace,) if hosting.authenticate is not None else ()
    rule = WorkspaceRule(workspace, hosting.workspaces or only)
    names = (hosting.name, *hosting.former_names)
    journal = await SqliteJournal.open(folder / "journal.sqlite", agent=names)
    engine = Engine(agent, journal, EngineOptions(rule))
    try:
        await engine.start()
        with warn_when_blocked(AUTHORS_CALLER):
            yield engine
    finally:
        await engine.aclose()


async def _serve(agent: AgentPort, hosting: Hosting, host: str, port: int) -> None:
    from isthmus.a2a.server.listen import A2AServer, bind
    from isthmus.a2a.token_file import TOKEN_FILE
    from isthmus.listeners.limits import raise_descriptor_limit

    raise_descriptor_limit()
    listener = bind(host, port)
    hosted = HostedApplication(agent, replace(hosting, hosts=(*hosting.hosts, host)))
    try:

        def say_ready() -> None:
            sys.stdout.write(f"A2A server ready at {server.url}\n")
            sys.stdout.flush()
            sys.stderr.write(f"Token: {hosting.data_folder() / TOKEN_FILE}\n")

        server = A2AServer(await hosted.open(), listener, on_ready=say_ready)
        await server.run_until_stopped()
    finally:
        await hosted.aclose()
        listener.close()
