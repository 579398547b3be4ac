"""The editor of a session: the one that its AgentSettings name by an MCP endpoint, otherwise the one on this machine.

An endpoint belongs to an editor if it is an IDE companion: it shows diffs, or reports the open files. The connection
lasts for one task. Other MCP servers in the settings provide tools and are not handled here. The editor on this
machine is used for the local user's tasks only.
"""

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from typing_extensions import override

from isthmus.agent.editor_ports import EditorControl
from isthmus.agent.part import PartBase, PartTurn
from isthmus.development_tool import AgentSettings, McpServerSettings
from isthmus.engine.followers.open_questions import QuestionOpened
from isthmus.internal_events import EDITOR_NOTE
from isthmus.parts.editor.directory import EditorDirectory, EditorTimeouts, IdeEditor, TurnMentions, ide_context
from isthmus.runtime.running_tasks import RunningTasks
from isthmus.tools.port.tool_set import ToolScope

if TYPE_CHECKING:
    from isthmus.ide.clients.ide_client import IdeClient
    from isthmus.ide.gemini.peer import GeminiPeer
    from isthmus.network.checked_transport import AddressPolicy

SettingsOf: TypeAlias = Callable[[str], Awaitable[AgentSettings | None]]
OTHER_SECONDS = 60.0
"""Minimum delay before an endpoint is tried again that was not an editor or could not be reached."""
OTHERS = 1000
"""Maximum number of such endpoints that are remembered."""
_NO_EDITOR = (
    "This session has no editor. Editors on this machine are used only for sessions of its own user, and not if the "
    "agent was started with --no-ide. A client can name its editor in its settings: add the MCP endpoint of an IDE "
    "companion to mcp_servers."
)

log = logging.getLogger(__name__)


class SessionEditors(PartBase, EditorControl):
    """Part that tells the model the view of a session's editor, and finds the editors of sessions.

    ``local`` finds the editors of this machine; None if they are not used. ``address_policy`` refuses addresses of
    clients' endpoints (None allows all of them). ``settings_of`` returns the settings of a task, for questions that
    come without; ``user_of`` returns the name of its user.
    """

    name = EDITOR_NOTE

    def __init__(
        self,
        local: EditorDirectory | None,
        address_policy: "AddressPolicy | None",
        settings_of: SettingsOf,
        user_of: Callable[[str], Awaitable[str]],
        timeouts: EditorTimeouts = EditorTimeouts(),
    ) -> None:
        self._local = local
        self._address_policy = address_policy
        self._settings_of = settings_of
        self._user_of = user_of
        self._context_seconds = timeouts.context_seconds
        self._peers: dict[str, dict[str, asyncio.Task[GeminiPeer | None]]] = {}
        self._others: dict[tuple[str, ...], float] = {}
        self._closing = RunningTasks()
        self._disabled: set[str] = set()

    async def find(self, question: QuestionOpened) -> IdeEditor | None:
        """Return the editor that can show the diff of a question, or None."""
        if question.context_id in self._disabled:
            return None
        settings = question.settings or await self._settings_of(question.task_id)
        servers = settings.mcp_servers if settings is not None else ()
        if (peer := await self._named(question.task_id, servers)) is not None:
            return IdeEditor(peer) if peer.can_review or not peer.connected else None
        if self._local is None or question.user:
            return None
        return await self._local.find(Path(question.workspace))

    @override
    async def at_prompt(self, turn: PartTurn) -> str | None:
        """Return the context of the session's editor as text for the model, or None; subagents get none."""
        scope = turn.scope
        if turn.is_of_subagent:
            return None
        if scope.context_id in self._disabled:
            return None
        if (peer := await self._named(scope.task_id, scope.mcp_servers)) is not None:
            return await ide_context(peer, TurnMentions(), self._context_seconds)
        local = await self._local_of(scope)
        return await local.context(scope.workspace) if local is not None else None

    async def client(self, scope: ToolScope) -> "IdeClient | None":
        """Return the connection to the IDE of a session; None if it has none or uses none."""
        if scope.context_id in self._disabled:
            return None
        if (peer := await self._named(scope.task_id, scope.mcp_servers)) is not None:
            return peer
        local = await self._local_of(scope)
        return await local.client(scope.workspace) if local is not None else None

    @override
    async def status(self, scope: ToolScope) -> str:
        from isthmus.parts.editor.status import DISABLED, connected_status

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

    @override
    async def disable(self, scope: ToolScope) -> str:
        # An editor of this machine is disabled for its workspace, a client's for the session.
        named = await self._named(scope.task_id, scope.mcp_servers)
        if named is None and (local := await self._local_of(scope)) is not None:
            await local.disable(scope.workspace)
        else:
            self._disabled.add(scope.context_id)
            self.task_ended(scope.task_id)
        return "Your editor is no longer used. Use /ide enable to use it again."

    async def _local_of(self, scope: ToolScope) -> EditorDirectory | None:
        """Return the directory of the editors of this machine for a task of the local user, otherwise None."""
        return None if self._local is None or await self._user_of(scope.task_id) else self._local

    @override
    def task_ended(self, task_id: str) -> None:
        """Close the connections to the editors that a task has named."""
        for connecting in self._peers.pop(task_id, {}).values():
            self._closing.start(_close(connecting))

    @override
    async def aclose(self) -> None:
        """Close all connections."""
        for task_id in list(self._peers):
            self.task_ended(task_id)
        await self._closing.wait()

    async def _named(self, task_id: str, servers: Sequence[McpServerSettings]) -> "GeminiPeer | None":
        """Return a connection to the first of a client's endpoints that is an editor, or None."""
        for server in servers:
            if server.url is None:
                continue
            known = self._peers.get(task_id, {}).get(server.url)
            # The headers are part of the key: another client's credentials may be accepted where these are not.
            key = (server.url, *(f"{name}: {text}" for name, text in (server.headers or {}).items()))
            if known is None:
                if time.monotonic() - self._others.get(key, -math.inf) < OTHER_SECONDS:
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
        """Return a connection to the companion at an endpoint; None if it is not a companion or does not answer."""
        from isthmus.ide.clients.ide_client import IdeError
        from isthmus.ide.gemini.finding import named_companion
        from isthmus.ide.gemini.peer import GeminiPeer
        from isthmus.ide.ide_protocol import RemoteEndpoint

        headers = {name: str(text) for name, text in (server.headers or {}).items()}
        endpoint = RemoteEndpoint(server.url or "", headers, self._address_policy)
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
