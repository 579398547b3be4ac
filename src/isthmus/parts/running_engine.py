"""The engine of an agent, for parts of the agent that ask it about tasks and for editors that show questions."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence
from functools import partial

from isthmus.agent.subagents.child_tasks import ChildTasks
from isthmus.client import TaskSnapshot
from isthmus.engine import Engine
from isthmus.engine.editor_surface import EditorSurface, OnShown
from isthmus.engine.port.workspaces import WorkspaceRule
from isthmus.journal.port.base import Journal
from isthmus.journal.port.removed_tokens import UsedToday
from isthmus.parts.editor.session_editors import SessionEditors


class RunningEngine:
    """The engine that is made last, for parts of its agent that ask it about tasks. ``engine`` is to be set."""

    engine: Engine

    def __init__(self, journal: Journal) -> None:
        self.journal = journal

    async def tasks_of(self, task_id: str) -> Sequence[TaskSnapshot]:
        """Return the tasks of the user whose task has this id, most recently changed first."""
        return await self.engine.for_user(await self.user_of(task_id)).tasks()

    async def day_of(self, user: str) -> UsedToday:
        """Return what models used for all sessions of a user today. Raises JournalError."""
        return await self.engine.day_use.today(user)

    async def user_of(self, task_id: str) -> str:
        """Return the name of a task's user, which is empty for the local user."""
        row = await self.journal.task(task_id)
        return row.user if row is not None else ""

    def child_tasks(self) -> ChildTasks:
        """Return the tasks of subagents."""
        return self.engine.child_tasks


@contextlib.asynccontextmanager
async def questions_in_editors(
    engine: Engine, editors: SessionEditors, on_shown: OnShown | None
) -> AsyncGenerator[None]:
    """Show the questions of tasks in the editors of their sessions meanwhile."""
    for_user = partial(engine.for_user, workspaces=WorkspaceRule())
    showing = asyncio.create_task(EditorSurface(for_user, engine.questions, editors.find, on_shown).run())
    try:
        yield
    finally:
        showing.cancel()
        await asyncio.gather(showing, return_exceptions=True)
