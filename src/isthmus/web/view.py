"""The port of what the pages "Servers and tools" and "Settings" show, which has no method of A2A."""

from typing import Any, Protocol, TypeAlias

from isthmus.errors import IsthmusError

JsonObject: TypeAlias = dict[str, Any]


class NotShownError(IsthmusError):
    """Raised when something is not shown to a user; the text says why."""


class WorkbenchView(Protocol):
    """The tools and settings of a server's agent as JSON; docs/reference/workbench.md has the forms."""

    async def tools(self, user: str, workspace: str) -> JsonObject:
        """Return MCP servers, tools, skills and subagents of a user's sessions in a folder.

        Raises:
            NotShownError: the user may not work in this folder.
        """
        ...

    async def settings(self, user: str) -> JsonObject:
        """Return the settings in force, without secrets.

        Raises:
            NotShownError: the user is not the one who runs the server.
        """
        ...
