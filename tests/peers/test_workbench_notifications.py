"""Notifications of the workbench in a real browser, on a device that wants them: what is sent, shown and pressed."""

import json
import signal
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from support.push_reader import BrowserKeys
from support.waiting import eventually
from support.wire_server import Answer, WireServer
from support.workbench import Workbench, chromium, desktop, whole_chromium

SECONDS = 30.0
EDIT = {"file_path": "code.py", "instruction": "Say hello", "old_string": "hi", "new_string": "hello"}
RUN = {"command": "touch allowed.txt"}
SCRIPT = json.dumps(
    {
        "name": "practice",
        "scenarios": [
            {"prompt": "change", "replies": [{"call": {"name": "replace", "arguments": EDIT}}, {"text": "Changed."}]},
            {"prompt": "run", "replies": [{"call": {"name": "run_shell_command", "arguments": RUN}}, {"text": "Ran."}]},
        ],
    }
)
SUBSCRIBED = """
subscription => {
  PushManager.prototype.getSubscription = async () => null;
  PushManager.prototype.subscribe = async options => ({
    toJSON: () => ({ endpoint: subscription.endpoint, keys: subscription, key: options.applicationServerKey }),
  });
}
"""
SHOWN = """
self.registration.getNotifications().then(all => all.map(each =>
  ({ title: each.title, body: each.body, actions: each.actions.map(one => one.action) })))
"""
PRESSED = """
async action => {
  const [shown] = await self.registration.getNotifications();
  const event = new ExtendableEvent("notificationclick");
  Object.defineProperty(event, "notification", { value: shown });
  Object.defineProperty(event, "action", { value: action });
  self.dispatchEvent(event);
}
"""
KEPT_HERE = """
() => {
  if (self.kept) return;
  self.kept = new Map();
  ServiceWorkerRegistration.prototype.getNotifications = async () => [...self.kept.values()];
  ServiceWorkerRegistration.prototype.showNotification = async (title, options) => {
    self.kept.set(options.tag, { title, ...options, close: () => self.kept.delete(options.tag) });
  };
}
"""
"""Keeps notifications in the service worker: a browser without windows has no other place for them."""


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    """Return a browser that shows notifications where there is one, for all tests of this file."""
    with chromium(is_whole=True) as found:
        yield found


def deliver(
    context: BrowserContext, page: Page, origin: str, text: str, is_shown: Callable[[list[dict[str, Any]]], bool]
) -> list[dict[str, Any]]:
    """Give a message to the service worker of a page, as the browser does after it was decrypted, and return SHOWN.

    The debugging protocol loses the message if the worker is starting just then, so it is given again after a while; a
    notification takes the place of the one before, because both have the same tag.
    """
    client: Any = context.new_cdp_session(page)  # the types of its arguments are unknown
    registered: list[str] = []

    def note(event: Any) -> None:
        registered.extend(each["registrationId"] for each in event["registrations"])

    client.on("ServiceWorker.workerRegistrationUpdated", note)
    client.send("ServiceWorker.enable")
    eventually(lambda: page.evaluate("1") and registered, SECONDS, what="the service worker's registration")
    message = {"origin": origin, "registrationId": registered[0], "data": text}
    worker = context.service_workers[0]
    if whole_chromium() is None:
        worker.evaluate(KEPT_HERE)

    def shown() -> list[dict[str, Any]]:
        client.send("ServiceWorker.deliverPushMessage", message)

        def found() -> list[dict[str, Any]]:
            now: list[dict[str, Any]] = worker.evaluate(SHOWN)
            return now if is_shown(now) else []

        return eventually(found, SECONDS / 3, what="the notification")

    return eventually(shown, SECONDS, what="the notification")


