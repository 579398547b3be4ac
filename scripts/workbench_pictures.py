"""Draws the pictures of the workbench from the real page and server, as WebP; part of ``make pictures``.

The model is a script and the project is fixed. What depends on the moment (codes, days, ages, times) is fixed, too.
A picture has the name, size and theme of the drawing of its page, where there is one.
"""

import asyncio
import base64
import json
import os
import sys
import tempfile
import threading
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playwright.sync_api import expect

import pictured_project as project
from isthmus.web.pairing.links import entry_link
from support.companion import BareAgent
from support.isthmus_program import CompanionProgram, companion_program
from support.plain_http import plain_client
from support.workbench import Workbench, chromium, chromium_beside, until_answers_count, workbench
from support.written_changes import User, watching_agent

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page, Route

PICTURES = Path(__file__).resolve().parent.parent / "docs" / "pictures"
ASKING = Path(__file__).resolve().parent.parent / "tests" / "support" / "asking_mcp_server.py"
NAMES = (
    "session-light", "task-light", "reconnecting-dark", "inbox-light", "inbox-dark", "review-light", "review-dark",
    "review-files-light", "after-light", "form-light", "form-mcp-light", "inbox-phone", "review-phone",
    "question-phone", "question-phone-more", "question-phone-keyboard", "form-phone", "form-mcp-phone",
    "pairing-light", "pairing-phone", "pairing-phone-dark", "changes-light", "history-dark", "files-light",
    "servers-light",
)  # fmt: skip
"""Names of all pictures; a test compares them with what documents show."""
QUALITY = 82
"""Quality of WebP, of 100: letters stay sharp, and a picture has less than 120 KB."""
MAXIMUM_BYTES = 120_000
PUBLIC_URL = "https://studio.example.org/"
CODE = "K7TF2QMX"
DAY = 1_790_000_000
"""Unix time of a day in September 2026."""
DESKTOP, PHONE, KEYBOARD = (1440, 900), (390, 844), (390, 460)
"""Sizes of windows in px; the last one is what a keyboard leaves of a phone."""
BEFORE = {
    project.BERTH: ("board.py",),
    project.FERRIES: ("check.sh", "test_board.py"),
    project.TICKET: ("release",),
}
"""Calls that are allowed before the question of a session."""
STEADY = r"""home => {
  const ages = ['12 s', '40 s', '2 min', '4 min', '6 min', '11 min', '26 min'];
  const rows = [...document.querySelectorAll('.inbox .item')];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const node = walk.currentNode, at = node.parentElement;
    if (at.closest('.out')) continue;
    let text = node.data.replaceAll(home, '~');
    if (at.closest('.pill.acc') && /^\s*waits\b/.test(text)) text = 'waits 12 s';
    else if (at.closest('.inbox .item time')) text = ages[rows.indexOf(at.closest('.item'))] ?? '1 h';
    else if (!at.closest('code, .prose'))
      text = text.replace(/\b\d+:\d\d:\d\d( [AP]M)?\b/g, '14:06:31').replace(/\b\d\d:\d\d\b/g, '14:06')
        .replace(/\bin \d s\b/, 'in 3 s').replace(/^(\s*turn \d+ \S )[\d:]+/, '$16:12')
        .replace(/^\d:\d\d$/, '0:12').replace(/127\.0\.0\.1:\d+(?= answers)/, '127.0.0.1:8080')
        .replace(/(\s\u00b7\s|^)(\d+ s|\d+ min|now)\s*$/, '$112 s')
        .replace(/127\.0\.0\.1:\d+\/ui\/question\/.*/, 'studio.example.org/ui/question/8c152890%2Fcall_5');
    if (text !== node.data) node.data = text;
  }
  const focused = document.activeElement;
  if (focused && !focused.matches('textarea, input')) focused.blur();
}"""
"""Function that replaces what is different each time: ages, times of day, and the folder of the example."""


