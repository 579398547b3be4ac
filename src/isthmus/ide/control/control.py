"""Control channel from the user to a running companion: a Unix socket that is not given to agents.

Requests and responses are JSON objects, one per line. A 0600 file in our runtime folder contains the path of the socket
and the user's token; ``isthmus ide`` and ``isthmus companion exec`` find running companions by this file. A permission
from a process below an attached agent is refused. The commands are in :mod:`commands`.
"""

import asyncio
import json
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from isthmus.encoding.codec import JsonObject
from isthmus.errors import IsthmusError
from isthmus.files.locations import make_private_directory, require_own_directory, write_private
from isthmus.ide.companion import Companion
from isthmus.ide.control import lineage
from isthmus.ide.control.commands import COMMANDS, PERMISSIONS, ControlCommandError
from isthmus.ide.control.page_commands import PAGE_COMMANDS, PAGE_PERMISSIONS
from isthmus.ide.control.permissions import PermissionQuestions
from isthmus.ide.control.question_commands import QUESTION_COMMANDS
from isthmus.ide.control.turns import TURN, note_turn
from isthmus.ide.control.written_commands import (
    WRITTEN_COMMANDS,
    WRITTEN_PERMISSIONS,
    WRITTEN_QUESTIONS,
)
from isthmus.ide.editor import Capability, EditorError
from isthmus.ide.permissions import PermissionHook
from isthmus.ide.processes import process_is_alive
from isthmus.ide.turns import TurnReader
from isthmus.listeners.gate import same_secret
from isthmus.text.visible import visible_line

if TYPE_CHECKING:
    from psutil import Process

MAXIMUM_LINE_BYTES = 64 * 1024 * 1024
MAXIMUM_SOCKET_PATH_BYTES = 100
"""Maximum length of the socket's path in bytes; the system's limit is 104 (macOS) or 108 (Linux)."""
MAXIMUM_SHOWN_CHARACTERS = 500
CONFIRM_SECONDS = 25.0
"""Maximum wait in seconds for an answer in the editor; the waiting command gives up soon afterwards."""
USER_COMMANDS = {**COMMANDS, **QUESTION_COMMANDS, **WRITTEN_COMMANDS}
QUESTIONS = {"accept": "Accept the change of", "answer": "Answer the question", **WRITTEN_QUESTIONS}
"""Opening words of the question whether the user sent a command; doubtful commands not listed here are refused."""
ALL_COMMANDS = {**USER_COMMANDS, **PAGE_COMMANDS}
_OWN_FOLDER = "isthmus-"
_LEFT = re.compile(r"companion-(\d{1,10})\.(?:json|sock)")


