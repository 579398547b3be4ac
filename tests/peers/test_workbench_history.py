"""The workbench's history: sessions, the search over all of them by their prompts, step by step, and the archive."""

from collections.abc import Generator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect

from support.long_tasks import seed_history
from support.waiting import eventually
from support.workbench import Workbench, desktop, workbench

pytestmark = pytest.mark.timeout(120)
SCRIPT = "name: practice\nscenarios: [{prompt: ., replies: [{text: Yes.}]}]\n"
TASKS, TURNS = 240, 24
SESSIONS = TASKS + 1


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator[Workbench]:
    folder, workspace = tmp_path_factory.mktemp("served"), tmp_path_factory.mktemp("workspace")
    prompts = [f"Task number {number}\nwith more to do" for number in range(TASKS)]
    prompts[3] = "Mend the quay\nso that the <b>Fähre</b> can land \u202e there"
    turns = [f"Turn {number} of the ferries" for number in range(1, TURNS + 1)]
    seed_history(folder / "data", workspace, [*prompts, *turns], together=TURNS)
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


def test_sessions_that_are_not_loaded_are_found_by_a_prompt(page: Page) -> None:
    rows = page.locator("isthmus-history .line")
    expect(rows).to_have_count(50)
    page.keyboard.press("/")
    page.keyboard.type("FÄHRE mend")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("Mend the quay")
    expect(rows).to_contain_text("so that the <b>Fähre</b> can land \\u{202e} there")
    expect(page.locator(".progress")).to_have_text(f"1 found in all {SESSIONS} sessions")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**/ui/session/session-3")


def test_what_is_found_can_be_opened_while_the_next_search_is_under_way(page: Page) -> None:
    rows = page.locator("isthmus-history .line")
    page.keyboard.press("/")
    page.keyboard.insert_text("FÄHRE")
    expect(rows).to_have_count(1)
    held: list[Route] = []
    page.route("**/sessions?*", lambda route: held.append(route))
    with page.expect_request("**/sessions?*"):
        page.keyboard.insert_text(" mend")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**/ui/session/session-3")
    for route in held:
        route.abort()


def test_a_search_stops_when_enough_is_found_and_goes_on_when_told(page: Page) -> None:
    rows = page.locator("isthmus-history .line")
    page.keyboard.press("/")
    page.keyboard.insert_text("more to do")  # at once, so that no search for its beginning is asked to go on
    expect(page.locator(".progress")).to_have_text("50 found in the 51 newest sessions")
    page.get_by_role("button", name="Keep searching").click()
    expect(rows).to_have_count(100)
    page.get_by_role("combobox").select_option("failed")
    expect(page.locator(".progress")).to_have_text(f"0 found in all {SESSIONS} sessions")
    expect(page.locator(".empty")).to_contain_text("No session has all these words")
    page.keyboard.press("Escape")
    page.get_by_role("combobox").select_option("")
    page.get_by_role("searchbox").fill("")
    expect(rows).to_have_count(50)
    expect(page.locator(".progress")).to_have_count(0)


def test_a_session_is_one_row_with_all_its_turns_behind_one_address(page: Page, served: Workbench) -> None:
    row = page.locator("isthmus-history li", has_text="Turn 1 of the ferries")
    expect(row).to_have_count(1)
    expect(row).to_contain_text("24 turns")
    # The old address of a task leads to its turn; those after it are below, those before it above.
    page.goto(f"{served.url}ui/task/past-{TASKS + 3}")
    page.wait_for_url(f"**/ui/session/together/past-{TASKS + 3}")
    expect(page.get_by_text("Turn 4 of the ferries", exact=True)).to_be_in_viewport()
    expect(page).to_have_title("Turn 1 of the ferries · Isthmus")
    page.locator("isthmus-items").evaluate("list => { list.scrollTop = list.scrollHeight }")
    expect(page.get_by_text("Turn 24 of the ferries", exact=True)).to_be_in_viewport()
    page.goto(f"{served.url}ui/session/together/turn/20")
    expect(page.get_by_text("Turn 20 of the ferries", exact=True)).to_be_in_viewport()
    # A search finds what is not loaded yet.
    page.locator("isthmus-items").focus()
    page.keyboard.press("/")
    page.keyboard.insert_text("turn 2 OF")
    expect(page.get_by_text("Turn 2 of the ferries", exact=True)).to_be_in_viewport()
    expect(page.locator("isthmus-find")).to_contain_text("1 of 1")
    page.keyboard.press("Escape")


def test_a_new_name_and_the_archive_are_seen_by_other_pages_at_once(
    page: Page, context: BrowserContext, served: Workbench
) -> None:
    other = served.watch(context.new_page())
    other.goto(f"{served.url}ui/history")
    page.goto(f"{served.url}ui/session/together")
    expect(page.get_by_text("Turn 24 of the ferries", exact=True)).to_be_in_viewport()
    page.locator("isthmus-items").focus()
    page.keyboard.press("F2")
    page.keyboard.insert_text("Ferries")
    page.keyboard.press("Enter")
    expect(page).to_have_title("Ferries · Isthmus")
    row = other.locator("isthmus-history li", has_text="Ferries")
    expect(row).to_have_count(1)
    page.locator("isthmus-aside").get_by_role("button", name="Archive").click()
    expect(row).to_have_count(0)
    other.get_by_role("combobox").select_option("archived")
    expect(row).to_have_count(1)
    row.get_by_role("button", name="Unarchive").click()
    expect(page.locator("isthmus-task .banner")).to_have_count(0)
    expect(page.locator("nav")).to_contain_text("Ferries")
    other.close()


def test_on_the_way_back_a_list_and_a_session_are_where_they_were_left(page: Page) -> None:
    rows = page.locator("isthmus-history .line")
    expect(rows).to_have_count(50)
    rows.nth(30).scroll_into_view_if_needed()
    left = page.locator("isthmus-history .scroll").evaluate("list => list.scrollTop")
    assert left > 0
    address = rows.nth(30).get_attribute("href")
    rows.nth(30).click()
    page.wait_for_url(f"**{address}")
    page.go_back()
    eventually(
        lambda: page.locator("isthmus-history .scroll").evaluate("list => list.scrollTop") == left, what="the list"
    )
    expect(page.locator(f'isthmus-history .line[href="{address}"]')).to_be_focused()
    # What was sought is there again, with what was found.
    field = page.get_by_role("searchbox")
    field.fill("turn 9 of")
    expect(rows).to_have_count(1)
    rows.click()
    page.wait_for_selector("isthmus-items")
    page.go_back()
    expect(field).to_have_value("turn 9 of")
    expect(rows).to_have_count(1)
    page.locator("nav").get_by_role("link", name="History").click()
    expect(field).to_have_value("")
    expect(rows).to_have_count(50)
    # A session whose earlier turns are asked for again.
    page.locator("isthmus-history .line[href$='/together']").click()
    expect(page.get_by_text("Turn 24 of the ferries", exact=True)).to_be_in_viewport()
    page.locator("isthmus-items").focus()
    page.keyboard.press("/")
    page.keyboard.insert_text("turn 9 OF")
    said = page.get_by_text("Turn 9 of the ferries", exact=True)
    expect(said).to_be_in_viewport()
    page.keyboard.press("Escape")
    place = "said => Math.round(said.getBoundingClientRect().top)"
    top = said.evaluate(place)
    page.locator("nav").get_by_role("link", name="Devices").click()
    page.wait_for_selector("isthmus-devices")
    page.go_back()
    eventually(lambda: said.count() == 1 and abs(said.evaluate(place) - top) <= 2, what="the session")
