"""Subscriptions of devices, and the way of messages to a push service on this machine."""

import stat
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from isthmus.a2a.server.users.users import BrowserPush, TokenEntry
from isthmus.web.push.notifications import KEY_FILE, NoNotificationsError, Notifications, PushMessage, load_key
from support.push_reader import BrowserKeys, claims_of
from support.push_service import PushService, add_device, notifications_in
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


@pytest.fixture
def notifications(tmp_path: Path) -> Notifications:
    return notifications_in(tmp_path)


class Told:
    """A message, and the devices to which it came."""

    def __init__(self, text: bytes = b'{"kind": "many"}') -> None:
        self.devices: list[str] = []
        self.is_wanted = True
        self.message = PushMessage(text, "topic", "high", lambda: self.is_wanted, self.delivered)

    async def delivered(self, entry: TokenEntry) -> None:
        self.devices.append(entry.id)


async def subscribed(notifications: Notifications, service: PushService, entry: TokenEntry) -> TokenEntry:
    await notifications.subscribe(entry.id, service.subscription())
    return notifications.users.table().entries[entry.id]


async def sent(notifications: Notifications, entry: TokenEntry, told: Told) -> None:
    notifications.send(entry, told.message)
    await eventually_async(lambda: not notifications.open_messages, 10)


async def test_a_message_is_encrypted_for_one_browser_and_signed_by_the_server(notifications: Notifications) -> None:
    service, told = PushService(), Told(b'{"secret": 1}')
    with service.server as server:
        entry = await subscribed(notifications, service, add_device(notifications))
        await sent(notifications, entry, told)
        assert (service.messages(), told.devices) == ([{"secret": 1}], [entry.id])
        request = server.requests[0]
        assert (request.method, request.path) == ("POST", "/send/1")
        assert request.headers["content-encoding"] == "aes128gcm"
        assert (request.headers["topic"], request.headers["urgency"]) == ("topic", "high")
        assert int(request.headers["ttl"]) > 0
        assert claims_of(request.headers, await notifications.public_key())["aud"] == server.base_url
        assert b"secret" not in request.body
    await notifications.sender.aclose()


async def test_only_devices_of_the_user_that_are_valid_are_notified(notifications: Notifications) -> None:
    service = PushService()
    with service.server:
        alice, old = add_device(notifications, "alice"), add_device(notifications, expires=1.0)
        mine, gone = add_device(notifications), add_device(notifications)
        for entry in (alice, old, mine, gone):
            await notifications.subscribe(entry.id, service.subscription())
        add_device(notifications)  # wants none
        notifications.users.change(lambda table: table.revoked(gone.id))
        assert [entry.id for entry in notifications.wanting("")] == [mine.id]
        assert [entry.id for entry in notifications.wanting("alice")] == [alice.id]
        assert notifications.wanting("bob") == []


@pytest.mark.parametrize("status", [404, 410])
async def test_a_subscription_that_is_gone_is_forgotten(notifications: Notifications, status: int) -> None:
    service, told = PushService(status), Told()
    with service.server as server:
        entry = await subscribed(notifications, service, add_device(notifications))
        await sent(notifications, entry, told)
        assert notifications.users.table().entries[entry.id].push is None
        assert (len(server.requests), told.devices) == (1, [])


async def test_a_service_that_fails_is_tried_again_and_then_left_alone(notifications: Notifications) -> None:
    service, told = PushService(503, 429, 503, 503), Told()
    with service.server as server:
        entry = await subscribed(notifications, service, add_device(notifications))
        await sent(notifications, entry, told)
        assert (len(server.requests), told.devices) == (3, [])
        await sent(notifications, entry, told)
        assert (len(server.requests), told.devices) == (5, [entry.id])
        assert notifications.users.table().entries[entry.id].push == entry.push


@pytest.mark.parametrize("change", ["not wanted", "another subscription", "removed"])
async def test_what_is_not_wanted_any_more_is_not_tried_again(notifications: Notifications, change: str) -> None:
    service, told = PushService(503, 503), Told()
    notifications.waits = (0.5,)
    with service.server as server:
        entry = await subscribed(notifications, service, add_device(notifications))
        notifications.send(entry, told.message)
        await eventually_async(lambda: len(server.requests) == 1, 10)
        if change == "not wanted":
            told.is_wanted = False
        elif change == "removed":
            notifications.users.change(lambda table: table.revoked(entry.id))
        else:
            await notifications.subscribe(entry.id, replace(service.subscription(), endpoint=f"{server.base_url}/2"))
        await eventually_async(lambda: not notifications.open_messages, 10)
        assert len(server.requests) == 1


async def test_answers_are_off_until_a_device_that_is_notified_wants_them(notifications: Notifications) -> None:
    service = PushService()
    with service.server:
        entry = add_device(notifications)
        assert not await notifications.let_answer(entry.id, answers=True)
        await notifications.subscribe(entry.id, service.subscription("zh-Hant"))
        push = notifications.users.table().entries[entry.id].push
        assert push is not None
        assert (push.language, push.answers) == ("zh-Hant", False)
        assert await notifications.let_answer(entry.id, answers=True)
        assert notifications.users.table().entries[entry.id].push == replace(push, answers=True)
        assert not await notifications.let_answer("unknown", answers=True)


@pytest.mark.parametrize(
    ("endpoint", "reason"),
    [
        ("https://10.0.0.1/send", "a private address"),
        ("https://[::1]/send", "a loopback address"),
        ("http://push.test/send", "https"),
        ("file:///etc/passwd", "https"),
        ("https://user:secret@127.0.0.1/send", "contains a user"),
        ("https://127.0.0.1:0/send", "port 0"),
        ("https://127.0.0.1:99999/send", "cannot be read|out of range"),
        ("https://x" + "y" * 3000, "longer than"),
        ("https://exämple.test/", "percent-encoded"),
    ],
)
async def test_addresses_inside_the_network_and_others_are_refused(
    notifications: Notifications, endpoint: str, reason: str
) -> None:
    entry = add_device(notifications)
    keys = BrowserKeys().subscription(endpoint)
    with pytest.raises(NoNotificationsError, match=reason):
        await notifications.subscribe(entry.id, BrowserPush(endpoint, keys["p256dh"], keys["auth"]))
    assert notifications.users.table().entries[entry.id].push is None


def test_the_key_is_private_and_stays(tmp_path: Path) -> None:
    made = load_key(tmp_path)
    assert load_key(tmp_path) == made
    assert stat.S_IMODE((tmp_path / KEY_FILE).stat().st_mode) == 0o600
    for damaged in ("{", "[]", '{"private": "AAAA"}', '{"private": "!"}'):
        (tmp_path / KEY_FILE).write_text(damaged, "utf-8")
        with pytest.raises(NoNotificationsError, match=KEY_FILE):
            load_key(tmp_path)


def test_without_cryptography_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "isthmus.web.push.push_message", None)
    with pytest.raises(NoNotificationsError, match=r"isthmus\[push\]"):
        load_key(tmp_path)
