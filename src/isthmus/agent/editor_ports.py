"""What the agent asks of the user's editor besides what it shows: ports, which ``isthmus.cli`` fills in.

Which editor it is, and which protocol it speaks, is not known here. Reviews are shown by ``engine.editor_surface``.
"""

from pathlib import Path
from typing import Protocol

from isthmus.tools.base import ToolScope


class EditorControl(Protocol):
    """The editor of a session, as the user sees to it with /ide. Each method returns what to say."""

    async def status(self, scope: ToolScope) -> str:
        """Which editor is used and what it can be asked; what to do when there is none."""
        ...

    async def enable(self, scope: ToolScope) -> str:
        """Use an editor again, and look for it now."""
        ...

    async def disable(self, scope: ToolScope) -> str:
        """Use none from now on, until the process ends."""
        ...


class EditDiagnostics(Protocol):
    """What an editor finds wrong after the agent's edits. Nothing here raises: without an editor nothing is told."""

    async def before_edit(self, scope: ToolScope, path: Path) -> None:
        """A file is about to be edited: what is said of the files now is not news. Bounded in time."""
        ...

    async def news(self, scope: ToolScope) -> str | None:
        """What is new since the edits, as text for the model; waits a moment for the editor to look. None: nothing."""
        ...
