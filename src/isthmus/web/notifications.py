"""Notifications to browsers that ask for them: "a question waits", with the name of who asks and nothing else.

A device's subscription is stored with its token and ends with it. Its URL is from a browser: it is checked and reached
like the targets of A2A's push notifications (:mod:`isthmus.a2a.push.sender`), with the same list of allowed addresses.
"""

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from isthmus.a2a.push.sender import PushFailed, PushSender
from isthmus.a2a.push.targets import PushRefused
from isthmus.a2a.server.users.users import BrowserPush, TokenEntry
from isthmus.client import PushTarget
from isthmus.engine.followers.open_questions import OpenQuestions, QuestionClosed, QuestionOpened
from isthmus.errors import IsthmusError
from isthmus.files.atomic import exclusive, read_regular, write_atomic
from isthmus.files.locations import make_private_directory
from isthmus.network.loopback import is_loopback
from isthmus.runtime.running_tasks import RunningTasks
from isthmus.web.devices import Devices

if TYPE_CHECKING:
    from isthmus.a2a.server.users.users import UserTable
    from isthmus.web.push_message import ServerKey

KEY_FILE = "push-key.json"
"""Name of the file with the server's key pair in the data folder."""
MISSING = "notifications need the package cryptography, which is not installed: pip install 'isthmus[push]'"
CONTACT = "https://isthmus.example/"
"""URL in signatures where the server has no https address of its own."""
LIFE_SECONDS = 4 * 3600
"""Time in seconds for which a push service keeps a message for a device that is off."""
WAITS = (2.0, 10.0, 60.0)
"""Waits in seconds before each further attempt."""
AT_ONCE = 8
"""Maximum number of messages being sent."""
MAXIMUM_WAITING = 200
"""Maximum number of messages being sent or waiting for a further attempt; more are dropped."""

log = logging.getLogger(__name__)


class NoNotificationsError(IsthmusError):
    """Raised when notifications cannot be sent, or not to this address; the text says why."""


def load_key(folder: Path) -> "ServerKey":
    """Return the server's key pair; make it at the first call. Blocking.

    Raises:
        NoNotificationsError: it cannot be read or made, or ``cryptography`` is missing.
    """
    try:
        from isthmus.web.push_message import PushKeyError, ServerKey
    except ImportError as error:
        raise NoNotificationsError(MISSING) from error
    path = folder / KEY_FILE
    try:
        make_private_directory(folder)
        with exclusive(path.with_suffix(".lock")):
            if not path.exists():
                text = json.dumps({"private": ServerKey.new().private}).encode()
                write_atomic(path, text, mode=0o600, through_links=False)
            key = ServerKey(str(json.loads(read_regular(path, 10_000))["private"]))
            _ = key.public
            return key
    except (OSError, ValueError, KeyError, TypeError, PushKeyError) as error:
        raise NoNotificationsError(f"the key for notifications, {path}, cannot be used: {error}") from error


