"""Gestures of a finger on a phone, in a real browser: it gets touches, and the file and the agent are the judges."""

import json
from collections.abc import Generator, Sequence
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from support.waiting import eventually
from support.workbench import Workbench, until_answers_count, workbench

OLD = "".join(f"line {number}\n" for number in range(1, 61))
NEW = OLD.replace("line 5\n", "line five\n").replace("line 40\n", "".join(f"new {number}\n" for number in range(30)))
CHANGE = {"file_path": "code.txt", "content": NEW, "instruction": "Say it"}
SCRIPT = json.dumps(
    {
        "name": "practice",
        "scenarios": [
            {"prompt": "^I allowed", "replies": [{"text": "Heard: {{prompt}}"}]},
            {"prompt": ".", "replies": [{"call": {"name": "write_file", "arguments": CHANGE}}, {"text": "Written."}]},
        ],
    }
)  # a YAML document, too
HELD_MS = 600
REST_MS = 150
"""Time in milliseconds after which Chromium takes a finger for one that rests; a fling takes the next tap away."""


class Fingers:
    """Fingers on a page, through the protocol of Chromium's developer tools."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._session: Any = page.context.new_cdp_session(page)  # the types of its arguments are unknown

    def _tell(self, kind: str, *points: tuple[float, float]) -> None:
        touched = [{"x": x, "y": y, "id": number} for number, (x, y) in enumerate(points)]
        self._session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": touched})

    def move(self, *paths: Sequence[tuple[float, float]]) -> None:
        """Move one finger along each path at the same time, from its first point to its last."""
        self._tell("touchStart", *(path[0] for path in paths))
        for points in zip(*(path[1:] for path in paths), strict=True):
            self._tell("touchMove", *points)
        if len(paths[0]) > 1:
            self._page.wait_for_timeout(REST_MS)  # delay: a finger that leaves while it moves starts a fling
            self._tell("touchMove", *(path[-1] for path in paths))
        self._tell("touchEnd")

    def swipe(self, at: Locator, by: float, *, down: float = 0) -> None:
        """Swipe over an element to the right, or with a negative distance to the left."""
        x, y = centre(at)
        start = x - by / 2
        self.move([(start + by * step / 8, y + down * step / 8) for step in range(9)])

    def hold(self, at: Locator) -> None:
        """Rest on an element for longer than a tap."""
        self._tell("touchStart", centre(at))
        self._page.wait_for_timeout(HELD_MS)  # delay: a long press is one by its time
        self._tell("touchEnd")

    def tap_twice(self, at: Locator) -> None:
        for _ in range(2):
            self.move([centre(at)])


def centre(at: Locator) -> tuple[float, float]:
    box = at.bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


@pytest.fixture
def pocket(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[Workbench, Page]]:
    """Return a phone at the inbox, where two questions wait."""
    workspace = tmp_path_factory.mktemp("workspace")
    (workspace / "code.txt").write_text(OLD, "utf-8")
    options: Any = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
    with workbench(tmp_path_factory.mktemp("served"), workspace, SCRIPT) as served:
        with served.let_in(browser) as context:
            entry = context.storage_state()
            for prompt in ("first", "second"):
                served.begin(context.new_page(), prompt)
        with browser.new_context(storage_state=entry, **options) as context:
            page = served.watch(context.new_page())
            page.goto(f"{served.url}ui/")
            expect(page.locator(".item:not(.done)")).to_have_count(2)
            yield served, page


def test_gestures_do_what_buttons_do_and_scrolls_do_nothing(pocket: tuple[Workbench, Page]) -> None:
    served, page = pocket
    fingers = Fingers(page)
    # A swipe to the left puts the newest question off; to the right, or up, it does not.
    rows = page.locator(".item")
    expect(rows.first).to_contain_text("second")
    fingers.swipe(rows.first, 200)
    fingers.swipe(rows.first, -60, down=160)
    expect(rows.first).to_contain_text("second")
    fingers.swipe(rows.first, -200)
    expect(rows.first).to_contain_text("first")
    expect(page).to_have_url(f"{served.url}ui/")
    rows.first.locator(".cover").tap()
    until_answers_count(page)
    five = page.locator("isthmus-diff .cm-line", has_text="line five")
    keep, accept = (page.locator(f"isthmus-diff .cm-switch .hb[name={name}]").first for name in ("kept", "taken"))
    # Movement up is a scroll, two fingers are a zoom, and what begins at the border of the window is the system's.
    body = page.locator(".asked .card-body")
    fingers.swipe(five, -60, down=-140)
    assert body.evaluate("element => element.scrollTop") > 0
    body.evaluate("element => { element.scrollTop = 0; }")
    x, y = centre(five)
    fingers.move([(x + 9 * step, y) for step in range(10)], [(x + 9 * step, y + 60) for step in range(10)])
    fingers.move([(5 + 30 * step, y) for step in range(10)])
    for button in (keep, accept):
        expect(button).to_have_attribute("aria-pressed", "false")
    fingers.swipe(five, 200)
    expect(accept).to_have_attribute("aria-pressed", "true")
    fingers.swipe(five, -200)
    expect(keep).to_have_attribute("aria-pressed", "true")
    expect(five).to_have_count(0)
    assert "/ui/question/" in page.url
    # A button gets each of its taps, however quickly they follow each other.
    for pressed in ("false", "true"):
        fingers.tap_twice(keep)
        fingers.move([centre(keep)])
        expect(keep).to_have_attribute("aria-pressed", pressed)
    fingers.hold(page.locator("isthmus-diff .cm-line", has_text="new 1").first)
    expect(page.locator("isthmus-diff .cm-comment textarea")).to_be_focused()
    page.keyboard.insert_text("Why so many?")
    line, editor = (page.locator(f"isthmus-diff {name}") for name in (".cm-line", ".cm-content[contenteditable=true]"))

    def edits_after_two_taps() -> bool:  # two that come late, since the machine is busy, are two single ones
        fingers.tap_twice(line.filter(has_text="new 0").first)
        return editor.and_(page.locator(":focus")).count() > 0

    eventually(edits_after_two_taps)
    page.keyboard.press("End")
    page.keyboard.insert_text("!")
    # No swipe begins where text is edited.
    fingers.swipe(page.locator("isthmus-diff .cm-line", has_text="new 3").first, -200)
    page.get_by_role("button", name="Allow once and send 1 comment").tap()
    kept = NEW.replace("line five\n", "line 5\n").replace("new 0\n", "new 0!\n")
    eventually(lambda: (served.workspace / "code.txt").read_text("utf-8") == kept)
    page.goto(f"{served.url}ui/history")
    page.get_by_role("link", name="first").first.tap()
    expect(page.locator("isthmus-task .said").last).to_contain_text("new 1\nWhy so many?")
