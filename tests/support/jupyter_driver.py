"""The user in front of a Jupyter server, for the contract suite; see support.editor_driver."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from isthmus.editors.jupyter import editor as jupyter
from isthmus.editors.jupyter.editor import JupyterEditor
from isthmus.ide.editor import Range
from isthmus.ide.reviews.review import DiffReview
from support.jupyter import RunningJupyter, shared_jupyter
from support.review_page import visiting


class JupyterDriver:
    """A user in a browser: at the notebooks of a real Jupyter server, and at the review page."""

    def __init__(self, jupyter: RunningJupyter, editor: JupyterEditor) -> None:
        self._jupyter = jupyter
        self._editor = editor

    @property
    def editor(self) -> JupyterEditor:
        return self._editor

    async def open(self, path: Path) -> None:
        await self._jupyter.open(path)

    async def select(self, at: Range) -> None:
        raise AssertionError("no server knows what is selected in the browser")

    async def type_over(self, text: str) -> None:
        raise AssertionError("no server knows what is typed in the browser")

    async def edit_review(self, review: DiffReview, text: str) -> None:
        await self._answer(review, "keep", text)

    async def accept(self, review: DiffReview) -> None:
        await self._answer(review, "accept")

    async def reject(self, review: DiffReview) -> None:
        await self._answer(review, "reject")

    async def has_message(self, text: str) -> bool:
        return any(text in message for message in self._editor.messages)

    async def quit(self) -> None:
        self._jupyter.end()

    async def _answer(self, review: DiffReview, action: str, text: str | None = None) -> None:
        async with visiting(self._editor.review_page()) as page:
            await page.answer(review, action, text)


@asynccontextmanager
async def jupyter_user(folder: Path) -> AsyncGenerator[JupyterDriver]:
    """Yield a user, as DRIVERS in support.editor_driver needs it."""
    async with shared_jupyter(folder) as running:
        editor = await jupyter.attach(running.file, (str(folder),), poll_seconds=0.1)
        yield JupyterDriver(running, editor)
        await editor.aclose()
