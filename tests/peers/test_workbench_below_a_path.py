"""The workbench of a server whose public address has a path, in a real browser, behind proxies of both kinds."""

from collections.abc import Generator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from support.extended import first_of
from support.path_proxy import PathProxy, path_proxy
from support.workbench import Workbench, answer_by, desktop, until_answers_count, workbench

PATH = "/team/agent"
SCRIPT = """
name: practice
scenarios:
  - prompt: write
    replies:
      - call: {name: write_file, arguments: {file_path: new.txt, instruction: Write it, content: "new\\n"}}
      - text: I wrote it.
  - prompt: '.'
    replies:
      - text: 'You said: {{prompt}}'
"""


@pytest.fixture(params=first_of([True, False], ids=["removed", "passed-on"]))
def proxy(request: pytest.FixtureRequest) -> Generator[PathProxy]:
    with path_proxy(PATH, removes_path=request.param) as found:
        yield found


@pytest.fixture
def served(proxy: PathProxy, tmp_path: Path, workspace: Path) -> Generator[Workbench]:
    arguments = ("--public-url", proxy.url, "--workspace", str(workspace))
    with workbench(tmp_path, workspace, SCRIPT, *arguments, command=("serve", "--ui")) as found:
        proxy.target = found.port
        yield found


def files_of(page: Page) -> list[str]:
    """Return the paths of what a page has loaded."""
    return page.evaluate("performance.getEntriesByType('resource').map((each) => new URL(each.name).pathname)")


def test_the_page_is_below_the_path_with_all_that_it_loads(
    browser: Browser, served: Workbench, proxy: PathProxy
) -> None:
    assert served.url == proxy.url
    with desktop(browser) as context:
        page = served.enter(context)
        assert page.url == f"{proxy.url}ui/"
        served.prompt(page, "write it")
        expect(page.locator("isthmus-question .primary")).to_be_visible()
        until_answers_count(page)
        answer_by(page, "1")
        expect(page.locator("isthmus-task")).to_contain_text("I wrote it.")
        assert page.url.startswith(f"{proxy.url}ui/session/")
        page.reload()
        expect(page.locator("isthmus-task")).to_contain_text("I wrote it.")
        page.get_by_role("link", name="Devices").click()
        assert page.url == f"{proxy.url}ui/devices"
        assert [path for path in files_of(page) if not path.startswith(f"{PATH}/")] == []
        for name in ("sw.js", "manifest.webmanifest", "icon-192.png"):
            assert page.request.get(f"{proxy.url}ui/{name}").status == 200
        opened = page.request.get(proxy.url)
        assert opened.url == f"{proxy.url}ui/"
    assert (served.workspace / "new.txt").read_text("utf-8") == "new\n"


def test_the_page_works_without_the_proxy_too(browser: Browser, served: Workbench) -> None:
    direct = f"http://127.0.0.1:{served.port}"
    with desktop(browser) as context:
        page = served.watch(context.new_page())
        page.goto(f"{direct}/ui/#{served.link.partition('#')[2]}")
        page.wait_for_selector("nav")
        assert page.url == f"{direct}{PATH}/ui/"
        page.click("nav >> text=New session >> visible=true")
        assert page.url == f"{direct}{PATH}/ui/new"
        page.reload()
        page.wait_for_selector("isthmus-new textarea")
