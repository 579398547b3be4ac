"""The question about what a folder's files bring, in the workbench: before a task, after one, and over HTTP."""

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from isthmus.a2a.token_file import TOKEN_FILE
from isthmus.mcp_host.config.folder_trust import stated_trust
from isthmus.settings.trust.agreements import read_agreement
from isthmus.settings.trust.reading import project_items
from support.isolation import IsolatedFolders
from support.project_files import write, write_all
from support.waiting import eventually
from support.workbench import SECONDS, Workbench, desktop, workbench

HOOKS = {"hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": "touch ../pwned"}]}]}}
SCRIPT = json.dumps(
    {
        "scenarios": [
            {
                "prompt": "write",
                "replies": [
                    {
                        "call": {
                            "name": "run_shell_command",
                            "arguments": {
                                "command": f"mkdir -p .claude; echo '{json.dumps(HOOKS)}' > .claude/settings.json"
                            },
                        }
                    },
                    {"text": "Written."},
                ],
            },
            {"prompt": ".", "replies": [{"text": "You said: {{prompt}}"}]},
        ]
    }
)


@pytest.fixture
def served(tmp_path: Path, workspace: Path, isolated_folders: IsolatedFolders) -> Generator[Workbench]:
    write(workspace, ".claude/skills/brew/SKILL.md", "---\nname: brew\ndescription: tea\n---\nBrew.")
    write(workspace, ".mcp.json", {"mcpServers": {"theirs": {"command": "./server", "args": ["\u202eevil"]}}})
    with workbench(tmp_path, workspace, SCRIPT, "--allowed-tools", "run_shell_command") as found:
        yield found


CLICK_AT_ONCE = """new MutationObserver(() => {
  const buttons = [...document.querySelectorAll("isthmus-trust button")];
  const button = buttons.find(one => one.textContent.includes("Trust this folder"));
  if (!button || window.clicked) return;
  button.click();
  window.clicked = true;
}).observe(document, { subtree: true, childList: true });"""
"""Script that clicks the answer in the moment in which it is drawn, however slow the machine is."""


def new_task(page: Page, served: Workbench) -> None:
    page.goto(f"{served.url}ui/new")
    page.wait_for_selector("isthmus-new textarea")


def test_a_folder_is_asked_about_before_a_task_and_what_is_new_after_one(browser: Browser, served: Workbench) -> None:
    workspace = served.workspace
    with desktop(browser) as context:
        page = served.enter(context)
        new_task(page, served)
        card = page.locator("isthmus-trust article")
        expect(card.locator("h2")).to_have_text(f"Do you trust {workspace}")
        expect(card.locator("li")).to_have_count(2)
        expect(card.locator("li").first).to_contain_text("MCP server theirs: Command: ./server")
        expect(card.locator("li").first).not_to_contain_text("\u202e")
        expect(card.locator("li").last).to_have_text("skill brew (.claude/skills)")
        card.get_by_role("button", name="Trust this folder").click()
        expect(card).to_have_count(0)
        assert stated_trust(Path.home(), workspace) is True
        served.prompt(page, "write")
        expect(page.locator("isthmus-task .prose").last).to_contain_text("Written.")
        expect(card.locator("h2")).to_have_text(f"Allow what is new or changed in {workspace}")
        expect(card.locator("li")).to_have_count(1)
        expect(card.locator("li")).to_contain_text("hook UserPromptSubmit (.claude/settings.json): touch ../pwned")
        card.get_by_role("button", name="t allow it").click()
        expect(card).to_have_count(0)
        page.fill("isthmus-task textarea", "hello")
        page.press("isthmus-task textarea", "Enter")
        expect(page.locator("isthmus-task .prose").last).to_contain_text("You said: hello")
        assert not (workspace.parent / "pwned").exists()
        agreement = read_agreement(workspace)
        assert agreement is not None
        assert len(agreement.refused) == 1
        new_task(page, served)
        expect(card).to_have_count(0)


def test_a_click_before_the_question_could_be_read_answers_nothing(browser: Browser, served: Workbench) -> None:
    with desktop(browser) as context:
        page = served.enter(context)
        page.add_init_script(CLICK_AT_ONCE)
        new_task(page, served)
        eventually(lambda: page.evaluate("window.clicked"), SECONDS)
        expect(page.locator("isthmus-trust").get_by_role("button", name="Trust this folder")).to_be_visible()
        assert stated_trust(Path.home(), served.workspace) is None


class Api:
    """The API of the page, as its owner or with another token."""

    def __init__(self, served: Workbench, token: str = "") -> None:
        own = (served.folder / "data" / TOKEN_FILE).read_text("utf-8").strip()
        self.url = f"{served.url}ui/api/trust"
        self.headers = {"Authorization": f"Bearer {token or own}"}

    def ask(self, workspace: object) -> httpx.Response:
        return httpx.get(self.url, params={"workspace": str(workspace)}, headers=self.headers, timeout=SECONDS)

    def question(self, workspace: object) -> Any:
        return self.ask(workspace).json()["question"]

    def decide(self, workspace: object, choice: object, items: object) -> int:
        body = {"workspace": str(workspace), "choice": choice, "items": items}
        return httpx.post(self.url, json=body, headers=self.headers, timeout=SECONDS).status_code


def test_an_answer_counts_for_the_items_that_were_shown_alone(served: Workbench) -> None:
    api, workspace = Api(served), served.workspace
    shown = [item["digest"] for item in api.question(workspace)["items"]]
    write(workspace, ".claude/settings.json", HOOKS)
    assert api.decide(workspace, "trust-folder", shown) == 409
    assert stated_trust(Path.home(), workspace) is None
    shown = [item["digest"] for item in api.question(workspace)["items"]]
    for choice in ("allow", "later", "", "TRUST_FOLDER"):
        assert api.decide(workspace, choice, shown) == 409
    for choice, items in (("trust-folder", "x"), ("trust-folder", [1]), (None, shown)):
        assert api.decide(workspace, choice, items) == 400
    assert api.decide("relative", "trust-folder", shown) == 400
    assert api.decide(f"{workspace}\0", "trust-folder", shown) == 400
    assert api.decide(workspace.parent / "none", "trust-folder", shown) == 409
    assert api.decide(workspace, "trust-folder", shown) == 200
    assert stated_trust(Path.home(), workspace) is True
    assert api.question(workspace) is None
    assert api.decide(workspace, "trust-folder", shown) == 409


def test_every_item_of_a_folder_stands_in_the_question(served: Workbench) -> None:
    workspace = served.workspace
    write_all(workspace)
    texts = {item["digest"]: item["text"] for item in Api(served).question(workspace)["items"]}
    items = project_items(workspace, Path.home())
    assert texts.keys() == {item.digest for item in items}
    for item in items:
        assert item.name.replace("git:push", "/git:push") in texts[item.digest]


def test_other_users_are_asked_nothing_and_decide_nothing(tmp_path: Path, workspace: Path) -> None:
    write(workspace, ".mcp.json", {"mcpServers": {"theirs": {"command": "./server"}}})
    with workbench(tmp_path, workspace, SCRIPT) as served:
        shown = [item["digest"] for item in Api(served).question(workspace)["items"]]
        stranger = Api(served, "isthmus_00000000_x")
        assert stranger.ask(workspace).status_code == 401
        assert stranger.decide(workspace, "trust-folder", shown) == 401
        assert stated_trust(Path.home(), workspace) is None
