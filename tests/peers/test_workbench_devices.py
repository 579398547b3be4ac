"""The workbench as a program on devices, in a real browser: its service worker, pairing, notifications, own pages."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import psutil
import pytest
from playwright.sync_api import Browser, Page, expect

from isthmus.web.http.bundle import read_bundle
from isthmus.web.pairing.links import is_reachable
from support.mcp_hosting import scripted, write_servers
from support.pty_program import PtyProgram, pty_program
from support.qr_reader import read_qr
from support.waiting import eventually
from support.workbench import Workbench, desktop, phone, workbench

SECONDS = 30.0
EVERYWHERE = "0.0.0.0"  # noqa: S104 - a page is secure on loopback, and this test wants one that is not
EDIT = {"file_path": "code.py", "instruction": "Say hello", "old_string": "hi", "new_string": "hello"}
SCRIPT = json.dumps(
    {
        "name": "practice",
        "scenarios": [
            {"prompt": "change", "replies": [{"call": {"name": "replace", "arguments": EDIT}}, {"text": "Changed."}]},
            {"prompt": ".", "replies": [{"text": "You said: {{prompt}}"}]},
        ],
    }
)
WITH_PAGE_OF = """
import functools, sys
from pathlib import Path
from isthmus.web.http import bundle
bundle.read_bundle = functools.partial(bundle.read_bundle, Path(sys.argv.pop(1)))
from isthmus.__main__ import main
main()
"""
CACHED = """
async () => {
  const found = [];
  for (const name of await caches.keys()) {
    const cache = await caches.open(name);
    for (const request of await cache.keys()) {
      const answer = await cache.match(request);
      found.push([new URL(request.url).pathname, request.url + await answer.text()]);
    }
  }
  return found;
}
"""


@pytest.fixture
def served(tmp_path: Path, workspace: Path) -> Generator[Workbench]:
    (workspace / "code.py").write_text('print("hi")\n', "utf-8")
    with workbench(tmp_path, workspace, SCRIPT) as found:
        yield found


def wait_for_worker(page: Page) -> None:
    """Wait until the page's service worker has kept the shell."""
    page.evaluate("navigator.serviceWorker.ready")


def test_only_the_shell_is_kept_and_it_opens_without_a_server(browser: Browser, served: Workbench) -> None:
    with desktop(browser) as context:
        page = served.enter(context)
        wait_for_worker(page)
        page.reload()  # now the worker sees all requests
        served.prompt(page, "secret words")
        page.wait_for_selector("text=You said")
        token = page.evaluate("localStorage.getItem('isthmus.token')")
        kept = page.evaluate(CACHED)
        assert {re.sub(r"-[\w-]{8}\.", ".", path) for path, _ in kept} >= {"/ui/", "/ui/assets/index.js"}
        for path, text in kept:
            assert path == "/ui/" or path.startswith("/ui/assets/"), path
            assert token not in text
            assert "code=" not in text or path != "/ui/"
            assert "secret words" not in text
        # The server was announced: a code for it needs no address, and on loopback alone the way out of it is said.
        pair = [sys.executable, "-m", "isthmus", "serve", "pair", "--data-dir", str(served.folder / "data")]
        said = subprocess.run(pair, capture_output=True, text=True, check=True).stdout
        assert re.match(r"Code: [A-Z2-9]{4} [A-Z2-9]{4}\n", said)
        assert "Other devices do not reach this address" in said
        assert "\u2588" not in said
        served.end(signal.SIGKILL)
        page.reload()
        expect(page.get_by_role("status")).to_contain_text("The server cannot be reached. Try again.")


@pytest.mark.extended
def test_a_newer_server_is_never_met_by_an_old_page(browser: Browser, served: Workbench, tmp_path: Path) -> None:
    newer = tmp_path / "newer"
    built = Path(read_bundle.__code__.co_filename).parents[1] / "ui"
    shutil.copytree(built, newer)
    [entry] = newer.glob("assets/index-*.js")
    renamed = entry.with_name("index-NEWNEWNE.js")
    entry.rename(renamed)
    for file in (newer / "index.html", newer / "sw.js"):
        text = file.read_text("utf-8").replace(entry.name, renamed.name)
        file.write_text(re.sub(r"isthmus-shell-\w+", "isthmus-shell-newer", text), "utf-8")
    with desktop(browser) as context:
        page = served.enter(context)
        wait_for_worker(page)
        page.reload()
        page.wait_for_selector("nav")
        served.program = ("-c", WITH_PAGE_OF, str(newer))
        port = int(served.url.rstrip("/").rpartition(":")[2])
        served.end()
        page.wait_for_selector("footer >> text=Reconnecting")
        served.start(port)
        page.get_by_role("button", name="A newer version of this page is available").click()
        page.wait_for_selector("nav")
        script = page.locator("script[type=module]").get_attribute("src")
        assert script == f"/ui/assets/{renamed.name}"


