"""Questions on a phone in a real browser: each has the whole screen, at an address of its own, and keeps its place."""

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from support.phone_question import MEASURE, OLD, SCRIPT
from support.workbench import Workbench, until_answers_count, workbench


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator[Workbench]:
    folder = tmp_path_factory.mktemp("workspace")
    (folder / "src").mkdir()
    (folder / "src" / "schedule.py").write_text(OLD, "utf-8")
    with workbench(tmp_path_factory.mktemp("served"), folder, SCRIPT) as found:
        yield found


@pytest.fixture
def pocket(browser: Browser, served: Workbench) -> Generator[Page]:
    """Return a page of a phone at the inbox, where two questions wait; its stored address has no history."""
    with served.let_in(browser) as context:
        entry = context.storage_state()
        served.begin(context.new_page(), "change one")
        served.begin(context.new_page(), "change two")
    options: Any = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
    with browser.new_context(storage_state=entry, **options) as context:
        page = served.watch(context.new_page())
        page.goto(f"{served.url}ui/")
        expect(page.locator(".item:not(.done)")).to_have_count(2)
        yield page
    served.cancel_tasks()


def shown(page: Page) -> dict[str, Any]:
    """Measure the question once its diff is drawn."""
    until_answers_count(page)
    return page.evaluate(MEASURE)


def test_a_question_has_the_screen_and_its_diff_most_of_it(pocket: Page, served: Workbench) -> None:
    pocket.locator(".item .cover").first.tap()
    task = pocket.url.partition("/ui/question/")[2].partition("%2F")[0]
    measure_sizes(pocket)
    # Its card in the session leads to the same sheet.
    pocket.set_viewport_size({"width": 390, "height": 844})
    pocket.goto(f"{served.url}ui/task/{task}")
    pocket.locator("isthmus-task a[href*='/ui/question/']").tap()
    measure_sizes(pocket)


def measure_sizes(page: Page) -> None:
    """Check the question on the screen at each size of a phone, upright and on its side."""
    expect(page.locator(".sheet-head h1")).to_have_text("Change schedule.py")
    for (width, height), least in {(390, 844): 0.7, (320, 700): 0.6, (844, 390): 0.45}.items():
        page.set_viewport_size({"width": width, "height": height})
        found = shown(page)
        assert found["share"] >= least, (width, found)
        assert found["heights"] == [56, 36, 36], (width, found)
        assert found["width"] <= 0, (width, found)
    expect(page.locator("nav")).to_be_hidden()


def test_a_keyboard_moves_neither_the_head_nor_what_is_read(pocket: Page) -> None:
    pocket.locator(".item .cover").first.tap()
    until_answers_count(pocket)
    for width, height, rest in ((390, 844, 460), (844, 390, 200)):
        pocket.set_viewport_size({"width": width, "height": height})
        pocket.locator(".asked .card-body").evaluate("element => { element.scrollTop = 30; }")
        before = shown(pocket)
        pocket.get_by_role("button", name="Reject…").tap()
        field = pocket.locator("isthmus-reason textarea")
        expect(field).to_be_focused()
        # A keyboard that shrinks the page, and one that covers it.
        pocket.set_viewport_size({"width": width, "height": rest})
        shrunk = pocket.evaluate(MEASURE)
        pocket.set_viewport_size({"width": width, "height": height})
        pocket.evaluate(
            """height => {
                for (const [name, value] of Object.entries({height, offsetTop: 0, scale: 1}))
                    Object.defineProperty(visualViewport, name, {configurable: true, get: () => value});
                visualViewport.dispatchEvent(new Event("resize"));
            }""",
            rest,
        )
        covered = pocket.evaluate(MEASURE)
        for found in (shrunk, covered):
            assert (found["tops"], found["line"]) == (before["tops"], before["line"]), width
            assert found["foot"] <= 1, (width, found)
        if width == 390:
            assert 0.38 <= shrunk["share"] <= 0.45, shrunk
        pocket.evaluate(
            """() => {
                for (const name of ["height", "offsetTop", "scale"]) delete visualViewport[name];
                visualViewport.dispatchEvent(new Event("resize"));
            }"""
        )
        pocket.get_by_role("button", name="Back", exact=True).tap()


def test_further_actions_are_in_a_menu_and_back_leads_to_the_list(pocket: Page, served: Workbench) -> None:
    pocket.locator(".item .cover").first.tap()
    until_answers_count(pocket)
    address = pocket.url
    assert f"{served.url}ui/question/" in address
    more = pocket.get_by_role("button", name="More answers and actions")
    menu = pocket.get_by_role("dialog", name="More answers and actions")
    more.tap()
    rows = ["Edit first", "write_file", "Comment on a line", "Later", "Open the session", "Copy the address"]
    expect(menu.locator("li")).to_contain_text(rows)
    assert min(box["height"] for row in menu.locator("li > *").all() if (box := row.bounding_box())) >= 44
    pocket.keyboard.press("Escape")
    expect(more).to_be_focused()
    more.tap()
    menu.get_by_role("button", name="Edit first").tap()
    expect(pocket.locator("isthmus-diff .cm-content[contenteditable=true]")).to_be_focused()
    more.tap()
    menu.get_by_role("button", name="Comment on a line").tap()
    expect(pocket.locator("isthmus-diff .cm-comment textarea")).to_be_focused()
    # Put off, the question goes to the end of the list, and the other one is shown.
    more.tap()
    menu.get_by_role("button", name="Later").tap()
    expect(pocket).not_to_have_url(address)
    pocket.get_by_role("button", name="Back to the inbox").tap()
    expect(pocket).to_have_url(f"{served.url}ui/")
    expect(pocket.locator(".item:not(.done)")).to_have_count(2)
    pocket.locator(".item:not(.done) .cover").last.tap()
    expect(pocket).to_have_url(address)
    more.tap()
    menu.get_by_role("link", name="Open the session").tap()
    expect(pocket.locator("isthmus-task")).to_be_visible()
    # From a link without a history, too.
    pocket.goto(address)
    pocket.get_by_role("button", name="Back to the inbox").tap()
    expect(pocket).to_have_url(f"{served.url}ui/")


def test_a_rejection_needs_no_words_on_a_phone(pocket: Page, served: Workbench) -> None:
    pocket.locator(".item .cover").first.tap()
    until_answers_count(pocket)
    pocket.get_by_role("button", name="Reject…").tap()
    pocket.get_by_role("button", name="Reject", exact=True).tap()
    expect(pocket.locator(".sheet-head h1")).to_have_text("Change schedule.py")
    pocket.get_by_role("button", name="Back to the inbox").tap()
    expect(pocket.locator(".item.done")).to_have_count(1)
    assert Path(served.workspace, "src", "schedule.py").read_text("utf-8") == OLD
