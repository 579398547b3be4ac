"""Keys of the workbench in a real browser: one press is one answer, and what was typed for something else is none."""

import itertools
import json
from collections.abc import Generator

import pytest
from playwright.sync_api import Browser, Page, expect

from support.extended import first_of
from support.workbench import PAUSE_MS, ROOT, Workbench, pause_keys, show_new, until_answers_count, workbench

WRITE = {"content": "A line.\n", "instruction": "Write it"}
ASK = {"question": "Which name?", "type": "text", "header": "Name", "placeholder": "a name"}
SCRIPT = json.dumps(
    {
        "name": "practice",
        "scenarios": [
            {
                "prompt": r"\Awrite (?P<name>\w+)",
                "replies": [
                    {"call": {"name": "write_file", "arguments": {"file_path": "{{name}}.txt", **WRITE}}},
                    {"text": "It is over."},
                ],
            },
            {
                "prompt": r"\Aask",
                "replies": [
                    {"call": {"name": "ask_user", "arguments": ASK}},
                    {"text": "It is over: {{result}}"},
                ],
            },
            {"prompt": ".", "replies": [{"text": "You said: {{prompt}}"}]},
        ],
    }
)  # a YAML document, too
HOLD_SECONDS = 3
LETTERS_APART_MS = 120


NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator[Workbench]:
    with workbench(tmp_path_factory.mktemp("served"), tmp_path_factory.mktemp("workspace"), SCRIPT) as found:
        yield found


@pytest.fixture
def page(browser: Browser, served: Workbench) -> Generator[Page]:
    """Return a page of the shared server, whose tasks before were cancelled."""
    with served.let_in(browser) as context:
        yield served.watch(context.new_page())
    served.cancel_tasks()


def begin(page: Page, served: Workbench, *prompts: str) -> None:
    """Let these prompts wait for an answer in the inbox, which is shown. Each is one that the server has not had."""
    page.goto(f"{served.url}ui/")
    for number, prompt in enumerate(prompts, 1):
        served.begin(page, f"{prompt}{next(NUMBERS)}")
        if number > 1:
            show_new(page)
        expect(page.locator(".item:not(.done)")).to_have_count(number)
    until_answers_count(page)


def hold(page: Page, key: str) -> None:
    """Hold a key as a keyboard does: after half a second it repeats."""
    page.keyboard.down(key)
    page.wait_for_timeout(500)  # delay: a keyboard repeats a held key after half a second
    for _ in range(HOLD_SECONDS * 30):
        page.keyboard.down(key)
        page.wait_for_timeout(1000 / 30)  # delay: a keyboard repeats a held key 30 times in a second
    page.keyboard.up(key)


@pytest.mark.parametrize("key", first_of(["y", "Enter", "2", "Space"], count=2))
def test_a_held_key_answers_one_question_at_most(page: Page, served: Workbench, key: str) -> None:
    begin(page, served, "write one", "write two", "write three")
    page.locator("isthmus-question .primary").focus()
    hold(page, key)
    expect(page.locator(".item.done")).to_have_count(1)
    until_answers_count(page)
    pause_keys(page)
    page.keyboard.press("y")
    expect(page.locator(".item.done")).to_have_count(2)


@pytest.mark.extended
def test_a_held_n_asks_for_a_reason_and_rejects_nothing(page: Page, served: Workbench) -> None:
    begin(page, served, "write one", "write two")
    page.locator("isthmus-question .primary").focus()
    hold(page, "n")
    expect(page.locator("isthmus-reason textarea")).to_be_focused()
    expect(page.locator("isthmus-reason textarea")).to_have_value("")
    expect(page.locator(".item.done")).to_have_count(0)


COUNT_PAUSES = """pause => {
    let last = -Infinity;
    window.pauses = 0;
    addEventListener("keydown", () => {
        const now = performance.now();
        window.pauses += now - last > pause;
        last = now;
    }, true);
}"""
"""Function that counts the presses after a pause (ms), the first one too."""


def test_presses_that_follow_each_other_like_those_of_a_held_key_answer_once(page: Page, served: Workbench) -> None:
    begin(page, served, "write one", "write two", "write three")
    page.evaluate(COUNT_PAUSES, PAUSE_MS * 0.75)  # the page waits a little less than tests do
    for _ in range(HOLD_SECONDS * 20):
        page.keyboard.press("y")
        page.wait_for_timeout(50)  # delay: presses follow each other 20 times in a second
    done = page.locator(".item.done")
    expect(done).not_to_have_count(0)
    # One, unless this machine could not press for so long that a press was one of its own.
    assert done.count() <= page.evaluate("window.pauses")