def switch_on(page: Page, url: str, subscription: dict[str, str]) -> None:
    """Switch notifications on, and answers in them."""
    page.evaluate("navigator.serviceWorker.ready")
    page.goto(f"{url}ui/devices")
    switch = page.get_by_role("switch")
    expect(switch).to_have_attribute("aria-checked", "false")
    # A push service of the browser's maker is not within reach: the subscription is one of this test.
    page.evaluate(SUBSCRIBED, subscription)
    switch.click()
    expect(switch.first).to_have_attribute("aria-checked", "true")
    answers = page.get_by_role("switch", name="Answer in notifications")
    expect(answers).to_have_attribute("aria-checked", "false")
    answers.click()
    expect(answers).to_have_attribute("aria-checked", "true")


def test_a_question_is_opened_or_answered_by_its_notification_also_after_a_crash(
    browser: Browser, tmp_path: Path, workspace: Path
) -> None:
    (workspace / "code.py").write_text('print("hi")\n', "utf-8")
    (tmp_path / "script.yaml").write_text(SCRIPT, "utf-8")
    command = ("serve", "--ui", "--allow-push-to", "127.0.0.1", "--workspace", str(workspace))
    served = Workbench(workspace, tmp_path, command=command)
    keys = BrowserKeys()
    with WireServer(lambda _: Answer(201)) as service, desktop(browser) as context:
        served.start()
        try:

            def message(count: int) -> dict[str, Any]:
                eventually(lambda: len(service.requests) >= count, SECONDS, what="a message")
                return json.loads(keys.read(service.requests[count - 1].body))

            origin = served.url.rstrip("/")
            context.grant_permissions(["notifications"], origin=origin)
            page = served.enter(context)
            switch_on(page, served.url, keys.subscription(f"{service.base_url}/send"))

            # A change is opened: its address leads to it in the window that is there.
            edit = served.begin(page, "please change it")
            asked = message(1)
            assert (asked["kind"], asked["answers"]) == ("question", {})
            assert asked["about"] == {
                "kind": "change", "text": "code.py", "folder": str(workspace), "added": 1, "removed": 1
            }  # fmt: skip
            [shown] = deliver(context, page, origin, json.dumps(asked), bool)
            assert shown == {
                "title": "Isthmus asks",
                "body": f"Change code.py, +1 \u22121, in {workspace}\nplease change it",
                "actions": ["open"],
            }
            context.service_workers[0].evaluate(PRESSED, "open")
            page.wait_for_url(f"{served.url}ui/question/{edit}%2F*")
            expect(page.get_by_text("code.py").first).to_be_visible()
            assert context.service_workers[0].evaluate(SHOWN) == []
            served.cancel_tasks()
            ended = message(2)
            assert (ended["kind"], ended["key"], ended["by"], ended["waiting"]) == ("ended", asked["key"], "", 0)

            # A command that is shown whole is answered, with no page open, after the server was killed.
            run = served.begin(page, "please run it")
            asked = message(3)
            assert set(asked["answers"]) == {"allow", "reject"}
            page.goto("about:blank")
            [shown] = deliver(context, page, origin, json.dumps(asked), bool)
            assert shown["body"] == f"Run touch allowed.txt in {workspace}, once\nplease run it"
            assert shown["actions"] == ["reject", "allow"]
            served.restart(signal.SIGKILL)
            assert not (workspace / "allowed.txt").exists()
            context.service_workers[0].evaluate(PRESSED, "allow")

            def said() -> str:
                [now] = context.service_workers[0].evaluate(SHOWN)
                return now["title"]

            eventually(lambda: said().startswith("Allowed, "), SECONDS, what="the answer in the notification")
            eventually((workspace / "allowed.txt").exists, SECONDS, what="the command's effect")
            again = httpx.post(f"{served.url}ui/api/push/answer", json={"token": asked["answers"]["reject"]})
            assert (again.status_code, again.json()["outcome"]["act"]) == (409, "allow")
            page.goto(f"{served.url}ui/task/{run}")
            expect(page.get_by_text("Ran.").first).to_be_visible()
            assert len(service.requests) == 3  # told once, and nothing more to the device that answered
        finally:
            served.end(signal.SIGKILL)
    assert served.problems == []
