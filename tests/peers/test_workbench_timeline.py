"""The rows of a conversation in a browser: results of our tools, outputs, copies, colours, ends and subagents."""

import base64
import json
import re
from collections.abc import Generator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from support.waiting import eventually
from support.workbench import Workbench, workbench

CODE = "The cause:\n\n```python\ndef delay_of(sailing):\n    return 0  # never early\n```\n"
FAILING = "for i in $(seq 1 30); do echo line $i; done; echo 'Exit Code: 7'; exit 3"
LIVE = "for i in $(seq 1 191); do echo line $i; done; until [ -e stop ]; do sleep 0.05; done; echo over"


PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAEklEQVR42mM4lMCjX32bAUIBACTnBWd1bWITAAAAAElFTkSuQmCC"
"""A PNG of two by two pixels, in base64."""
SENT = {"raw": PICTURE, "mediaType": "image/png", "filename": "dot.png"}


def call(tool: str, **arguments: object) -> object:
    return {"call": {"name": tool, "arguments": arguments}}


TODOS = [{"description": "Find", "status": "completed"}, {"description": "Fix", "status": "pending"}]
STEPS = [
    call("grep_search", pattern="fromisoformat"),
    call("read_file", file_path="schedule.py"),
    call("read_file", file_path="board.png"),
    call("glob", pattern="*.py"),
    call("list_directory", dir_path="."),
    call("run_shell_command", command=FAILING),
    call("write_todos", todos=TODOS),
]
LIVE_STEP = [{"text": CODE}, call("run_shell_command", command=LIVE)]
LIMIT = {"error": {"kind": "rate_limit", "message": "Slow down; it asks to wait 5000 s"}}
DELEGATED = call("invoke_agent", agent_name="generalist", prompt="small part")
WRITTEN = call("write_file", file_path="sub.txt", content="1\n2\n")
SCRIPT = json.dumps(
    {
        "name": "practice",
        "scenarios": [
            {"prompt": r"\Astep", "replies": [{"steps": STEPS}, {"steps": LIVE_STEP}, {"text": "Done."}]},
            {"prompt": r"\Afail", "replies": [{"steps": [LIMIT]}]},
            {"prompt": r"\Adelegate", "replies": [DELEGATED, {"text": "The generalist is done."}]},
            {"prompt": r"\Asmall", "replies": [WRITTEN, {"text": "Written."}]},
        ],
    }
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator[Workbench]:
    folder, workspace = tmp_path_factory.mktemp("served"), tmp_path_factory.mktemp("workspace")
    for name in ("schedule.py", "board.py"):
        (workspace / name).write_text(
            "from datetime import datetime\n" + "datetime.fromisoformat('2026')\n" * 2, "utf-8"
        )
    (workspace / "board.png").write_bytes(base64.b64decode(PICTURE))
    with workbench(folder, workspace, SCRIPT, "--approval-mode", "yolo") as found:
        yield found


@pytest.fixture
def page(browser: Browser, served: Workbench) -> Generator[Page]:
    with served.let_in(browser) as context:
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        yield served.watch(context.new_page())


def row(page: Page, text: str) -> Locator:
    return page.locator("isthmus-task .calls", has_text=text)


def test_the_calls_of_a_step_are_one_card_with_their_results(page: Page, served: Workbench) -> None:
    task = served.begin(page, "step one", SENT)
    page.goto(f"{served.url}ui/task/{task}")
    live = row(page, "seq 1 191")
    expect(live).to_contain_text("184 lines above")
    page.evaluate("document.querySelector('isthmus-items').scrollTop = 0")
    for what, result in (
        ("Search fromisoformat", "4 places in 2 files"),
        ("Read schedule.py", "3 lines"),
        ("Find *.py", "2 files"),
        ("List .", "3 entries"),
        ("Plan", "1 of 2 done"),
    ):
        expect(row(page, what).locator(".ends")).to_contain_text(result)
    # Pictures of a message and of a result come small, and a tap opens one.
    for name in ("Your message", "Read board.png"):
        picture = page.locator("isthmus-task").get_by_role("button", name=f"{name}: picture 1 of 1")
        picture.locator("img").evaluate("(shown) => shown.decode()")
        picture.click()
        expect(page.get_by_role("dialog").locator("img")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
        expect(picture).to_be_focused()
    failed = row(page, "seq 1 30")
    # The exit code is a fact: the words of the output are not taken for it, and stay.
    expect(failed.locator(".bad")).to_have_text("exit 3")
    expect(failed.locator(".st-fail")).to_be_visible()
    expect(failed.locator("pre")).to_contain_text(re.compile(r"line 25\n.*line 30\nExit Code: 7$", re.DOTALL))
    failed.get_by_role("button", name="24 lines above").click()
    expect(failed.locator("pre")).to_contain_text("line 1\nline 2\n")
    failed.get_by_role("button", name="Copy the command").click()
    expect(failed.locator("[role=status]")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == FAILING
    heights = page.evaluate("[...document.querySelectorAll('.call')].map((each) => each.offsetHeight)")
    assert set(heights) == {38}
    assert page.locator(".calls.first").count() == 2
    # Output that goes on is followed until the reader scrolls up.
    page.evaluate("document.querySelector('isthmus-items').scrollTop = 1e6")
    live.get_by_role("button", name="184 lines above").click()
    live.locator("pre").evaluate("(shown) => { shown.scrollTop = 0; }")
    live.get_by_role("button", name="Follow").click()
    expect(live.get_by_role("button", name="Follow")).to_have_count(0)
    (served.workspace / "stop").touch()
    page.wait_for_selector("text=Done.")
    expect(live.locator(".st-done")).to_be_visible()
    eventually(lambda: page.evaluate("(CSS.highlights.get('c-key')?.size ?? 0) >= 2"))
    page.locator("figure.code").get_by_role("button", name="Copy the code").click()
    eventually(lambda: page.evaluate("navigator.clipboard.readText()").startswith("def delay_of"))


def test_a_failed_turn_says_why_and_until_when_and_is_tried_again(page: Page, served: Workbench) -> None:
    task = served.begin(page, "fail now")
    page.goto(f"{served.url}ui/task/{task}")
    end = page.locator(".turn-end")
    expect(end).to_contain_text("The turn failed.")
    expect(end).to_contain_text("Slow down")
    expect(end).to_contain_text(re.compile(r"takes requests again from (\w+ \d+, )?\d\d:\d\d on"))
    end.get_by_role("button", name="Try again").click()
    expect(page.locator("isthmus-task .said")).to_have_text(["fail now", "fail now"])
    expect(page.get_by_role("button", name="Try again")).to_have_count(1)


def test_a_subagent_is_a_row_that_opens_it_and_its_files_count(page: Page, served: Workbench) -> None:
    task = served.begin(page, "delegate it")
    page.goto(f"{served.url}ui/task/{task}")
    page.wait_for_selector("text=The generalist is done.")
    expect(page.locator("isthmus-aside section", has_text="Changed files")).to_contain_text(
        re.compile(r"sub\.txt\s*\+2")
    )
    row(page, "generalist").get_by_role("link", name="Open").click()
    expect(row(page, "sub.txt").locator(".num").first).to_contain_text("+2")
