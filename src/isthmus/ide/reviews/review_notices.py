"""Messages to the user about reviews, in the editor."""

import contextlib
from pathlib import PurePath

from isthmus.ide.editor import Editor, EditorError
from isthmus.ide.editor_messages import HasMessages
from isthmus.ide.reviews.review import DiffReview
from isthmus.runtime.running_tasks import RunningTasks


class ReviewNotices:
    """Messages that are shown without waiting for the editor, because it may hang."""

    def __init__(self, editor: Editor, tasks: RunningTasks) -> None:
        self._editor = editor
        self._tasks = tasks

    def show(self, text: str) -> None:
        """Show the user a message."""
        self._tasks.start(self._show(text))

    def tell_end(self, review: DiffReview, how: str) -> None:
        """Tell the user of an editor how a review ended that disappeared there."""
        if not isinstance(self._editor, HasMessages):  # these have no view that disappears
            self.show(f"{PurePath(review.file_path).name}: {how}")

    async def _show(self, text: str) -> None:
        with contextlib.suppress(EditorError):
            await self._editor.show_message(text)
