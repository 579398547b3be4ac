"""A running agent and the connection to it: starts both, sends our requests, and ends both together.

Not here: sessions and turns, see :mod:`isthmus.acp.host.agent_session`.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import TypeAlias, TypeVar

from isthmus.acp.connection import AcpConnection, ConnectionLimits, RequestHandler
from isthmus.acp.host.known_agent import KnownAgent
from isthmus.acp.host.limits import HostLimits
from isthmus.acp.host.process import AgentProcess
from isthmus.acp.v1.connection import InitializeRequest
from isthmus.acp.v1.sessions import LoadSessionRequest, NewSessionRequest, PromptRequest, ResumeSessionRequest
from isthmus.encoding.codec import from_json, to_camel_json
from isthmus.errors import DecodeError, IsthmusError
from isthmus.record import record
from isthmus.rpc.messages import RpcError
from isthmus.rpc.pending import RpcClosedError

AUTH_REQUIRED = -32000
"""Error code of a request that needs a login."""

ClientRequest: TypeAlias = (
    InitializeRequest | NewSessionRequest | LoadSessionRequest | ResumeSessionRequest | PromptRequest
)
ResponseT = TypeVar("ResponseT")
log = logging.getLogger(__name__)


class LoginRequiredError(IsthmusError):
    """A user must log in to the agent first; ``methods`` are the agent's names of the ways to do so."""

    methods: tuple[str, ...] = ()


class AgentLostError(IsthmusError):
    """The agent's process ended, does not answer, or does not speak the protocol."""


@record
class AgentLaunch:
    """The command of an agent, and its environment."""

    command: tuple[str, ...]
    environment: Mapping[str, str]
    agent: KnownAgent


class AgentLink:
    """The process of an agent and the connection to it.

    ``make_room`` gets the number of bytes that were read, and returns when more may be read.
    """

    def __init__(
        self,
        launch: AgentLaunch,
        folder: Path,
        handler: RequestHandler,
        limits: HostLimits,
        make_room: Callable[[int], Awaitable[None]],
    ) -> None:
        self._launch = launch
        self._folder = folder
        self._handler = handler
        self._limits = limits
        self._make_room = make_room
        self._connection: AcpConnection | None = None
        self._serving: asyncio.Task[None] | None = None
        self._exited = asyncio.Event()
        self._exit_text = ""

    @property
    def is_alive(self) -> bool:
        """Whether the agent can take requests."""
        return self._connection is not None and not self._connection.is_closed

    async def start(self) -> None:
        """Start the process.

        Raises:
            AgentStartError: the program cannot be started.
        """
        ready: asyncio.Future[AcpConnection] = asyncio.get_running_loop().create_future()
        self._serving = asyncio.create_task(self._serve(ready), name="isthmus-acp-agent")
        self._connection = await ready

    async def ask(self, request: ClientRequest, kind: type[ResponseT], seconds: float | None) -> ResponseT:
        """Send a request and return its result.

        Raises:
            LoginRequiredError: the user must log in first.
            RpcError: the agent refused it.
            AgentLostError: the process ended, or the answer did not come in time or does not fit.
        """
        method = request.METHOD
        try:
            if self._connection is None:
                raise RpcClosedError("it was not started")
            answer = await self._connection.request(method, to_camel_json(request), timeout=seconds)
            return from_json(kind, {} if answer is None else answer)
        except RpcError as error:
            text = _text_of(error, self._limits.title)
            if error.code == AUTH_REQUIRED:
                raise LoginRequiredError(text) from error
            raise RpcError(error.code, text) from error
        except DecodeError as error:
            raise AgentLostError(f"the agent's answer to {method} does not fit the protocol: {error}") from error
        except IsthmusError as error:
            raise AgentLostError(f"{await self._reason(error)}. The server's log has its output.") from error

    async def notify(self, notification: object, method: str) -> None:
        """Send a notification."""
        if self._connection is not None:
            await self._connection.notify(method, to_camel_json(notification))

    def kill(self) -> None:
        """Begin to end the process."""
        if self._serving is not None:
            self._serving.cancel()

    async def aclose(self) -> None:
        """End the process, with everything that it started."""
        if self._serving is not None:
            self._serving.cancel()
            await asyncio.gather(self._serving, return_exceptions=True)

    async def _reason(self, error: IsthmusError) -> str:
        if not isinstance(error, RpcClosedError):
            return str(error)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._limits.exit_seconds):
                await self._exited.wait()
        return f"the agent's process ended {self._exit_text}".rstrip()

    async def _serve(self, ready: "asyncio.Future[AcpConnection]") -> None:
        launch, limits = self._launch, self._limits
        sizes = ConnectionLimits(message_bytes=limits.message_bytes, open_requests=limits.open_requests)
        started = AgentProcess.started(launch.command, self._folder, launch.environment, launch.agent.title)
        try:
            async with started as process:
                errors = asyncio.create_task(process.log_errors(limits.logged_lines))
                connection = AcpConnection(self._handler, process.write, sizes)
                try:
                    ready.set_result(connection)
                    await connection.read(self._chunks(process))
                    await process.wait(limits.exit_seconds)
                finally:
                    self._exit_text = process.exit_text
                    self._exited.set()
                    await connection.aclose()
                    await process.end(limits.exit_seconds)
                    errors.cancel()
                    await asyncio.gather(errors, return_exceptions=True)
        except IsthmusError as error:
            if ready.done():
                log.warning("%s: %s", launch.command[0], error)
            else:
                ready.set_exception(error)
        finally:
            if not ready.done():
                ready.cancel()

    async def _chunks(self, process: AgentProcess) -> AsyncIterator[bytes]:
        async for chunk in process.chunks():
            yield chunk
            await self._make_room(len(chunk))


def _text_of(error: RpcError, maximum: int) -> str:
    """Return the agent's text of an error, with the details that some agents put beside it."""
    text, data = str(error), error.data
    details = data.get("details") if isinstance(data, Mapping) else None
    return (f"{text}: {details}" if isinstance(details, str) and details not in text else text)[:maximum]
