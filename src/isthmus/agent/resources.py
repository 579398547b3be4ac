"""The resources of a coding agent: its model, tools, instructions and editor, each looked up for a session.

Ports and functions only: ``isthmus.cli`` fills them in. Deliberately not here: how the agent uses them.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from isthmus.agent.approval.kept_approvals import KeptApprovals, SessionApprovals
from isthmus.agent.editor_ports import EditDiagnostics, EditorControl
from isthmus.checkpoints.base import Checkpoints
from isthmus.client import TaskSnapshot
from isthmus.models.base import ChatModel
from isthmus.tools.base import ToolScope, ToolSet, ToolSource
from isthmus.tools.server_contents import ServerContents
from isthmus.tools.servers import ToolServers

ContextSource: TypeAlias = Callable[[ToolScope], Awaitable[str | None]]
"""Gives what the user's editor shows, as text for the model, or None: the editor that the session names, or that has
the workspace open."""
ModelSource: TypeAlias = Callable[[str | None], Awaitable[ChatModel]]
"""Opens the model of this name (as in ``--model``), or the agent's own for None; raises ModelError."""
FolderTrust: TypeAlias = Callable[[Path], bool]
"""Whether the local user trusts a folder; reads a file, so it is for a thread."""
TaskSource: TypeAlias = Callable[[str], Awaitable[Sequence[TaskSnapshot]]]
"""Lists the tasks of the user whose task has this id, the last changed first."""


@dataclass(frozen=True, slots=True)
class AgentResources:
    """The resources of an agent; None means that there is none: no servers, no editor, and so on.

    ``home`` is the folder of the local user's own files (GEMINI.md, commands), ``~/.gemini``; other users of a
    server have none. ``checkpoints`` keeps files before they are edited; without it nothing can be restored.
    ``tasks`` is for the command that lists them. ``trusts`` tells which projects' files speak for the user.
    ``approvals`` keeps what the user allows for all sessions; without it, each session asks again.
    """

    open_model: ModelSource
    tools: ToolSource
    servers: ToolServers | None = None
    contents: ServerContents | None = None
    editor_context: ContextSource | None = None
    editors: EditorControl | None = None
    edit_diagnostics: EditDiagnostics | None = None
    home: Path | None = None
    checkpoints: Checkpoints | None = None
    tasks: TaskSource | None = None
    trusts: FolderTrust | None = None
    approvals: KeptApprovals | None = None

    async def approvals_of(self, user: str, tools: ToolSet) -> SessionApprovals | None:
        """Return a user's approvals of these tools for all sessions; only the local user's are kept."""
        if user or self.approvals is None:
            return None
        return SessionApprovals(self.approvals, await self.approvals.approvals(), tools)

    async def trusts_project(self, user: str, workspace: Path) -> bool:
        """Return whether a project's files speak for a user: only the local user can have trusted them."""
        if user or self.trusts is None:
            return False
        return await asyncio.to_thread(self.trusts, workspace)

    def home_of(self, user: str) -> Path | None:
        """Return the folder of a user's own files: the local user's alone has one."""
        return None if user else self.home
