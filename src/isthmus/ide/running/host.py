"""Runs one companion for an editor: a server for each protocol, the user's control channel, and their shutdown.

Every server listens before the first discovery file is written; the files are removed before the servers stop
listening. The host ends when the editor quits or :meth:`CompanionHost.stop` is called (by a signal, for instance).
"""

import asyncio
import logging
import os
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path

from isthmus.errors import IsthmusError
from isthmus.files.atomic import forget_abandoned
from isthmus.files.locations import data_directory, runtime_directory
from isthmus.ide.agent_server import AgentServer
from isthmus.ide.companion import Companion
from isthmus.ide.control.control import ControlServer
from isthmus.ide.control.written_commands import serve_front
from isthmus.ide.discovery.protocols import IDE_PROTOCOLS
from isthmus.ide.editor import Capability, Editor, EditorError, EditorGoneError
from isthmus.ide.ide_protocol import IdeProtocol
from isthmus.ide.mcp.tool_files import load_tools
from isthmus.ide.options import CompanionLimits, CompanionOptions
from isthmus.ide.processes import process_is_alive
from isthmus.ide.running.restart_state import RestartStateFile
from isthmus.network.loopback import terminal_environment
from isthmus.record import record

WATCH_SECONDS = 0.5
UNSET_ATTEMPTS = 2

_log = logging.getLogger(__name__)


class CompanionError(IsthmusError):
    """A failure that keeps the companion from starting or running."""


@record
class ListeningServer:
    """Address of one protocol's server. ``name`` is the protocol's."""

    name: str
    port: int
    discovery_files: tuple[str, ...]


@record
class Ready:
    """State of a companion that is ready for clients.

    ``taken_over`` is true if it has the ports and tokens of the previous run. ``variables`` are the environment
    variables by which agents in a terminal find this companion.
    """

    servers: tuple[ListeningServer, ...]
    workspace_folders: tuple[str, ...]
    taken_over: bool
    variables: dict[str, str]

    @property
    def port(self) -> int:
        """Port of the first server: Gemini CLI's, if it is served."""
        return self.servers[0].port

    @property
    def discovery_file(self) -> str:
        """Discovery file of the first server."""
        return self.servers[0].discovery_files[0]


