"""The search of the workbench's history: over tasks that are not loaded, by their first prompts, step by step."""

from collections.abc import Generator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect

from support.long_tasks import seed_history
from support.workbench import Workbench, desktop, workbench

pytestmark = pytest.mark.timeout(120)
SCRIPT = "name: practice\nscenarios: [{prompt: ., replies: [{text: Yes.}]}]\n"
TASKS = 240


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator[Workbench]:
    folder, workspace = tmp_path_factory.mktemp("served"), tmp_path_factory.mktemp("workspace")
    prompts = [f"Task number {number}\nwith more to do" for number in range(TASKS)]
    prompts[3] = "Mend the quay\nso that the <b>Fähre</b> can land \u202e there"
    seed_history(folder / "data", workspace, prompts)
    with workbench(folder, workspace, SCRIPT) as found:
        yield found


@pytest.fixture(scope="module")
def context(browser: Browser, served: Workbench) -> Generator[BrowserContext]:
    with desktop(browser) as found:
        served.enter(found).close()
        yield found


@pytest.fixture
def page(context: BrowserContext, served: Workbench) -> Generator[Page]:
    page = served.watch(context.new_page())
    page.goto(f"{served.url}ui/history")
    page.wait_for_selector("isthmus-history .line")
    yield page
    page.close()


def test_tasks_that_are_not_loaded_are_found_by_their_first_prompt(page: Page) -> None:
    rows = page.locator("isthmus-history .line")
    expect(rows).to_have_count(100)
    page.keyboard.press("/")
    page.keyboard.type("FÄHRE mend")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("Mend the quay")
    expect(rows).to_contain_text("so that the <b>Fähre</b> can land \\u{202e} there")
    expect(page.locator(".progress")).to_have_text(f"1 found in all {TASKS} tasks")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**/ui/task/past-3")


def test_what_is_found_can_be_opened_while_the_next_search_is_under_way(page: Page) -> None:
    rows = page.locator("isthmus-history .line")
    page.keyboard.press("/")
    page.keyboard.insert_text("FÄHRE")
    expect(rows).to_have_count(1)
    held: list[Route] = []
    page.route("**/history?*", lambda route: held.append(route))
    with page.expect_request("**/history?*"):
        page.keyboard.insert_text(" mend")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**/ui/task/past-3")
    for route in held:
        route.abort()


def test_a_search_stops_when_enough_is_found_and_goes_on_when_told(page: Page) -> None:
    rows = page.locator("isthmus-history .line")
    page.keyboard.press("/")
    page.keyboard.insert_text("more to do")  # at once, so that no search for its beginning is asked to go on
    expect(page.locator(".progress")).to_have_text(f"50 found in the 50 newest of {TASKS} tasks")
    page.get_by_role("button", name="Search on").click()
    expect(rows).to_have_count(100)
    page.get_by_role("combobox").select_option("failed")
    expect(page.locator(".progress")).to_have_text("0 found in all 0 tasks")
    expect(page.locator(".empty")).to_contain_text("No task has all these words")
    page.keyboard.press("Escape")
    page.get_by_role("combobox").select_option("")
    page.get_by_role("searchbox").fill("")
    expect(rows).to_have_count(100)
    expect(page.locator(".progress")).to_have_count(0)
