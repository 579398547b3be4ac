"""The workbench in a real browser, with the real server: prompts, questions, edits, phones, kills, hostile content."""

import json
import re
import signal
import subprocess
from collections.abc import Generator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from isthmus.a2a.token_file import TOKEN_FILE
from isthmus.development_tool import EXTENSION_URI
from support.waiting import eventually
from support.wire_server import Answer, WireServer
from support.workbench import Workbench, answer_by, desktop, phone, until_answers_count, workbench

HOSTILE = "<img src=x onerror=alert(1)><script>document.title='owned'</script>"
HOSTILE_COMMAND = f"echo '{HOSTILE}' # \u202e\x1b[2J"
WORDS = [f"word{number} " for number in range(60)]
CODE = 'print("hi")\nprint("end")\n'
LONG_ANSWER = [step for word in WORDS for step in ({"text": word}, {"delay": 0.05})]
EDIT = {"file_path": "code.py", "instruction": "Say hello", "old_string": "hi", "new_string": "hello"}
BOTH = [
    {"call": {"name": "write_file", "arguments": {"file_path": name, "instruction": "Write it", "content": "new\n"}}}
    for name in ("one.txt", "two.txt")
]
ALIKE = {
    "call": {
        "name": "write_file",
        "arguments": {"file_path": "p\u0430y.txt", "instruction": "Write it", "content": "is\u0410dmin\u00a0= 1\n"},
    }
}
SCRIPT = json.dumps(
    {
        "name": "practice",
        "scenarios": [
            {
                "prompt": "change",
                "replies": [{"call": {"name": "replace", "arguments": EDIT}}, {"text": "Changed **it**."}],
            },
            {
                "prompt": "long",
                "replies": [{"steps": [step for word in WORDS for step in ({"text": word}, {"delay": 0.05})]}],
            },
            {
                "prompt": "hostile",
                "replies": [
                    {
                        "thought": f"**{HOSTILE}** {HOSTILE}",
                        "text": f"{HOSTILE} [x](javascript:alert(1)) ![y](https://evil.test/y.png) `{HOSTILE}`\u202e",
                        "call": {
                            "name": "run_shell_command",
                            "arguments": {"command": HOSTILE_COMMAND, "description": HOSTILE},
                        },
                    },
                    {"text": "Over."},
                ],
            },
            {"prompt": "alike", "replies": [{"steps": [ALIKE]}, {"text": "Over."}]},
            {"prompt": "both", "replies": [{"steps": BOTH}, {"text": "Over."}]},
            {"prompt": ".", "replies": [{"text": "You said: {{prompt}}"}]},
        ],
    }
)  # a YAML document, too


@pytest.fixture
def served(tmp_path: Path, workspace: Path) -> Generator[Workbench]:
    """Return a server of one test alone: its link lets one browser in."""
    (workspace / "code.py").write_text(CODE, "utf-8")
    with workbench(tmp_path, workspace, SCRIPT) as found:
        yield found


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Generator[Workbench]:
    with workbench(tmp_path_factory.mktemp("shared"), tmp_path_factory.mktemp("workspace"), SCRIPT) as found:
        yield found


@pytest.fixture
def page(browser: Browser, shared: Workbench) -> Generator[Page]:
    """Return a page of the shared server, whose tasks before were cancelled and files written anew."""
    (shared.workspace / "code.py").write_text(CODE, "utf-8")
    with shared.let_in(browser) as context:
        yield shared.watched(context)
    shared.cancel_tasks()


def edit_in(page: Page, text: str) -> None:
    """Add a text at the end of the right side of the shown diff."""
    page.click("isthmus-question .actions >> text=Edit first")
    page.locator("isthmus-question isthmus-diff .cm-content[contenteditable=true]").last.click()
    page.keyboard.press("Control+End")
    page.keyboard.type(text)
    page.wait_for_selector("isthmus-question >> text=changed by you")


