"""The editors that have an agent's workspaces open: found when they are needed, one connection each."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from isthmus.errors import IsthmusError

if TYPE_CHECKING:
    from isthmus.ide.asked_review import Outcome
    from isthmus.ide.peer import IdePeer

LOOK_AGAIN_SECONDS = 2.0
"""How long it is remembered that no editor was found."""


@dataclass(frozen=True, slots=True)
class IdeEditor:
    """A connected companion as the agent's :class:`~isthmus.engine.editor_surface.EditorPeer`."""

    peer: "IdePeer"

    @property
    def name(self) -> str:
        """What the IDE calls itself."""
        return self.peer.ide_name

    async def review(self, path: Path, new_content: str) -> str | None:
        """Show the change there; the accepted content, or None for a rejection.

        An editor that is gone is waited for: it may come back while the question is open.
        """
        from isthmus.ide.review import Accepted, Closed, Rejected

        outcome = await self._outcome(str(path), new_content)
        match outcome:
            case Accepted(content):
                return content
            case Rejected():
                return None
            case Closed():
                raise IsthmusError(f"the view was closed in {self.name} without an answer")

    async def _outcome(self, path: str, new_content: str) -> "Outcome":
        from isthmus.ide.ide_client import IdeError

        while True:
            await self._back()
            try:
                return await self.peer.open_diff(path, new_content)
            except IdeError:
                if self.peer.can_review:
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


class EditorDirectory:
    """Finds the editor of a workspace. ``environment`` is where the discovery variables are looked up."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._peers: dict[Path, IdePeer] = {}
        self._looked: dict[Path, float] = {}
        self._lock = asyncio.Lock()

    async def find(self, workspace: Path) -> IdeEditor | None:
        """The editor that has the workspace open, or had it and may come back; None when it shows no diffs."""
        peer = await self._peer(workspace)
        return IdeEditor(peer) if peer is not None and (peer.can_review or not peer.connected) else None

    async def context(self, workspace: Path) -> str | None:
        """What that editor shows, for the model."""
        peer = await self._peer(workspace)
        context = peer.context() if peer is not None else None
        if context is None:
            return None
        from isthmus.ide.prompt_context import context_for_model

        return context_for_model(context)

    def trust(self, workspace: Path) -> bool | None:
        """Whether the person trusts the workspace, as its editor says; None: it does not say, or none is known yet."""
        peer = self._peers.get(workspace)
        context = peer.context() if peer is not None and peer.connected else None
        state = context.workspace_state if context is not None else None
        return state.is_trusted if state is not None else None

    async def aclose(self) -> None:
        """Close every connection, and the views that are open."""
        await asyncio.gather(*(peer.aclose() for peer in self._peers.values()), return_exceptions=True)

    async def _peer(self, workspace: Path) -> "IdePeer | None":
        from isthmus.ide.gemini.finding import find_companions

        async with self._lock:
            if (known := self._peers.get(workspace)) is not None:
                return known
            if time.monotonic() - self._looked.get(workspace, -LOOK_AGAIN_SECONDS) < LOOK_AGAIN_SECONDS:
                return None
            self._looked[workspace] = time.monotonic()
            if not (await asyncio.to_thread(find_companions, workspace, self._environment)).companions:
                return None
            # Loaded only when there is one: mostly there is none, and without a person every start counts.
            from isthmus.ide.peer import connect_companion

            found = await connect_companion(workspace, self._environment)
            self._looked[workspace] = time.monotonic()
            if found is not None:
                self._peers[workspace] = found
            return found