@dataclass(slots=True)
class Notifications:
    """The notifications of one server. ``agent`` is the name that they tell; ``folder`` has the key."""

    users: Devices
    sender: PushSender
    folder: Path
    agent: str
    contact: str = CONTACT
    now: Callable[[], float] = time.time
    waits: tuple[float, ...] = WAITS
    _sending: RunningTasks = field(default_factory=RunningTasks)
    _room: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))

    @property
    def open_messages(self) -> int:
        """Number of messages being sent or waiting for a further attempt."""
        return len(self._sending)

    async def public_key(self) -> str:
        """Return the key that browsers subscribe with.

        Raises:
            NoNotificationsError: as :func:`load_key`.
        """
        return (await asyncio.to_thread(load_key, self.folder)).public

    async def subscribe(self, token_id: str, push: BrowserPush) -> None:
        """Store the subscription of a device in place of its earlier one.

        Raises:
            NoNotificationsError: its keys or its address cannot be used.
            UsersError: it cannot be stored.
        """
        await self.public_key()
        from isthmus.web.push_message import PushKeyError, check_keys

        try:
            check_keys(push.p256dh, push.auth)
            parts = urlsplit(push.endpoint)
            if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
                raise NoNotificationsError("expected an endpoint that begins with https://")
            await self.sender.check(PushTarget(push.endpoint))
        except (PushKeyError, PushRefused, ValueError) as error:
            raise NoNotificationsError(str(error)) from error
        await asyncio.to_thread(self.users.change, lambda table: (table.with_push(token_id, push), None))

    async def unsubscribe(self, token_id: str) -> None:
        """Forget the subscription of a device.

        Raises:
            UsersError: the change cannot be stored.
        """
        await asyncio.to_thread(self.users.change, lambda table: (table.with_push(token_id, None), None))

    async def run(self, questions: OpenQuestions) -> None:
        """Notify the devices of each user whose task begins to wait, until cancelled."""
        waiting: dict[str, set[str]] = {}
        try:
            async with contextlib.aclosing(questions.changes()) as changes:
                async for change in changes:
                    match change:
                        case QuestionOpened(task_id=task_id):
                            calls = waiting.setdefault(task_id, set())
                            is_first, _ = not calls, calls.add(change.tool_call.tool_call_id)
                            if is_first:
                                self._notify(change.user, lambda task_id=task_id: task_id in waiting)
                        case QuestionClosed(task_id, tool_call_id):
                            waiting.get(task_id, set()).discard(tool_call_id)
                            if not waiting.get(task_id):
                                waiting.pop(task_id, None)
        finally:
            await self._sending.cancel()

    def _notify(self, user: str, still_waits: Callable[[], bool]) -> None:
        now = self.now()
        for entry in self.users.table().entries.values():
            if entry.push is None or entry.name != user or not entry.device or entry.is_expired(now):
                continue
            if len(self._sending) >= MAXIMUM_WAITING:
                log.warning("too many notifications wait for their push services; one is dropped")
                return
            self._sending.start(self._deliver(entry, still_waits), name=f"isthmus-notify-{entry.id}")

    async def _deliver(self, entry: TokenEntry, still_waits: Callable[[], bool]) -> None:
        """Send to a device, again after failures as long as the question waits."""
        try:
            for wait in (*self.waits, None):
                try:
                    async with self._room:
                        await self._send(entry.push or BrowserPush("", "", ""))
                    return
                except PushFailed as error:
                    if error.is_gone or error.status == 404:
                        log.info("device %s wants no more notifications", entry.id)
                        await self._forget(entry)
                        return
                    if wait is None or (error.status is not None and error.status < 500 and error.status != 429):
                        log.warning("device %s was not notified: %s", entry.id, error)
                        return
                    await asyncio.sleep(max(wait, min(error.retry_after or 0, self.waits[-1])))
                    current = self.users.table().entries.get(entry.id)
                    if not still_waits() or current is None or current.push != entry.push:
                        return
        except IsthmusError as error:
            log.warning("device %s was not notified: %s", entry.id, error)
        except Exception:  # nothing awaits this
            log.exception("device %s was not notified because of a bug", entry.id)

    async def _send(self, push: BrowserPush) -> None:
        from isthmus.web.push_message import encrypt

        key = await asyncio.to_thread(load_key, self.folder)
        parts = urlsplit(push.endpoint)
        body = encrypt(json.dumps({"agent": self.agent}).encode()[:1000], push.p256dh, push.auth)
        headers = {
            "Authorization": key.authorization(f"{parts.scheme}://{parts.netloc}", self.contact, self.now()),
            "Content-Encoding": "aes128gcm",
            "Content-Type": "application/octet-stream",
            "TTL": str(LIFE_SECONDS),
            "Urgency": "high",
            "Topic": "question",  # a later one replaces one that was not delivered yet
        }
        await self.sender.send(PushTarget(push.endpoint), body, headers)

    async def _forget(self, entry: TokenEntry) -> None:
        def change(table: "UserTable") -> "tuple[UserTable, None]":
            current = table.entries.get(entry.id)
            is_same = current is not None and current.push == entry.push
            return (table.with_push(entry.id, None) if is_same else table), None

        await asyncio.to_thread(self.users.change, change)
