"""Remembers the folders of the tasks at work, without links: each step of a task needs its folder."""

from pathlib import Path

from isthmus.tools.port.tool_set import ToolScope


class TaskFolders:
    """Folders without links, by the scope of a task while it is at work; other folders are looked up each time."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], tuple[Path, Path]] = {}

    def enter(self, scope: ToolScope) -> Path:
        """Look up the folder of a task that begins to work, and return it."""
        root = scope.workspace.resolve()
        self._known[scope.context_id, scope.task_id] = scope.workspace, root
        return root

    def of(self, scope: ToolScope) -> Path:
        """Return the folder of a scope."""
        known = self._known.get((scope.context_id, scope.task_id))
        return known[1] if known is not None and known[0] == scope.workspace else scope.workspace.resolve()

    def leave(self, scope: ToolScope) -> Path:
        """Return the folder of a task that has stopped working, and forget it."""
        root = self.of(scope)
        self._known.pop((scope.context_id, scope.task_id), None)
        return root
