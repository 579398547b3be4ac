"""The editors that have an agent's workspaces open: found on demand, with one connection each."""

import asyncio
import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from isthmus.engine.editor_surface import RejectedWith
from isthmus.errors import IsthmusError
from isthmus.record import record

if TYPE_CHECKING:
    from isthmus.ide.clients.asked_review import Outcome
    from isthmus.ide.clients.ide_client import IdeClient
    from isthmus.ide.editor import FileMentioned

LOOK_AGAIN_SECONDS = 2.0
"""Minimum delay before another search after no editor was found."""
MENTIONS = 20
"""Maximum number of mentions sent from the editor that are kept for the next turn."""


@record
class EditorTimeouts:
    """Timeouts, in seconds, of an agent that waits for its user's editor."""

    context_seconds: float = 1.0
    """Maximum wait of a turn for the editor's open files and selection."""
    ask_seconds: float = 4.0
    """Maximum wait for one response with diagnostics; a companion waits for language servers before it responds."""
    look_seconds: float = 1.0
    """Maximum time for the diagnostics of an edited file to change."""
    settle_seconds: float = 0.2
    """Delay before the final reading, once the diagnostics have changed."""
    pause_seconds: float = 0.1
    """Delay between two readings of the diagnostics."""


@record
class IdeEditor:
    """A connected IDE as :class:`~isthmus.engine.editor_surface.EditorPeer`."""

    peer: "IdeClient"

    @property
    def name(self) -> str:
        """Name that the IDE reports for itself."""
        return self.peer.ide_name

    @property
    def is_there(self) -> bool:
        """Whether the IDE can show a diff now; a disconnected one may reconnect."""
        return self.peer.can_review

    async def review(self, path: Path, new_content: str) -> "str | RejectedWith | None":
        """Show the change in the IDE and return the accepted content, or None if the user rejects it without words.

        Waits while the IDE is disconnected: it may reconnect while the question is open.

        Raises:
            IsthmusError: the IDE closed the review without a decision; the user decides elsewhere.
        """
        from isthmus.ide.reviews.review import Accepted, Closed, Rejected

        outcome = await self._outcome(str(path), new_content)
        match outcome:
            case Accepted(content):
                return content
            case Rejected(reason=reason):
                return RejectedWith(reason) if reason else None
            case Closed():
                raise IsthmusError(f"the view was closed in {self.name} without an answer")

    def answered_elsewhere(self, path: Path, by: str) -> None:
        """Have the IDE tell its user who answered the question of a review, if it can."""
        self.peer.answered_elsewhere(str(path), by)

    async def _outcome(self, path: str, new_content: str) -> "Outcome":
        from isthmus.ide.clients.ide_client import IdeError, UndecidedError

        while True:
            await self._wait_until_connected()
            try:
                return await self.peer.open_diff(path, new_content)
            except UndecidedError:
                raise
            except IdeError:
                if self.peer.can_review or self.peer.is_closed:
                    raise

    async def _wait_until_connected(self) -> None:
        changed = asyncio.Event()
        unsubscribe = self.peer.on_change(changed.set)
        try:
            while not self.peer.can_review:
                await changed.wait()
                changed.clear()
        finally:
            unsubscribe()


class TurnMentions:
    """The latest mentions that the user sent from the editor for the next turn, without duplicates."""

    def __init__(self) -> None:
        self._kept: dict[FileMentioned, None] = {}

    def add(self, mentioned: "FileMentioned") -> None:
        """Keep a mention; drop the oldest when there are too many."""
        self._kept.pop(mentioned, None)
        self._kept[mentioned] = None
        while len(self._kept) > MENTIONS:
            self._kept.pop(next(iter(self._kept)))

    def take(self) -> "tuple[FileMentioned, ...]":
        """Return the mentions since the last turn, and forget them."""
        taken, self._kept = tuple(self._kept), {}
        return taken


async def ide_context(client: "IdeClient", mentions: TurnMentions, seconds: float) -> str | None:
    """Return, as text for the model, an IDE's context, refreshed for up to `seconds`, and the user's mentions."""
    from isthmus.ide.clients.prompt_context import context_for_model

    await client.refresh(seconds)
    return context_for_model(client.context(), mentions.take())


