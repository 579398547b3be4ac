"""Runs one companion around an editor: socket, MCP server, discovery file, control channel, and their end.

The server listens before the discovery file appears; the file is gone before the server stops listening. Everything
ends when the editor quits or :meth:`CompanionHost.stop` is called (by a signal, for instance).
"""

import asyncio
import os
import secrets
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from isthmus.errors import IsthmusError
from isthmus.ide.companion import Companion
from isthmus.ide.control import ControlServer
from isthmus.ide.editor import Editor, EditorError
from isthmus.ide.gemini.discovery import DiscoveryFile
from isthmus.ide.gemini.http_gate import Gate
from isthmus.ide.gemini.http_server import Server
from isthmus.ide.gemini.http_transport import McpEndpoint
from isthmus.ide.gemini.session import SessionTable
from isthmus.ide.processes import process_is_alive
from isthmus.ide.survival import Life, LifeFile
from isthmus.places import data_directory, runtime_directory

HOUSEKEEPING_SECONDS = 10.0
WATCH_SECONDS = 0.5


class CompanionError(IsthmusError):
    """The companion could not start or go on."""


@dataclass(frozen=True, slots=True)
class Ready:
    """What is known once the companion can be reached."""

    port: int
    discovery_file: str
    workspace_folders: tuple[str, ...]
    taken_over: bool


class CompanionHost:
    """One companion process.

    ``folders`` take the place of the editor's workspace folders; ``watch`` is the id of a process with which it ends,
    unless other agents use it by then: it ends with the last of them.
    """

    def __init__(
        self,
        editor: Editor,
        *,
        folders: tuple[str, ...] = (),
        fresh: bool = False,
        allow_agent_accept: bool = False,
        watch: int | None = None,
    ) -> None:
        self._editor = editor
        self._folders = folders
        self._fresh = fresh
        self._allow_agent_accept = allow_agent_accept
        self._watch = watch
        self._stopping = asyncio.Event()
        self._workspace_changed = asyncio.Event()

    def stop(self) -> None:
        """End :meth:`run`; may be called from a signal handler of the event loop."""
        self._stopping.set()

    async def run(self, ready: Callable[[Ready], None]) -> None:
        """Serve until the editor quits or :meth:`stop`.

        Raises:
            CompanionError: it could not start; nothing is left behind.
            EditorError: the editor was gone before it began.
        """
        companion = Companion(self._editor, folders=self._folders, workspace_changed=self._workspace_changed.set)
        folders = await companion.workspace_folders()
        identity = self._editor.identity
        life_file = LifeFile(data_directory() / "companions", identity.name, folders)
        former = life_file.take_over(fresh=self._fresh)
        listener, former = _listen(former)
        port = int(listener.getsockname()[1])
        token = former.token if former else secrets.token_urlsafe(32)
        # The epoch tells the event ids of this life from those of the one before.
        epoch = f"{time.time_ns() // 1_000_000:x}"
        sessions = SessionTable(epoch, former.clients() if former else {}, time.monotonic)
        discovery = DiscoveryFile(identity, port)

        def keep() -> None:
            with suppress(OSError):  # without it only the healing after a restart is lost
                life_file.write(port, token, str(discovery.path), sessions.clients())

        endpoint = McpEndpoint(companion, sessions, Gate(token, port), keep)
        server = Server(endpoint, listener)
        control = ControlServer(companion, runtime_directory(), port, allow_agent_accept=self._allow_agent_accept)
        serving = asyncio.create_task(server.run_until_stopped())
        tasks: list[asyncio.Task[object]] = [serving, asyncio.create_task(companion.run())]
        try:
            try:
                await control.start()
                await _listening(server, serving)
                keep()
                discovery.write(folders, token)
                control.announce(folders, token, str(discovery.path))
            except OSError as error:
                raise CompanionError(f"the companion cannot start: {error}") from error
            ready(Ready(port, str(discovery.path), folders, former is not None))
            tasks.append(asyncio.create_task(self._housekeep(companion, sessions, discovery, token, keep, life_file)))
            tasks.append(asyncio.create_task(self._until_stopped(control)))
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task.done():
                    task.result()
        finally:
            discovery.remove()
            await control.stop()
            life_file.touch()
            server.should_exit = True
            for task in tasks[1:]:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            listener.close()
            await self._editor.aclose()

    async def _until_stopped(self, control: ControlServer) -> None:
        """Wait for :meth:`stop`, or for the end of the process that is watched and of all that came to it."""
        while self._watch is None or any(map(process_is_alive, {self._watch} | control.agents)):
            with suppress(TimeoutError):
                async with asyncio.timeout(None if self._watch is None else WATCH_SECONDS):
                    await self._stopping.wait()
                    return

    async def _housekeep(
        self,
        companion: Companion,
        sessions: SessionTable,
        discovery: DiscoveryFile,
        token: str,
        keep: Callable[[], None],
        life_file: LifeFile,
    ) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(HOUSEKEEPING_SECONDS):
                    await self._workspace_changed.wait()
            moved = self._workspace_changed.is_set()
            self._workspace_changed.clear()
            if moved or not discovery.path.exists():
                with suppress(OSError, EditorError):
                    discovery.write(await companion.workspace_folders(), token)
            life_file.touch()
            for session in sessions.gone():
                await companion.close_reviews(session.id)
            for session in sessions.expired():
                sessions.remove(session.id)
                await companion.detach(session.id)
                keep()


async def _listening(server: Server, serving: asyncio.Task[object]) -> None:
    """Return when the server listens, or raise what kept it from that."""
    listening = asyncio.create_task(server.listening.wait())
    await asyncio.wait([serving, listening], return_when=asyncio.FIRST_COMPLETED)
    if serving.done():
        listening.cancel()
        serving.result()


def _listen(former: Life | None) -> tuple[socket.socket, Life | None]:
    """The listening socket, and the former life if its port could be had again."""
    if former is not None:
        with suppress(OSError, OverflowError):
            return _bound(former.port), former
    return _bound(0), None


def _bound(port: int) -> socket.socket:
    # With the protocol named, asyncio turns Nagle's algorithm off; without it each answer waits 40 ms.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
    except (OSError, OverflowError):
        listener.close()
        raise
    os.set_inheritable(listener.fileno(), False)
    return listener
