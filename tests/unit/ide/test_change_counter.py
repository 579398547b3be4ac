"""The count of what pages show of a companion: each change is counted, and can be waited for."""

import asyncio
from pathlib import Path

import pytest

from isthmus.editors.headless import HeadlessEditor
from isthmus.ide.change_counter import ChangeCounter
from isthmus.ide.companion import Companion
from isthmus.ide.control.page_commands import PAGE_COMMANDS
from isthmus.ide.editor import Consent
from isthmus.ide.reviews.kept_text import KeptTexts
from support.companion_recorder import Recorder

pytestmark = pytest.mark.anyio
WAIT = 10.0


async def test_a_wait_ends_with_the_next_change_or_in_time() -> None:
    counter = ChangeCounter()
    waits = [asyncio.ensure_future(counter.wait(0, WAIT)) for _ in range(2)]
    await asyncio.sleep(0)
    counter.add()
    assert await asyncio.gather(*waits) == [1, 1]
    assert await counter.wait(0, WAIT) == 1
    assert await counter.wait(1, 0.0) == 1


async def test_agents_reviews_and_questions_are_counted(workspace: Path, tmp_path: Path) -> None:
    companion = Companion(HeadlessEditor((str(workspace),)), kept=KeptTexts(tmp_path / "kept"))
    counted = 0

    def has_changed() -> bool:
        nonlocal counted
        before, counted = counted, companion.changes.number
        return counted > before

    agents = [Recorder("one"), Recorder("two")]
    for agent in agents:
        companion.attach(agent)
        assert has_changed()
    first = await companion.open_diff(agents[0], str(workspace / "a.py"), "one\n")
    assert has_changed()
    await companion.open_diff(agents[1], str(workspace / "a.py"), "two\n")  # waits for the first, so nothing is shown
    assert has_changed()
    await companion.answers.reject(first.id)
    assert has_changed()
    asking = asyncio.ensure_future(companion.asking.ask("A client", "Run it?", "code"))
    await asyncio.sleep(0)
    assert has_changed()
    (question,) = companion.asking.open_questions
    companion.asking.answer(question.id, Consent.YES)
    assert has_changed()
    assert await asking
    has_changed()
    await companion.detach("nobody")
    assert has_changed()
    found = await PAGE_COMMANDS["changes"](companion, {"after": counted - 1, "wait": WAIT})
    assert found == {"count": counted}
