"""A session in the workbench: rewind, branch, its diff, its model and its tokens, in a real browser."""

import json
import re
import signal
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from support.gemini_wire import GeminiWire
from support.scripted_wire import Reply, Say, WireUsage
from support.wire_server import Answer, WireRequest
from support.workbench import Workbench, answer_by, desktop, until_answers_count, workbench


def _edit(file: str, old: str, new: str) -> dict[str, Any]:
    arguments = {"file_path": file, "instruction": "x", "old_string": old, "new_string": new}
    return {"call": {"name": "replace", "arguments": arguments}}


HEADINGS = "# old\n-- a/evil.py\n", "# new\n++ b/evil.py\n"
"""Lines that look like headings of a diff when they are marked as removed and added."""
RESTORE = re.compile("/restore ")
GROW = """async list => {
    const [foot, last] = [document.querySelector(".foot"), list.querySelector(".it:last-child")];
    foot.style.display = "none";
    const top = list.scrollTop;
    last.style.minHeight = "900px";
    list.requestUpdate();
    await list.updateComplete;
    const found = [top, list.isAtEnd];
    foot.style.display = last.style.minHeight = "";
    return found;
}"""
"""Function that lets the window of a list grow, so that the browser moves its end, and then its last item."""
_SET_CLOCK = "const now = performance.now.bind(performance); performance.now = () => window.at ?? now();"
LINES = "".join(f"line {number}\n" for number in range(40))

SCRIPT = json.dumps(
    {
        "name": "practice",
        "scenarios": [
            # First: after a rewind the model reads it together with the message before.
            {"prompt": "third", "replies": [_edit("other.md", HEADINGS[0], HEADINGS[1]), {"text": "Done three."}]},
            {"prompt": "first", "replies": [_edit("code.py", "hi", "hello"), {"text": "Done one."}]},
            {"prompt": "second", "replies": [_edit("code.py", "end", "fin"), {"text": "Done two."}]},
            {"prompt": ".", "replies": [{"text": "You said: {{prompt}}"}]},
        ],
    }
)


@pytest.fixture
def served(tmp_path: Path, workspace: Path) -> Generator[Workbench]:
    (workspace / "code.py").write_text('print("hi")\nprint("end")\n', "utf-8")
    (workspace / "other.md").write_text(LINES + HEADINGS[0], "utf-8")
    with workbench(tmp_path, workspace, SCRIPT) as found:
        yield found


class ListingWire(GeminiWire):
    """A provider that lists its models."""

    def answer_other(self, request: WireRequest) -> Answer:
        if request.path.partition("?")[0].endswith("/models"):
            names = [f"gemini-2.5-{name}" for name in ("flash", "pro", *(f"x{number}" for number in range(60)))]
            listed = [{"name": f"models/{name}", "supportedGenerationMethods": ["generateContent"]} for name in names]
            return Answer.json({"models": listed})
        return super().answer_other(request)


def say(page: Page, text: str, mode: str = "") -> None:
    """Send the next message of a session, and wait until it is on the page."""
    if mode:
        page.select_option("isthmus-task .prompt select[aria-label=Approval]", mode)
    page.fill("isthmus-task textarea", text)
    page.press("isthmus-task textarea", "Enter")
    expect(page.locator("isthmus-task .said").last).to_have_text(text)


def allow(page: Page, answer: str) -> None:
    """Allow the question of the shown task, and wait for the agent's answer."""
    page.click("isthmus-question .primary")
    expect(page.locator("isthmus-task .prose").last).to_contain_text(answer)
    page.wait_for_selector("isthmus-task .head .st-done")