@pytest.mark.parametrize("words", first_of(["hey 1 2 n", "any days", "yes"]))
def test_letters_that_were_typed_past_a_field_answer_nothing(page: Page, served: Workbench, words: str) -> None:
    begin(page, served, "write one", "write two")
    page.evaluate(COUNT_PAUSES, PAUSE_MS * 0.75)
    # The first letter is a key; it chooses a question and answers nothing.
    page.keyboard.type(f"k{words}", delay=LETTERS_APART_MS)
    late: int = page.evaluate("window.pauses") - 1
    pause_keys(page)
    done = page.locator(".item.done")
    # None, unless this machine could not press for so long that a letter was one of its own.
    assert done.count() <= late
    page.keyboard.press("y")
    expect(done).not_to_have_count(0)


def test_behind_the_list_of_keys_nothing_is_answered_and_the_focus_comes_back(page: Page, served: Workbench) -> None:
    begin(page, served, "write one")
    page.locator("isthmus-question .primary").focus()
    page.keyboard.press("?")
    keys = page.get_by_role("dialog")
    expect(keys).to_be_visible()
    for key in ("y", "n", "j"):
        page.wait_for_timeout(450)  # delay: the letters come so far apart that each is meant
        page.keyboard.press(key)
    for _ in range(4):
        page.keyboard.press("Tab")
        assert page.evaluate("!document.activeElement.closest('isthmus-question')")
    page.keyboard.press("Escape")
    expect(keys).to_have_count(0)
    expect(page.locator("isthmus-question .primary")).to_be_focused()
    expect(page.locator(".item.done")).to_have_count(0)
    page.keyboard.press("Control+k")
    expect(page.get_by_role("combobox", name="All actions")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("isthmus-question .primary")).to_be_focused()


def test_each_dialog_has_a_test_of_where_the_focus_goes() -> None:
    sources = (ROOT / "frontend" / "src").rglob("*.ts")
    assert {path.name for path in sources if "<dialog" in path.read_text("utf-8")} == {
        "keys-list.ts",  # above
        "palette.ts",  # above
        "phone-menu.ts",  # tests/peers/test_workbench_phone.py
        "pictures.ts",  # tests/peers/test_workbench_timeline.py
    }


@pytest.mark.extended
def test_single_letters_can_be_switched_off(page: Page, served: Workbench) -> None:
    begin(page, served, "write one")
    page.keyboard.press("?")
    page.get_by_label("Single letters are keys of the page").uncheck()
    page.get_by_role("button", name="Close").click()
    page.reload()
    until_answers_count(page)
    for key in ("y", "n", "?"):
        page.keyboard.press(key)
        page.wait_for_timeout(450)  # delay: the letters come so far apart that each is meant
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator(".item.done")).to_have_count(0)
    page.locator("isthmus-question .primary").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".item.done")).to_have_count(1)


def focused(page: Page) -> str:
    return str(page.evaluate("document.activeElement.tagName"))


@pytest.mark.extended
def test_the_focus_is_never_lost(page: Page, served: Workbench, browser: Browser) -> None:
    begin(page, served, "write one", "write two")
    page.locator("isthmus-question .primary").focus()
    page.keyboard.press("e")
    expect(page.locator(".cm-content[contenteditable=true]")).to_be_visible()
    expect(page.locator(".cm-content[contenteditable=true]")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("isthmus-question h2")).to_be_focused()
    pause_keys(page)
    page.keyboard.press("n")
    expect(page.locator("isthmus-reason textarea")).to_be_focused()
    page.keyboard.press("Escape")
    assert focused(page) != "BODY"
    page.locator("isthmus-question .primary").focus()
    with served.let_in(browser) as context:
        other = served.watch(context.new_page())
        other.goto(f"{served.url}ui/")
        for number in (1, 2):
            until_answers_count(other)
            pause_keys(other)
            other.keyboard.press("N")
            expect(page.locator(".item.done")).to_have_count(number)
            assert focused(page) != "BODY"


def test_a_key_never_sends_a_form_as_it_came(page: Page, served: Workbench) -> None:
    begin(page, served, "ask")
    for key in ("y", "Enter", "1"):
        pause_keys(page)
        page.keyboard.press(key)
    expect(page.locator(".item.done")).to_have_count(0)
    field = page.locator("isthmus-form textarea")
    field.fill("Ada")
    page.keyboard.press("y")
    page.keyboard.press("n")
    expect(field).to_have_value("Adayn")
    expect(page.locator(".item.done")).to_have_count(0)
    page.keyboard.press("Control+Enter")
    expect(page.locator(".item.done")).to_have_count(1)


def test_an_answer_to_all_files_leaves_forms_alone(page: Page, served: Workbench) -> None:
    begin(page, served, "ask", "write one", "write two")
    expect(page.locator("text=/^All \\d+ files/")).to_have_count(0)
