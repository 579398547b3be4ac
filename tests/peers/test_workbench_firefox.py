"""The page in Firefox: on a phone a question has the screen, and a keyboard moves nothing of what is read."""

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from support.firefox import FirefoxPage, firefox
from support.phone_question import MEASURE, OLD, SCRIPT
from support.waiting import eventually
from support.workbench import Workbench, workbench

pytestmark = pytest.mark.extended


@pytest.fixture
def served(tmp_path: Path) -> Generator[Workbench]:
    (tmp_path / "workspace" / "src").mkdir(parents=True)
    (tmp_path / "served").mkdir()
    (tmp_path / "workspace" / "src" / "schedule.py").write_text(OLD, "utf-8")
    with workbench(tmp_path / "served", tmp_path / "workspace", SCRIPT) as found:
        yield found


@pytest.fixture
def page(tmp_path: Path, served: Workbench) -> Generator[FirefoxPage]:
    with firefox(tmp_path / "profile") as found:
        found.resize(390, 844)
        found.goto(served.link)
        shows(found, "nav")
        yield found


def shows(page: FirefoxPage, selector: str) -> None:
    """Wait until a page has an element of a selector."""
    eventually(lambda: page.call("selector => document.querySelector(selector) !== null", selector), what=selector)


def measured(page: FirefoxPage, width: int, height: int) -> dict[str, Any]:
    """Return where the parts of the question are at a size of the screen, in px, once they have been drawn."""
    page.resize(width, height)
    page.call("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return page.call(MEASURE)


def test_a_question_on_a_phone_keeps_its_place_when_a_keyboard_comes(page: FirefoxPage, served: Workbench) -> None:
    served.begin_now("change one")
    shows(page, ".item .cover")
    page.tap(".item .cover")
    shows(page, ".asked .primary:not([disabled], [aria-disabled])")
    for width, height in ((320, 700), (390, 844)):
        found = measured(page, width, height)
        assert found["share"] >= 0.45, (width, found)
        assert found["width"] <= 0, (width, found)
    page.call("() => { document.querySelector('.asked .card-body').scrollTop = 30; }")
    before = page.call(MEASURE)
    page.tap(".asked button", "Reject…")
    # Without a window no document has the focus, and :focus finds nothing.
    eventually(lambda: page.call("() => document.activeElement.closest('isthmus-reason') !== null"))
    with_keyboard = measured(page, 390, 460)
    assert (with_keyboard["tops"], with_keyboard["line"]) == (before["tops"], before["line"])
    assert with_keyboard["foot"] <= 1, with_keyboard
