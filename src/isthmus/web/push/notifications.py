"""Notifications to the browsers that ask for them: their subscriptions, and the way of a message to a push service.

The messages: :mod:`isthmus.web.push.notices`. A device's subscription is stored with its token and ends with it. Its
URL is from a browser: it is checked and reached like the targets of A2A's push notifications
(:mod:`isthmus.a2a.push.sender`), with the same list of allowed addresses.
"""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from isthmus.a2a.push.sender import PushFailed, PushSender
from isthmus.a2a.push.targets import PushRefused
from isthmus.a2a.server.users.users import BrowserPush, TokenEntry
from isthmus.client import PushTarget
from isthmus.errors import IsthmusError
from isthmus.files.atomic import exclusive, read_regular, write_atomic
from isthmus.files.locations import make_private_directory
from isthmus.network.loopback import is_loopback
from isthmus.record import record
from isthmus.runtime.running_tasks import RunningTasks
from isthmus.web.pairing.devices import Devices

if TYPE_CHECKING:
    from isthmus.a2a.server.users.users import UserTable
    from isthmus.web.push.push_message import ServerKey

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
        from isthmus.web.push.push_message import PushKeyError, ServerKey
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


@record
class PushMessage:
    """A message to devices. ``is_wanted`` is asked before a further attempt.

    ``delivered`` is called for each device whose push service took it. ``topic`` is at most 32 characters long.
    """

    text: bytes
    topic: str
    urgency: str
    is_wanted: Callable[[], bool]
    delivered: Callable[[TokenEntry], Awaitable[None]]


@dataclass(slots=True)
class Notifications:
    """The notifications of one server. ``folder`` has the key."""

    users: Devices
    sender: PushSender
    folder: Path
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
        from isthmus.web.push.push_message import PushKeyError, check_keys

        try:
            check_keys(push.p256dh, push.auth)
            parts = urlsplit(push.endpoint)
            if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
                raise NoNotificationsError("expected an endpoint that begins with https://")
            await self.sender.check(PushTarget(push.endpoint))
        except (PushKeyError, PushRefused, ValueError) as error:
            raise NoNotificationsError(str(error)) from error
        await asyncio.to_thread(self.users.change, lambda table: (table.with_push(token_id, push), None))

    async def let_answer(self, token_id: str, *, answers: bool) -> bool:
        """Set whether notifications of a device have buttons that answer; return false if it gets no notifications.

        Raises:
            UsersError: the change cannot be stored.
        """

        def change(table: "UserTable") -> "tuple[UserTable, bool]":
            entry = table.entries.get(token_id)
            if entry is None or entry.push is None:
                return table, False
            return table.with_push(token_id, replace(entry.push, answers=answers)), True

        return await asyncio.to_thread(self.users.change, change)

    async def unsubscribe(self, token_id: str) -> None:
        """Forget the subscription of a device.

        Raises:
            UsersError: the change cannot be stored.
        """
        await asyncio.to_thread(self.users.change, lambda table: (table.with_push(token_id, None), None))

    def wanting(self, user: str) -> Sequence[TokenEntry]:
        """Return the devices of a user that are to be notified."""
        now = self.now()
        entries = self.users.table().entries.values()
        return [
            entry
            for entry in entries
            if entry.push is not None and entry.name == user and entry.device and not entry.is_expired(now)
        ]

    def send(self, entry: TokenEntry, message: PushMessage) -> None:
        """Begin to send a message to a device, again after failures as long as it is wanted."""
        if len(self._sending) >= MAXIMUM_WAITING:
            log.warning("too many notifications wait for their push services; one is dropped")
            return
        self._sending.start(self._deliver(entry, message), name=f"isthmus-notify-{entry.id}")

    async def aclose(self) -> None:
        """Send nothing more."""
        await self._sending.cancel()

    async def _deliver(self, entry: TokenEntry, message: PushMessage) -> None:
        """Send to a device, again after failures as long as the message is wanted."""
        try:
            for wait in (*self.waits, None):
                try:
                    async with self._room:
                        await self._send(entry.push or BrowserPush("", "", ""), message)
                    await message.delivered(entry)
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
                    if not message.is_wanted() or not _is_same(entry, self.users.table()):
                        return
        except IsthmusError as error:
            log.warning("device %s was not notified: %s", entry.id, error)
        except Exception:  # nothing awaits this
            log.exception("device %s was not notified because of a bug", entry.id)

    async def _send(self, push: BrowserPush, message: PushMessage) -> None:
        from isthmus.web.push.push_message import encrypt

        key = await asyncio.to_thread(load_key, self.folder)
        parts = urlsplit(push.endpoint)
        body = encrypt(message.text, push.p256dh, push.auth)
        headers = {
            "Authorization": key.authorization(f"{parts.scheme}://{parts.netloc}", self.contact, self.now()),
            "Content-Encoding": "aes128gcm",
            "Content-Type": "application/octet-stream",
            "TTL": str(LIFE_SECONDS),
            "Urgency": message.urgency,
            "Topic": message.topic,  # a later one replaces one that was not delivered yet
        }
        await self.sender.send(PushTarget(push.endpoint), body, headers)

    async def _forget(self, entry: TokenEntry) -> None:
        def change(table: "UserTable") -> "tuple[UserTable, None]":
            return (table.with_push(entry.id, None) if _is_same(entry, table) else table), None

        await asyncio.to_thread(self.users.change, change)


def _is_same(entry: TokenEntry, table: "UserTable") -> bool:
    """Return whether a device still has the subscription that it had."""
    current = table.entries.get(entry.id)
    now, before = (None if each is None else each.push for each in (current, entry))
    return now is not None and before is not None and now.endpoint == before.endpoint
