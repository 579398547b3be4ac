"""Server of the JSON lines protocol: lets agents attach to a companion over TCP on this machine.

The number of connections is not limited here; a server of Isthmus accepts them with :mod:`isthmus.listeners.listener`.
"""

import asyncio
import hmac
import json
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from typing_extensions import override

from isthmus.encoding.codec import JsonObject
from isthmus.encoding.json_shapes import as_object, as_text
from isthmus.files.locations import data_directory, make_private_directory, write_private
from isthmus.ide.agent_client import Client
from isthmus.ide.agent_server import AgentServer
from isthmus.ide.companion import Companion
from isthmus.ide.context_tracker import UserFocus
from isthmus.ide.discovery_file import announces
from isthmus.ide.editor import EditorError, FileMentioned
from isthmus.ide.reviews.review import Accepted, DiffReview, Rejected
from isthmus.network import loopback
from isthmus.text.visible import printable
from protocols.json_lines.protocol import FOLDER, PORT_VARIABLE

MAXIMUM_LINE_BYTES = 8 * 1024 * 1024
MAXIMUM_UNREAD_BYTES = 32 * 1024 * 1024
"""Maximum number of unsent bytes for an agent; one that lets more pile up is disconnected."""
GREETING_SECONDS = 10.0
"""Maximum wait in seconds for the token."""
CLOSE_SECONDS = 2.0
"""Maximum wait in seconds for agents to read their last messages."""


class JsonLinesAgent(Client):
    """An attached agent. Its methods write to the connection, which buffers."""

    def __init__(self, title: str, writer: asyncio.StreamWriter) -> None:
        self._id = uuid4().hex
        self._title = printable(title)[:100] or "an agent"
        self._writer = writer

    @property
    @override
    def id(self) -> str:
        return self._id

    @property
    @override
    def title(self) -> str:
        return self._title

    @property
    @override
    def connected(self) -> bool:
        return not self._writer.is_closing()

    @property
    @override
    def pid(self) -> None:
        return None

    @property
    @override
    def active_at(self) -> None:
        return None

    @property
    @override
    def takes_reasons(self) -> bool:
        return False

    def send(self, **message: Any) -> None:
        """Send one message."""
        if self.connected:
            self._writer.write(json.dumps(message).encode() + b"\n")
            if self._writer.transport.get_write_buffer_size() > MAXIMUM_UNREAD_BYTES:
                self._writer.transport.abort()

    @override
    def context_changed(self, context: UserFocus) -> None:
        self.send(active=context.active_file.path if context.active_file else None)

    @override
    def mentioned(self, mention: FileMentioned) -> None:
        """Do nothing: without ``active_at`` the companion never calls this."""

    @override
    def review_closed(self, review: DiffReview) -> None:
        self.send(closed={"path": review.file_path})

    @override
    def discard_decisions(self, file_path: str) -> None:
        """Do nothing: decisions are sent at once, so none waits."""

    @override
    def decided(self, review: DiffReview) -> str | None:
        match review.state:
            case Accepted(content):
                self.send(accepted={"path": review.file_path, "text": content})
            case Rejected():
                self.send(rejected={"path": review.file_path})
            case _:
                self.review_closed(review)
        return None


class JsonLinesServer(AgentServer):
    """Lets agents attach to a companion."""

    def __init__(self, companion: Companion) -> None:
        self._companion = companion
        self._connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._listening = asyncio.Event()
        self._stopping = asyncio.Event()

    @property
    @override
    def name(self) -> str:
        return "json-lines"

    @property
    @override
    def port(self) -> int:
        return int(self._socket.getsockname()[1])

    @property
    @override
    def discovery_files(self) -> tuple[str, ...]:
        return (str(self._file),)

    @override
    async def start(self, former: JsonObject | None) -> bool:
        again = loopback.rebind(former)
        self._socket, self._token = again or (loopback.bind(0), secrets.token_urlsafe(32))
        self._file = data_directory() / FOLDER / f"{self.port}.json"
        return again is not None

    @override
    async def serve(self) -> None:
        server = await asyncio.start_server(self._accepted, sock=self._socket, limit=MAXIMUM_LINE_BYTES)
        self._listening.set()
        await self._stopping.wait()
        server.close()
        for writer in self._connections.values():
            writer.close()
        if self._connections:
            await asyncio.wait(tuple(self._connections), timeout=CLOSE_SECONDS)
        for writer in self._connections.values():
            writer.transport.abort()
        await asyncio.gather(*self._connections, return_exceptions=True)

    @override
    async def listening(self) -> None:
        await self._listening.wait()

    @override
    def announce(self, folders: Sequence[str]) -> None:
        make_private_directory(self._file.parent)
        editor = self._companion.editor.identity
        content = {"authToken": self._token, "editor": editor.display_name, "pid": editor.pid, "folders": list(folders)}
        write_private(self._file, content)

    @property
    @override
    def is_announced(self) -> bool:
        return announces(self._file, self._token)

    @override
    def variables(self, folders: Sequence[str]) -> Mapping[str, str]:
        return {PORT_VARIABLE: str(self.port)}

    @override
    def saved_state(self) -> JsonObject:
        return {"port": self.port, "token": self._token}

    @override
    async def housekeep(self) -> None:
        """Do nothing: each agent is gone with its connection."""

    @override
    def withdraw(self) -> None:
        self._file.unlink(missing_ok=True)

    @override
    async def stop(self) -> None:
        self._stopping.set()

    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._attend(reader, writer))
        self._connections[task] = writer
        task.add_done_callback(self._connections.pop)

    async def _attend(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection until either side closes it."""
        try:
            # ValueError and RecursionError: the line is too long, or not JSON.
            with suppress(OSError, TimeoutError, ValueError, RecursionError):
                async with asyncio.timeout(GREETING_SECONDS):
                    greeting = as_object(json.loads(await reader.readline()))
                agent = JsonLinesAgent(as_text(greeting.get("agent")), writer)
                if hmac.compare_digest(as_text(greeting.get("token")).encode(), self._token.encode()):
                    await self._talk(agent, reader)
                else:
                    agent.send(error="expected the token of this companion")
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _talk(self, agent: JsonLinesAgent, reader: asyncio.StreamReader) -> None:
        agent.send(editor=self._companion.editor.identity.display_name)
        self._companion.attach(agent)
        try:
            agent.context_changed(await self._companion.context())
            while line := await reader.readline():
                proposal = as_object(as_object(json.loads(line)).get("openDiff"))
                await self._open_diff(agent, as_text(proposal.get("path")), proposal.get("text"))
        finally:
            await self._companion.detach(agent.id)

    async def _open_diff(self, agent: JsonLinesAgent, path: str, text: object) -> None:
        try:
            if not Path(path).is_absolute() or not isinstance(text, str):
                raise EditorError("openDiff: expected path as an absolute path, and text as a string")
            await self._companion.open_diff(agent, path, text)
        except EditorError as error:
            agent.send(error=str(error), path=path)
        else:
            agent.send(opened={"path": path})