def test_a_session_is_rewound_and_branched_from_its_messages(browser: Browser, served: Workbench) -> None:
    code = served.workspace / "code.py"
    with desktop(browser) as context:
        page = served.enter(context)
        served.prompt(page, "first")
        allow(page, "Done one.")
        say(page, "second")
        expect(page.locator("isthmus-task .acts button").last).to_be_disabled()  # while the task waits
        allow(page, "Done two.")
        assert code.read_text("utf-8") == 'print("hello")\nprint("fin")\n'
        # The server asks, and names the files; nothing is put back before the answer.
        page.locator(".acts").last.get_by_role("button", name="Rewind").click()
        question = page.locator("isthmus-question")
        expect(question).to_contain_text("code.py: put back")
        assert "fin" in code.read_text("utf-8")
        top = page.locator("isthmus-items").evaluate("list => list.scrollTop")
        clamped, is_followed = page.locator("isthmus-items").evaluate(GROW)
        assert clamped < top
        assert is_followed  # no reader has scrolled
        # A reader who has scrolled a little meets the button where it is pressed: it does not move below the pointer.
        until_answers_count(page)
        page.locator("isthmus-items").evaluate("list => list.scrollBy(0, -54)")
        page.locator("isthmus-question .primary").click(delay=100)  # delay: a finger presses a button for so long
        expect(page.locator("isthmus-task .prose").last).to_contain_text("The conversation is back")
        page.wait_for_selector("isthmus-task .head .st-done")
        assert code.read_text("utf-8") == 'print("hello")\nprint("end")\n'
        # Where everything is allowed the page asks itself; a key chooses the message.
        say(page, "third", "yolo")
        expect(page.locator("isthmus-task .prose").last).to_contain_text("Done three.")
        page.wait_for_selector("isthmus-task .head .st-done")
        page.locator("isthmus-items").focus()
        page.keyboard.press("k")
        expect(page.locator(".said:focus")).to_have_text("third")
        page.keyboard.press("z")
        expect(page.locator("isthmus-rewind li")).to_have_text(["other.md"])
        page.keyboard.press("y")  # too early to be meant
        answer_by(page, "y")
        expect(page.locator("isthmus-task .prose").last).to_contain_text("The conversation is back")
        assert (served.workspace / "other.md").read_text("utf-8") == LINES + HEADINGS[0]
        # A branch has the conversation up to the end of the chosen message's task, and no more.
        page.locator("isthmus-items").focus()
        expect(page.locator(".said")).to_have_text(["first", "second", RESTORE, "third", RESTORE])
        for _ in range(9):
            page.keyboard.press("k")
        expect(page.locator(".said:focus")).to_have_text("first")
        before = page.url
        page.keyboard.press("b")
        expect(page.locator("isthmus-task .said").first).to_contain_text("/chat resume branch-")
        page.wait_for_url(re.compile("/ui/session/"))
        assert page.url != before
        expect(page.locator("isthmus-task .prose").last).to_contain_text("Done one.")
        assert "Done two." not in page.inner_text("isthmus-items")
        expect(page.locator("isthmus-task .said")).to_have_count(1)


def test_messages_and_a_draft_wait_on_the_server_whatever_happens_to_the_page(
    browser: Browser, served: Workbench
) -> None:
    with desktop(browser) as context:
        page = served.enter(context)
        served.prompt(page, "first")
        page.wait_for_selector("isthmus-question .primary")
        for text in ("sent last", "taken back", "sent first"):
            page.fill("isthmus-task textarea", text)
            page.press("isthmus-task textarea", "Enter")
            expect(page.locator("isthmus-queued li", has_text=text)).to_have_count(1)
        waiting = page.locator("isthmus-queued li")
        waiting.filter(has_text="taken back").get_by_role("button", name="Remove").click()
        waiting.filter(has_text="sent first").get_by_role("button", name="Send first").click()
        expect(waiting.first).to_contain_text("sent first")
        with page.expect_response(lambda response: '"draft"' in (response.request.post_data or "")):
            page.fill("isthmus-task textarea", "half a thought")
        address = page.url
        page.close()
        served.restart(signal.SIGKILL)
        other = served.watch(context.new_page())
        other.goto(address)
        expect(other.locator("isthmus-task textarea").last).to_have_value("half a thought")
        expect(other.locator("isthmus-queued li")).to_have_count(2)
        with other.expect_response(lambda response: "message:send" in response.url):
            other.click("isthmus-question .primary")
        other.close()
        last = served.watch(context.new_page())
        last.goto(f"{served.url}ui/history")
        expect(last.locator(".line")).to_contain_text("3 turns")
        last.goto(address)
        expect(last.locator("isthmus-task .said")).to_have_text(["first", "sent first", "sent last"])
        expect(last.locator("isthmus-task .prose").last).to_contain_text("You said: sent last")
        expect(last.locator("isthmus-queued")).to_have_count(0)


