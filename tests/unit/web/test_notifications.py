"""Notifications, sent to a push service on this machine that reads them with the browser's keys."""

import asyncio
import contextlib
import json
import stat
import sys
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from isthmus.a2a.push.sender import PushSender
from isthmus.a2a.push.targets import PushRule
from isthmus.a2a.server.users.users import BrowserPush, TokenEntry, UserTable
from isthmus.a2a.server.users.users_file import UsersFile
from isthmus.development_tool import ToolCall, ToolCallStatus
from isthmus.engine.followers.open_questions import OpenQuestions
from isthmus.web.notifications import KEY_FILE, NoNotificationsError, Notifications, load_key
from support.push_reader import BrowserKeys, claims_of
from support.waiting import eventually_async
from support.wire_server import Answer, WireServer

pytestmark = pytest.mark.anyio


class Service:
    """A push service that answers with these statuses, then with 201."""

    def __init__(self, *statuses: int) -> None:
        self.statuses: Iterator[int] = iter(statuses)
        self.keys = BrowserKeys()
        self.server = WireServer(lambda _: Answer(next(self.statuses, 201)))

    @property
    def subscription(self) -> BrowserPush:
        return BrowserPush(**self.keys.subscription(f"{self.server.base_url}/send/1"))

    def texts(self) -> list[object]:
        return [json.loads(self.keys.read(request.body)) for request in self.server.requests]


@pytest.fixture
def notifications(tmp_path: Path) -> Notifications:
    sender = PushSender(PushRule.of(["127.0.0.1"]), deadline=5)
    return Notifications(UsersFile(tmp_path / "users.json"), sender, tmp_path, "Gemini CLI", waits=(0.01, 0.01))


def add_device(notifications: Notifications, user: str = "", expires: float = 10_000_000_000.0) -> TokenEntry:
    def change(table: UserTable) -> tuple[UserTable, TokenEntry]:
        changed, entry, _ = table.with_device(user, "Phone", 0.0, expires)
        return changed, entry

    return notifications.users.change(change)


@asynccontextmanager
async def running(notifications: Notifications) -> AsyncGenerator[OpenQuestions]:
    questions = OpenQuestions()
    task = asyncio.create_task(notifications.run(questions))
    await asyncio.sleep(0)
    try:
        yield questions
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await notifications.sender.aclose()


def ask(questions: OpenQuestions, *names: str, task: str = "task", user: str = "") -> None:
    calls = [
        ToolCall(name, ToolCallStatus.PENDING, "run_shell_command", {"command": f"{name} /secret/path"})
        for name in names
    ]
    questions.waiting(task, "context", "/secret", calls, user=user)


async def until(condition: Callable[[], bool]) -> None:
    await eventually_async(condition, 10)


async def test_a_task_that_begins_to_wait_is_told_once_and_only_by_who_asks(notifications: Notifications) -> None:
    service = Service()
    with service.server as server:
        entry = add_device(notifications)
        add_device(notifications)  # wants none
        await notifications.subscribe(entry.id, service.subscription)
        async with running(notifications) as questions:
            ask(questions, "one", "two")
            await until(lambda: len(server.requests) == 1)
            ask(questions, "two")
            ask(questions)
            ask(questions, "three")
            await until(lambda: len(server.requests) == 2)
        assert service.texts() == [{"agent": "Gemini CLI"}] * 2
        request = server.requests[0]
        assert (request.method, request.path) == ("POST", "/send/1")
        assert request.headers["content-encoding"] == "aes128gcm"
        assert int(request.headers["ttl"]) > 0
        claims = claims_of(request.headers, await notifications.public_key())
        assert claims["aud"] == server.base_url
        assert b"secret" not in request.body


async def test_questions_of_others_and_old_devices_are_not_told(notifications: Notifications) -> None:
    service = Service()
    with service.server as server:
        alice, old = add_device(notifications, "alice"), add_device(notifications, expires=1.0)
        for entry in (alice, old):
            await notifications.subscribe(entry.id, service.subscription)
        async with running(notifications) as questions:
            ask(questions, "of-bob", task="1", user="bob")
            ask(questions, "of-owner", task="2")
            ask(questions, "of-alice", task="3", user="alice")
            await until(lambda: len(server.requests) == 1)
            notifications.users.change(lambda table: table.revoked(alice.id))
            ask(questions, "again", task="4", user="alice")
            other = add_device(notifications)
            await notifications.subscribe(other.id, service.subscription)
            ask(questions, "the last", task="5")
            await until(lambda: len(server.requests) == 2 and not notifications.open_messages)
        assert len(server.requests) == 2


@pytest.mark.parametrize("status", [404, 410])
async def test_a_subscription_that_is_gone_is_forgotten(notifications: Notifications, status: int) -> None:
    service = Service(status)
    with service.server as server:
        entry = add_device(notifications)
        await notifications.subscribe(entry.id, service.subscription)
        async with running(notifications) as questions:
            ask(questions, "one")
            await until(lambda: notifications.users.table().entries[entry.id].push is None)
        assert len(server.requests) == 1


async def test_a_service_that_fails_is_tried_again_and_then_left_alone(notifications: Notifications) -> None:
    service = Service(503, 429, 503, 503)
    with service.server as server:
        entry = add_device(notifications)
        await notifications.subscribe(entry.id, service.subscription)
        async with running(notifications) as questions:
            ask(questions, "one")
            await until(lambda: len(server.requests) == 3)
            ask(questions, "two", task="other")
            await until(lambda: len(server.requests) == 5)
        assert notifications.users.table().entries[entry.id].push == service.subscription


async def test_an_answered_question_is_not_told_again(notifications: Notifications) -> None:
    service = Service(503)
    notifications.waits = (1.0,)
    with service.server as server:
        entry = add_device(notifications)
        await notifications.subscribe(entry.id, service.subscription)
        async with running(notifications) as questions:
            ask(questions, "one")
            await until(lambda: len(server.requests) == 1)
            questions.closed("task")
            await until(lambda: not notifications.open_messages)
        assert len(server.requests) == 1


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
    with pytest.raises(NoNotificationsError, match=reason):
        await notifications.subscribe(entry.id, BrowserPush(**BrowserKeys().subscription(endpoint)))
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
    monkeypatch.setitem(sys.modules, "isthmus.web.push_message", None)
    with pytest.raises(NoNotificationsError, match=r"isthmus\[push\]"):
        load_key(tmp_path)
