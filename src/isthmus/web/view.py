"""The port of what the pages "Servers and tools" and "Settings" show, which has no method of A2A."""

from collections.abc import Collection, Sequence
from typing import Any, Protocol, TypeAlias

from isthmus.errors import IsthmusError

JsonObject: TypeAlias = dict[str, Any]


class NotShownError(IsthmusError):
    """Raised when something is not shown to a user; the text says why."""


class ChangedQuestionError(IsthmusError):
    """Raised for an answer to a question that is no longer asked like this; nothing was stored."""


class WorkbenchView(Protocol):
    """The tools and settings of a server's agent as JSON; docs/reference/workbench.md has the forms."""

    async def tools(self, user: str, workspace: str) -> JsonObject:
        """Return MCP servers, tools, skills and subagents of a user's sessions in a folder.

        Raises:
            NotShownError: the user may not work in this folder.
        """
        ...

    async def trust(self, user: str, workspace: str) -> JsonObject | None:
        """Return the question about a folder that the user has to decide, if any.

        Raises:
            NotShownError: the user is not the one who runs the server.
        """
        ...

    async def decide_trust(self, user: str, workspace: str, choice: str, digests: Collection[str]) -> None:
        """Store the answer to the question about a folder that showed items with these digests.

        Raises:
            NotShownError: the user is not the one who runs the server.
            ChangedQuestionError: the question has other items now, or no such choice.
            IsthmusError: the answer cannot be stored.
        """
        ...

    async def use(self, user: str) -> JsonObject:
        """Return what models have used today for all sessions of a user; empty if that is not counted.

        Raises:
            IsthmusError: the journal cannot be read.
        """
        ...

    async def prices(self, user: str, models: Sequence[str]) -> JsonObject:
        """Return the prices of models by their names, in US dollars for a million tokens; None where it is not known.

        Raises:
            NotShownError: the user is not the one who runs the server.
        """
        ...

    async def settings(self, user: str) -> JsonObject:
        """Return the settings in force, without secrets.

        Raises:
            NotShownError: the user is not the one who runs the server.
        """
        ...
