"""Web pages of other origins as clients, in a real browser: those that the owner names, and those that nobody names."""

import threading
from collections.abc import Generator
from contextlib import ExitStack
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from playwright.sync_api import Browser, Page
from typing_extensions import override

from isthmus.a2a.token_file import TOKEN_FILE
from isthmus.development_tool import EXTENSION_URI
from support.workbench import Workbench

SCRIPT = """
name: practice
scenarios:
  - prompt: '.'
    replies:
      - text: 'You said: {{prompt}}'
"""
CLIENT = """
async ({ url, token, workspace, extension, credentials }) => {
  const headers = {
    Authorization: `Bearer ${token}`, "Content-Type": "application/json", "A2A-Version": "1.0",
    "A2A-Extensions": extension, "X-A2A-Extensions": extension,
  };
  const call = (method, more = {}) => fetch(url, {
    method: "POST", headers: { ...headers, ...more }, credentials,
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: { message: {
      role: "ROLE_USER", messageId: crypto.randomUUID(), parts: [{ text: "hello" }],
      metadata: { [extension]: { workspace_path: workspace } },
    } } }),
  });
  const tried = async (step) => { try { return await step(); } catch (error) { return String(error); } };
  return {
    card: await tried(async () => (await (await fetch(`${url}.well-known/agent-card.json`)).json()).name),
    sent: await tried(async () => {
      const answer = await call("SendMessage");
      return [(await answer.json()).result.task.status.state, answer.headers.get("A2A-Extensions")];
    }),
    stream: await tried(async () => {
      const text = await (await call("SendStreamingMessage", { Accept: "text/event-stream" })).text();
      return text.split("\\n\\n").filter((frame) => frame.includes("COMPLETED")).length;
    }),
    rest: await tried(async () => (await fetch(`${url}tasks`, { headers, credentials })).status),
    page: await tried(async () => (await fetch(`${url}ui/api/session`, { headers, credentials })).status),
  };
}
"""
FAILED = "TypeError: Failed to fetch"


class Empty(BaseHTTPRequestHandler):
    """An empty page, which may set a cookie: cookies are for a name, whatever the port is."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Set-Cookie", "session=1; Path=/")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>An app</title>")

    @override
    def log_message(self, format: str, *args: object) -> None: ...


@dataclass(frozen=True, slots=True)
class Apps:
    """A served agent, and the origins of two other servers, of which it names one."""

    served: Workbench
    named: str
    other: str

    def client(self, page: Page, credentials: str = "same-origin") -> dict[str, Any]:
        """Let a page be a client; return what it got."""
        token = (self.served.folder / "data" / TOKEN_FILE).read_text("utf-8").strip()
        given = {"url": self.served.url, "token": token, "workspace": str(self.served.workspace)}
        return page.evaluate(CLIENT, {**given, "extension": EXTENSION_URI, "credentials": credentials})


@pytest.fixture(scope="module")
def apps(tmp_path_factory: pytest.TempPathFactory) -> Generator[Apps]:
    folder = tmp_path_factory.mktemp("served")
    workspace = tmp_path_factory.mktemp("workspace")
    with ExitStack() as stack:
        origins: list[str] = []
        for _ in range(2):
            server = stack.enter_context(ThreadingHTTPServer(("127.0.0.1", 0), Empty))
            threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
            stack.callback(server.shutdown)
            origins.append(f"http://127.0.0.1:{server.server_address[1]}")
        (folder / "script.yaml").write_text(SCRIPT, "utf-8")
        arguments = ("--allow-origin", origins[0], "--workspace", str(workspace))
        served = Workbench(workspace, folder, arguments, command=("serve", "--ui"))
        served.start()
        stack.callback(served.end)
        yield Apps(served, *origins)


@pytest.fixture
def page(browser: Browser) -> Generator[Page]:
    with browser.new_context() as context:
        yield context.new_page()


def test_a_page_of_a_named_origin_is_a_client_but_of_a2a_alone(apps: Apps, page: Page) -> None:
    page.goto(apps.named)
    assert apps.client(page) == {
        "card": "Isthmus",
        "sent": ["TASK_STATE_COMPLETED", EXTENSION_URI],
        "stream": 1,
        "rest": 200,
        "page": FAILED,
    }


def test_a_page_of_another_origin_reads_the_card_and_nothing_else(apps: Apps, page: Page) -> None:
    page.goto(apps.other)
    assert apps.client(page) == {"card": "Isthmus", "sent": FAILED, "stream": FAILED, "rest": FAILED, "page": FAILED}


def test_with_cookies_a_page_of_a_named_origin_gets_nothing(apps: Apps, page: Page) -> None:
    page.goto(apps.named)
    assert page.context.cookies(apps.served.url)
    found = apps.client(page, "include")
    assert found == {"card": "Isthmus", "sent": FAILED, "stream": FAILED, "rest": FAILED, "page": FAILED}
