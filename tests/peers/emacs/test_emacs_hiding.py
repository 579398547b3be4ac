"""A review in Emacs whose window the user hides waits, and Emacs says so; plain and with Evil, its vi layer."""

from dataclasses import dataclass, replace

import pytest

from isthmus.ide.editor import DiffAccepted, DiffRejected
from support.emacs_layers import ACCEPT, EVIL, LAYERS, OTHER_WINDOW, PROPOSED, SHOW, Scene
from support.extended import first_of
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


@dataclass(frozen=True, slots=True)
class Row:
    """Keys that hide a review, and keys typed before it comes."""

    name: str
    keys: tuple[str, ...]
    before: tuple[str, ...] = ()


HIDING = (
    Row("delete-window", ("\x180",)),
    Row("delete-other-windows", (OTHER_WINDOW + "\x181",)),
    Row("switch-to-buffer", ("\x18b*scratch*\r",)),
    Row("find-file", ("\x18\x06own.txt\r",)),
    Row("previous-buffer", ("\x03p",)),
    Row("quit-window", ("\x03q",)),
    Row("bury-buffer", ("\x03g",)),
    Row("winner-undo", ("\x03u",)),
    Row("delete-frame", ("\x1850",), ("\x1852",)),
    Row("other-frame", ("\x185o",), ("\x1852",)),
    Row("tab-new", ("\x18t2",)),
    Row("tab-close", ("\x18t0",), ("\x18t2",)),
    Row("tab-next", ("\x18to",), ("\x18t2",)),
    Row("tab-bar-history-back", ("\x03h",)),
)
HIDING_WITH_EVIL = (
    Row(":q", (":q\r",)),
    Row(":q of the only window", ("\x17o", ":q\r")),
    Row(":q on the other side", ("\x17w", ":q\r")),
    Row(":close", (":close\r",)),
    Row(":only", ("\x17w", ":only\r")),
    Row(":b", (":b *scratch*\r",)),
    Row(":e", (":e own.txt\r",)),
    Row(":bp", (":bp\r",)),
    Row(":tabnew", (":tabnew\r",)),
    Row("C-w c", ("\x17c",)),
    Row("C-w o", ("\x17w", "\x17o")),
    Row("C-w q", ("\x17q",)),
    Row("C-^", ("\x1e",)),
)
KILLING = (Row("kill-buffer", ("\x18k\r",)), Row("kill-buffer-and-window", ("\x1840",)))
KILLING_WITH_EVIL = (
    Row(":bd", (":bd\r",)),
    Row(":bd!", (":bd!\r",)),
    Row(":q!", (":q!\r",)),
    Row(":q! on the other side", ("\x17w", ":q!\r")),
    Row("ZQ", ("ZQ",)),
)


@pytest.mark.parametrize("layer", first_of(LAYERS))
async def test_a_hidden_review_is_announced_counted_and_can_be_accepted(
    scene: Scene, layer: str, subtests: pytest.Subtests
) -> None:
    for row in (*HIDING, *(HIDING_WITH_EVIL if layer == EVIL else ())):
        with subtests.test(row.name):
            await scene.begin_anew()
            await scene.press(*row.before)
            await scene.open_review()
            await scene.press(*row.keys)
            await scene.driver.emacs.shows("a review of a.py waits; C-c i v shows it")
            await scene.is_undecided()
            assert all("Isthmus:1" in line for line in await scene.mode_lines())
            await scene.driver.emacs.shows("Isthmus:1")
            await scene.press(SHOW)
            await scene.in_front("*proposed: a.py*")
            await scene.press(ACCEPT)
            await scene.was_accepted_once()


@pytest.mark.parametrize("layer", first_of(LAYERS))
async def test_a_review_that_is_killed_is_rejected_and_emacs_says_so(
    scene: Scene, layer: str, subtests: pytest.Subtests
) -> None:
    for row in (*KILLING, *(KILLING_WITH_EVIL if layer == EVIL else ())):
        with subtests.test(row.name):
            await scene.begin_anew()
            await scene.open_review()
            await scene.press(*row.keys)
            assert await scene.heard.decision() == DiffRejected("a.py")
            await scene.driver.emacs.shows("rejected a.py")
            await scene.nothing_waits()


