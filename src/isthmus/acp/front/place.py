"""The port of the machine and the user that the sessions of a front belong to."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol, TypeAlias

from isthmus.acp.front.questions import ClientQuestion
from isthmus.acp.v1 import sessions
from isthmus.encoding.codec import JsonObject

AskClient: TypeAlias = Callable[[ClientQuestion], Awaitable[object]]
"""Function that sends a question to the client, and returns the result of the request."""


class FrontPlace(Protocol):
    """The machine and the user that the sessions of a front belong to."""

    def settings(self, cwd: str, servers: Sequence[sessions.McpServer], extra: Sequence[str]) -> JsonObject:
        """Return the AgentSettings of a session in an absolute folder, with a client's MCP servers and further folders.

        Raises:
            RpcError: a folder or a server is refused.
        """
        ...

    async def check(self, settings: JsonObject) -> None:
        """Check AgentSettings that the agent itself must decide about before a session has them.

        Raises:
            RpcError: it refuses them.
        """
        ...

    async def before_prompt(self, cwd: str, session_id: str, ask: AskClient) -> None:
        """Ask the user what must be decided before a prompt in a folder, such as its trust; the same once at most."""
        ...

    async def refused_folders(self, cwd: str, folders: Sequence[str], session_id: str, ask: AskClient) -> Sequence[str]:
        """Return the further folders of a session in which the user does not let the agent work; ask if need be.

        Raises:
            IsthmusError: the user could not be asked.
        """
        ...

    async def further_folders(self, task_ids: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """Return the further folders with which tasks began, by task, as far as they have any and it is known."""
        ...

    async def fork(self, session_id: str, new_session_id: str) -> None:
        """Copy a session that has been prompted, with all its tasks, under another id.

        Raises:
            IsthmusError: it is at work or waits, or cannot be copied.
        """
        ...

    async def delete(self, session_id: str) -> None:
        """Delete a session with all its tasks, which are cancelled first; nothing if there is none.

        Raises:
            IsthmusError: a task did not stop; the text says what to do.
        """
        ...
