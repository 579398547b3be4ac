"""Ports to the user's editor besides its context, implemented by ``isthmus.cli``.

This module is independent of the editor and its protocol. ``engine.editor_surface`` shows reviews.
"""

from typing import Protocol

from isthmus.tools.port.tool_set import ToolScope


class EditorControl(Protocol):
    """Control of a session's editor by /ide. Each method returns a text for the user."""

    async def status(self, scope: ToolScope) -> str:
        """Return the name and abilities of the editor, or advice without an editor."""
        ...

    async def enable(self, scope: ToolScope) -> str:
        """Use an editor again, and look for it now."""
        ...

    async def disable(self, scope: ToolScope) -> str:
        """Use no editor until the process ends."""
        ...