async def test_a_review_that_lisp_hides_is_announced_too(scene: Scene) -> None:
    await scene.open_review()
    await scene.driver.emacs.evaluate("(progn (run-at-time 0 nil #'delete-window) t)")
    await scene.driver.emacs.shows("a review of a.py waits; C-c i v shows it")
    await scene.is_undecided()


async def test_a_review_in_sight_is_not_announced(scene: Scene) -> None:
    scene.driver.editor.announce({}, [])
    await scene.open_review()
    await scene.press("\x181", "\x183", "\x18o", "\x18b*scratch*\r")
    await scene.in_front("*scratch*")
    await scene.press("\x03is")
    await scene.driver.emacs.shows("reviews that wait for you: 1")
    assert not await scene.driver.has_message("a review of a.py waits")


async def test_the_mode_line_counts_the_reviews_until_the_last_is_decided(scene: Scene) -> None:
    await scene.open_review("b.py")
    await scene.open_review()
    await scene.driver.emacs.shows("Isthmus:2")
    assert not await scene.driver.has_message("shows it")  # the other review is not hidden by the user
    await scene.press(ACCEPT)
    await scene.in_front("*proposed: b.py*")
    await scene.driver.emacs.shows("Isthmus:1")
    await scene.driver.editor.close_diff("b.py")
    await scene.nothing_waits()


@pytest.mark.parametrize("of_user", first_of(['"of-user"', '\'("of-user")', "nil"]))
async def test_the_count_stands_in_a_mode_line_of_ones_own(scene: Scene, of_user: str) -> None:
    await scene.driver.emacs.evaluate(
        f'(progn (setq global-mode-string {of_user}) (setq-default mode-line-format \'("own " mode-line-misc-info)) t)'
    )
    before = await scene.mode_lines()
    await scene.open_review()
    expected = ("Isthmus:1", before[0].removeprefix("own ").strip())
    assert all(each in line for line in await scene.mode_lines() for each in expected)
    await scene.driver.emacs.evaluate(f"(setq global-mode-string {of_user})")  # as a user's own timer might
    await scene.press("\x0c")
    assert all("Isthmus:1" in line for line in await scene.mode_lines())
    await scene.press(ACCEPT)
    await scene.was_accepted_once()
    assert await scene.mode_lines() == before


async def test_the_hidden_review_is_shown_before_one_that_came_meanwhile(scene: Scene) -> None:
    review = await scene.open_review()
    await scene.driver.emacs.evaluate("(setq isthmus-review-when-idle 3600)")
    await scene.driver.editor.open_diff(replace(review, id="later"))
    await scene.press("\x180")
    await scene.driver.emacs.shows("a review of a.py waits; C-c i v shows it; 1 more review(s)")
    await scene.press(SHOW, ACCEPT)
    assert await scene.heard.decision() == DiffAccepted("a.py", PROPOSED)


async def test_the_windows_are_as_they_were_when_the_review_was_brought_back(scene: Scene) -> None:
    await scene.open_review()
    await scene.press("\x181", "\x18b*scratch*\r", SHOW)
    await scene.in_front("*proposed: a.py*")
    await scene.press(ACCEPT)
    await scene.was_accepted_once()

    async def is_back() -> bool:
        return await scene.driver.emacs.evaluate("(list (buffer-name) (length (window-list)))") == ["*scratch*", 1]

    await eventually_async(is_back, what="the windows are as they were")


async def test_another_mode_for_the_proposal_keeps_its_header(scene: Scene) -> None:
    await scene.open_review()
    await scene.press("\x03xtext-mode\r")
    await eventually_async(lambda: scene.driver.emacs.evaluate("(eq major-mode 'text-mode)"), what="the mode")
    await scene.driver.emacs.shows("C-c C-c accept")
    await scene.press("\x18\x13")
    await scene.was_accepted_once()