def test_a_prompt_becomes_an_edit_that_was_changed_in_the_page(browser: Browser, served: Workbench) -> None:
    with desktop(browser) as context:
        page = served.enter(context)
        assert "code=" not in page.url
        served.prompt(page, "please change it")
        question = page.locator("isthmus-question")
        expect(question).to_contain_text("Change code.py")
        expect(question).to_contain_text("\u201cSay hello\u201d")
        expect(question).to_contain_text("this change only")
        edit_in(page, "# mine")
        page.click("isthmus-question .primary")
        expect(page.locator("isthmus-task .prose strong")).to_have_text("it")
        expect(page.locator("isthmus-task .call")).to_contain_text("accepted with your change, ")
    assert (served.workspace / "code.py").read_text("utf-8") == 'print("hello")\nprint("end")\n# mine'


ANSWER_AT_ONCE = """new MutationObserver(() => {
  const button = document.querySelector("isthmus-question .primary");
  if (!button || window.answered) return;
  button.click();
  dispatchEvent(new KeyboardEvent("keydown", { key: "n" }));
  window.answered = true;
}).observe(document, { subtree: true, childList: true });"""
"""Script that answers by click and key in the moment in which a question is drawn: both may have been meant for
something else."""


def test_keys_answer_only_once_the_question_was_seen_and_count_lives_in_the_title(
    page: Page, shared: Workbench
) -> None:
    shared.prompt(page, "please change it")
    page.add_init_script(ANSWER_AT_ONCE)
    page.goto(f"{shared.url}ui/")
    expect(page).to_have_title(re.compile(r"\(1\) · Isthmus"))
    eventually(lambda: page.evaluate("window.answered"), 60)
    until_answers_count(page)
    expect(page.locator(".item")).to_have_count(1)
    expect(page.locator(".item.done")).to_have_count(0)
    answer_by(page, "N")
    expect(page.locator(".item.done")).to_have_count(1)
    expect(page).to_have_title("Inbox · Isthmus")
    assert "hello" not in (shared.workspace / "code.py").read_text("utf-8")


def test_all_files_of_a_task_are_allowed_at_once(page: Page, shared: Workbench) -> None:
    shared.prompt(page, "both")
    page.goto(f"{shared.url}ui/")
    page.click("text=All 2 files")
    page.click("text=Show all")
    page.click("isthmus-all >> text=Accept files (2)")
    expect(page.locator(".item.done")).to_have_count(2)
    for name in ("one.txt", "two.txt"):
        eventually((shared.workspace / name).exists, what=name)


def test_a_question_that_is_answered_in_a_terminal_says_so(page: Page, shared: Workbench) -> None:
    shared.prompt(page, "please change it")
    page.wait_for_selector("isthmus-question .actions")
    call, task = page.evaluate(
        "(({ call, taskId }) => [call.tool_call_id, taskId])(document.querySelector('isthmus-question'))"
    )
    answer = {
        "tool_call_id": call,
        "selected_option_id": "proceed_once",
    }
    message = {
        "messageId": "from-elsewhere", "role": "ROLE_USER", "taskId": task, "parts": [{"data": answer}],
        "metadata": {EXTENSION_URI: {"answered_by": "the terminal"}},
    }  # fmt: skip
    token = (shared.folder / "data" / TOKEN_FILE).read_text("utf-8").strip()
    headers = {"Authorization": f"Bearer {token}", "A2A-Extensions": EXTENSION_URI}
    sent = page.request.post(f"{shared.url}message:send", data={"message": message}, headers=headers)
    assert sent.status == 200
    expect(page.locator("isthmus-task .call")).to_contain_text("allowed in the terminal, ")
    expect(page.locator("isthmus-question")).to_have_count(0)


