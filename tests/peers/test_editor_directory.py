"""The editors of an agent, over a real companion: found when needed, and waited for when they disconnect."""

import asyncio
import os
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from isthmus.editors.headless import HeadlessEditor
from isthmus.parts.editor.directory import EditorDirectory
from support.companion import running_companion
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


@pytest.fixture
async def editors() -> AsyncGenerator[EditorDirectory]:
    directory = EditorDirectory(os.environ)
    yield directory
    await directory.aclose()


async def _review_id(editor: HeadlessEditor) -> str:
    await eventually_async(lambda: editor.open_reviews, what="a diff view")
    return editor.open_reviews[0].id


async def test_without_a_companion_there_is_no_editor(workspace: Path, editors: EditorDirectory) -> None:
    assert await editors.find(workspace) is None
    assert await editors.context(workspace) is None


async def test_a_question_that_came_while_the_editor_was_gone_is_shown_when_it_is_back(
    workspace: Path, editors: EditorDirectory
) -> None:
    async with running_companion(workspace):
        assert await editors.find(workspace) is not None
    editor = await editors.find(workspace)
    assert editor is not None
    reviewing = asyncio.create_task(editor.review(workspace / "a.py", "proposed\n"))
    async with running_companion(workspace, fresh=True) as companion:
        companion.editor.edit_diff(await _review_id(companion.editor), "changed\n")
        companion.editor.accept_diff(await _review_id(companion.editor))
        assert await asyncio.wait_for(reviewing, 30) == "changed\n"


async def test_a_question_that_is_answered_elsewhere_is_not_shown_any_more(
    workspace: Path, editors: EditorDirectory
) -> None:
    async with running_companion(workspace):
        editor = await editors.find(workspace)
    assert editor is not None
    reviewing = asyncio.create_task(editor.review(workspace / "a.py", "answered elsewhere\n"))
    await asyncio.sleep(0)
    reviewing.cancel()
    await asyncio.wait({reviewing})
    async with running_companion(workspace, fresh=True) as companion:
        shown = asyncio.create_task(editor.review(workspace / "b.py", "b\n"))
        companion.editor.reject_diff(await _review_id(companion.editor))
        assert await asyncio.wait_for(shown, 30) is None