@dataclass(frozen=True)
class Look:
    """A window: its theme and size."""

    scheme: str = "light"
    size: tuple[int, int] = DESKTOP

    @property
    def is_phone(self) -> bool:
        """Whether it is the window of a phone."""
        return self.size[0] == PHONE[0]

    def context(self, browser: "Browser", **options: Any) -> "BrowserContext":
        """Return a window of a browser."""
        return browser.new_context(
            viewport={"width": self.size[0], "height": self.size[1]},
            color_scheme="dark" if self.scheme == "dark" else "light",
            is_mobile=self.is_phone, has_touch=self.is_phone, reduced_motion="reduce", locale="en-GB",
            timezone_id="Europe/Lisbon", **options,
        )  # fmt: skip


class Drawer:
    """Writes what pages show as ``docs/pictures/workbench-NAME.webp``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.drawn: list[str] = []

    def draw(self, page: "Page", name: str) -> None:
        """Write a picture."""
        page.evaluate("document.fonts.ready")
        page.evaluate(STEADY, str(Path.home()))
        session: Any = page.context.new_cdp_session(page)
        shot = session.send("Page.captureScreenshot", {"format": "webp", "quality": QUALITY})
        self.write(name, base64.b64decode(shot["data"]))

    def write(self, name: str, data: bytes) -> None:
        """Write the bytes of a picture."""
        if len(data) > MAXIMUM_BYTES:
            raise SystemExit(f"{name}: expected at most {MAXIMUM_BYTES} bytes, got {len(data)}")
        path = self._folder / f"workbench-{name}.webp"
        path.write_bytes(data)
        self.drawn.append(name)
        sys.stdout.write(f"{path} {len(data)}\n")


@contextmanager
def proposed(companion: CompanionProgram, agent: str, files: "dict[Path, str]") -> Generator[None]:
    """Attach an agent to a companion that proposes contents for files, until it is left."""
    ready, over = threading.Event(), threading.Event()

    async def propose() -> None:
        headers = {"authorization": f"Bearer {companion.discovered['authToken']}"}
        async with plain_client(base_url=f"http://127.0.0.1:{companion.ready['port']}", headers=headers) as http:
            client = BareAgent(http)
            await client.initialize(name=agent)
            async with client.stream():
                for path, content in files.items():
                    arguments = {"filePath": str(path), "newContent": content}
                    await client.request("tools/call", {"name": "openDiff", "arguments": arguments})
                ready.set()
                await asyncio.to_thread(over.wait)

    thread = threading.Thread(target=lambda: asyncio.run(propose()))
    thread.start()
    try:
        if not ready.wait(60):
            raise SystemExit(f"expected that {agent} proposes an edit within 60 s")
        yield
    finally:
        over.set()
        thread.join()


def fix_devices(context: "BrowserContext") -> None:
    """Let a page have the same devices and the same code each time."""

    def answer(route: "Route", value: object) -> None:
        route.fulfill(json=value)

    link = entry_link(PUBLIC_URL, CODE)
    code = {"code": CODE, "seconds": 42, "link": link.url, "qr": None if link.qr is None else link.qr.as_lines()}
    until = DAY + 90 * 86_400
    devices: list[dict[str, object]] = [
        {"id": "1", "label": "Firefox on Linux", "paired": DAY, "used": DAY, "expires": until, "pairs": []},
        {"id": "2", "label": "Safari on iPhone", "paired": DAY, "used": DAY, "expires": until, "pairs": []},
    ]
    context.route("**/ui/api/codes", lambda route: answer(route, code))
    context.route("**/ui/api/devices", lambda route: answer(route, {"devices": devices, "this": "1"}))


class Scene:
    """A server whose sessions wait for answers, and a browser that is let in."""

    def __init__(self, browser: "Browser", served: Workbench) -> None:
        self._browser = browser
        self.served = served
        with served.let_in(browser) as context:
            self._stored: Any = context.storage_state()
            self.tasks = self._begin(context.new_page())

    def _begin(self, page: "Page") -> dict[str, str]:
        """Begin the sessions, and allow what went before their questions; return the task of each."""
        tasks: dict[str, str] = {}
        self.served.watch(page)
        for prompt in (project.BERTH, project.INDEX, project.TICKET, project.IMPORT, project.FERRIES):
            tasks[prompt] = self.served.begin(page, prompt)
            page.goto(self.address(f"task/{tasks[prompt]}"))
            for name in BEFORE.get(prompt, ()):
                expect(page.locator("isthmus-question", has_text=name)).to_be_visible()
                until_answers_count(page)
                page.locator("isthmus-question .primary").click()
            if prompt == project.BERTH:
                page.wait_for_selector("isthmus-task .head .st-done")
            elif prompt == project.FERRIES:
                expect(page.locator("isthmus-question", has_text="schedule.py")).to_be_visible()
            else:
                expect(page.locator(":is(isthmus-question, isthmus-form) .actions")).to_be_visible()
        return tasks

    def address(self, path: str = "") -> str:
        """Return the address of a page."""
        return f"{self.served.url}ui/{path}"

    @contextmanager
    def page(self, look: Look, path: str = "") -> Generator["Page"]:
        """Open a page at an address."""
        with look.context(self._browser, storage_state=self._stored) as context:
            fix_devices(context)
            page = self.served.watch(context.new_page())
            page.goto(self.address(path))
            page.wait_for_selector("nav", state="attached")
            yield page


def wait_for_diff(page: "Page") -> None:
    """Wait until the diff of the shown question is drawn and coloured, and may be answered."""
    page.locator("isthmus-diff .cm-line, isthmus-long .l").first.wait_for()
    until_answers_count(page)


def until_presses_count(page: "Page") -> None:
    """Wait until a form may be declined: it was on the screen long enough to be read."""
    decline = page.locator("isthmus-form").get_by_role("button", name="Decline")
    expect(decline).not_to_have_attribute("aria-disabled", "true")


def draw_session(scene: Scene, drawer: Drawer) -> None:
    """Draw the session with its question, and one whose connection is lost."""
    with scene.page(Look(), f"task/{scene.tasks[project.FERRIES]}") as page:
        wait_for_diff(page)
        drawer.draw(page, "session-light")


def draw_running(scene: Scene, drawer: Drawer) -> None:
    """Draw a session whose command runs, and the same one while its server is away."""
    output = "isthmus-task .live, isthmus-task isthmus-output"
    with scene.page(Look()) as page:
        task = scene.served.begin(page, project.SINCE)
        page.goto(scene.address(f"task/{task}"))
        until_answers_count(page)
        page.locator("isthmus-question .primary").click()
        page.locator(output).get_by_text("test_189").wait_for()
        drawer.draw(page, "task-light")
    with scene.page(Look("dark"), f"task/{task}") as page:
        page.locator(output).get_by_text("test_189").wait_for()
        page.fill("isthmus-prompt textarea", "Then note it in docs/timetable.md as well, one sentence")
        scene.served.end()
        page.locator(".lost-banner").get_by_text("Next try in").wait_for()
        drawer.draw(page, "reconnecting-dark")


def choose(page: "Page", what: str) -> None:
    """Choose a question of the inbox by its words."""
    page.locator(".item .cover", has_text=what).first.click()


def draw_inbox(scene: Scene, drawer: Drawer) -> None:
    """Draw the inbox, with a change, a form of the agent, and one of a server."""
    for scheme in ("light", "dark"):
        with scene.page(Look(scheme)) as page:
            choose(page, "schedule.py")
            wait_for_diff(page)
            drawer.draw(page, f"inbox-{scheme}")
    with scene.page(Look()) as page:
        choose(page, "Which zone")
        form = page.locator("isthmus-form")
        for label in ("The harbour's own zone", "Cais do Sodré", "Cacilhas", "Ponta Delgada", "Yes"):
            form.locator("label.opt", has_text=label).last.click()
        form.get_by_label("What is the report called?").fill("import-report.txt")
        until_presses_count(page)
        drawer.draw(page, "form-light")
        choose(page, "Which release")
        form.locator("label.opt", has_text="2.9").click()
        form.get_by_label("Note").fill("Needs the tide index first")
        form.get_by_label("Tell whom?").fill("you.harbour")
        form.locator("label.opt", has_text="No").last.click()
        until_presses_count(page)
        drawer.draw(page, "form-mcp-light")


def draw_review(scene: Scene, drawer: Drawer) -> None:
    """Draw the review of a long change of another agent."""
    for scheme in ("light", "dark"):
        with scene.page(Look(scheme)) as page:
            choose(page, "package-lock.json")
            page.locator("isthmus-review").get_by_text("package-lock.json").first.wait_for()
            page.locator("isthmus-review isthmus-diff .cm-line").first.wait_for()
            reject = page.locator("isthmus-review .actions button", has_text="Reject")
            expect(reject).not_to_have_attribute("aria-disabled", "true")
            drawer.draw(page, f"review-{scheme}")
    with scene.page(Look()) as page:
        choose(page, "package-lock.json")
        page.get_by_role("button", name="All 2 files").click()
        page.locator(".rail-files").wait_for()
        page.locator("isthmus-diff .cm-line").first.wait_for()
        drawer.draw(page, "review-files-light")


def draw_phone(scene: Scene, drawer: Drawer) -> None:
    """Draw what a phone shows: the inbox, a question with its menu and a keyboard, and forms."""
    look = Look("light", PHONE)
    with scene.page(look) as page:
        page.locator(".item .cover", has_text="schedule.py").wait_for()
        drawer.draw(page, "inbox-phone")
        page.locator(".item .cover", has_text="schedule.py").tap()
        wait_for_diff(page)
        drawer.draw(page, "question-phone")
        page.get_by_role("button", name="More answers and actions").tap()
        page.get_by_role("dialog").wait_for()
        drawer.draw(page, "question-phone-more")
        page.keyboard.press("Escape")
        page.get_by_role("button", name="Reject…").tap()
        page.locator("isthmus-reason textarea").fill("Keep the old signature")
        page.set_viewport_size({"width": KEYBOARD[0], "height": KEYBOARD[1]})
        drawer.draw(page, "question-phone-keyboard")
    with scene.page(look) as page:
        page.locator(".item .cover", has_text="package-lock.json").tap()
        page.locator("isthmus-review .cm-line").first.wait_for()
        drawer.draw(page, "review-phone")
    for what, name, answers in (
        ("Which zone", "form-phone", ("The harbour's own zone", "Cais do Sodré", "Cacilhas")),
        ("Which release", "form-mcp-phone", ("2.9", "No")),
    ):
        with scene.page(look) as page:
            page.locator(".item .cover", has_text=what).first.tap()
            form = page.locator("isthmus-form")
            for answer in answers:
                form.locator("label.opt", has_text=answer).last.click()
            if name == "form-mcp-phone":
                form.get_by_label("Note").fill("Needs the tide index first")
                form.get_by_label("Tell whom?").fill("you@harbour.example")
            until_presses_count(page)
            form.evaluate("form => { for (const part of form.querySelectorAll('*')) part.scrollTop = 0; }")
            drawer.draw(page, name)


def draw_devices(scene: Scene, drawer: Drawer, browser: "Browser") -> None:
    """Draw the page of devices with a code, and the door on a phone."""
    with scene.page(Look(), "devices") as page:
        page.get_by_role("button", name="Make a code").click()
        page.wait_for_selector("svg.qr")
        drawer.draw(page, "pairing-light")
    for scheme, name in (("light", "pairing-phone"), ("dark", "pairing-phone-dark")):
        with Look(scheme, PHONE).context(browser) as context:
            page = scene.served.watch(context.new_page())
            page.goto(scene.address())
            page.locator("input.code").press_sequentially("K7TF2Q")
            drawer.draw(page, name)


def draw_pages(scene: Scene, drawer: Drawer) -> None:
    """Draw the pages that show and do not ask."""
    with scene.page(Look("dark"), "history") as page:
        page.locator("isthmus-history .line").nth(4).wait_for()
        drawer.draw(page, "history-dark")
    with scene.page(Look(), "tools") as page:
        page.locator(".listing section").first.wait_for()
        drawer.draw(page, "servers-light")
    with scene.page(Look(), f"diff/{scene.tasks[project.BERTH]}") as page:
        page.locator("isthmus-session-diff .cm-line").first.wait_for()
        drawer.draw(page, "changes-light")


def draw_files(browser: "Browser", folder: Path, drawer: Drawer) -> None:
    """Draw the page of a companion that is itself the editor, with selected lines."""
    command = ("companion", "--editor", "web")
    with (
        companion_program(folder, "--open", "queries.py", command=command) as companion,
        Look().context(browser) as context,
    ):
        page = context.new_page()
        page.goto(str(companion.ready["page"]))
        page.wait_for_selector("nav")
        page.goto(str(companion.ready["page"]).partition("ui/")[0] + "ui/files")
        page.locator(".file .cover", has_text="queries.py").first.click()
        page.locator("isthmus-file .cm-line", has_text="ALL_TIDES = ").first.click()
        page.keyboard.press("Home")
        page.keyboard.press("Shift+End")
        page.wait_for_selector(".file-foot >> text=selected")
        drawer.draw(page, "files-light")


async def draw_after(folder: Path, drawer: Drawer) -> None:
    """Draw what an agent wrote without asking, with a hunk that is to go back."""
    command = ("companion", "--editor", "web", "--allow-agent-accept")
    with companion_program(folder, command=command) as companion:
        user = User(companion)
        async with watching_agent(companion), chromium_beside() as browser:
            for title, files in project.WRITTEN:
                await user.ask("written_turn", agent="Claude Code", title=title)
                for name, text in files.items():
                    (folder / name).write_text(text, "utf-8")
                await user.listed()
            page = await browser.new_page(viewport={"width": 1440, "height": 900}, reduced_motion="reduce")
            await page.goto(str(companion.ready["page"]))
            await page.locator("a.cover", has_text="Claude Code wrote").click()
            await page.locator(".turns .item .cover, .turns .item button", has_text="Let the query").first.click()
            await page.locator(".both.hunk").nth(2).wait_for()
            await page.locator(".l .c-key").first.wait_for()
            await page.locator(".both.hunk").nth(0).get_by_role("button", name="Keep").click()
            await page.locator(".both.hunk").nth(1).get_by_role("button", name="Undo").click()
            await page.locator(".written .primary:not([aria-disabled=true])").wait_for()
            await page.evaluate(STEADY, str(Path.home()))
            session: Any = await page.context.new_cdp_session(page)
            shot = await session.send("Page.captureScreenshot", {"format": "webp", "quality": QUALITY})
            drawer.write("after-light", base64.b64decode(shot["data"]))


def write_project(folder: Path) -> None:
    """Write the files of the project."""
    for name, text in {
        "src/harbour/schedule.py": project.SCHEDULE,
        "queries.py": project.QUERIES,
        "board.py": project.BOARD,
        "check.sh": project.CHECK,
        "run.sh": project.RUN,
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")


def draw_all(home: Path, drawer: Drawer) -> None:
    """Start the servers in a folder of their own, and draw every picture."""
    work, other = home / "work" / "harbour", home / "work" / "harbour-web"
    write_project(work)
    other.mkdir()
    (other / "package-lock.json").write_text(project.LOCK, "utf-8")
    (other / "package.json").write_text(project.PACKAGE, "utf-8")
    server = {"command": sys.executable, "args": [str(ASKING), str(home / "log")], "trust": True}
    (home / "log").touch()
    (home / "mcp.json").write_text(json.dumps({"mcpServers": {"tickets": server}}), "utf-8")
    with chromium() as browser, ExitStack() as stack:
        companion = stack.enter_context(companion_program(other))
        served = stack.enter_context(workbench(home, work, project.SCRIPT, "--mcp-config", str(home / "mcp.json")))
        changes = {
            other / "package.json": project.PACKAGE.replace("7.1.2", "7.1.4"),
            other / "package-lock.json": project.LOCK_CHANGED,
        }
        stack.enter_context(proposed(companion, "streamable-http-client", changes))
        scene = Scene(browser, served)
        draw_inbox(scene, drawer)
        draw_session(scene, drawer)
        draw_review(scene, drawer)
        draw_phone(scene, drawer)
        draw_devices(scene, drawer, browser)
        draw_pages(scene, drawer)
        draw_running(scene, drawer)
    with chromium() as browser:
        draw_files(browser, work, drawer)
    asyncio.run(draw_after(work, drawer))


def main() -> None:
    """Draw all pictures, into the folder that is given or into the documents."""
    drawer = Drawer(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else PICTURES)
    with tempfile.TemporaryDirectory(prefix="pictures-") as name:
        os.environ.update({"HOME": name, "XDG_RUNTIME_DIR": name, "TMPDIR": name})
        draw_all(Path(name), drawer)
    if sorted(drawer.drawn) != sorted(NAMES):
        raise SystemExit(f"expected the pictures {sorted(NAMES)}, drew {sorted(drawer.drawn)}")


if __name__ == "__main__":
    main()
