"""Questions that were answered, in a real browser: at their addresses, and as messages on other pages."""

import json
from collections.abc import Generator
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, expect

from isthmus.a2a.token_file import TOKEN_FILE
from isthmus.development_tool import EXTENSION_URI
from support.waiting import eventually
from support.workbench import Workbench, answer_by, until_answers_count, workbench

SCRIPT = json.dumps(
    {
        "name": "practice",
        "scenarios": [
            {
                "prompt": r"\Awrite (?P<file>\S+)",
                "replies": [
                    {"call": {"name": "write_file", "arguments": {"file_path": "{{file}}", "content": "A line.\n"}}},
                    {"text": "It is done."},
                ],
            },
            {"prompt": ".", "replies": [{"text": "You said: {{prompt}}"}]},
        ],
    }
)  # a YAML document, too


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator[Workbench]:
    with workbench(tmp_path_factory.mktemp("served"), tmp_path_factory.mktemp("workspace"), SCRIPT) as found:
        yield found


@pytest.fixture(scope="module")
def page(browser: Browser, served: Workbench) -> Generator[Page]:
    with served.let_in(browser) as context:
        yield served.watched(context)


def ask(page: Page, served: Workbench, file: str) -> str:
    """Begin a turn that asks to write a file; return the address of its question, which is shown."""
    served.begin(page, f"write {file}")
    page.goto(f"{served.url}ui/")
    page.locator(".item:not(.done) .cover").click()
    until_answers_count(page)
    assert f"{served.url}ui/question/" in page.url
    return page.url


def test_an_answered_question_says_at_its_address_who_answered_and_how(page: Page, served: Workbench) -> None:
    address = ask(page, served, "tides.txt")
    answer_by(page, "y")
    eventually(lambda: (served.workspace / "tides.txt").exists())
    page.goto(address)
    past = page.locator("isthmus-past-question")
    expect(past.get_by_role("heading")).to_have_text("This question is no longer open")
    expect(past.locator("code")).to_have_text("Create tides.txt")
    expect(past).to_contain_text("Allowed here, ")
    expect(page).to_have_url(address)
    # The others go on beside it, and the way on leads to its session.
    ask(page, served, "ferries.txt")
    page.goto(address)
    expect(past.get_by_role("heading")).to_be_visible()
    page.keyboard.press("j")
    expect(page.locator("isthmus-question h2")).to_have_text("Create ferries.txt")
    page.go_back()
    page.goto(address)
    past.get_by_role("link", name="Open the session: write tides.txt").click()
    expect(page.locator("isthmus-task .prose").last).to_have_text("It is done.")
    served.cancel_tasks()


def test_other_addresses_of_questions_say_why_nothing_is_there(page: Page, served: Workbench) -> None:
    address = ask(page, served, "harbour.txt")
    served.cancel_tasks()
    past = page.locator("isthmus-past-question")
    page.goto(address)
    expect(past).to_contain_text("Its turn ended before anyone answered.")
    task = address.rpartition("/")[2].partition("%2F")[0]
    for key in (f"{task}/other", "nowhere/call", "gone.7"):
        page.goto(f"{served.url}ui/question/{quote(key, safe='')}")
        expect(past.get_by_role("heading")).to_have_text("No such question")
        expect(past).to_contain_text("The link is incomplete, or the question was removed with its session.")
    # A server that fails is not one that knows nothing.
    page.route(
        "**/tasks/*?historyLength=0", lambda route: route.fulfill(status=503, json={"error": {"message": "full"}})
    )
    page.goto(address)
    expect(past).to_contain_text("The server cannot do this at the moment. Try again soon.")
    page.unroute_all()
    past.get_by_role("button", name="Try again").click()
    expect(past).to_contain_text("Its turn ended before anyone answered.")
    past.get_by_role("link", name="Go to the inbox").click()
    expect(page).to_have_url(f"{served.url}ui/")


def answer_elsewhere(page: Page, served: Workbench, task: str) -> None:
    """Allow the question of a task in an editor."""
    token = (served.folder / "data" / TOKEN_FILE).read_text("utf-8").strip()
    headers = {"Authorization": f"Bearer {token}", "A2A-Version": "1.0", "A2A-Extensions": EXTENSION_URI}
    found = page.request.get(f"{served.url}tasks/{task}", headers=headers).json()
    [call] = [part["data"] for part in found["status"]["message"]["parts"]]
    answer = {"tool_call_id": call["tool_call_id"], "selected_option_id": "proceed_once"}
    message = {
        "messageId": "from-elsewhere", "role": "ROLE_USER", "taskId": task, "parts": [{"data": answer}],
        "metadata": {EXTENSION_URI: {"answered_by": "Emacs"}},
    }  # fmt: skip
    sent = page.request.post(f"{served.url}message:send", data={"message": message}, headers=headers)
    assert sent.status == 200, sent.text()


def test_other_pages_tell_of_answers_given_elsewhere_and_of_ends(page: Page, served: Workbench) -> None:
    task = served.begin(page, "write quay.txt")
    page.goto(f"{served.url}ui/history")
    expect(page.locator("nav .count")).to_have_text("1")
    answer_elsewhere(page, served, task)
    toasts = page.locator(".toast")
    toasts.first.hover()
    expect(toasts.filter(has_text="Create quay.txt: Allowed in Emacs, ")).to_have_count(1)
    expect(toasts.filter(has_text="Done: write quay.txt")).to_have_count(1)
    toasts.filter(has_text="Create quay.txt").get_by_role("link").click()
    expect(page.locator("isthmus-past-question")).to_contain_text("Allowed in Emacs, ")
    # A failure stays until it is read; a session that was cancelled is called so everywhere.
    page.goto(f"{served.url}ui/history")
    stopped = served.begin(page, "write jetty.txt")
    expect(page.locator("nav .count")).to_have_text("1")
    served.cancel_tasks()
    expect(toasts).to_contain_text("Cancelled: write jetty.txt")
    expect(page.locator("nav .task").first.get_by_role("img").first).to_have_accessible_name("Cancelled")
    expect(page.locator("main .row").first.get_by_role("img").first).to_have_accessible_name("Cancelled")
    page.goto(f"{served.url}ui/task/{stopped}")
    expect(page.locator(".session-head").get_by_role("img").first).to_have_accessible_name("Cancelled")