class CompanionHost:
    """One companion process; the options choose among ``protocols`` by name."""

    def __init__(
        self,
        editor: Editor,
        options: CompanionOptions | None = None,
        limits: CompanionLimits = CompanionLimits(),
        protocols: Sequence[IdeProtocol] = IDE_PROTOCOLS,
    ) -> None:
        self._editor = editor
        self._protocols = {protocol.name: protocol for protocol in protocols}
        self._options = options or CompanionOptions()
        self._limits = limits
        self._stopping = asyncio.Event()
        self._workspace_changed = asyncio.Event()
        self.companion: Companion | None = None
        """The companion, from :meth:`run` on."""
        self.control: ControlServer | None = None
        """The user's control channel, from :meth:`run` on."""
        self._state_file: RestartStateFile | None = None
        self._servers: tuple[AgentServer, ...] = ()
        self._unannounced: frozenset[str] = frozenset()
        # The values before ours: the companion was started by the editor or in one of its terminals.
        self._own_variables = {name: os.environ[name] for name in ("NO_PROXY", "no_proxy") if name in os.environ}

    def stop(self) -> None:
        """End :meth:`run`; may be called from a signal handler of the event loop."""
        self._stopping.set()

    async def run(self, ready: Callable[[Ready], None]) -> None:
        """Serve until the editor quits or :meth:`stop`.

        Raises:
            CompanionError: the companion could not start; nothing is left behind.
            CustomToolError: a file with custom tools cannot be used.
            EditorError: the editor was gone before the companion started.
        """
        options = self._options
        companion = Companion(self._editor, options, workspace_changed=self._workspace_changed.set, limits=self._limits)
        self.companion = companion
        serve_front(companion)
        for file in options.tool_files:
            load_tools(file, companion.tools)
        folders = await companion.workspace_folders()
        self._servers = servers = self._make_servers(companion)
        state_file = RestartStateFile(data_directory() / "companions", self._editor.identity.name, folders)
        is_taken_over = await self._start_servers(state_file)
        self._state_file = state_file
        self.control = control = self._make_control(companion)
        async with AsyncExitStack() as ending:  # callbacks run last to first; a failing one does not stop the rest
            ending.push_async_callback(self._editor.aclose)
            ending.push_async_callback(self._unset_terminals)
            ending.push_async_callback(control.cut_off)
            serving = [asyncio.create_task(server.serve()) for server in servers]
            ending.push_async_callback(_stop, servers, serving)
            ending.callback(self._store_state)  # with the undecided reviews: the next run shows them again
            following = asyncio.create_task(companion.run())
            ending.push_async_callback(_cancel, following)  # end the reviews while their clients can be notified
            ending.callback(state_file.touch)
            ending.push_async_callback(control.stop)
            for server in servers:
                ending.callback(server.withdraw)
            try:
                await control.start()
                await _listening(servers, serving)
                self._store_state()
                self._announce(folders, control)
                await asyncio.to_thread(self._forget_abandoned)
            except OSError as error:
                raise CompanionError(f"the companion cannot start: {error}") from error
            listening = tuple(ListeningServer(server.name, server.port, server.discovery_files) for server in servers)
            ready(Ready(listening, folders, is_taken_over, self._variables(folders)))
            housekeeping = asyncio.create_task(self._housekeep(companion, folders, control))
            ending.push_async_callback(_cancel, housekeeping)  # otherwise it would announce the servers again
            stopped = asyncio.create_task(self._until_stopped(control))
            ending.push_async_callback(_cancel, stopped)
            tasks = (*serving, following, housekeeping, stopped)
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task.done():
                    task.result()

    def _make_servers(self, companion: Companion) -> tuple[AgentServer, ...]:
        known = self._protocols
        chosen = self._options.protocols or tuple(known)
        if any(name not in known for name in chosen):
            raise CompanionError(f"protocols: expected some of {', '.join(known)}, received {list(chosen)}")
        return tuple(known[name].server(companion, self._store_state) for name in chosen)

    async def _start_servers(self, state_file: RestartStateFile) -> bool:
        """Start the servers; return whether one took over what a companion before had, such as its port."""
        former = state_file.take_over(fresh=self._options.fresh)
        try:
            taken = [await server.start(former.server(server.name) if former else None) for server in self._servers]
        except OSError as error:
            raise CompanionError(f"the companion cannot start: {error}") from error
        return any(taken)

    def _make_control(self, companion: Companion) -> ControlServer:
        known = self._protocols.items()
        hooks = {name: protocol.permissions() for name, protocol in known if protocol.permissions is not None}
        turns = {name: protocol.turns() for name, protocol in known if protocol.turns is not None}
        allows = self._options.allow_agent_accept
        return ControlServer(companion, runtime_directory(), allow_agent_accept=allows, hooks=hooks, turns=turns)

    def _store_state(self) -> None:
        """Store the state for the next run."""
        if self._state_file is not None:
            with suppress(OSError):  # without the file, clients cannot reconnect after a restart; all else works
                files = [file for server in self._servers for file in server.discovery_files]
                self._state_file.write({server.name: server.saved_state() for server in self._servers}, files)

    def _forget_abandoned(self) -> None:
        """Remove old partial files of companions that were killed while writing."""
        announced = [Path(file).parent for server in self._servers for file in server.discovery_files]
        for folder in {data_directory() / "companions", data_directory() / "kept", runtime_directory(), *announced}:
            with suppress(OSError):
                forget_abandoned(folder)

    def _announce(self, folders: Sequence[str], control: ControlServer) -> None:
        """Write the discovery files; log servers whose folder cannot be written (a read-only home).

        Raises:
            OSError: no server could be announced, or the control file for the user's commands could not be written.
        """
        failures: dict[str, OSError] = {}
        for server in self._servers:
            try:
                server.announce(folders)
            except OSError as error:
                failures[server.name] = error
        if len(failures) == len(self._servers):
            raise next(iter(failures.values()))
        for name in failures.keys() - self._unannounced:
            text = "%s: agents find this editor only in its own terminals and by `isthmus companion exec`: %s"
            _log.warning(text, name, f"no discovery file can be written: {failures[name]}")
        self._unannounced = frozenset(failures)
        first = self._servers[0]
        ports = tuple(server.port for server in self._servers)
        control.announce(folders, ports, self._variables(folders), first.discovery_files[0])

    def _variables(self, folders: Sequence[str]) -> dict[str, str]:
        return {name: text for server in self._servers for name, text in server.variables(folders).items()}

    async def _set_terminals(self, folders: Sequence[str]) -> bool:
        """Set the variables of new terminals; return False if the editor is busy and the caller should try again."""
        if Capability.TERMINAL not in self._editor.unavailable:
            try:
                variables = terminal_environment(self._variables(folders), self._own_variables)
                await self._editor.set_terminal_environment(variables)
            except EditorError:
                return False
        return True

    async def _unset_terminals(self) -> None:
        if Capability.TERMINAL in self._editor.unavailable:
            return
        names = terminal_environment(self._variables(()), {})
        former = {name: self._own_variables.get(name) for name in names}
        for _ in range(UNSET_ATTEMPTS):
            try:
                await self._editor.set_terminal_environment(former)
            except EditorGoneError:
                return
            except EditorError as error:
                _log.warning("new terminals in the editor still point to this companion: %s", error)
            else:
                return

    async def _until_stopped(self, control: ControlServer) -> None:
        """Wait for :meth:`stop`, or for the end of the watched process and of all agents that attached."""
        watch = self._options.watch
        while watch is None or any(map(process_is_alive, {watch} | control.agents)):
            with suppress(TimeoutError):
                async with asyncio.timeout(None if watch is None else WATCH_SECONDS):
                    await self._stopping.wait()
                    return

    async def _housekeep(self, companion: Companion, folders: Sequence[str], control: ControlServer) -> None:
        terminals_are_set = await self._set_terminals(folders)
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._limits.housekeeping_seconds):
                    await self._workspace_changed.wait()
            moved = self._workspace_changed.is_set()
            self._workspace_changed.clear()
            written = [server for server in self._servers if server.name not in self._unannounced]
            if moved or not (control.is_announced and all(server.is_announced for server in written)):
                with suppress(OSError, EditorError):
                    folders = await companion.workspace_folders()
                    if not control.is_announced:
                        await control.start()
                    self._announce(folders, control)
            if moved or not terminals_are_set:
                terminals_are_set = await self._set_terminals(folders)
            if self._state_file is not None:
                self._state_file.touch()
            for server in self._servers:
                await server.housekeep()


async def _stop(servers: Sequence[AgentServer], serving: Sequence["asyncio.Task[None]"]) -> None:
    """Stop every server, and wait for its task, whatever the outcome."""
    await asyncio.gather(*(server.stop() for server in servers), return_exceptions=True)
    await asyncio.gather(*serving, return_exceptions=True)


async def _cancel(task: "asyncio.Task[None]") -> None:
    """Cancel a task, and wait for its end, whatever the outcome."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def _listening(servers: Sequence[AgentServer], serving: Sequence["asyncio.Task[None]"]) -> None:
    """Wait until all servers listen; raise the error of a server that cannot."""
    listening = asyncio.gather(*(server.listening() for server in servers))
    await asyncio.wait([*serving, listening], return_when=asyncio.FIRST_COMPLETED)
    for task in serving:
        if task.done():
            listening.cancel()
            task.result()
