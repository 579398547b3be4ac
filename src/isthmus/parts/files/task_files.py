"""Files of a task outside the journal (long outputs, checkpoints), and their removal with the task."""

import asyncio
import shutil
from collections.abc import Sequence
from pathlib import Path

from isthmus.errors import IsthmusError
from isthmus.record import record

HOSTED_AGENTS = "acp-agents"
"""Name of the folder below the data folder in which each agent that is hosted by its command has its own folder."""


class TaskFilesError(IsthmusError):
    """Files of a deleted task could not be removed; the next removal tries again."""


@record
class TaskFiles:
    """The files of tasks below a data folder."""

    data_dir: Path

    @property
    def journal(self) -> Path:
        """Path of the journal."""
        return self.data_dir / "journal.sqlite"

    def of_hosted_agents(self) -> "tuple[TaskFiles, ...]":
        """Return the files of the hosted agents that have stored tasks, by the names of their folders. Blocks."""
        folder = self.data_dir / HOSTED_AGENTS
        found = sorted(folder.iterdir()) if folder.is_dir() else []
        return tuple(files for files in map(TaskFiles, found) if files.journal.exists())

    @property
    def outputs(self) -> Path:
        """Folder of outputs that are too long to show, with a subfolder per task id."""
        return self.data_dir / "outputs"

    @property
    def checkpoints(self) -> Path:
        """Path of the checkpoints: contents of files before the agent edited them."""
        return self.data_dir / "checkpoints.sqlite"

    async def delete(self, task_ids: Sequence[str]) -> None:
        """Remove the files of these tasks.

        Raises:
            TaskFilesError: a file could not be removed.
        """
        await asyncio.to_thread(self._delete_outputs, task_ids)
        if self.checkpoints.exists():
            from isthmus.checkpoints.store import CheckpointStore

            store = CheckpointStore(self.checkpoints)
            try:
                await store.delete(task_ids)
            finally:
                await store.aclose()

    async def copy(self, task_id: str, new_task_id: str) -> None:
        """Copy the outputs and attachments of a task for another one, which has none yet.

        Raises:
            TaskFilesError: they could not be copied.
        """
        await asyncio.to_thread(self._copy_outputs, task_id, new_task_id)

    def _copy_outputs(self, task_id: str, new_task_id: str) -> None:
        source = self.outputs / task_id
        if not source.is_dir():
            return
        try:
            shutil.copytree(source, self.outputs / new_task_id, symlinks=True)
        except OSError as error:
            raise TaskFilesError(f"the files of task {task_id} could not be copied: {error}") from error

    def _delete_outputs(self, task_ids: Sequence[str]) -> None:
        for task_id in task_ids:
            if task_id in ("", ".", "..") or "/" in task_id:
                continue  # Not one of our task ids: the path would lead to other files.
            try:
                shutil.rmtree(self.outputs / task_id)
            except FileNotFoundError:
                pass
            except OSError as error:
                raise TaskFilesError(
                    f"the outputs of task {task_id} could not be removed ({error}); the next removal tries again"
                ) from error
