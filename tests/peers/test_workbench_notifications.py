"""Notifications of the workbench in a real browser, on a device that wants them: what is sent, shown and clicked."""

import json
import signal
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from support.push_reader import BrowserKeys
from support.waiting import eventually
from support.wire_server import Answer, WireServer
from support.workbench import Workbench, chromium, desktop, whole_chromium

SECONDS = 30.0
EDIT = {"file_path": "code.py", "instruction": "Say hello", "old_string": "hi", "new_string": "hello"}
SCRIPT = json.dumps(
    {
        "name": "practice",
        "scenarios": [
            {"prompt": "change", "replies": [{"call": {"name": "replace", "arguments": EDIT}}, {"text": "Changed."}]}
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
SHOWN = "self.registration.getNotifications().then(all => all.map(each => [each.title, each.body]))"
CLICKED = """
async () => {
  const [shown] = await self.registration.getNotifications();
  const event = new ExtendableEvent("notificationclick");
  Object.defineProperty(event, "notification", { value: shown });
  self.dispatchEvent(event);
}
"""
KEPT_HERE = """
() => {
  const kept = new Map();
  ServiceWorkerRegistration.prototype.getNotifications = async () => [...kept.values()];
  ServiceWorkerRegistration.prototype.showNotification = async (title, { tag, body }) => {
    kept.set(tag, { title, body, close: () => kept.delete(tag) });
  };
}
"""
"""Keeps notifications in the service worker: a browser without windows has no other place for them."""


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    """Return a browser that shows notifications where there is one, for all tests of this file."""
    with chromium(is_whole=True) as found:
        yield found


def deliver(context: BrowserContext, page: Page, text: str) -> list[list[str]]:
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
    origin = "/".join(page.url.split("/")[:3])
    message = {"origin": origin, "registrationId": registered[0], "data": text}
    worker = context.service_workers[0]
    if whole_chromium() is None:
        worker.evaluate(KEPT_HERE)

    def shown() -> list[list[str]]:
        client.send("ServiceWorker.deliverPushMessage", message)
        return eventually(lambda: worker.evaluate(SHOWN), SECONDS / 3, what="the notification")

    return eventually(shown, SECONDS, what="the notification")


def test_a_question_is_told_to_a_device_that_wants_it_and_a_click_shows_the_inbox(
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
            context.grant_permissions(["notifications"], origin=served.url.rstrip("/"))
            page = served.enter(context)
            page.evaluate("navigator.serviceWorker.ready")
            page.goto(f"{served.url}ui/devices")
            switch = page.get_by_role("switch")
            expect(switch).to_have_attribute("aria-checked", "false")
            # A push service of the browser's maker is not within reach: the subscription is one of this test.
            page.evaluate(SUBSCRIBED, keys.subscription(f"{service.base_url}/send"))
            switch.click()
            expect(switch).to_have_attribute("aria-checked", "true")
            served.prompt(page, "please change it")
            [request] = eventually(lambda: service.requests, SECONDS, what="a notification")
            text = keys.read(request.body)
            assert json.loads(text) == {"agent": "Isthmus"}
            page.goto(f"{served.url}ui/history")
            shown = deliver(context, page, text.decode())
            assert shown == [["Isthmus", "A question waits for you"]]
            context.service_workers[0].evaluate(CLICKED)
            page.wait_for_url(f"{served.url}ui/")
            assert context.service_workers[0].evaluate(SHOWN) == []
            page.goto(f"{served.url}ui/devices")
            switch.click()
            expect(switch).to_have_attribute("aria-checked", "false")
        finally:
            served.end(signal.SIGKILL)
    assert served.problems == []