def qr_on(screen: PtyProgram) -> str:
    """Return the text of the QR code that a terminal shows: a condition to wait on."""
    lines = screen.screen.splitlines()
    drawn = [line for line in lines if line.strip(" \u2580\u2584\u2588") == "" and line.strip()]
    rows = [[int(mark in marks) for mark in line] for line in drawn for marks in ("\u2580\u2588", "\u2584\u2588")]
    assert rows, screen.screen
    width = max(map(len, rows))
    left = min(row.index(1) for row in rows if 1 in row)
    whole = [[*row, *[0] * (width - len(row))][left:] for row in rows]
    size = width - left
    assert len(whole) >= size, screen.screen
    return read_qr(whole[:size])


def test_a_phone_enters_by_the_code_in_the_terminal_over_plain_http(
    browser: Browser, tmp_path: Path, workspace: Path
) -> None:
    addresses = [entry.address for entries in psutil.net_if_addrs().values() for entry in entries]
    if not any(is_reachable(f"http://{address}/") for address in addresses if address.count(".") == 3):
        pytest.skip("this machine has no address but loopback")
    (tmp_path / "script.yaml").write_text(SCRIPT, "utf-8")
    environment = {**os.environ, "TERM": "xterm-256color", "LANG": "C.UTF-8"}
    isthmus, data = [sys.executable, "-m", "isthmus"], ("--data-dir", str(tmp_path / "data"))
    serve = [
        *isthmus, "serve", "--ui", "--host", EVERYWHERE, "--insecure-http", "--workspace", str(workspace), *data,
        "-m", f"scripted:{tmp_path / 'script.yaml'}", "--no-ide", "--log-level", "warning",
    ]  # fmt: skip
    with pty_program(serve, folder=workspace, environment=environment, columns=110, rows=60) as terminal:
        link = eventually(lambda: qr_on(terminal), SECONDS, what="a QR code")
        assert link in terminal.screen.replace("\n", "")
        with phone(browser) as context:
            page = context.new_page()
            page.goto(link)
            page.wait_for_selector("nav")
            assert "code=" not in page.url
            page.goto(page.url.replace("/ui/", "/ui/devices"))
            expect(page.locator("[data-part=not-secure]")).to_contain_text("only over https")
            assert page.evaluate("document.documentElement.scrollWidth") <= 390
            page.get_by_role("button", name="Make a code").tap()
            expect(page.locator("svg.qr")).to_be_visible()
            base = link.partition("ui/")[0]
            pair = [*isthmus, "serve", "pair", "--url", base, *data]
            with pty_program(pair, folder=workspace, environment=environment, columns=110, rows=40) as other:
                second = eventually(lambda: qr_on(other), SECONDS, what="a QR code")
            assert second.startswith(f"{base}ui/#code=")
            with desktop(browser) as at_desk:
                desk = at_desk.new_page()
                desk.goto(second)
                desk.wait_for_selector("nav")
        listed = subprocess.run([*isthmus, "serve", "token", "list", *data], capture_output=True, text=True, check=True)
        assert "device Chrome on" in listed.stdout
        assert listed.stdout.count("(you)") == 2


def test_servers_are_shown_and_switched_and_settings_name_their_files(
    browser: Browser, tmp_path: Path, workspace: Path
) -> None:
    write_servers(Path.home(), {"shop": scripted("plain"), "broken": {"command": "/no/such", "env": {"KEY": "s3cret"}}})
    with workbench(tmp_path, workspace, SCRIPT) as served, desktop(browser) as context:
        page = served.enter(context)
        page.keyboard.press("g")
        page.keyboard.press("s")
        shop, broken = page.locator("li.server", has_text="shop"), page.locator("li.server", has_text="broken")
        expect(shop.locator(".pill")).to_have_text("connected")
        expect(broken).to_contain_text("the program '/no/such' was not found")
        shop.locator("summary").click()
        expect(shop.locator("dt").first).to_be_visible()
        shop.get_by_role("button", name="Disable shop").click()
        page.wait_for_selector("isthmus-task .head .st-done")
        page.click("nav >> text=Servers")
        expect(shop.locator(".pill")).to_have_text("switched off")
        expect(shop.get_by_role("button", name="Enable shop")).to_be_visible()
        page.click("nav >> text=Settings")
        row = page.locator("tbody tr", has_text="mcpServers")
        expect(row).to_contain_text("{shop, broken}")
        expect(row).to_contain_text(str(Path.home() / ".gemini" / "settings.json"))
        assert "s3cret" not in page.content()
