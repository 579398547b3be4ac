"""The resources of a coding agent: its model, tools, instructions and editor, each looked up per session.

Contains only ports and types of functions, which ``isthmus.cli`` implements.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import date
from pathlib import Path
from typing import TypeAlias

from isthmus.agent.approval.kept_approvals import KeptApprovals, SessionApprovals
from isthmus.agent.background_work import BackgroundWork
from isthmus.agent.editor_ports import EditorControl
from isthmus.agent.hooks.tool_hooks import HookPrograms
from isthmus.agent.part import AgentParts
from isthmus.agent.personal_part import PersonalSource
from isthmus.checkpoints.base import Checkpoints
from isthmus.client import TaskSnapshot
from isthmus.journal.port.removed_tokens import UsedToday
from isthmus.journal.port.saved_chats import ChatStore
from isthmus.models.port.base import ChatModel
from isthmus.models.port.costs import Price
from isthmus.record import record
from isthmus.tools.port.server_contents import ServerContents
from isthmus.tools.port.servers import ToolServers
from isthmus.tools.port.tool_set import ToolScope, ToolSet, ToolSource

EnvironmentSource: TypeAlias = Callable[[ToolScope], Awaitable[str]]
"""Returns the environment of a session as text for the model (:mod:`isthmus.agent.environment`)."""
ModelSource: TypeAlias = Callable[[str | None], Awaitable[ChatModel]]
"""Opens the model with this name (as in ``--model``), or the agent's own model for None; raises ModelError."""
ModelNames: TypeAlias = Callable[[], Awaitable[Sequence[str]]]
"""Returns the names of the models that the keys of the environment reach, as in ``--model``."""
ModelPrice: TypeAlias = Callable[[str, date], Price | None]
"""Returns the price of small requests to the model with this name (as in ``--model``) on a day; None: not known."""
FolderTrust: TypeAlias = Callable[[Path], bool]
"""Returns whether the local user trusts a folder. Blocking, since it reads a file; call it in a thread."""
YoloRefusal: TypeAlias = Callable[[Path], Awaitable[str | None]]
"""Returns why the settings of a folder refuse the approval mode ``yolo``; None if they allow it."""
DaySource: TypeAlias = Callable[[str], Awaitable[UsedToday]]
"""Returns what models used for all sessions of a user today; raises JournalError."""
TaskSource: TypeAlias = Callable[[str], Awaitable[Sequence[TaskSnapshot]]]
"""Lists the tasks of the user whose task has this id, most recently changed first."""


@record
class AgentResources:
    """The resources of an agent; a resource that is None is not available.

    ``home`` is the folder of the local user's own files (GEMINI.md, commands), ``~/.gemini``; other users of a server
    have no such folder. ``checkpoints`` keeps files before they are edited; without it nothing can be restored.
    ``tasks`` lists tasks for a command. ``trusts`` decides whether the files of a project act on behalf of the user.
    ``has_commands`` decides whether the custom commands of a project are offered; without it they always are.
    ``approvals`` keeps approvals for all sessions; without it, each session asks again. ``hook_programs`` runs
    the hooks of the settings; ``personal`` finds the skills and subagents of a session, and ``background`` has its
    commands in the background. ``model_names`` lists the models to choose from, ``model_price`` knows their
    prices, and ``chats`` keeps saved
    conversations. ``parts`` accompany the work on each task, and ``day_use`` counts what models use for each user.
    """

    open_model: ModelSource
    tools: ToolSource
    servers: ToolServers | None = None
    contents: ServerContents | None = None
    parts: AgentParts = AgentParts()
    environment: EnvironmentSource | None = None
    editors: EditorControl | None = None
    home: Path | None = None
    checkpoints: Checkpoints | None = None
    tasks: TaskSource | None = None
    trusts: FolderTrust | None = None
    has_commands: FolderTrust | None = None
    approvals: KeptApprovals | None = None
    yolo_refusal: YoloRefusal | None = None
    hook_programs: HookPrograms | None = None
    personal: PersonalSource | None = None
    background: BackgroundWork | None = None
    model_names: ModelNames | None = None
    model_price: ModelPrice | None = None
    chats: ChatStore | None = None
    day_use: DaySource | None = None

    async def yolo_refusal_of(self, workspace: Path) -> str | None:
        """Return why the settings of a folder refuse the approval mode ``yolo``; None if they allow it."""
        return None if self.yolo_refusal is None else await self.yolo_refusal(workspace)

    async def approvals_of(self, user: str, tools: ToolSet) -> SessionApprovals | None:
        """Return a user's approvals of these tools for all sessions; only the local user's are kept."""
        if user or self.approvals is None:
            return None
        return SessionApprovals(self.approvals, await self.approvals.approvals(), tools)

    async def trusts_project(self, user: str, workspace: Path) -> bool:
        """Return whether a project's files act on behalf of a user: only the local user can trust them."""
        return await asyncio.to_thread(self.is_project_trusted, user, workspace)

    def is_project_trusted(self, user: str, workspace: Path) -> bool:
        """Return what :meth:`trusts_project` does. Blocking; for threads that look up more than this."""
        return not user and self.trusts is not None and self.trusts(workspace)

    def home_of(self, user: str) -> Path | None:
        """Return the folder of a user's own files: None for every user except the local one."""
        return None if user else self.home
