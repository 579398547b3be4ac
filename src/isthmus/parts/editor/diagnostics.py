"""Diagnostics that appear in the user's editor after the model's edits, reported to the model.

Works only while an IDE that provides diagnostics is connected; every wait is short. The texts are made in
:mod:`isthmus.ide.clients.new_diagnostics`.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from typing_extensions import override

from isthmus.agent.part import PartBase, PartTurn
from isthmus.parts.editor.directory import EditorTimeouts
from isthmus.tools.port.tool_set import ToolScope

if TYPE_CHECKING:
    from collections import Counter

    from isthmus.ide.clients.ide_client import IdeClient
    from isthmus.ide.clients.new_diagnostics import Identity
    from isthmus.ide.editor import Diagnostic

ClientOf: TypeAlias = Callable[[ToolScope], Awaitable["IdeClient | None"]]

TASKS: Final = 1000
"""Maximum number of tasks that are watched; the oldest is dropped first."""


@dataclass(slots=True)
class _Watch:
    """State of one task's edits."""

    known: "Counter[Identity]"
    """Diagnostics from before the last edits."""
    is_pending: bool = True
    """Whether there was an edit after which the diagnostics have not been read."""


async def reports_diagnostics(client_of: ClientOf, scope: ToolScope) -> bool:
    """Return whether the IDE of a session reports diagnostics after edits."""
    from isthmus.ide.editor import Capability

    client = await client_of(scope)
    return client is not None and client.connected and Capability.DIAGNOSTICS in client.offers


class EditDiagnosticsOfIde(PartBase):
    """Part that tells the model which problems its edits have caused, as the IDE of its session reports them."""

    name = "problems"

    def __init__(self, client_of: ClientOf, timeouts: EditorTimeouts = EditorTimeouts()) -> None:
        self._client_of = client_of
        self._timeouts = timeouts
        self._watches: dict[str, _Watch] = {}

    @override
    async def before_edit(self, turn: PartTurn, path: Path) -> None:
        """Remember the diagnostics before an edit; those that were not reported since the last edit stay new."""
        scope = turn.scope
        watch = self._watches.get(scope.task_id)
        if watch is not None and watch.is_pending:
            return
        found = await self._ask(scope)
        if found is None:
            self._watches.pop(scope.task_id, None)
            return
        from isthmus.ide.clients.new_diagnostics import identities

        if len(self._watches) >= TASKS:
            self._watches.pop(next(iter(self._watches)))
        known = identities(found)
        if watch is not None:
            # Diagnostics that appeared late, after the last edits, have not been reported yet.
            known = known & watch.known
        self._watches[scope.task_id] = _Watch(known)

    @override
    async def before_model(self, turn: PartTurn) -> str | None:
        """Return the new diagnostics for the model; waits briefly after edits, later only reads them."""
        scope = turn.scope
        watch = self._watches.get(scope.task_id)
        if watch is None:
            return None
        from isthmus.ide.clients.new_diagnostics import diagnostics_for_model, identities, new_diagnostics

        found = await (self._after_edit(scope, watch) if watch.is_pending else self._ask(scope))
        watch.is_pending = False
        if found is None:
            return None
        new = new_diagnostics(watch.known, found)
        watch.known = identities(found)
        return diagnostics_for_model(new, scope.workspace)

    @override
    def task_ended(self, task_id: str) -> None:
        """Stop watching a task."""
        self._watches.pop(task_id, None)

    async def _after_edit(self, scope: ToolScope, watch: _Watch) -> "tuple[Diagnostic, ...] | None":
        """Poll for a short time until the diagnostics differ from those before the edit."""
        from isthmus.ide.clients.new_diagnostics import identities

        end = time.monotonic() + self._timeouts.look_seconds
        while True:
            found = await self._ask(scope)
            if found is None:
                return None
            if identities(found) != watch.known:
                await asyncio.sleep(self._timeouts.settle_seconds)
                return await self._ask(scope)
            if time.monotonic() >= end:
                return found
            await asyncio.sleep(self._timeouts.pause_seconds)

    async def _ask(self, scope: ToolScope) -> "tuple[Diagnostic, ...] | None":
        from isthmus.ide.clients.ide_client import IdeError
        from isthmus.ide.editor import Capability

        client = await self._client_of(scope)
        if client is None or not client.connected or Capability.DIAGNOSTICS not in client.offers:
            return None
        try:
            async with asyncio.timeout(self._timeouts.ask_seconds):
                return await client.diagnostics()
        except (IdeError, TimeoutError):
            return None
