"""The workbench as a program on devices, in a real browser: its service worker, pairing, notifications, own pages."""

import json
import re
import shutil
import signal
from collections.abc import Generator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from isthmus.web.bundle import read_bundle
from support.workbench import Workbench, chromium, desktop, workbench

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
from isthmus.web import bundle
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


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    with chromium() as found:
        yield found


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
        served.end(signal.SIGKILL)
        page.reload()
        expect(page.get_by_role("status")).to_contain_text("The server was not reached")
        port = int(served.url.rstrip("/").rpartition(":")[2])
        served.start(port)
        page.wait_for_selector("nav")


def test_a_newer_server_is_never_met_by_an_old_page(browser: Browser, served: Workbench, tmp_path: Path) -> None:
    newer = tmp_path / "newer"
    built = Path(read_bundle.__code__.co_filename).parent / "ui"
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
        page.wait_for_selector("footer >> text=No connection")
        served.start(port)
        page.get_by_role("button", name="The server has a newer page").click()
        page.wait_for_selector("nav")
        script = page.locator("script[type=module]").get_attribute("src")
        assert script == f"/ui/assets/{renamed.name}"
