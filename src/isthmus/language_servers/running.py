"""A running language server: its process, and the diagnostics of files, with a deadline for each wait."""

import asyncio
import contextlib
import os
import secrets
import time
from asyncio.subprocess import DEVNULL
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from isthmus.editors.plugin.connection import JsonRpcConnection, open_connection
from isthmus.encoding.codec import JsonObject
from isthmus.errors import IsthmusError
from isthmus.ide.editor import Diagnostic
from isthmus.language_servers.protocol import ServerProtocol
from isthmus.language_servers.servers import LanguageServer, settings_of
from isthmus.record import record
from isthmus.rpc.pending import RpcClosedError, RpcTimeoutError
from isthmus.runtime.group_guard import MARK, group_guard
from isthmus.runtime.processes import end_process_fully, start_process


@record
class ServerTimeouts:
    """Maximum times in seconds: of the start, of the look at one text, and without news before a text is settled."""

    start_seconds: float = 20.0
    look_seconds: float = 15.0
    settle_seconds: float = 0.4
    end_seconds: float = 1.0


class ServerFailedError(IsthmusError):
    """A language server that cannot be started, or has ended."""


@dataclass(slots=True)
class _Running:
    connection: JsonRpcConnection
    protocol: ServerProtocol
    changed: asyncio.Event


class RunningLanguageServer:
    """One language server for one folder, which is started at the first look and ends with :meth:`aclose`."""

    def __init__(
        self,
        server: LanguageServer,
        program: str,
        workspace: Path,
        environment: Mapping[str, str],
        timeouts: ServerTimeouts = ServerTimeouts(),
    ) -> None:
        self._server = server
        self._command = (program, *server.arguments)
        self._workspace = workspace
        self._environment = {**environment, **server.variables}
        self._timeouts = timeouts
        self._lock = asyncio.Lock()
        self._ends = asyncio.Event()
        self._started: asyncio.Future[_Running] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._run(), name=f"language server {server.program}")

    async def diagnostics(self, path: Path, text: str) -> tuple[Diagnostic, ...] | None:
        """Return the diagnostics of a file with this text; None if the server does not say them in time.

        Texts are looked at in the order of the calls.

        Raises:
            ServerFailedError: the server cannot be started, or has ended.
        """
        running = await asyncio.shield(self._started)
        async with self._lock:
            try:
                return await self._look(running, path, text)
            except RpcClosedError as error:
                raise ServerFailedError(f"{self._server.program} has ended") from error

    async def aclose(self) -> None:
        """End the server with all of its processes."""
        self._ends.set()
        await asyncio.wait({self._task})
        if self._started.done() and not self._started.cancelled():
            self._started.exception()  # or asyncio logs that nobody has looked at it

    async def _look(self, running: _Running, path: Path, text: str) -> tuple[Diagnostic, ...] | None:
        connection, protocol = running.connection, running.protocol
        deadline = time.monotonic() + self._timeouts.look_seconds
        while not protocol.has_loaded:
            if not await self._news(running, deadline - time.monotonic()):
                return None
        for sent in (*protocol.change(path, text), protocol.saved(path)):
            connection.notify(sent.method, sent.params)
        if questions := protocol.questions(path):
            results: list[object] = []
            try:
                for each in questions:
                    wait = max(0.1, deadline - time.monotonic())
                    results.append(await connection.request(each.method, each.params, timeout=wait))
            except RpcTimeoutError:
                return None
            except RpcClosedError:
                raise
            except IsthmusError:
                return None  # the server refuses, because it is busy with another text, for example
            return protocol.answered(path, results)
        while protocol.published(path) is None:
            if not await self._news(running, deadline - time.monotonic()):
                return None
        while await self._news(running, self._timeouts.settle_seconds) and time.monotonic() < deadline:
            pass
        return protocol.published(path)

    async def _news(self, running: _Running, seconds: float) -> bool:
        """Wait for something new from the server, and return whether it came in time."""
        if running.connection.is_closed:
            raise RpcClosedError("the connection was lost")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, seconds)):
                await running.changed.wait()
        is_new = running.changed.is_set()
        running.changed.clear()
        return is_new

    async def _run(self) -> None:
        """Start the server, and end it when it is no longer needed."""
        mark = secrets.token_hex(16)
        try:
            async with group_guard(mark) as announce:
                await self._run_guarded(mark, announce)
        except (OSError, IsthmusError) as error:
            self._fail(str(error))
        finally:
            self._fail("it was ended")

    async def _run_guarded(self, mark: str, announce: Callable[[int], None]) -> None:
        settings = await asyncio.to_thread(settings_of, self._server, self._workspace)
        child_in, our_out = os.pipe()
        our_in, child_out = os.pipe()
        try:
            process = await start_process(
                *self._command, stdin=child_in, stdout=child_out, stderr=DEVNULL, cwd=self._workspace,
                env={**self._environment, MARK: mark},
            )  # fmt: skip
        except BaseException:
            os.close(our_out)
            os.close(our_in)
            raise
        finally:
            os.close(child_in)
            os.close(child_out)
        announce(process.pid)
        protocol, changed = ServerProtocol(self._server, self._workspace, settings), asyncio.Event()

        def notified(method: str, params: JsonObject) -> None:
            if protocol.notified(method, params):
                changed.set()

        def closed(_: str | None) -> None:
            changed.set()

        try:
            connection = await open_connection(our_in, our_out, protocol.asked, notified, closed)
            try:
                result = await connection.request(
                    "initialize", protocol.initialize(), timeout=self._timeouts.start_seconds
                )
                protocol.initialized(result)
                connection.notify("initialized", {})
                self._started.set_result(_Running(connection, protocol, changed))
                await self._ends.wait()
                with contextlib.suppress(IsthmusError):
                    await connection.request("shutdown", None, timeout=self._timeouts.end_seconds)
                    connection.notify("exit", {})
            finally:
                await connection.aclose(timeout=self._timeouts.end_seconds)
        finally:
            await end_process_fully(process)

    def _fail(self, reason: str) -> None:
        if not self._started.done():
            self._started.set_exception(ServerFailedError(f"{self._server.program}: {reason}"))
