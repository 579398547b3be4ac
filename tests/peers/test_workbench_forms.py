"""Forms of the workbench in a real browser: questions of an agent and of an MCP server, answered in fields."""

import itertools
import json
import re
import sys
from collections.abc import Generator
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from isthmus.development_tool import EXTENSION_URI
from support.question_kinds import ASKING, QUESTIONS
from support.workbench import Workbench, answer_by, show_new, workbench

SHEET = {"question": "Which sheet?", "options": [{"label": "A"}, {"label": "B"}, {"label": "C"}]}
NAME = {"question": "Which name?", "type": "text"}


def asking(prompt: str, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    call = {"call": {"name": name, "arguments": arguments}}
    return {"prompt": rf"\A{prompt}", "replies": [call, {"text": "It is over: {{result}}"}]}


SCRIPT = json.dumps(
    {
        "name": "practice",
        "scenarios": [
            asking("import", "ask_user", {"questions": QUESTIONS}),
            asking("sheet", "ask_user", SHEET),
            asking("name", "ask_user", NAME),
            asking("release", "release", {}),
            asking("page", "page", {"url": "https://login.example.org/a"}),
        ],
    }
)  # a YAML document, too
NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator[Workbench]:
    folder = tmp_path_factory.mktemp("served")
    server = {"command": sys.executable, "args": [str(ASKING), str(folder / "log")], "trust": True}
    settings = folder / "mcp.json"
    settings.write_text(json.dumps({"mcpServers": {"tickets": server}}), "utf-8")
    (folder / "log").touch()
    options = ("--mcp-config", str(settings), "--approval-mode", "yolo")
    with workbench(folder, tmp_path_factory.mktemp("workspace"), SCRIPT, *options) as found:
        yield found


@pytest.fixture
def page(browser: Browser, served: Workbench) -> Generator[Page]:
    """Return a page of the shared server, whose tasks before were cancelled."""
    with served.let_in(browser) as context:
        yield served.watch(context.new_page())
    served.cancel_tasks()


def begin(page: Page, served: Workbench, *prompts: str) -> list[str]:
    """Let these prompts wait for an answer in the inbox, which is shown; return the ids of their tasks."""
    page.goto(f"{served.url}ui/")
    tasks: list[str] = []
    for number, prompt in enumerate(prompts, 1):
        tasks.append(served.begin(page, f"{prompt} {next(NUMBERS)}"))
        if number > 1:
            show_new(page)
        expect(page.locator(".item:not(.done)")).to_have_count(number)
    return tasks


def form(page: Page) -> Locator:
    return page.locator("isthmus-form")


def option(page: Page, title: str) -> Locator:
    return form(page).locator("label.opt", has_text=title)


def until_over(page: Page, served: Workbench, task: str) -> str:
    """Return what the agent said at the end of a task."""
    page.goto(f"{served.url}ui/task/{task}")
    said = page.locator("isthmus-task .prose", has_text="It is over")
    expect(said).to_have_count(1)
    return said.inner_text()


def test_a_fault_stands_under_its_field_and_nothing_is_sent_before(page: Page, served: Workbench) -> None:
    begin(page, served, "release", "sheet")
    expect(page.locator(".item", has_text="Which release")).to_contain_text("4 fields · goes to tickets")
    page.locator(".item .cover", has_text="Which release").click()
    field = page.get_by_label("Tell whom?")
    field.fill("you@")
    expect(form(page).locator(".fq-fault")).to_have_count(0)
    page.get_by_label("Note").focus()
    fault = form(page).locator(".fq-fault")
    expect(fault).to_have_text("This is not an e-mail address.")
    assert field.get_attribute("aria-describedby") == fault.get_attribute("id")
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(form(page).locator(".form-count")).to_contain_text("fields to correct")
    # Enter that ends a composed text, and the same key of engines that have ended it before.
    page.get_by_label("Note").fill("x")
    for more in ({"isComposing": True}, {"keyCode": 229}):
        page.get_by_label("Note").dispatch_event("keydown", {"key": "Enter", "ctrlKey": True, **more})
    page.keyboard.press("Control+Enter")
    expect(form(page).locator("input:focus")).to_have_attribute("name", "field-0")
    expect(form(page).locator(".fq-fault")).to_have_count(3)
    expect(page.locator(".item.done")).to_have_count(0)
    field.focus()
    page.keyboard.press("Escape")
    expect(form(page).locator("h2")).to_be_focused()
    # What was typed is there when the form is shown again.
    page.locator(".item .cover", has_text="Which sheet").click()
    expect(form(page).locator("h2")).to_have_text("Which sheet?")
    page.locator(".item .cover", has_text="Which release").click()
    expect(page.get_by_label("Tell whom?")).to_have_value("you@")


def test_what_was_answered_elsewhere_says_so_and_the_rest_is_sent(
    browser: Browser, page: Page, served: Workbench
) -> None:
    (task,) = begin(page, served, "import")
    row = page.locator(".item", has_text="Which zone has no offset?")
    expect(row).to_contain_text("and 3 more · 2 choices, 1 text, 1 yes or no")
    expect(page).to_have_title(re.compile(r"^Which zone has no offset\? · .* \(1\) · Isthmus"))
    until_form_counts(page)
    option(page, "Harbour").click()
    option(page, "No").click()
    with served.let_in(browser) as context:
        other = served.watch(context.new_page())
        other.goto(f"{served.url}ui/")
        until_form_counts(other)
        answer_one_of(other, served, task, "Write over it?", "choice_1")
    note = form(page).locator(".fq", has_text="Write over it?").locator(".fq-note")
    expect(note).to_contain_text("Answered by")
    expect(form(page).locator(".form-count")).to_contain_text("2 of 4 answered")
    form(page).locator(".primary").click()
    expect(page.locator(".item.done")).to_have_count(1)
    until_over(page, served, task)
    said = page.locator("isthmus-task .call", has_text="Write over it?")
    said.get_by_role("button", name="Output").click()
    expect(page.locator(".out", has_text="Answer: Yes")).to_have_count(1)


def answer_one_of(page: Page, served: Workbench, task: str, question: str, option_id: str) -> None:
    """Answer one of several questions of a task by its option, as another client does."""
    sent = page.evaluate(
        """async ([url, task, question, option, extension]) => {
            const headers = {
                Authorization: `Bearer ${localStorage.getItem("isthmus.token")}`, "A2A-Version": "1.0",
                "A2A-Extensions": extension, "Content-Type": "application/json",
            };
            const found = await (await fetch(`${url}tasks/${task}?historyLength=0`, {headers})).json();
            const calls = found.status.message.parts.map((part) => part.data);
            const call = calls.find((one) => one.description === question);
            const data = {tool_call_id: call.tool_call_id, selected_option_id: option};
            const message = {messageId: "m-other", role: "ROLE_USER", taskId: task, parts: [{data}]};
            const body = JSON.stringify({configuration: {returnImmediately: true}, message});
            return (await fetch(`${url}message:send`, {method: "POST", headers, body})).status;
        }""",
        [served.url, task, question, option_id, EXTENSION_URI],
    )
    assert sent == 200


def until_form_counts(page: Page) -> None:
    """Wait until an answer to the form in view counts."""
    expect(
        form(page).locator(".actions .b", has_text="Decline").and_(page.locator(":not([aria-disabled])"))
    ).to_be_visible()


def test_words_and_no_answer_reach_the_agent(page: Page, served: Workbench) -> None:
    words, declined, empty = begin(page, served, "sheet", "sheet", "name")
    page.locator(".item .cover", has_text="Which sheet").last.click()
    until_form_counts(page)
    answer_by(page, "4")
    page.keyboard.type("None of yours")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".item.done")).to_have_count(1)
    page.locator(".item:not(.done) .cover", has_text="Which sheet").click()
    until_form_counts(page)
    answer_by(page, "y")
    expect(page.locator(".item.done")).to_have_count(1)
    answer_by(page, "n")
    expect(page.locator(".item.done")).to_have_count(2)
    expect(form(page).locator(".primary")).to_contain_text("Send empty")
    until_form_counts(page)
    form(page).locator(".primary").click()
    expect(page.locator(".item.done")).to_have_count(3)
    said = {until_over(page, served, task) for task in (words, declined, empty)}
    assert any("None of yours" in one for one in said)
    assert any("none of the answers" in one for one in said)


def test_a_page_is_opened_only_by_the_answer(page: Page, served: Workbench) -> None:
    (task,) = begin(page, served, "page")
    expect(page.locator(".item .peek")).to_have_text("opens login.example.org")
    expect(form(page).locator("h2")).to_have_text("Log in there")
    expect(form(page).locator(".facts")).to_contain_text("https://login.example.org/a")
    expect(form(page).locator(".facts")).to_contain_text("what you type there stays there")
    until_form_counts(page)
    page.context.route("https://login.example.org/**", lambda route: route.fulfill(body="in"))
    with page.context.expect_page() as opened:
        form(page).get_by_role("button", name="Open login.example.org").click()
    assert opened.value.url == "https://login.example.org/a"
    assert "accept" in until_over(page, served, task)
