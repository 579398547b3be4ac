"""The workbench in a real browser: ``isthmus web`` as a process of its own, with a scripted model, and Chromium."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

import httpx
from playwright.async_api import Browser as AsyncBrowser
from playwright.async_api import Page as AsyncPage
from playwright.async_api import async_playwright, expect
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright
from playwright.sync_api import expect as expect_now

from isthmus.a2a.token_file import TOKEN_FILE
from isthmus.development_tool import EXTENSION_URI
from support.loaded_program import LoadedProcess, shared_program

ROOT = Path(__file__).parents[2]
UNPACKED = ROOT / ".cache" / "chromium"
"""Folder of the Chromium that ``make peers`` unpacks from an npm package: without windows, and quicker for it."""
SECONDS = 60
"""Maximum seconds for any step in a page: agents start slowly on a busy machine."""
_ENDED = {f"TASK_STATE_{name}" for name in ("COMPLETED", "CANCELED", "FAILED", "REJECTED")}
DESKTOP, PHONE = (1440, 900), (390, 844)
ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--force-prefers-reduced-motion",
)  # fmt: skip


@dataclass
class Workbench:
    """A server with its page. ``link`` lets one browser in; ``problems`` are what browsers reported as errors."""

    workspace: Path
    folder: Path
    arguments: Sequence[str] = ()
    process: "subprocess.Popen[bytes] | LoadedProcess | None" = None
    link: str = ""
    port: int = 0
    """Port that the server listens on."""
    problems: list[str] = field(default_factory=list[str])
    program: Sequence[str] = ()
    """Arguments of Python that run Isthmus; without any it is a copy of the process that has loaded it."""
    command: Sequence[str] = ("web", "--no-open")
    editor: Sequence[str] = ("--no-ide",)
    """Arguments about the editor of the user."""
    _output: TextIO | None = None
    _token: str = ""
    """Token of the browser that was let in for :meth:`let_in`."""

    @property
    def url(self) -> str:
        """The server's URL, with a final slash."""
        return self.link.partition("ui/")[0]

    def start(self, port: int = 0) -> None:
        """Start the server, and wait until it is ready."""
        arguments = [
            *(*self.command, *self.editor, "--port", str(port), "--data-dir", str(self.folder / "data")),
            *("-m", f"scripted:{self.folder / 'script.yaml'}", *self.arguments),
        ]
        folder = self.workspace
        inner, outer = os.pipe()
        self._output = os.fdopen(inner, encoding="utf-8")
        with (
            (self.folder / "web.log").open("ab") as log,
            Path(os.devnull).open("rb") as none,
            os.fdopen(outer, "wb") as output,
        ):
            streams = (none.fileno(), output.fileno(), log.fileno())
            if self.program:
                self.process = subprocess.Popen(
                    [sys.executable, *self.program, *arguments], stdin=none, stdout=output, stderr=log, cwd=folder
                )
            else:
                self.process = shared_program().start(
                    *arguments, streams=streams, folder=folder, environment=os.environ
                )
        for line in self._output:
            if (ready := re.search(r"ready at http\S+:(\d+)/", line)) is not None:
                self.port = int(ready[1])
            if (found := re.search(r"http\S+#code=\S+", line)) is not None:
                self.link = found[0]
                return
        raise AssertionError((self.folder / "web.log").read_text("utf-8"))

    def end(self, number: int = signal.SIGTERM) -> None:
        """Send a signal, and wait for the end."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(number)
        self.process.wait(30)
        if self._output is not None and not self._output.closed:
            self._output.close()
            if isinstance(self.process, LoadedProcess):
                self.process.close()

    def restart(self, number: int) -> None:
        """End the server by a signal, and start it again at the same port."""
        port = int(self.url.rstrip("/").rpartition(":")[2])
        link = self.link
        self.end(number)
        self.start(port)
        assert self.url == link.partition("ui/")[0]

    def watch(self, page: Page) -> Page:
        """Note the errors of a page: in its scripts, and what its content policy refused."""
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("console", lambda line: self.problems.append(line.text) if _is_problem(line.text) else None)
        page.set_default_timeout(1000 * SECONDS)
        return page

    def enter(self, context: BrowserContext) -> Page:
        """Return a page that was let in by the link."""
        page = self.watch(context.new_page())
        page.goto(self.link)
        page.wait_for_selector("nav")
        return page

    def let_in(self, browser: Browser) -> BrowserContext:
        """Return a context on a desktop that is let in already; the link is used once for all of them."""
        if not self._token:
            with browser.new_context() as context:
                self._token = str(self.enter(context).evaluate("localStorage.getItem('isthmus.token')"))
        entry: Any = {"name": "isthmus.token", "value": self._token}
        stored: Any = {"cookies": [], "origins": [{"origin": self.url.rstrip("/"), "localStorage": [entry]}]}
        return browser.new_context(viewport={"width": DESKTOP[0], "height": DESKTOP[1]}, storage_state=stored)

    def watched(self, context: BrowserContext) -> Page:
        """Return a new page at the inbox, in a context that is let in."""
        page = self.watch(context.new_page())
        page.goto(f"{self.url}ui/")
        page.wait_for_selector("nav")
        return page

    def cancel_tasks(self) -> None:
        """Cancel all tasks that work or wait, so that the next test finds none."""
        token = (self.folder / "data" / TOKEN_FILE).read_text("utf-8").strip()
        headers = {"Authorization": f"Bearer {token}", "A2A-Version": "1.0"}
        with httpx.Client(base_url=self.url, headers=headers, timeout=SECONDS) as client:
            for task in client.get("tasks", params={"pageSize": 100}).json()["tasks"]:
                if task["status"]["state"] not in _ENDED:
                    answer = client.post(f"tasks/{task['id']}:cancel")
                    assert answer.is_success or "TASK_NOT_CANCELABLE" in answer.text, answer.text  # it may have ended

    def begin(self, page: Page, text: str, *files: Mapping[str, str]) -> str:
        """Begin a task from elsewhere, with files as parts of its message; return its id."""
        url, body, headers = self._beginning(text, *files)
        sent = page.request.post(url, data=body, headers=headers)
        assert sent.status == 200, sent.text()
        return str(sent.json()["task"]["id"])

    def begin_now(self, text: str) -> None:
        """Begin a task from elsewhere, where no browser of Playwright is."""
        url, body, headers = self._beginning(text)
        httpx.post(url, json=body, headers=headers, timeout=SECONDS).raise_for_status()

    def _beginning(self, text: str, *files: Mapping[str, str]) -> tuple[str, dict[str, Any], dict[str, str]]:
        """Return the URL, the body and the headers of a request that begins a task."""
        secret = (self.folder / "data" / TOKEN_FILE).read_text("utf-8").strip()
        message = {
            "messageId": f"m-{text}", "role": "ROLE_USER", "parts": [{"text": text}, *files],
            "metadata": {EXTENSION_URI: {"workspace_path": str(self.workspace)}},
        }  # fmt: skip
        headers = {"Authorization": f"Bearer {secret}", "A2A-Version": "1.0", "A2A-Extensions": EXTENSION_URI}
        return f"{self.url}message:send", {"configuration": {"returnImmediately": True}, "message": message}, headers

    def prompt(self, page: Page, text: str) -> None:
        """Begin a task."""
        page.goto(f"{self.url}ui/new")
        page.fill("isthmus-new textarea", text)
        page.press("isthmus-new textarea", "Enter")
        page.wait_for_selector("isthmus-task .said")


@contextmanager
def workbench(
    folder: Path, workspace: Path, script: str, *arguments: str, command: Sequence[str] = ("web", "--no-open")
) -> Generator[Workbench]:
    """Start a server for ``workspace`` with its script and data in ``folder``."""
    (folder / "script.yaml").write_text(script, "utf-8")
    served = Workbench(workspace, folder, arguments, command=command)
    served.start()
    try:
        yield served
        assert served.problems == [], served.problems
    finally:
        served.end(signal.SIGKILL)


@contextmanager
def chromium(*, is_whole: bool = False) -> Generator[Browser]:
    """Start a headless Chromium: the one that ``make peers`` has unpacked, or one on the PATH.

    With ``is_whole`` the one on the PATH comes first: the unpacked one shows no notifications.
    """
    check_page()
    program, environment = _program(is_whole=is_whole)
    expect_now.set_options(timeout=1000 * SECONDS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=[*ARGUMENTS], env={**environment})
        try:
            yield browser
        finally:
            browser.close()


@asynccontextmanager
async def chromium_beside() -> AsyncGenerator[AsyncBrowser]:
    """Start the Chromium of :func:`chromium` for a test that has an event loop of its own."""
    check_page()
    program, environment = _program()
    expect.set_options(timeout=1000 * SECONDS)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=[*ARGUMENTS], env={**environment})
        try:
            yield browser
        finally:
            await browser.close()


def check_page() -> None:
    """Fail if the built page is missing or older than its sources: tests of it would only run out of time."""
    sources = [
        path for place in ("*.*", "src/**/*", "public/**/*", "languages/*") for path in (ROOT / "frontend").glob(place)
    ]
    built = ROOT / "src" / "isthmus" / "web" / "ui" / "index.html"
    newest = max(path.stat().st_mtime for path in sources if path.is_file())
    assert built.exists(), "the page of the workbench is not built; run: make frontend"
    assert built.stat().st_mtime >= newest, "the page of the workbench is older than its sources; run: make frontend"


def whole_chromium() -> str | None:
    """Return the browser on the PATH, which has windows and notifications; None if there is none."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def _program(*, is_whole: bool = False) -> tuple[str, dict[str, str]]:
    """Return the browser and its environment: the unpacked one, which takes half of the time of a whole browser."""
    environment = dict(os.environ)
    found = whole_chromium()
    if (unpacked := UNPACKED / "chromium").exists() and not (is_whole and found):
        environment["LD_LIBRARY_PATH"] = str(UNPACKED / "al2023" / "lib")
        return str(unpacked), environment
    assert found is not None, "expected the Chromium that `make peers` unpacks, or one on the PATH"
    return found, environment