class ControlServer:
    """Server of the control channel; listens between :meth:`start` and :meth:`stop`.

    ``hooks`` has the hooks of CLIs that may ask for permissions, ``turns`` the readers of those that tell of turns, by
    the names of their protocols.
    """

    def __init__(
        self,
        companion: Companion,
        folder: Path,
        *,
        allow_agent_accept: bool,
        hooks: Mapping[str, PermissionHook] = MappingProxyType({}),
        turns: Mapping[str, TurnReader] = MappingProxyType({}),
    ) -> None:
        self._companion = companion
        self._permissions = PermissionQuestions(companion, hooks)
        self._turns = turns
        self._folder = folder
        self._ports: tuple[int, ...] = ()
        self._allow_agent_accept = allow_agent_accept
        self._agents: list[Process] = []
        self._token = secrets.token_urlsafe(32)
        self._file = folder / f"companion-{os.getpid()}.json"
        self._socket = folder / f"companion-{os.getpid()}.sock"
        self._own_folder: str | None = None
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()

    @property
    def agents(self) -> frozenset[int]:
        """Ids of the running processes that ``companion exec`` announced as agents."""
        self._agents = [process for process in self._agents if process.is_running()]
        return frozenset(process.pid for process in self._agents)

    async def start(self) -> None:
        """Listen on the socket, which clients can find only after :meth:`announce`.

        May be called again, because a log-out or a cleaner may empty the runtime folder, socket included.
        """
        if self._server is not None:
            self._server.close()
        make_private_directory(self._folder)
        require_own_directory(self._folder)
        await asyncio.to_thread(sweep, self._folder)
        if self._own_folder is None and len(os.fsencode(self._socket)) > MAXIMUM_SOCKET_PATH_BYTES:
            self._own_folder = tempfile.mkdtemp(prefix=_OWN_FOLDER, dir="/tmp")
            self._socket = Path(self._own_folder) / "s"
        make_private_directory(self._socket.parent)
        require_own_directory(self._socket.parent)  # another user may own the short folder in /tmp by now
        with suppress(FileNotFoundError):
            self._socket.unlink()
        self._server = await asyncio.start_unix_server(self._serve, self._socket, limit=MAXIMUM_LINE_BYTES)
        self._socket.chmod(0o600)

    @property
    def is_announced(self) -> bool:
        """Whether file and socket still exist."""
        return self._file.exists() and self._socket.exists()

    def announce(
        self, folders: Sequence[str], ports: tuple[int, ...], variables: Mapping[str, str], discovery_file: str
    ) -> None:
        """Write the file by which the user's commands find this companion.

        ``ports`` are the ports of its servers, Gemini CLI's first. ``variables`` are environment variables for agents.
        """
        self._ports = ports
        identity = self._companion.editor.identity
        content = {
            "pid": os.getpid(),
            "port": ports[0],
            "ports": list(ports),
            "variables": dict(variables),
            "editor": identity.name,
            "editor_pid": identity.pid,
            "workspace_folders": list(folders),
            "discovery_file": discovery_file,
            "socket": str(self._socket),
            "token": self._token,
        }
        write_private(self._file, content)

    async def stop(self) -> None:
        """Remove file and socket, so that no new commands arrive. Running commands may still finish."""
        for path in (self._file, self._socket):
            with suppress(OSError):
                path.unlink()
        if self._own_folder is not None:
            shutil.rmtree(self._own_folder, ignore_errors=True)
        if self._server is not None:
            self._server.close()

    async def cut_off(self) -> None:
        """End the connections that remain after :meth:`stop`, and their unfinished commands."""
        for serving in self._serving:
            serving.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)
        await asyncio.sleep(0)  # the transports close in the loop's next turn

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving = asyncio.current_task()
        if serving is not None:
            self._serving.add(serving)
            serving.add_done_callback(self._serving.discard)
        try:
            while line := await reader.readline():
                answer = await self._answer(line, reader, writer)
                writer.write(json.dumps(answer).encode() + b"\n")
                await writer.drain()
        except (ConnectionError, ValueError):
            pass  # disconnected, or a line over the limit
        except asyncio.CancelledError:
            writer.transport.abort()  # do not wait for a client that does not read
        finally:
            writer.close()

    async def _answer(self, line: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> JsonObject:
        try:
            return {"ok": True, "result": await self._run(line, reader, writer)}
        except IsthmusError as error:
            return {"ok": False, "error": str(error)}

    async def _run(self, line: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> JsonObject:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ControlCommandError(f"expected one JSON object a line: {error}") from error
        request = cast("JsonObject", value if isinstance(value, dict) else {})
        if not same_secret(str(request.get("token", "")), self._token):
            raise ControlCommandError("Unauthorized: expected the user's token of this companion")
        name = request.get("command")
        if name == "agent":
            # `companion exec` is about to become an agent; it counts as one from now on, even before it connects.
            pid = request.get("pid")
            if not isinstance(pid, int):
                raise ControlCommandError(f"expected pid as a number, received {pid!r}")
            import psutil  # loaded for the first agent, not at start

            with suppress(psutil.Error, ValueError, OverflowError):  # gone, or in another container
                self._agents.append(psutil.Process(pid))
            return {}
        if name == "permission":
            return await self._ask_permission(request, reader, writer)
        if name == TURN:
            return await note_turn(self._companion, self._turns, request)
        command = ALL_COMMANDS.get(name) if isinstance(name, str) else None
        if command is None:
            raise ControlCommandError(f"unknown command {name!r}; expected one of {', '.join(USER_COMMANDS)}")
        if name in PERMISSIONS | WRITTEN_PERMISSIONS and not self._allow_agent_accept:
            await self._refuse_agents(writer, name, request)
        if name in PAGE_PERMISSIONS and not self._allow_agent_accept:
            await self._refuse_page(writer, request)
        return await command(self._companion, request)

    async def _ask_permission(
        self, request: JsonObject, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> JsonObject:
        """Ask for a hook, and take the question back when the hook has ended: its terminal has the answer."""
        pid = lineage.peer_process(writer.get_extra_info("socket"))
        asking = asyncio.create_task(self._permissions.ask(request, pid))
        ended = asyncio.create_task(reader.read(1))
        try:
            await asyncio.wait({asking, ended}, return_when=asyncio.FIRST_COMPLETED)
            if not asking.done():
                raise ControlCommandError("the hook that asked has ended; its terminal decides")
            return asking.result()
        finally:
            asking.cancel()
            ended.cancel()
            await asyncio.gather(asking, ended, return_exceptions=True)

    async def refuse_browser(self, pid: int | None) -> None:
        """Refuse an answer in a page whose browser is process ``pid`` of this machine, None if it is not known.

        Raises:
            ControlCommandError: an agent started that process.
        """
        if pid is None or self._allow_agent_accept:
            return
        agent = await asyncio.to_thread(lineage.agent_behind_browser, pid, self._ports, self.agents)
        if agent is not None:
            raise ControlCommandError(
                f"refused: the browser was started by {agent}, and an agent does not answer its own question. Answer "
                "in a browser or from a terminal of your own, or start the companion with --allow-agent-accept."
            )

    async def _refuse_page(self, writer: asyncio.StreamWriter, request: JsonObject) -> None:
        """Refuse an answer in the page of another server, unless the user started that server in a terminal.

        The server may itself be attached, as the one of our own agent is; its commands are processes below it.
        """
        browser = request.get("browser")
        await self.refuse_browser(browser if isinstance(browser, int) else None)
        pid = lineage.peer_process(writer.get_extra_info("socket"))
        if not pid:
            return
        reason = await asyncio.to_thread(
            lineage.attached_agent_above, pid, self._ports, self.agents - {pid}, itself=False
        )
        if reason is not None:
            reason = f"it runs below {reason}, an agent that is attached to this companion"
        elif not process_is_alive(pid):
            reason = "it has ended"
        else:
            attached = self.agents | await asyncio.to_thread(lineage.connected_agents, self._ports)
            reason = await asyncio.to_thread(lineage.doubt_about, pid, attached - {pid})
        if reason is not None:
            raise ControlCommandError(
                f"refused: it is not certain that you started the server of this page (process {pid}): {reason}. "
                "Answer with `isthmus ide accept`, or in the page of the companion itself (`isthmus ide page`), "
                "or start the companion with --allow-agent-accept."
            )

    async def _refuse_agents(self, writer: asyncio.StreamWriter, name: str, request: JsonObject) -> None:
        pid = lineage.peer_process(writer.get_extra_info("socket"))
        if not pid:  # unknown, or in another container
            return
        agent = await asyncio.to_thread(lineage.attached_agent_above, pid, self._ports, self.agents)
        if agent is not None:
            raise ControlCommandError(
                f"refused: this command runs below {agent}, an agent that is attached to this companion, and an agent "
                "does not answer its own question. Answer from a terminal of your own, or start the companion, or the "
                "bridge, with --allow-agent-accept."
            )
        if not process_is_alive(pid):
            raise ControlCommandError(
                f"refused: the process that sent this command ({pid}) has ended, so it cannot be checked whether an "
                "agent started it; wait for the answer"
            )
        attached = self.agents | await asyncio.to_thread(lineage.connected_agents, self._ports)
        doubt = await asyncio.to_thread(lineage.doubt_about, pid, attached)
        if doubt is not None and not await self._confirmed(pid, doubt, name, request):
            raise ControlCommandError(
                f"refused: it is not certain that you sent this command: {doubt}. Type it into the shell of a terminal "
                "of your own, answer in the editor, or start the companion, or the bridge, with --allow-agent-accept."
            )

    async def _confirmed(self, pid: int, doubt: str, name: str, request: JsonObject) -> bool:
        """Ask in the editor whether the user sent a command; return whether they did."""
        editor = self._companion.editor
        if name not in QUESTIONS or Capability.CONFIRM in editor.unavailable:
            return False
        about = visible_line(str(request.get("path") or request.get("id") or "")[:MAXIMUM_SHOWN_CHARACTERS])
        text = f"Process {pid} sent `isthmus ide {name} {about}`, and {doubt}. Did you?"
        with suppress(EditorError, TimeoutError):
            async with asyncio.timeout(CONFIRM_SECONDS):
                return await editor.confirm(f"{QUESTIONS[name]} {about}?", text)
        return False


def sweep(folder: Path) -> None:
    """Remove the files and sockets of killed companions from our runtime folder. Blocks."""
    with suppress(OSError):
        for path in sorted(folder.iterdir()):
            matched = _LEFT.fullmatch(path.name)
            if matched and not process_is_alive(int(matched[1])):
                remove_leftover(path)


def remove_leftover(path: Path) -> None:
    """Remove the control file of a dead companion and the socket named in it, or the socket alone."""
    if path.suffix == ".json":
        with suppress(OSError, ValueError, KeyError, TypeError):
            named = Path(json.loads(path.read_text(encoding="utf-8"))["socket"])
            named.unlink()
            if named.parent != path.parent and named.parent.name.startswith(_OWN_FOLDER):
                named.parent.rmdir()
    with suppress(OSError):
        path.unlink()
