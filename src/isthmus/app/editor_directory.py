"""The editors that have an agent's workspaces open: found when they are needed, one connection each."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from isthmus.errors import IsthmusError

if TYPE_CHECKING:
    from isthmus.ide.clients.asked_review import Outcome
    from isthmus.ide.clients.ide_client import IdeClient
    from isthmus.ide.editor import FileMentioned

LOOK_AGAIN_SECONDS = 2.0
"""How long it is remembered that no editor was found."""
MENTIONS = 20
"""So many mentions of a user are kept for the next turn."""


@dataclass(frozen=True, slots=True)
class EditorTimeouts:
    """How long an agent waits for the editor of its user."""

    context_seconds: float = 1.0
    """Maximum wait of a turn for an editor that has to be asked what it shows."""
    ask_seconds: float = 1.0
    """Maximum wait for the answer to one question about diagnostics."""
    look_seconds: float = 1.0
    """Maximum time for the editor to look at an edited file."""
    settle_seconds: float = 0.2
    """Wait for the rest once something changed."""
    pause_seconds: float = 0.1
    """Pause between two questions."""


@dataclass(frozen=True, slots=True)
class IdeEditor:
    """A connected IDE as the agent's :class:`~isthmus.engine.editor_surface.EditorPeer`."""

    peer: "IdeClient"

    @property
    def name(self) -> str:
        """What the IDE calls itself."""
        return self.peer.ide_name

    @property
    def is_there(self) -> bool:
        """It can show a diff now; one that is gone may come back."""
        return self.peer.can_review

    async def review(self, path: Path, new_content: str) -> str | None:
        """Show the change there; the accepted content, or None for a rejection.

        An editor that is gone is waited for: it may come back while the question is open. Raises IsthmusError when
        it ends the review without a decision: then the user decides elsewhere.
        """
        from isthmus.ide.reviews.review import Accepted, Closed, Rejected

        outcome = await self._outcome(str(path), new_content)
        match outcome:
            case Accepted(content):
                return content
            case Rejected():
                return None
            case Closed():
                raise IsthmusError(f"the view was closed in {self.name} without an answer")

    async def _outcome(self, path: str, new_content: str) -> "Outcome":
        from isthmus.ide.clients.ide_client import IdeError, UndecidedError

        while True:
            await self._back()
            try:
                return await self.peer.open_diff(path, new_content)
            except UndecidedError:
                raise
            except IdeError:
                if self.peer.can_review or self.peer.is_closed:
                    raise

    async def _back(self) -> None:
        changed = asyncio.Event()
        unsubscribe = self.peer.on_change(changed.set)
        try:
            while not self.peer.can_review:
                await changed.wait()
                changed.clear()
        finally:
            unsubscribe()


class TurnMentions:
    """What the user sent from the editor for the next turn, the last ones, each once."""

    def __init__(self) -> None:
        self._kept: dict[FileMentioned, None] = {}

    def add(self, mentioned: "FileMentioned") -> None:
        """Keep one; the oldest goes when there are too many."""
        self._kept.pop(mentioned, None)
        self._kept[mentioned] = None
        while len(self._kept) > MENTIONS:
            self._kept.pop(next(iter(self._kept)))

    def take(self) -> "tuple[FileMentioned, ...]":
        """Those that no turn has had."""
        taken, self._kept = tuple(self._kept), {}
        return taken


async def shown_by(client: "IdeClient", mentions: TurnMentions, seconds: float) -> str | None:
    """What an IDE shows, as it says within a time, and what the user sent from there, for the model."""
    from isthmus.ide.clients.prompt_context import context_for_model

    await client.refresh(seconds)
    return context_for_model(client.context(), mentions.take())


async def trust_of_editor(workspace: Path, environment: Mapping[str, str]) -> bool | None:
    """Return whether the editor that has a folder open says that it is trusted; None: there is none, or it does not
    say."""
    editors = EditorDirectory(environment)
    try:
        await editors.meet(workspace)
        return editors.trust(workspace)
    finally:
        await editors.aclose()


class EditorDirectory:
    """Finds the editor of a workspace. ``environment`` is where the discovery variables are looked up."""

    def __init__(self, environment: Mapping[str, str], timeouts: EditorTimeouts = EditorTimeouts()) -> None:
        self._environment = environment
        self._context_seconds = timeouts.context_seconds
        self._peers: dict[Path, IdeClient] = {}
        self._mentions: dict[Path, TurnMentions] = {}
        self._looked: dict[Path, float] = {}
        self._disabled: set[Path] = set()
        self._lock = asyncio.Lock()

    async def find(self, workspace: Path) -> IdeEditor | None:
        """Return the editor that has the workspace open, or had it and may come back; None when it shows no diffs."""
        peer = await self.client(workspace)
        return IdeEditor(peer) if peer is not None and (peer.can_review or not peer.connected) else None

    async def context(self, workspace: Path) -> str | None:
        """What that editor shows, for the model."""
        peer = await self.client(workspace)
        if peer is None:
            return None
        return await shown_by(peer, self._mentions[workspace], self._context_seconds)

    async def meet(self, workspace: Path) -> None:
        """Connect to that editor, and let it say what it knows; afterwards :meth:`trust` has its word."""
        if (peer := await self.client(workspace)) is not None:
            await peer.refresh(self._context_seconds)

    def trust(self, workspace: Path) -> bool | None:
        """Whether the user trusts the workspace, as its editor says; None: it does not say, or none is known yet."""
        peer = self._peers.get(workspace)
        context = peer.context() if peer is not None and peer.connected else None
        state = context.workspace_state if context is not None else None
        return state.is_trusted if state is not None else None

    async def disable(self, workspace: Path) -> None:
        """Use no editor for a workspace from now on, and leave the one that is used; what it shows is closed."""
        self._disabled.add(workspace)
        if (peer := self._peers.pop(workspace, None)) is not None:
            await peer.aclose()

    async def enable(self, workspace: Path) -> None:
        """Use an editor again, and look for one now where none is connected."""
        self._disabled.discard(workspace)
        self._looked.pop(workspace, None)
        peer = self._peers.get(workspace)
        if peer is not None and not peer.connected:
            del self._peers[workspace]
            await peer.aclose()
        await self.client(workspace)

    async def status(self, workspace: Path) -> str:
        """How it stands with the editor of a workspace, for the user."""
        from isthmus.app.editor_status import DISABLED, connected_status, not_found_status
        from isthmus.ide.discovery.connecting import find_candidates

        if workspace in self._disabled:
            return DISABLED
        if (peer := await self.client(workspace)) is not None:
            return await connected_status(peer, workspace)
        candidates = await asyncio.to_thread(find_candidates, workspace, self._environment)
        return not_found_status(candidates, workspace)

    async def aclose(self) -> None:
        """Close every connection, and the views that are open."""
        await asyncio.gather(*(peer.aclose() for peer in self._peers.values()), return_exceptions=True)

    async def client(self, workspace: Path) -> "IdeClient | None":
        """Return the connection to the editor that has the workspace open, made when there is none yet."""
        async with self._lock:
            if workspace in self._disabled:
                return None
            if (known := self._peers.get(workspace)) is not None:
                return known
            if time.monotonic() - self._looked.get(workspace, -LOOK_AGAIN_SECONDS) < LOOK_AGAIN_SECONDS:
                return None
            return await self._connect(workspace)

    async def _connect(self, workspace: Path) -> "IdeClient | None":
        # Loaded only when there is one: mostly there is none, and without a user every start counts.
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
