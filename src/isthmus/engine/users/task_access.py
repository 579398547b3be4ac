"""The tasks that a user reaches, and the settings that the user's client may send."""

from pathlib import Path

from isthmus.agent.approval.session_policy import check_agent_settings
from isthmus.client import InvalidRequest, TaskNotFound
from isthmus.encoding.codec import JsonObject
from isthmus.engine.port.options import CheckSettings
from isthmus.engine.port.workspaces import NO_FOLDER, WorkspaceRule
from isthmus.journal.port.base import Journal
from isthmus.journal.port.task_rows import TaskRow


class TaskAccess:
    """The tasks of one user, in the folders that ``workspaces`` allows, and the settings that the user may send.

    ``brings_programs``: the client may bring MCP servers that are commands.
    """

    def __init__(
        self, journal: Journal, user: str, workspaces: WorkspaceRule, check: CheckSettings, *, brings_programs: bool
    ) -> None:
        self.user = user
        self.workspaces = workspaces
        self._journal = journal
        self._check = check
        self._brings_programs = brings_programs

    async def row(self, task_id: str, context_id: str | None = None) -> TaskRow:
        """Return a task, which has to be in the session ``context_id`` if that is given.

        Raises:
            TaskNotFound: there is no such task, or it is not within reach.
            InvalidRequest: it is in another session.
        """
        row = await self._journal.task(task_id)
        if row is None or row.user != self.user or not self.workspaces.allows(row.workspace):
            raise TaskNotFound(f"there is no task {task_id[:100]}")
        if context_id is not None and context_id != row.context_id:
            raise InvalidRequest(f"task {task_id} belongs to another contextId than {context_id}")
        return row

    async def check_settings(self, settings: JsonObject | None, workspace: str) -> None:
        """Check settings that a client sends, if it does. Raises InvalidRequest."""
        if settings is not None:
            await self._check(settings, Path(workspace), self._brings_programs)
            if (folders := check_agent_settings(settings).additional_directories) and workspace != NO_FOLDER:
                self.workspaces.check_further(folders, workspace)
