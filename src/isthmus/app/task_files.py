"""Where the agent keeps things of a task outside the journal, and how they go with it: long outputs, checkpoints."""

import asyncio
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from isthmus.errors import IsthmusError


class TaskFilesError(IsthmusError):
    """Files of a deleted task could not be removed; that is tried again with the next removal."""


@dataclass(frozen=True, slots=True)
class TaskFiles:
    """The files of tasks below a data folder."""

    data_dir: Path

    @property
    def journal(self) -> Path:
        """The journal itself."""
        return self.data_dir / "journal.sqlite"

    @property
    def outputs(self) -> Path:
        """Outputs that are too long to show; those of a task in a folder of its id."""
        return self.data_dir / "outputs"

    @property
    def checkpoints(self) -> Path:
        """What files were before the agent edited them."""
        return self.data_dir / "checkpoints.sqlite"

    async def delete(self, task_ids: Sequence[str]) -> None:
        """Remove what belongs to these tasks.

        Raises:
            TaskFilesError: something could not be removed.
        """
        await asyncio.to_thread(self._delete_outputs, task_ids)
        if self.checkpoints.exists():
            from isthmus.checkpoints.store import CheckpointStore

            store = CheckpointStore(self.checkpoints)
            try:
                await store.delete(task_ids)
            finally:
                await store.aclose()

    def _delete_outputs(self, task_ids: Sequence[str]) -> None:
        for task_id in task_ids:
            if task_id in ("", ".", "..") or "/" in task_id:
                continue  # No task of ours: its outputs could be anybody's.
            try:
                shutil.rmtree(self.outputs / task_id)
            except FileNotFoundError:
                pass
            except OSError as error:
                raise TaskFilesError(
                    f"the outputs of task {task_id} could not be removed ({error}); that is tried again with the next"
                    " removal"
                ) from error
