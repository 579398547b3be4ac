"""Ports to the user's editor besides its context; ``isthmus.cli`` fills them in.

The editor and its protocol are not known here. Reviews are shown by ``engine.editor_surface``.
"""

from pathlib import Path
from typing import Protocol

from isthmus.tools.base import ToolScope


class EditorControl(Protocol):
    """The editor of a session, as the user sees to it with /ide. Each method returns what to say."""

    async def status(self, scope: ToolScope) -> str:
        """Return the name and abilities of the editor, or advice when there is none."""
        ...

    async def enable(self, scope: ToolScope) -> str:
        """Use an editor again, and look for it now."""
        ...

    async def disable(self, scope: ToolScope) -> str:
        """Use none from now on, until the process ends."""
        ...


class EditDiagnostics(Protocol):
    """Problems that an editor reports after edits. Nothing here raises; without an editor there are none."""

    async def before_edit(self, scope: ToolScope, path: Path) -> None:
        """Note the problems of the files before one is edited, so that they do not count as new. Bounded in time."""
        ...

    async def new_problems(self, scope: ToolScope) -> str | None:
        """Wait a moment for the editor, and return the problems that are new since the edits as text for the model."""
        ...