def test_commands_and_references_are_completed_as_they_are_typed(page: Page, shared: Workbench) -> None:
    page.goto(f"{shared.url}ui/new")
    field = page.locator("isthmus-new textarea")
    field.type("/abo")
    expect(page.locator(".suggestions li")).to_contain_text(["/about"])
    field.press("Tab")
    expect(field).to_have_value("/about ")
    field.press("Enter")
    expect(page.locator("isthmus-task .prose")).to_contain_text("Model: ")
    expect(page.locator("isthmus-task .said")).to_have_text("/about")
    field = page.locator("isthmus-task textarea")
    field.type("look at @cod")
    expect(page.locator(".suggestions li")).to_contain_text(["@code.py"])
    field.press("ArrowDown")
    field.press("Enter")
    expect(field).to_have_value("look at @code.py ")
    field.press("Enter")
    expect(page.locator("isthmus-task .prose").last).to_contain_text("You said: look at @code.py")
    # What has no such command is refused with the reason, and kept.
    page.locator("isthmus-task textarea").type("/nothing here")
    page.keyboard.press("Escape")
    page.locator("isthmus-task textarea").press("Enter")
    expect(page.locator("isthmus-task .problem")).to_contain_text("/nothing")
    expect(page.locator("isthmus-task textarea")).to_have_value("/nothing here")


def test_a_phone_pairs_by_a_code_and_answers(browser: Browser, served: Workbench) -> None:
    with desktop(browser) as context, phone(browser) as pocket:
        page = served.enter(context)
        served.prompt(page, "please change it")
        page.wait_for_selector("isthmus-question .actions")
        page.goto(f"{served.url}ui/devices")
        page.click("text=Make a code")
        code = page.inner_text("p.code").replace("-", "")
        held = served.watch(pocket.new_page())
        held.goto(f"{served.url}ui/")
        held.fill("input.code", f"{code[:4]} {code[4:].lower()}")
        held.tap("button.primary")
        held.tap(".item .cover")
        held.wait_for_selector("isthmus-question .primary")
        assert held.evaluate("document.documentElement.scrollWidth") <= 390
        held.tap("isthmus-question .primary")
        expect(held.locator(".item.done")).to_be_visible()
        page.reload()
        expect(page.locator(".rows .line")).to_have_count(2)
        # Removed, the phone is out at once.
        page.locator(".rows .line", has_not_text="this browser").get_by_role("button").click()
        expect(page.locator(".rows .line")).to_have_count(1)
        expect(held.locator("input.code")).to_be_visible()
    assert "hello" in (served.workspace / "code.py").read_text("utf-8")


def test_a_server_that_is_killed_in_mid_stream_loses_and_doubles_nothing(browser: Browser, served: Workbench) -> None:
    with desktop(browser) as context:
        page = served.enter(context)
        served.prompt(page, "a long answer")
        page.wait_for_selector("text=word5")
        served.restart(signal.SIGKILL)
        page.wait_for_selector("text=word59", timeout=60_000)
        page.wait_for_selector("isthmus-task .head .st-done")
        words = " ".join(page.locator("isthmus-task .prose").all_inner_texts()).split()
        assert words == [f"word{number}" for number in range(60)]


def test_the_network_is_cut_and_the_transcript_is_whole(page: Page, shared: Workbench) -> None:
    shared.prompt(page, "a long answer")
    page.wait_for_selector("text=word5")
    page.context.set_offline(True)
    page.wait_for_selector("footer >> text=Reconnecting")
    page.context.set_offline(False)
    page.wait_for_selector("text=word59")
    words = " ".join(page.locator("isthmus-task .prose").all_inner_texts()).split()
    assert words == [f"word{number}" for number in range(60)]


def test_each_page_has_its_title_and_its_heading_gets_the_focus(page: Page, shared: Workbench) -> None:
    page.goto(f"{shared.url}ui/")
    for title in ("History", "Servers and tools", "Settings", "Devices", "Inbox"):
        page.locator("nav.nav").get_by_title(title).click()
        expect(page).to_have_title(re.compile(rf"{title}( \(\d+\))? · Isthmus"))
        expect(page.locator("main h1")).to_have_text(title)
        expect(page.locator("main h1")).to_be_focused()
    page.go_back()
    expect(page).to_have_title(re.compile(r"Devices( \(\d+\))? · Isthmus"))
    expect(page.locator("main h1")).to_be_focused()


