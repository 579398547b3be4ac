"""Each kind of question answered by each means in a real browser. Judges: files, server, model."""

import json
from collections.abc import Callable, Generator
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from isthmus.a2a.token_file import TOKEN_FILE
from isthmus.questions import LOOP_QUESTION, SAMPLING
from support.question_kinds import KINDS, PAGE, missing_effects, script, servers, write_files
from support.workbench import DESKTOP, PHONE, SECONDS, Workbench, pause_keys, until_answers_count, workbench

ALLOWED = [part for tool in ("release", "page", "sample") for part in ("--allowed-tools", tool)]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator[Workbench]:
    folder = tmp_path_factory.mktemp("served")
    settings = folder / "mcp.json"
    settings.write_text(json.dumps({"mcpServers": servers(folder / "log")}), "utf-8")
    workspace = tmp_path_factory.mktemp("workspace")
    with workbench(folder, workspace, script(), "--mcp-config", str(settings), *ALLOWED) as found:
        yield found


def form(page: Page) -> Locator:
    return page.locator("isthmus-form")


def option(page: Page, title: str) -> Locator:
    return form(page).locator("label.opt", has_text=title)


class Mouse:
    """Answers with a mouse, in the session."""

    viewport = DESKTOP
    is_touch = False

    def press(self, at: Locator) -> None:
        at.click()

    def allow(self, page: Page) -> None:
        self.press(page.locator("isthmus-question .primary"))

    def send(self, page: Page) -> None:
        self.press(form(page).locator(".primary"))

    def fill_questions(self, page: Page) -> None:
        for title in ("UTC", "Belém", "Cacilhas"):
            self.press(option(page, title))
        self.write(page, "What is the report called?", "report")
        self.press(option(page, "Yes"))

    def fill_form(self, page: Page) -> None:
        self.press(option(page, "2.9"))
        self.write(page, "Tell whom?", "you@harbour.example")
        self.press(option(page, "No").last)

    def write(self, page: Page, label: str, words: str) -> None:
        self.press(page.get_by_label(label))
        page.keyboard.insert_text(words)


class Touch(Mouse):
    """Answers with a finger, on the sheet of a phone."""

    viewport = PHONE
    is_touch = True

    def press(self, at: Locator) -> None:
        at.tap()


class Keys(Mouse):
    """Answers with the keyboard alone, in the session."""

    def allow(self, page: Page) -> None:
        pause_keys(page)
        page.keyboard.press("y")

    def send(self, page: Page) -> None:
        page.keyboard.press("Control+Enter")

    def fill_questions(self, page: Page) -> None:
        pause_keys(page)
        for key in ("2", "Tab", "Space", "Tab", "Space", "Tab", "Tab"):
            page.keyboard.press(key)
        page.keyboard.type("report")
        for key in ("Tab", "Space"):
            page.keyboard.press(key)

    def fill_form(self, page: Page) -> None:
        pause_keys(page)
        for key in ("2", "Tab", "Tab"):
            page.keyboard.press(key)
        page.keyboard.type("you@harbour.example")
        for key in ("Tab", "ArrowUp"):
            page.keyboard.press(key)


@pytest.mark.parametrize("means", [Mouse(), Keys(), Touch()], ids=lambda means: type(means).__name__)
def test_each_kind_of_question_is_answered_by_each_means(browser: Browser, served: Workbench, means: Mouse) -> None:
    write_files(served.workspace)
    width, height = means.viewport
    with served.let_in(browser) as context:
        entry: Any = context.storage_state()
    with browser.new_context(
        storage_state=entry,
        viewport={"width": width, "height": height},
        has_touch=means.is_touch,
        is_mobile=means.is_touch,
    ) as context:
        context.route(PAGE, lambda route: route.fulfill(body="in"))
        page = served.watch(context.new_page())
        task = served.begin(page, f"all {type(means).__name__}")
        page.goto(f"{served.url}ui/task/{task}")
        answer_all(page, means)
        expect(page.locator("isthmus-task .prose", has_text="It is over.")).to_have_count(1)
    assert missing_effects(served.workspace, said_in(served, task)) == []


def answer_all(page: Page, means: Mouse) -> None:
    """Answer each question of the session in view as it comes."""
    fill: dict[str, Callable[[Page], None]] = {
        "questions of the model": means.fill_questions,
        "form of a server": means.fill_form,
    }
    session = page.url
    for kind in KINDS:
        is_form = kind.tool not in {"", SAMPLING, LOOP_QUESTION}
        for title in kind.titles:
            if means.is_touch:
                page.goto(session)
                links = page.locator("isthmus-task a.asked-link")
                expect(links).to_have_count(1)  # the question before may still be drawn for a moment
                links.first.tap()
            heading = page.locator(f"isthmus-{'form' if is_form else 'question'} h2")
            expect(heading).to_contain_text(title)
            if kind.name in fill:
                fill[kind.name](page)
            until_answers_count(page)
            (means.send if is_form else means.allow)(page)
            expect(heading.filter(has_text=title)).to_have_count(0)
    page.goto(session)


def said_in(served: Workbench, task: str) -> str:
    """Return what the model has said in a turn."""
    token = (served.folder / "data" / TOKEN_FILE).read_text("utf-8").strip()
    headers = {"Authorization": f"Bearer {token}", "A2A-Version": "1.0"}
    with httpx.Client(base_url=served.url, headers=headers, timeout=SECONDS) as client:
        found = client.get(f"tasks/{task}").json()
    said = [*found["history"], found["status"]["message"]]
    return "\n".join(part.get("text", "") for message in said for part in message["parts"])
