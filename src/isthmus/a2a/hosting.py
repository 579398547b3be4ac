"""Serve your own agent: any object with the agent port, over A2A, with everything that the Isthmus agent has.

Its tasks are kept in a journal, survive ``kill -9``, wait for people without a process, and are followed, answered and
resumed by clients of each protocol version and dialect. ``serve`` is a whole program, ``asgi_application`` a part of
yours. Deliberately not here: the agent port (:mod:`isthmus.agent.hosted`), and the options of ``isthmus serve``.
"""

import asyncio
import contextlib
import re
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from isthmus.a2a.blocked_loop import tells_of_blocking
from isthmus.a2a.options import TEXT_MODES, Identity, ServerOptions, Skill
from isthmus.agent.hosted import AUTHORS_CALLER, AgentPort, HostedAgent
from isthmus.encoding.codec import JsonObject
from isthmus.files.locations import data_directory, make_private_directory

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.types import Receive, Scope, Send

    from isthmus.a2a.server.application import Application
    from isthmus.a2a.server.auth import Authenticate
    from isthmus.engine import Engine


@dataclass(frozen=True, slots=True)
class Hosting:
    """How an agent is served.

    ``folder`` keeps its journal and its token (default: one for agents of this name in the user's data folder); two
    agents never share one: that of another name is refused, unless that is among ``former_names``. ``workspace`` is
    where sessions work that name no folder (default: the current one), and with ``workspaces`` they may work in those
    and below only. ``token`` instead of the token file.
    ``requires_extension`` says in the card that clients must speak the development-tool extension; others are served
    all the same. ``pushes_to`` are private names and networks that push notifications may go to, besides all public
    ones. Users, whose tokens ``isthmus serve token add NAME --data-dir FOLDER`` makes, are let in when ``workspaces``
    says where they may work.

    ``authenticate`` takes the place of all tokens, in a program that knows its users already: an async function that is
    given the :class:`~isthmus.a2a.server.auth.RequestHead` and returns the user's name, empty for the owner, or None to
    refuse. These users may work in ``workspaces``, else in ``workspace``. ``security_schemes`` are what the card says
    of it, by name, as OpenAPI writes them (``{}``: nothing is needed); None: a bearer token. ``input_modes`` are the
    media types that the agent reads, ``output_modes`` those that it gives: clients choose by them. The card has the
    members of all ``versions`` of A2A for who states none; a checker that allows no others wants ``("1.0",)``. Both
    versions are served in any case.
    """

    name: str = "Agent"
    description: str = "An agent served by Isthmus."
    version: str = "1"
    skills: tuple[Skill, ...] = ()
    folder: Path | None = None
    workspace: Path | None = None
    workspaces: tuple[Path, ...] = ()
    token: str | None = None
    public_url: str | None = None
    hosts: tuple[str, ...] = ()
    requires_extension: bool = False
    pushes_to: tuple[str, ...] = ()
    allow_push_to: tuple[str, ...] = ()
    former_names: tuple[str, ...] = ()
    authenticate: "Authenticate | None" = None
    security_schemes: Mapping[str, JsonObject] | None = None
    input_modes: tuple[str, ...] = TEXT_MODES
    output_modes: tuple[str, ...] = TEXT_MODES
    versions: tuple[str, ...] = ("0.3", "1.0")
    server: ServerOptions | None = field(default=None)
    """All other options of the server; token, hosts, public_url and identity are filled in."""

    def place(self) -> Path:
        """Return the folder of the journal and the token."""
        word = re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-") or "agent"
        return self.folder if self.folder is not None else data_directory() / "agents" / word


def serve(agent: AgentPort, hosting: Hosting | None = None, *, host: str = "127.0.0.1", port: int = 0) -> None:
    """Serve ``agent`` until a signal. Prints the URL when it listens, and where the token is; port 0 is any free one.

    Raises:
        ListenError: the address is taken.
        JournalError: the folder cannot be used.
    """
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(agent, hosting or Hosting(), host, port))


def asgi_application(agent: AgentPort, hosting: Hosting | None = None) -> "HostedApplication":
    """Return the ASGI application that serves ``agent``: run it by any ASGI server, with ``lifespan`` on."""
    return HostedApplication(agent, hosting or Hosting())


class HostedApplication:
    """The ASGI application of :func:`asgi_application`. The journal is opened at startup, and closed at shutdown.

    Where the ASGI server does not tell it of these, since it is mounted in another application: ``async with hosted:``
    in the lifespan of that one. Without it the first request opens it, and tasks that an ended process left wait.
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
        """Open it.

        Raises:
            JournalError: the folder cannot be used, or is another agent's.
        """
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def open(self) -> "Application":
        """Return what serves requests; opened now if the server told of no startup."""
        async with self._opening:
            if self._application is None:
                self._application = await self._open()
            return self._application

    async def aclose(self) -> None:
        """End every stream, and close the journal: what runs is taken up at the next start."""
        if self._application is not None:
            self._application.close_streams()
        self._application = None
        await self._running.aclose()

    async def _open(self) -> "Application":
        from isthmus.a2a.dialects import AllWires
        from isthmus.a2a.push.sender import PushSender
        from isthmus.a2a.push.service import pushing
        from isthmus.a2a.push.targets import PushRule
        from isthmus.a2a.server.application import application
        from isthmus.a2a.server.users_file import FILE, UsersFile
        from isthmus.a2a.token_file import TOKEN_FILE, ensure_token_file

        hosting = self._hosting
        folder = hosting.place()
        make_private_directory(folder)
        is_trusting = hosting.authenticate is not None
        token = hosting.token or ("" if is_trusting else ensure_token_file(folder / TOKEN_FILE))
        wires = AllWires()
        sender = PushSender(PushRule.of(hosting.pushes_to))
        engine = await self._running.enter_async_context(_engine(self._agent, hosting, folder))
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
        options = hosting.server or ServerOptions(token)
        return application(
            engine,
            replace(options, token=token, hosts=hosting.hosts, public_url=hosting.public_url, identity=identity),
            for_user=engine.for_user,
            users=users.table if users is not None else None,
            push=push,
            wires=wires,
            authenticate=hosting.authenticate,
        )

    async def _lifespan(self, receive: "Receive", send: "Send") -> None:
        await receive()
        try:
            await self.open()
        except Exception as error:  # ASGI has a message for it, and servers end by that
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.aclose()
        await send({"type": "lifespan.shutdown.complete"})


@contextlib.asynccontextmanager
async def _engine(agent: AgentPort, hosting: Hosting, folder: Path) -> "AsyncGenerator[Engine]":
    from isthmus.engine import Engine, EngineOptions
    from isthmus.engine.workspaces import WorkspaceRule
    from isthmus.journal.sqlite import SqliteJournal

    workspace = (hosting.workspace or Path.cwd()).resolve()
    only = (workspace,) if hosting.authenticate is not None else ()
    rule = WorkspaceRule(workspace, hosting.workspaces or only)
    names = (hosting.name, *hosting.former_names)
    journal = await SqliteJournal.open(folder / "journal.sqlite", agent=names)
    engine = Engine(HostedAgent(agent), journal, EngineOptions(rule))
    try:
        await engine.start()
        with tells_of_blocking(AUTHORS_CALLER):
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
            sys.stderr.write(f"Token: {hosting.place() / TOKEN_FILE}\n")

        server = A2AServer(await hosted.open(), listener, on_ready=say_ready)
        await server.run_until_stopped()
    finally:
        await hosted.aclose()
        listener.close()
