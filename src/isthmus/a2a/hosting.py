"""Serve your own agent over A2A, with everything that the agent of Isthmus has.

Its tasks are kept in a journal, survive ``kill -9``, and need no process while they wait for a user. Clients of each
protocol version and dialect can follow, answer and resume them. ``serve`` is a whole program; ``asgi_application`` is a
part of yours. The interface that your agent implements is in :mod:`isthmus.agent.hosted`.
"""

import asyncio
import contextlib
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from isthmus.a2a.blocked_loop import warn_when_blocked
from isthmus.a2a.hosting_options import Hosting
from isthmus.a2a.serving.names import ServingError
from isthmus.a2a.token_file import ensure_token_file
from isthmus.agent.hosted import AUTHORS_CALLER, AgentPort, HostedAgent
from isthmus.files.locations import make_private_directory

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator

    from starlette.types import Receive, Scope, Send

    from isthmus.a2a.server.application import Application
    from isthmus.engine import Engine
    from isthmus.engine.port.agents import Agent
    from isthmus.runtime.telemetry import Telemetry

WATCH_SECONDS = 1.0
"""Time in seconds between two looks for tokens that have expired or were revoked."""


def serve(agent: AgentPort, hosting: Hosting | None = None, *, host: str = "127.0.0.1", port: int = 0) -> None:
    """Serve ``agent`` until a signal; port 0 takes any free one. Print the URL once it listens, and the token's file.

    Raises:
        ListenError: the address is taken, or the certificate cannot be used.
        JournalError: the folder or the database cannot be used.
        ServingError: options cannot be used together, or here.
    """
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(agent, hosting or Hosting(), host, port))


def asgi_application(agent: AgentPort, hosting: Hosting | None = None) -> "HostedApplication":
    """Return the ASGI application that serves ``agent``; run it with any ASGI server, with ``lifespan`` on.

    Raises:
        ServingError: options cannot be used together, or here.
    """
    hosting = hosting or Hosting()
    if hosting.certificate is not None or hosting.insecure_http:
        name = "certificate" if hosting.certificate is not None else "insecure_http"
        raise ServingError(
            f"{name}: an ASGI application has no socket; give the certificate to the ASGI server that runs it, or use"
            " isthmus.a2a.serve"
        )
    return HostedApplication(agent, hosting)


class HostedApplication:
    """The ASGI application of :func:`asgi_application`. It opens the journal at startup and closes it at shutdown.

    A mounted application gets no lifespan events: use ``async with hosted:`` in the lifespan of the outer application.
    Without that the first request opens the journal, and until then tasks of an ended process are not resumed.
    """

    def __init__(self, agent: AgentPort, hosting: Hosting) -> None:
        hosting.check()
        self._agent = agent
        self._hosting = hosting
        self._running = contextlib.AsyncExitStack()
        self._served: tuple[Application, Engine] | None = None
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
        await self.drain()
        await self.aclose()

    async def open(self) -> "Application":
        """Return the application that serves requests; open it first if that has not happened."""
        return (await self.opened())[0]

    async def opened(self) -> "tuple[Application, Engine]":
        """Return the application, and the engine that runs the agent; open them first if that has not happened."""
        async with self._opening:
            if self._served is None:
                self._served = await self._open()
            return self._served

    async def drain(self) -> None:
        """Begin no more work, and give running tasks ``drain_seconds`` to end; others go on with the rest."""
        if self._served is not None and self._hosting.drain_seconds:
            await self._served[1].runner.drain(self._hosting.drain_seconds)

    async def aclose(self) -> None:
        """End every stream and close the journal; running tasks are resumed at the next start, or by others."""
        if self._served is not None:
            self._served[0].close_streams()
        self._served = None
        await self._running.aclose()

    def engine_agent(self) -> "Agent":
        """Return the agent as the engine runs it."""
        return HostedAgent(self._agent)

    async def _open(self) -> "tuple[Application, Engine]":
        from isthmus.a2a.server.users.users_file import FILE, UsersFile
        from isthmus.a2a.serving.application import Admission, ServedAgent, served_application
        from isthmus.a2a.serving.telemetry import ServedTelemetry

        hosting = self._hosting
        folder = hosting.data_folder()
        make_private_directory(folder)
        is_trusting = hosting.authenticate is not None
        token = hosting.token or ("" if is_trusting else ensure_token_file(hosting.token_path()))
        roots = hosting.roots()
        users = UsersFile(folder / FILE) if roots and not is_trusting else None
        telemetry = ServedTelemetry(hosting.telemetry, hosting.name)
        telemetry.warn()
        agent = ServedAgent(
            lambda: _engine(self.engine_agent(), hosting, telemetry.work), hosting.reports_tokens, hosting.reports_costs
        )
        admission = Admission(roots, users.table if users is not None else None, hosting.authenticate)
        options = hosting.server_options(token)
        served = await self._running.enter_async_context(
            served_application(agent, options, hosting.serving(), admission, telemetry)
        )
        if roots and not is_trusting:
            self._running.enter_context(_watching_tokens(served[0]))
        return served

    async def _lifespan(self, receive: "Receive", send: "Send") -> None:
        await receive()
        try:
            await self.open()
        except Exception as error:  # reported by ASGI's own message, which makes servers exit
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.drain()
        await self.aclose()
        await send({"type": "lifespan.shutdown.complete"})


@contextlib.contextmanager
def _watching_tokens(application: "Application") -> "Generator[None]":
    """End the streams of users whose token has expired or was revoked, as long as the context lasts."""

    async def watch() -> None:
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            application.close_invalid_streams()

    task = asyncio.create_task(watch(), name="isthmus-tokens")
    try:
        yield
    finally:
        task.cancel()


@contextlib.asynccontextmanager
async def _engine(agent: "Agent", hosting: Hosting, telemetry: "Telemetry") -> "AsyncGenerator[Engine]":
    from isthmus.a2a.serving.engine import engine_of
    from isthmus.engine import EngineOptions
    from isthmus.engine.port.workspaces import WorkspaceRule

    placement = hosting.placement()
    rule = WorkspaceRule(hosting.default_workspace(), hosting.roots(), placement.elsewhere)
    options = EngineOptions(rule, placement=placement, telemetry=telemetry)
    names = (hosting.name, *hosting.former_names)
    async with engine_of(agent, hosting.data_folder(), hosting.journal or "", names, options) as engine:
        with warn_when_blocked(AUTHORS_CALLER):
            yield engine


async def _serve(agent: AgentPort, hosting: Hosting, host: str, port: int) -> None:
    from isthmus.a2a.serving.listening import a2a_server, listening

    hosted = HostedApplication(agent, replace(hosting, hosts=(*hosting.hosts, host)))
    serving = hosting.serving()
    with listening(host, port, serving, hosting.public_url) as listener:
        try:

            def say_ready() -> None:
                sys.stdout.write(f"A2A server ready at {server.url}\n")
                sys.stdout.flush()
                if not hosting.token and hosting.authenticate is None:
                    sys.stderr.write(f"Token: {hosting.token_path()}\n")

            application, engine = await hosted.opened()
            server = a2a_server(application, engine, listener, serving, say_ready)
            await server.run_until_stopped()
        finally:
            await hosted.aclose()
