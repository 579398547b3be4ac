"""A walk through pages of the workbench: foreign words, axe, width, and what keyboard and touch need."""

import re
from collections.abc import Generator
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page

from support.page_walk import (
    FRONTEND,
    NARROW,
    axe_problems,
    foreign_words,
    keyboard_problems,
    small_targets,
    wide_parts,
)
from support.varied_session import varied_workbench
from support.workbench import DESKTOP, PHONE, Workbench, until_answers_count

HEADING = ".prose h2"
VISITS = {
    "": "isthmus-inbox",
    "task/varied": HEADING,
    "session/context-varied": HEADING,
    "history": ".line",
    "new": "textarea",
    "devices": ".line",
    "tools": "#servers",
    "settings": "h2",
    "files": "isthmus-files .empty",
    "diff/varied": "isthmus-session-diff h1",
}
"""Selector of what a page shows once it is there, by its path."""
BROUGHT = ("harbour", "practice", "tickets", "a long task", "Chrome on Linux")
"""Names in the content of the server."""
LOOKS: tuple[tuple[tuple[int, int], Literal["light", "dark"]], ...] = ((DESKTOP, "light"), (PHONE, "dark"))
WITH_REVIEWS = {"written"}
"""Pages of a companion, which tests/peers/test_workbench_written.py visits."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator[Workbench]:
    workspace = tmp_path_factory.mktemp("workspace") / "harbour"
    workspace.mkdir()
    with varied_workbench(tmp_path_factory.mktemp("served"), workspace) as found:
        yield found


def walk(served: Workbench, browser: Browser, locale: str) -> Generator[tuple[str, Page]]:
    """Yield each page with its path, on a desktop."""
    with served.let_in(browser) as context:
        state: Any = context.storage_state()
    with browser.new_context(storage_state=state, locale=locale, has_touch=True) as context:
        page = served.watch(context.new_page())
        for path, selector in VISITS.items():
            page.set_viewport_size({"width": DESKTOP[0], "height": DESKTOP[1]})
            page.goto(f"{served.url}ui/{path}")
            page.wait_for_selector(selector)
            yield path, page


def test_the_walk_visits_each_page_of_the_routes() -> None:
    routes = (FRONTEND / "src" / "routes.ts").read_text("utf-8")
    lists = re.findall(r"const (?:NAMED|OF_ONE) = \[([^\]]*)\]", routes)
    names = {name for each in lists for name in re.findall(r'"(\w+)"', each)}
    assert len(lists) == 2
    assert names | {"", "session"} == {path.split("/")[0] for path in VISITS} | WITH_REVIEWS


def test_pages_in_chinese_are_clean_and_usable_by_keyboard(browser: Browser, served: Workbench) -> None:
    found: list[str] = []
    for path, page in walk(served, browser, "zh-CN"):
        assert page.evaluate("document.documentElement.lang") == "zh-Hans"
        problems = [*foreign_words(page, *BROUGHT), *axe_problems(page), *small_targets(page, 24)]
        problems += keyboard_problems(page)
        page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
        problems += small_targets(page, 44)
        page.set_viewport_size({"width": NARROW[0], "height": NARROW[1]})
        problems += [*wide_parts(page), *axe_problems(page)]
        found += [f"{path}: {problem}" for problem in problems]
    assert found == [], "\n".join(found)


def test_pages_for_taiwan_have_no_foreign_word_and_none_of_the_mainland(browser: Browser, served: Workbench) -> None:
    found: list[str] = []
    for path, page in walk(served, browser, "zh-TW"):
        assert page.evaluate("document.documentElement.lang") == "zh-Hant"
        found += [f"{path}: {word}" for word in foreign_words(page, *BROUGHT)]
        shown = page.locator("nav").first.inner_text() + page.title()
        found += [f"{path}: {word}" for word in ("设", "会话", "历史") if word in shown]
    assert found == []


def looks_problems(page: Page) -> list[str]:
    """Return what axe finds on a light desktop and a dark phone, and what is wider than 1280 pixels at 400 %."""
    found: list[str] = []
    for size, scheme in LOOKS:
        page.set_viewport_size({"width": size[0], "height": size[1]})
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        found += [f"{size[0]} {scheme}: {problem}" for problem in axe_problems(page)]
    page.set_viewport_size({"width": NARROW[0], "height": NARROW[1]})
    return found + wide_parts(page)


def test_a_question_and_the_door_are_clean_at_400_percent(browser: Browser, served: Workbench) -> None:
    with served.let_in(browser) as context, browser.new_context() as outside:
        page, door = served.watch(context.new_page()), served.watch(outside.new_page())
        door.goto(f"{served.url}ui/")
        door.wait_for_selector("input.code")
        task = served.begin(page, "write it")
        page.goto(f"{served.url}ui/task/{task}")
        until_answers_count(page)
        found = [f"door: {problem}" for problem in looks_problems(door)]
        found += [f"task: {problem}" for problem in looks_problems(page)]
        page.set_viewport_size({"width": DESKTOP[0], "height": DESKTOP[1]})
        page.goto(f"{served.url}ui/")
        until_answers_count(page)
        found += [f"inbox: {problem}" for problem in looks_problems(page)]
        assert found == [], "\n".join(found)