PAUSE_MS = 500
"""Pause in milliseconds without other letters after which a letter is an answer."""


def answer_by(page: Page, key: str) -> None:
    """Press the key of an answer after a pause: letters that follow others closely are none."""
    pause_keys(page)
    page.keyboard.press(key)


def pause_keys(page: Page) -> None:
    """Press no key until the next one counts as meant."""
    page.wait_for_timeout(PAUSE_MS)  # delay: the page counts a letter as meant only after a pause


async def answer_beside(page: AsyncPage, key: str) -> None:
    """Press the key of an answer as :func:`answer_by` does."""
    await page.wait_for_timeout(PAUSE_MS)  # delay: the page counts a letter as meant only after a pause
    await page.keyboard.press(key)


def show_new(page: Page) -> None:
    """Show the questions that came since the list was drawn; waits until there is one."""
    page.locator(".inbox .new").click()


def until_answers_count(page: Page) -> None:
    """Wait until an answer to the shown question counts: it was on the screen long enough to be read."""
    card = ":is(isthmus-question, isthmus-form)"
    expect_now(page.locator(f"{card} .primary:not([disabled], [aria-disabled])")).to_be_visible()


def desktop(browser: Browser) -> BrowserContext:
    return browser.new_context(viewport={"width": DESKTOP[0], "height": DESKTOP[1]})


def phone(browser: Browser) -> BrowserContext:
    return browser.new_context(
        viewport={"width": PHONE[0], "height": PHONE[1]}, has_touch=True, is_mobile=True, color_scheme="dark"
    )


def _is_problem(text: str) -> bool:
    # The network is cut on purpose; what the content policy refuses is never on purpose.
    return "Content Security Policy" in text or "Refused to" in text