@pytest.mark.extended
def test_the_diff_of_a_session_is_shown_by_file(browser: Browser, served: Workbench) -> None:
    with desktop(browser) as context:
        context.add_init_script(_SET_CLOCK)
        page = served.enter(context)
        served.prompt(page, "first")
        page.wait_for_selector("isthmus-question .primary")
        page.locator("isthmus-items").focus()
        page.evaluate("window.at = 300")
        page.keyboard.press("Escape")  # the second one stops the session, however young the page
        page.evaluate("delete window.at")
        page.keyboard.press("d")
        expect(page.locator("isthmus-session-diff .problem")).to_contain_text("The session is working")
        page.keyboard.press("Escape")
        allow(page, "Done one.")
        say(page, "third")
        allow(page, "Done three.")
        page.click("isthmus-task .head >> text=Changes")
        files = page.locator("isthmus-session-diff .file")
        expect(files.locator("code")).to_have_text(["code.py", "other.md"])
        expect(files.locator(".num")).to_have_text(["+1 \u22121", "+2 \u22122"])
        other = files.last
        expect(other.locator(".cm-mergeView")).to_be_visible()
        expect(other.locator(".cm-merge-b .cm-lineNumbers")).to_contain_text("42")
        expect(other.locator(".cm-merge-b .cm-content")).to_contain_text("++ b/evil.py")
        expect(other.locator(".cm-merge-a .cm-content")).to_contain_text("-- a/evil.py")
        # From the history the same comparison is shown again: nothing was done since.
        page.goto(f"{served.url}ui/history")
        page.locator("li", has_text="first").get_by_role("link", name="Changes of the session").click()
        expect(files).to_have_count(2)
        page.set_viewport_size({"width": 390, "height": 844})
        expect(other.locator(".cm-mergeView")).to_have_count(0)
        expect(other.locator(".cm-deletedChunk")).to_contain_text("-- a/evil.py")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        page.set_viewport_size({"width": 1440, "height": 900})
        # What changed on the disk since is compared when the user wants it.
        (served.workspace / "code.py").write_text('print("hi")\nprint("end")\n', "utf-8")
        page.keyboard.press("r")
        expect(files.locator("code")).to_have_text(["other.md"])
        page.goto(f"{served.url}ui/history")
        expect(page.locator(".line")).to_have_count(1)
        expect(page.locator(".line")).to_contain_text("first")


def test_model_effort_and_mode_are_those_of_the_session_until_the_user_chooses(
    browser: Browser, tmp_path: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replies = [Reply.of(Say(f"Answer {n}."), usage=WireUsage(1_200, 34, 1_000, thoughts=10)) for n in (1, 2, 3)]
    with ListingWire(replies) as wire:
        monkeypatch.setenv("GEMINI_API_KEY", "test-key")
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", wire.base_url)
        with workbench(tmp_path, workspace, SCRIPT, "-m", "gemini-2.5-flash") as served, desktop(browser) as context:
            page = served.enter(context)
            page.goto(f"{served.url}ui/new")
            effort, mode = page.get_by_label("Thinking"), page.get_by_label("Approval")
            expect(page.locator("isthmus-model button")).to_contain_text("gemini-2.5-flash")
            expect(effort).to_have_value("default")
            # A new session, its effort and its mode chosen with the first message.
            effort.select_option("high")
            mode.select_option("plan")
            page.fill("isthmus-new textarea", "one")
            page.press("isthmus-new textarea", "Enter")
            expect(page.locator("isthmus-task .prose").last).to_have_text("Answer 1.")
            assert "gemini-2.5-flash" in wire.model_requests[-1].path
            assert "24576" in str(wire.model_requests[-1].json)
            # Beside the conversation: what the session and its last turn have cost, and the tokens.
            aside = page.locator("isthmus-aside")
            expect(aside).to_contain_text(re.compile(r"Cost of this session\s*\$0\.0002"))
            expect(aside).to_contain_text(re.compile(r"Last turn\s*\$0\.0002"))
            expect(aside).to_contain_text(re.compile(r"Tokens in\s*1,200\s*of them cached\s*1,000\s*Tokens out\s*34"))
            expect(page.locator("footer")).to_contain_text(re.compile(r"gemini-2\.5-flash\s*1,234 tokens · \$0\.0002"))
            page.reload()
            expect(effort).to_have_value("high")
            expect(mode).to_have_value("plan")
            page.locator("isthmus-items").focus()
            page.keyboard.press("l")
            options = page.locator("isthmus-model [role=option]")
            expect(options).to_have_count(50)
            page.locator("isthmus-model input").fill("pro")
            expect(options.locator("code")).to_have_text(["gemini-2.5-pro", "pro"])
            page.keyboard.press("Enter")
            expect(page.locator("isthmus-model button")).to_contain_text("gemini-2.5-pro")
            say(page, "two")
            expect(page.locator("isthmus-task .prose").last).to_have_text("Answer 2.")
            assert "gemini-2.5-pro" in wire.model_requests[-1].path
            # Another session has nothing of what was chosen for this one.
            effort.select_option("low")
            page.click("nav >> text=New session >> visible=true")
            expect(effort).to_have_value("default")
            page.fill("isthmus-new textarea", "three")
            page.press("isthmus-new textarea", "Enter")
            expect(page.locator("isthmus-task .prose").last).to_have_text("Answer 3.")
            assert "gemini-2.5-flash" in wire.model_requests[-1].path
            assert "thinkingBudget" not in str(wire.model_requests[-1].json)
