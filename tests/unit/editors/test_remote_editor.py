"""The editor behind an IDE extension, beyond the contract of all editors."""

import asyncio
from pathlib import Path

import pytest

from isthmus.editors.headless import HeadlessEditor
from isthmus.ide.editor import EditorGoneError
from isthmus.ide.reviews.review import DiffReview
from support.editing import make_file, review
from support.remote_editor_driver import remote_editor_driver
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


async def test_a_review_about_to_be_shown_when_the_bridge_ends_is_refused_not_cancelled(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on, show = asyncio.Event(), asyncio.Event(), HeadlessEditor.open_diff

    async def slowly(editor: HeadlessEditor, review: DiffReview) -> None:
        begun.set()
        await go_on.wait()
        await show(editor, review)

    monkeypatch.setattr(HeadlessEditor, "open_diff", slowly)
    path = make_file(workspace, "a.py", "old\n")
    async with remote_editor_driver("gemini")(workspace) as driver:
        opening = asyncio.create_task(driver.editor.open_diff(review(path, "new\n")))
        await asyncio.wait_for(begun.wait(), 30)
        closing = asyncio.create_task(driver.editor.aclose())
        await eventually_async(opening.done, what="an answer about the review")
        go_on.set()
        await asyncio.wait_for(closing, 30)
    with pytest.raises(EditorGoneError):
        await opening