def test_hostile_content_is_text(page: Page, shared: Workbench) -> None:
    shared.prompt(page, f"hostile {HOSTILE}")
    page.wait_for_selector("isthmus-question .actions")
    assert page.locator("img, script:not([src])").count() == 0
    assert page.locator("a[href^='javascript']").count() == 0
    expect(page).to_have_title(re.compile(r"hostile <img src=x"))
    command = page.inner_text("isthmus-question .command")
    assert HOSTILE in command
    assert "\u202e" not in page.inner_text("body")
    assert "\\u{202e}" in command


def test_letters_and_blanks_that_look_like_others_are_marked_in_a_question(page: Page, shared: Workbench) -> None:
    shared.prompt(page, "alike")
    expect(page.locator("isthmus-question h2")).to_contain_text("p\\u{430}y.txt")
    expect(page.locator("isthmus-question .cm-content .cm-specialChar")).to_have_count(2)


def test_requests_without_a_right_are_refused(served: Workbench) -> None:
    def status(path: str, method: str = "GET", body: str = "", **headers: str) -> int:
        command = [
            "curl",
            "-s",
            "-o",
            "/dev/null",
            "-w",
            "%{http_code}",
            "--path-as-is",
            "-X",
            method,
            served.url + path,
        ]
        for name, value in headers.items():
            command += ["-H", f"{name.replace('_', '-')}: {value}"]
        if body:
            command += ["-d", body]
        return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    code = served.link.partition("code=")[2]
    paired = json.dumps({"code": code, "device": "d"})
    assert status("ui/") == 200
    assert status("ui/", Host="evil.test") == 403
    assert status("ui/", Origin="http://evil.test") == 403
    assert status("ui/api/pair", "POST", paired, Origin="http://127.0.0.1:1") == 403
    for trick in (
        "ui/../../etc/passwd",
        "ui/%2e%2e/%2e%2e/etc/passwd",
        "ui/assets/..%2f..%2fpages.py",
        "ui/pages.py",
        "ui//etc/passwd",
    ):
        assert status(trick) in (401, 404), trick
    assert status("ui/api/session") == 401
    assert status("tasks") == 401
    assert status("ui/api/pair", "POST", "{") == 400
    assert status("ui/api/pair", "POST", paired) == 200
    assert status("ui/api/pair", "POST", paired) == 403  # the link was used
    tried = [status("ui/api/pair", "POST", json.dumps({"code": "ABCDEFGH", "device": "d"})) for _ in range(12)]
    assert tried[-1] == 429
    log = (served.folder / "web.log").read_text("utf-8")
    assert code not in log


def test_no_token_is_where_pages_of_other_ports_can_read_it(browser: Browser, served: Workbench) -> None:
    with WireServer(lambda request: Answer(200, {"Content-Type": "text/html"}, (b"<p>another page",))) as other:
        with desktop(browser) as context:
            page = served.enter(context)
            token = page.evaluate("localStorage.getItem('isthmus.token')")
            assert token.startswith("isthmus_")
            assert token not in page.url
            assert context.cookies() == []
            foreign = context.new_page()
            foreign.goto(f"{other.base_url}/")
            assert foreign.evaluate("JSON.stringify(localStorage) + document.cookie + document.referrer") == "{}"
            framed = foreign.evaluate(
                "url => new Promise(done => { const frame = document.createElement('iframe'); frame.src = url;"
                " frame.onload = () => { let text = ''; try { text = frame.contentDocument?.body?.innerText ?? '' }"
                " catch { } done(text); }; document.body.append(frame); })",
                f"{served.url}ui/",
            )
            assert framed == ""
        sent = "".join(f"{name}: {value}\n" for request in other.requests for name, value in request.headers.items())
    assert "isthmus" not in sent.lower()
    assert "authorization" not in sent.lower()
