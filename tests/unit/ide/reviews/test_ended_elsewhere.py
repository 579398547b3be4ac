"""Messages to the user of an editor with a screen: who ended a review elsewhere, also after a late decision."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from typing_extensions import override

from isthmus.editors.editor_base import EditorBase
from isthmus.ide.companion import Companion
from isthmus.ide.control.commands import COMMANDS, ControlCommandError
from isthmus.ide.editor import DiffAccepted, EditorIdentity, OpenFile
from isthmus.ide.reviews.kept_text import KeptTexts
from isthmus.ide.reviews.review import DiffReview
from support.companion_recorder import Recorder
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


class ScreenEditor(EditorBase):
    """An editor whose user sees views and messages."""

    def __init__(self, folder: Path) -> None:
        super().__init__(EditorIdentity("screen", "Screen", 0), {})
        self.folder = str(folder)
        self.views: dict[str, str] = {}
        self.told: list[str] = []

    @override
    async def workspace_folders(self) -> tuple[str, ...]:
        return (self.folder,)

    @override
    async def open_files(self) -> tuple[OpenFile, ...]:
        return ()

    @override
    async def open_diff(self, review: DiffReview) -> None:
        self.views[review.id] = review.proposed

    @override
    async def close_diff(self, review_id: str) -> str | None:
        return self.views.pop(review_id, None)

    @override
    async def show_message(self, text: str) -> None:
        self.told.append(text)

    @override
    async def aclose(self) -> None:
        self._end("it was closed")

    def accept(self, review_id: str, content: str) -> None:
        """Accept as the user, in the view."""
        del self.views[review_id]
        self._events.put(DiffAccepted(review_id, content))


@pytest.fixture
def editor(workspace: Path) -> ScreenEditor:
    return ScreenEditor(workspace)


@pytest.fixture
async def companion(editor: ScreenEditor, tmp_path: Path) -> AsyncGenerator[Companion]:
    companion = Companion(editor, kept=KeptTexts(tmp_path / "kept"))
    running = asyncio.create_task(companion.run())
    yield companion
    await editor.aclose()
    await asyncio.wait_for(running, 30)


@pytest.fixture
async def opened(companion: Companion, workspace: Path) -> DiffReview:
    agent = Recorder(title="Isthmus")
    companion.attach(agent)
    return await companion.open_diff(agent, str(workspace / "a.py"), "new\n", tab_name="tab")


async def _told(editor: ScreenEditor, text: str) -> None:
    await eventually_async(lambda: text in editor.told, what=f"{text!r} among {editor.told}")


async def test_an_answer_of_a_page_is_told_in_the_editor_and_at_the_command(
    companion: Companion, editor: ScreenEditor, opened: DiffReview
) -> None:
    await companion.answers.accept(opened.id, by="Chrome on Linux")
    await _told(editor, "a.py: accepted by Chrome on Linux")
    with pytest.raises(ControlCommandError, match="the last one was accepted by Chrome on Linux; open diffs: none"):
        await COMMANDS["reject"](companion, {"path": opened.file_path})
    assert len(editor.told) == 1


async def test_a_rejection_by_a_command_is_told_in_the_editor(
    companion: Companion, editor: ScreenEditor, opened: DiffReview
) -> None:
    await COMMANDS["reject"](companion, {"path": opened.file_path})
    await _told(editor, "a.py: rejected by isthmus ide")


async def test_what_the_agent_says_of_an_answer_elsewhere_is_told_as_its_words(
    companion: Companion, editor: ScreenEditor, opened: DiffReview
) -> None:
    await companion.queue.close(opened.id, "terminal")
    await _told(editor, "a.py: Isthmus was answered in terminal")
    with pytest.raises(ControlCommandError, match="taken back by Isthmus, or answered in its own terminal"):
        await COMMANDS["accept"](companion, {"path": opened.file_path})


async def test_an_agent_that_does_not_say_who_answered_causes_no_message(
    companion: Companion, editor: ScreenEditor, opened: DiffReview
) -> None:
    await companion.queue.close(opened.id)
    await companion.queue.stop()
    assert editor.told == []


@pytest.mark.parametrize("way", ["by path", "by tab name"])
async def test_a_decision_that_came_too_late_is_told_and_its_text_is_kept(
    companion: Companion, editor: ScreenEditor, opened: DiffReview, way: str
) -> None:
    editor.accept(opened.id, "typed\n")
    await eventually_async(lambda: not companion.reviews.all(), what="the decision")
    (agent,) = companion.clients
    if way == "by path":
        await companion.queue.close_oldest(agent, opened.file_path, "terminal")
    else:
        companion.queue.decided_too_late(agent.id, "tab", "terminal")
    await _told(editor, "a.py: too late here, Isthmus was answered in terminal")
    kept = await eventually_async(companion.kept_texts.paths, what="the kept text")
    assert [Path(path).read_text("utf-8") for path in kept] == ["typed\n"]
