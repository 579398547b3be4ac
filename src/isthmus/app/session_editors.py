"""The editor of a session: the one that its AgentSettings name by an MCP endpoint, else the one on this machine.

An endpoint is an editor's when it is an IDE companion: it shows diffs, or tells what it shows. It is connected to for
one task and left when the task ends. Any other MCP server among the settings gives tools, which is not done here. The
local user's editor is for the local user's tasks alone.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from typing_extensions import override

from isthmus.agent.editor_ports import EditorControl
from isthmus.app.editor_directory import EditorDirectory, EditorTimeouts, IdeEditor, TurnMentions, shown_by
from isthmus.development_tool import AgentSettings, McpServerSettings
from isthmus.engine.open_questions import QuestionOpened
from isthmus.tools.base import ToolScope

if TYPE_CHECKING:
    from isthmus.ide.clients.ide_client import IdeClient
    from isthmus.ide.gemini.peer import GeminiPeer

AddressPolicy: TypeAlias = Callable[[str, str], str | None]
SettingsOf: TypeAlias = Callable[[str], Awaitable[AgentSettings | None]]
OTHER_SECONDS = 60.0
"""How long it is remembered that an endpoint is no editor's, or cannot be reached."""
OTHERS = 1000
_NO_EDITOR = (
    "This session has no editor. Those on this machine are for the sessions of the user at it, unless the agent was "
    "started with --no-ide; a client names its own in its settings: the MCP endpoint of an IDE companion (mcp_servers)."
)

log = logging.getLogger(__name__)


class SessionEditors(EditorControl):
    """Finds editors. ``local`` is where those of this machine are found, if they are used.

    ``why_not`` is the rule for addresses of clients' endpoints, None to reach all; ``settings_of`` tells the settings
    of a task whose question has none with it; ``user_of`` whose task it is.
    """

    def __init__(
        self,
        local: EditorDirectory | None,
        why_not: AddressPolicy | None,
        settings_of: SettingsOf,
        user_of: Callable[[str], Awaitable[str]],
        timeouts: EditorTimeouts = EditorTimeouts(),
    ) -> None:
        self._local = local
        self._why_not = why_not
        self._settings_of = settings_of
        self._user_of = user_of
        self._context_seconds = timeouts.context_seconds
        self._peers: dict[str, dict[str, asyncio.Task[GeminiPeer | None]]] = {}
        self._others: dict[tuple[str, ...], float] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._disabled: set[str] = set()

    async def find(self, question: QuestionOpened) -> IdeEditor | None:
        """Return the editor that shows the diff of a question; None when there is none that can."""
        if question.context_id in self._disabled:
            return None
        settings = question.settings or await self._settings_of(question.task_id)
        servers = settings.mcp_servers if settings is not None else ()
        if (peer := await self._named(question.task_id, servers)) is not None:
            return IdeEditor(peer) if peer.can_review or not peer.connected else None
        if self._local is None or question.user:
            return None
        return await self._local.find(Path(question.workspace))

    async def context(self, scope: ToolScope) -> str | None:
        """What the session's editor shows, for the model."""
        if scope.context_id in self._disabled:
            return None
        if (peer := await self._named(scope.task_id, scope.mcp_servers)) is not None:
            return await shown_by(peer, TurnMentions(), self._context_seconds)
        local = await self._local_of(scope)
        return await local.context(scope.workspace) if local is not None else None

    async def client(self, scope: ToolScope) -> "IdeClient | None":
        """Return the IDE of a session; None when it has none, or uses none."""
        if scope.context_id in self._disabled:
            return None
        if (peer := await self._named(scope.task_id, scope.mcp_servers)) is not None:
            return peer
        local = await self._local_of(scope)
        return await local.client(scope.workspace) if local is not None else None

    @override
    async def status(self, scope: ToolScope) -> str:
        from isthmus.app.editor_status import DISABLED, connected_status

        if scope.context_id in self._disabled:
            return DISABLED
        if (peer := await self._named(scope.task_id, scope.mcp_servers)) is not None:
            return await connected_status(peer, scope.workspace)
        local = await self._local_of(scope)
        return await local.status(scope.workspace) if local is not None else _NO_EDITOR

    @override
    async def enable(self, scope: ToolScope) -> str:
        self._disabled.discard(scope.context_id)
        self._others.clear()
        if (local := await self._local_of(scope)) is not None:
            await local.enable(scope.workspace)
        return await self.status(scope)

    async def disable(self, scope: ToolScope) -> str:
        """See :meth:`isthmus.agent.editor_ports.EditorControl.disable`: of the workspace here, else of the session."""
        named = await self._named(scope.task_id, scope.mcp_servers)
        if named is None and (local := await self._local_of(scope)) is not None:
            await local.disable(scope.workspace)
        else:
            self._disabled.add(scope.context_id)
            self.task_ended(scope.task_id)
        return "Your editor is not used any more. /ide enable uses it again."

    async def _local_of(self, scope: ToolScope) -> EditorDirectory | None:
        """Where the editors of this machine are, for a task of the local user."""
        return None if self._local is None or await self._user_of(scope.task_id) else self._local

    def task_ended(self, task_id: str) -> None:
        """Leave the editors that a task has named."""
        for connecting in self._peers.pop(task_id, {}).values():
            closing = asyncio.create_task(_close(connecting))
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    async def aclose(self) -> None:
        """Leave all of them."""
        for task_id in list(self._peers):
            self.task_ended(task_id)
        await asyncio.gather(*self._closing, return_exceptions=True)

    async def _named(self, task_id: str, servers: Sequence[McpServerSettings]) -> "GeminiPeer | None":
        """Return the first of a client's own endpoints that is an editor's."""
        for server in servers:
            if server.url is None:
                continue
            known = self._peers.get(task_id, {}).get(server.url)
            # With its headers: somebody else may be let in where this one is not.
            key = (server.url, *(f"{name}: {text}" for name, text in (server.headers or {}).items()))
            if known is None:
                if time.monotonic() - self._others.get(key, -OTHER_SECONDS) < OTHER_SECONDS:
                    continue
                known = asyncio.create_task(self._connect(server))
                self._peers.setdefault(task_id, {})[server.url] = known
            if (peer := await asyncio.shield(known)) is not None:
                return peer
            self._peers.get(task_id, {}).pop(server.url, None)
            if len(self._others) >= OTHERS:
                self._others.clear()
            self._others[key] = time.monotonic()
        return None

    async def _connect(self, server: McpServerSettings) -> "GeminiPeer | None":
        """Return the companion at an endpoint; None when it is something else, or nothing."""
        from isthmus.ide.clients.ide_client import IdeError
        from isthmus.ide.gemini.finding import named_companion
        from isthmus.ide.gemini.peer import GeminiPeer
        from isthmus.ide.ide_protocol import RemoteEndpoint

        headers = {name: str(text) for name, text in (server.headers or {}).items()}
        endpoint = RemoteEndpoint(server.url or "", headers, self._why_not)
        peer = GeminiPeer(Path("/"), {}, find=named_companion(server.name, endpoint))
        try:
            await peer.connect()
        except IdeError as error:
            log.info("the endpoint %s of a client is not used as an editor: %s", server.name, error)
            await peer.aclose()
            return None
        except BaseException:
            await peer.aclose()
            raise
        if peer.can_review or peer.context() is not None:
            return peer
        await peer.aclose()
        return None


async def _close(connecting: "asyncio.Task[GeminiPeer | None]") -> None:
    if not connecting.done():
        connecting.cancel()
    with contextlib.suppress(Exception, asyncio.CancelledError):
        if (peer := await connecting) is not None:
            await peer.aclose()
