"""A file that changes on disk while its review is open: on every editor nothing is decided, and it is shown anew."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path

import pytest

from isthmus.ide.companion import Companion
from isthmus.ide.editor import EditorError
from isthmus.ide.reviews.kept_text import KeptTexts
from isthmus.ide.reviews.review import Accepted, DiffReview
from support.companion_recorder import Recorder
from support.editor_deadlines import PATIENT_LIMITS
from support.editor_driver import DRIVERS, EditorDriver
from support.remote_editor_driver import RemoteEditorDriver
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

BEFORE, PROPOSED, CHANGED = "one\ntwo\nthree\n", "one\nTWO\nthree\n", "zero\none\ntwo\nthree\n"
SAID = "a.py has changed on disk"


@dataclass
class Reviewing:
    """A companion with an agent, whose review of ``path`` is open in the editor of ``driver``."""

    driver: EditorDriver
    companion: Companion
    agent: Recorder
    path: Path
    review: DiffReview

    async def decided(self) -> str:
        await eventually_async(lambda: self.agent.decisions, what="a decision")
        state = self.agent.decisions[-1].state
        assert isinstance(state, Accepted)
        return state.content

    async def accept_to_the_end(self) -> str:
        """Accept what is shown anew. Behind a remote editor both companions look at the file, one after the other."""
        for _ in range(2 if isinstance(self.driver, RemoteEditorDriver) else 1):
            await self.driver.accept(self.review)
        return await self.decided()

    async def shown_anew(self) -> None:
        """Wait until the user was told, and the view is there again."""
        await eventually_async(lambda: self.driver.has_message(SAID), 60, what="the message")
        await eventually_async(lambda: self.companion.queue.is_visible(self.review), what="the view")


@pytest.fixture(params=sorted(DRIVERS))
async def reviewing(request: pytest.FixtureRequest, workspace: Path, tmp_path: Path) -> AsyncGenerator[Reviewing]:
    path = workspace / "a.py"
    path.write_text(BEFORE, "utf-8")
    async with DRIVERS[request.param](workspace) as driver:
        companion = Companion(driver.editor, kept=KeptTexts(tmp_path / "kept"), limits=PATIENT_LIMITS)
        agent = Recorder("one", "An agent")
        companion.attach(agent)
        running = asyncio.create_task(companion.run())
        review = await companion.open_diff(agent, str(path), PROPOSED)
        yield Reviewing(driver, companion, agent, path, review)
        running.cancel()
        await asyncio.wait({running}, timeout=60)


async def test_an_answer_in_the_editor_to_an_older_file_decides_nothing_the_next_does(
    reviewing: Reviewing,
) -> None:
    reviewing.path.write_text(CHANGED, "utf-8")
    await reviewing.driver.accept(reviewing.review)
    await reviewing.shown_anew()
    assert reviewing.agent.decisions == []
    assert reviewing.path.read_text("utf-8") == CHANGED
    assert await reviewing.accept_to_the_end() == PROPOSED


async def test_what_the_user_typed_is_in_the_view_that_is_shown_anew(reviewing: Reviewing) -> None:
    await reviewing.driver.edit_review(reviewing.review, "one\n2\nthree\n")
    reviewing.path.write_text(CHANGED, "utf-8")
    await reviewing.driver.accept(reviewing.review)
    await reviewing.shown_anew()
    assert reviewing.agent.decisions == []
    assert await reviewing.accept_to_the_end() == "one\n2\nthree\n"


async def test_an_answer_from_elsewhere_is_refused_by_name(reviewing: Reviewing) -> None:
    reviewing.path.write_text(CHANGED, "utf-8")
    with pytest.raises(EditorError, match="has changed on disk while its review was open"):
        await reviewing.companion.answers.accept(reviewing.review.id, by="the terminal")
    await reviewing.shown_anew()
    assert reviewing.agent.decisions == []
    assert await reviewing.companion.answers.accept(reviewing.review.id, by="the terminal") is not None
    assert await reviewing.decided() == PROPOSED


async def test_a_file_that_was_written_as_it_was_or_as_it_is_accepted_asks_nothing_again(reviewing: Reviewing) -> None:
    reviewing.path.write_text(BEFORE, "utf-8")
    reviewing.path.touch()
    await reviewing.driver.accept(reviewing.review)
    assert await reviewing.decided() == PROPOSED
    second = await reviewing.companion.open_diff(reviewing.agent, str(reviewing.path), CHANGED)
    await eventually_async(lambda: reviewing.companion.queue.is_visible(second), what="the view")
    reviewing.path.write_text(CHANGED, "utf-8")
    await reviewing.driver.accept(second)
    await eventually_async(lambda: len(reviewing.agent.heard) == 2, what="a decision")