async def trust_of_editor(workspace: Path, environment: Mapping[str, str]) -> bool | None:
    """Return whether the editor that has a folder open trusts it; None without an editor, or if it does not report."""
    editors = EditorDirectory(environment)
    try:
        await editors.connect(workspace)
        return editors.trust(workspace)
    finally:
        await editors.aclose()


class EditorDirectory:
    """Finder of the editors of workspaces; reads the discovery variables from ``environment``."""

    def __init__(self, environment: Mapping[str, str], timeouts: EditorTimeouts = EditorTimeouts()) -> None:
        self._environment = environment
        self._context_seconds = timeouts.context_seconds
        self._peers: dict[Path, IdeClient] = {}
        self._mentions: dict[Path, TurnMentions] = {}
        self._looked: dict[Path, float] = {}
        self._disabled: set[Path] = set()
        self._lock = asyncio.Lock()

    async def find(self, workspace: Path) -> IdeEditor | None:
        """Return the editor that has, or had, the workspace open; None if there is none or it cannot show diffs."""
        peer = await self.client(workspace)
        return IdeEditor(peer) if peer is not None and (peer.can_review or not peer.connected) else None

    async def context(self, workspace: Path) -> str | None:
        """Return the editor's context for a workspace as text for the model; None if there is no editor."""
        peer = await self.client(workspace)
        if peer is None:
            return None
        return await ide_context(peer, self._mentions[workspace], self._context_seconds)

    async def connect(self, workspace: Path) -> None:
        """Connect to the editor of a workspace and wait for its state, so that :meth:`trust` can answer."""
        if (peer := await self.client(workspace)) is not None:
            await peer.refresh(self._context_seconds)

    def trust(self, workspace: Path) -> bool | None:
        """Return whether the connected editor trusts the workspace; None without one, or if it does not report."""
        peer = self._peers.get(workspace)
        context = peer.context() if peer is not None and peer.connected else None
        state = context.workspace_state if context is not None else None
        return state.is_trusted if state is not None else None

    async def disable(self, workspace: Path) -> None:
        """Stop using an editor for a workspace: close the connection and all views that the editor shows."""
        self._disabled.add(workspace)
        if (peer := self._peers.pop(workspace, None)) is not None:
            await peer.aclose()

    async def enable(self, workspace: Path) -> None:
        """Use an editor again, and search for one now if none is connected."""
        self._disabled.discard(workspace)
        self._looked.pop(workspace, None)
        peer = self._peers.get(workspace)
        if peer is not None and not peer.connected:
            del self._peers[workspace]
            await peer.aclose()
        await self.client(workspace)

    async def status(self, workspace: Path) -> str:
        """Describe the connection to the editor of a workspace to the user."""
        from isthmus.ide.discovery.connecting import find_candidates
        from isthmus.parts.editor.status import DISABLED, connected_status, not_found_status

        if workspace in self._disabled:
            return DISABLED
        if (peer := await self.client(workspace)) is not None:
            return await connected_status(peer, workspace)
        candidates = await asyncio.to_thread(find_candidates, workspace, self._environment)
        return not_found_status(candidates, workspace)

    async def aclose(self) -> None:
        """Close every connection and the open views."""
        await asyncio.gather(*(peer.aclose() for peer in self._peers.values()), return_exceptions=True)

    async def client(self, workspace: Path) -> "IdeClient | None":
        """Return the connection to the editor that has the workspace open; connect if there is none yet."""
        async with self._lock:
            if workspace in self._disabled:
                return None
            if (known := self._peers.get(workspace)) is not None:
                return known
            if time.monotonic() - self._looked.get(workspace, -math.inf) < LOOK_AGAIN_SECONDS:
                return None
            return await self._connect(workspace)

    async def _connect(self, workspace: Path) -> "IdeClient | None":
        # Imported late: most workspaces have no editor, and imports slow every headless start.
        from isthmus.ide.clients.ide_client import IdeError
        from isthmus.ide.discovery.connecting import connect_ide, find_candidates

        self._looked[workspace] = time.monotonic()
        candidates = await asyncio.to_thread(find_candidates, workspace, self._environment)
        if not candidates:
            return None
        try:
            found = await connect_ide(workspace, self._environment, candidates)
        except IdeError:
            self._looked[workspace] = time.monotonic()
            return None
        self._peers[workspace] = found
        mentions = self._mentions.setdefault(workspace, TurnMentions())
        found.on_mention(mentions.add)
        return found
