"""Delivers push notifications: each state change of a task to each of its targets, in order, at least once.

A target is a cursor in the journal, so a crash loses nothing, and a task never waits for a receiver. A delivery is
recorded after the receiver's answer; after a crash in between, the notification is sent again with the same
Idempotency-Key. A failing target is retried with growing waits, and finally given up. HTTP is in
:mod:`isthmus.a2a.push.sender`; who may set a target is decided in :mod:`isthmus.a2a.push.service`.
"""

import asyncio
import contextlib
import logging
import math
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from isthmus import __version__
from isthmus.a2a.protocol.notes import snapshot_without_notes
from isthmus.a2a.push.sender import RETRY_AFTER_SECONDS, PushFailed, PushSender
from isthmus.a2a.push.targets import origin_of
from isthmus.a2a.wires import Wires
from isthmus.client import Delivery, InvalidRequest, PushTarget, TaskSnapshot
from isthmus.encoding.json_text import encode
from isthmus.engine.followers.past_snapshots import snapshot_after
from isthmus.errors import IsthmusError
from isthmus.journal.port.base import Journal
from isthmus.journal.port.lease_owner import new_owner
from isthmus.journal.port.pushes import PushJournal, PushRow
from isthmus.record import record
from isthmus.runtime.telemetry import NO_TELEMETRY, PushAttempt, Telemetry

IDLE_SECONDS = 60.0
"""Interval in seconds at which the journal is checked for changes by other processes, while there is no target."""
GATHER_SECONDS = 0.005
"""Time in seconds that changes are collected before the journal is read."""
SLACK_SECONDS = 60.0
"""Overlap in seconds of two checks of the journal, since a commit may come late."""
MAX_SEEN = 10_000
"""Maximum number of targets whose last check is remembered."""
MAX_ROWS = 32_768
"""Maximum number of targets that are read together; more than :attr:`PushLimits.rows` only if all go to busy hosts."""
LATEST_ATTEMPT_SECONDS = 2 * RETRY_AFTER_SECONDS
"""Maximum time in seconds until a scheduled attempt; a later one was scheduled by a different clock."""

Payload: TypeAlias = Callable[[str, TaskSnapshot, str | None], Mapping[str, Any]]
"""Function that returns the content of a notification.

It takes the name of the wire, the task after the change, and the extension's URI as the subscriber spells it.
"""

log = logging.getLogger(__name__)


def payload_by(wires: Wires) -> Payload:
    """Return a function that writes a Task as the stream item of its wire, a Task or a StreamResponse.

    A Task has everything that a subscriber may need: state, open questions, final text, error.
    """

    def payload(wire_name: str, snapshot: TaskSnapshot, uri: str | None) -> Mapping[str, Any]:
        wire = wires.named(wire_name)
        return wire.task_item(wire.task(snapshot_without_notes(snapshot), uri, 0))

    return payload


@record
class PushLimits:
    """Limits for retries of push notifications, and for how many are sent at the same time."""

    attempts: int = 20
    """Maximum number of attempts for one notification; with the waits between them they take about 70 minutes."""
    first_wait_seconds: float = 1.0
    """Wait after the first failure; it doubles with each further one."""
    longest_wait_seconds: float = 300.0
    at_once: int = 64
    """Maximum number of notifications being sent."""
    at_once_to_host: int = 8
    """Maximum number being sent to one host, so that a host that hangs does not delay the others."""
    look_seconds: float = 5.0
    """Interval in seconds at which the journal is checked for changes by other processes, while there is a target."""
    rows: int = 512
    """Usual number of targets that are read together."""

    def wait_after(self, attempts: int, retry_after: float | None = None, spread: float = 1.0) -> float | None:
        """Return the seconds to wait after ``attempts`` failures; None to give up.

        ``spread`` is a random factor, which keeps retries to different targets apart.
        """
        if attempts >= self.attempts:
            return None
        waited = min(self.longest_wait_seconds, self.first_wait_seconds * 2 ** (attempts - 1)) * spread
        return max(waited, retry_after or 0)


class PushDelivery:
    """Delivery of notifications, from :meth:`start` to :meth:`aclose`.

    ``is_served`` returns whether a user still has access; targets of users without access are given up.
    """

    def __init__(
        self,
        journal: Journal,
        pushes: PushJournal,
        sender: PushSender,
        payload: Payload,
        model_name: Callable[[], str] = str,
        is_served: Callable[[str], bool] = lambda _: True,
        limits: PushLimits = PushLimits(),
        telemetry: Telemetry = NO_TELEMETRY,
    ) -> None:
        self._journal = journal
        self._pushes = pushes
        self._sender = sender
        self._payload = payload
        self._model_name = model_name
        self._is_served = is_served
        self._limits = limits
        self._telemetry = telemetry
        self._owner = new_owner()
        self._news = asyncio.Event()
        self._running: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._hosts: Counter[str] = Counter()
        self._seen: dict[tuple[str, str], tuple[int, float]] = {}
        """Last event of each target that was checked without finding a change to send, and its next attempt then.

        A target that is set again has a different next attempt, which makes the entry void.
        """
        self._since = 0.0
        """Time up to which all changes of tasks have been handled."""
        self._watching: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to deliver, including the notifications that ended processes were sending."""
        self._pushes.on_change = self._news.set
        self._watching = asyncio.create_task(self._watch(), name="isthmus-push")

    async def aclose(self) -> None:
        """Stop; the next process sends unfinished notifications again."""
        self._pushes.on_change = None
        tasks = [*self._running.values(), *([self._watching] if self._watching else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        with contextlib.suppress(IsthmusError):
            await self._pushes.release([self._owner])
        await self._sender.aclose()

    async def _watch(self) -> None:
        released = -math.inf
        while True:
            self._news.clear()
            seconds = self._limits.look_seconds
            try:
                if time.monotonic() - released >= self._limits.look_seconds:
                    await self._release_gone()
                    released = time.monotonic()
                seconds = await self._begin()
            except Exception:  # the watch must continue for the tasks of all users
                log.exception("push notifications could not be handled; trying again")
            await self._wait_for_change(seconds)

    async def _wait_for_change(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            return
        await asyncio.sleep(GATHER_SECONDS)

    async def _release_gone(self) -> None:
        """Release the targets that ended processes were sending to."""
        owners = await self._pushes.owners()
        gone = [owner for owner in owners if owner != self._owner and self._journal.replicas.is_gone(owner)]
        if gone:
            await self._pushes.release(gone)
            self._since = 0

    async def _begin(self) -> float:
        """Start all deliveries that are due and within the limits; return the seconds until the next one is due."""
        if not await self._pushes.has_active():
            self._seen.clear()
            return IDLE_SECONDS
        now = self._journal.now()
        seconds = self._limits.look_seconds
        behind, is_all = await self._behind()
        for row, last in behind:
            if now < row.next_attempt < now + LATEST_ATTEMPT_SECONDS:
                seconds = min(seconds, row.next_attempt - now)
            elif self._seen_of(row) < last and row.key not in self._running:
                is_begun = self._has_room(row.target)
                if is_begun:
                    self._begin_to(row, last)
                is_all = is_all and is_begun
        if is_all:
            self._since = now - SLACK_SECONDS
        return max(seconds, 0.01)

    async def _behind(self) -> tuple[Sequence[tuple[PushRow, int]], bool]:
        """Return targets that may have changes to send, and whether these are all targets; one can be sent to now.

        If none can be sent to now, return all, or as many as :data:`MAX_ROWS`.
        """
        limit = self._limits.rows
        while True:
            behind = await self._pushes.behind(limit, self._since, self._owner)
            is_all = len(behind) < limit
            has_room = any(row.key not in self._running and self._has_room(row.target) for row, _ in behind)
            if is_all or has_room or len(self._running) >= self._limits.at_once or limit >= MAX_ROWS:
                return behind, is_all
            limit *= 4

    def _begin_to(self, row: PushRow, last: int) -> None:
        task = asyncio.create_task(self._deliver(row, last), name=f"isthmus-push-{row.task_id}")
        self._running[row.key] = task
        task.add_done_callback(lambda _: self._ended(row))
        self._hosts[_host(row.target)] += 1

    def _has_room(self, target: PushTarget) -> bool:
        limits = self._limits
        return len(self._running) < limits.at_once and self._hosts[_host(target)] < limits.at_once_to_host

    def _ended(self, row: PushRow) -> None:
        del self._running[row.key]
        self._hosts[_host(row.target)] -= 1
        if not self._hosts[_host(row.target)]:
            del self._hosts[_host(row.target)]
        self._news.set()

    async def _deliver(self, row: PushRow, last: int) -> None:
        """Deliver all changes to a target, one after the other, until one fails."""
        try:
            while (change := await self._next_change(row)) is not None and change.seq is not None:
                if not await self._pushes.claim(row, self._owner):
                    return
                if (reason := await self._lost_access(row)) is not None:
                    log.info("task %s: no more notifications to %s: %s", row.task_id, _host(row.target), reason)
                    await self._pushes.failed(row, self._owner, reason, None)
                    return
                if not await self._send(row, change, change.seq):
                    return
                row = replace(row, seq=change.seq, attempts=0, next_attempt=0, error=None)
            self._note_seen(row, last)
        except IsthmusError as error:
            log.warning("a push notification of task %s could not be handled: %s", row.task_id, error)
            await asyncio.sleep(self._limits.first_wait_seconds)
            self._since = 0  # The target is still claimed here and must be read again, whenever its task changed.
        except Exception:  # nothing awaits this: the error would be lost, and the delivery be retried endlessly
            log.exception("a push notification of task %s failed because of a bug", row.task_id)
            await self._pushes.failed(row, self._owner, "internal error; the server's log has the details", None)

    async def _lost_access(self, row: PushRow) -> str | None:
        """Return the reason why the task's user has lost access, or None."""
        task = await self._journal.task(row.task_id)
        if task is None or self._is_served(task.user):
            return None
        return f"{task.user} no longer has a valid token"

    async def _next_change(self, row: PushRow) -> Delivery | None:
        return await self._pushes.next_change(row.task_id, max(row.seq, self._seen_of(row)))

    def _note_seen(self, row: PushRow, last: int) -> None:
        if len(self._seen) >= MAX_SEEN:
            self._seen.clear()  # reading again only costs a moment
        self._seen[row.key] = (max(last, row.seq), row.next_attempt)

    def _seen_of(self, row: PushRow) -> int:
        seq, next_attempt = self._seen.get(row.key, (0, 0.0))
        return seq if next_attempt == row.next_attempt else 0

    async def _send(self, row: PushRow, change: Delivery, seq: int) -> bool:
        snapshot = await snapshot_after(self._journal, row.task_id, change, self._model_name())
        if snapshot is None:
            return False
        body = encode(self._payload(row.wire_name, snapshot, row.uri))
        try:
            await self._sender.send(row.target, body, _headers(row, seq))
        except PushFailed as error:
            await self._failed(row, change, seq, error)
            return False
        self._telemetry.pushed(PushAttempt("delivered", self._lag(change)))
        await self._pushes.delivered(row, self._owner, seq)
        log.debug("task %s: event %d sent to %s", row.task_id, seq, _host(row.target))
        return True

    def _lag(self, change: Delivery) -> float:
        return max(0.0, self._journal.now() - change.at)

    async def _failed(self, row: PushRow, change: Delivery, seq: int, error: PushFailed) -> None:
        attempts = row.attempts + 1
        spread = random.uniform(0.5, 1)  # noqa: S311 - no secret
        wait = None if error.is_gone else self._limits.wait_after(attempts, error.retry_after, spread)
        what = f"task {row.task_id}: event {seq} was not delivered to {_host(row.target)}: {error}"
        if wait is None:
            log.error("%s; given up after %d attempts, until its push notification config is set again", what, attempts)
        else:
            log.warning("%s; attempt %d of %d follows in %.1f s", what, attempts + 1, self._limits.attempts, wait)
        self._telemetry.pushed(PushAttempt("given-up" if wait is None else "failed", self._lag(change)))
        next_attempt = None if wait is None else self._journal.now() + wait
        await self._pushes.failed(row, self._owner, str(error), next_attempt)


def _headers(row: PushRow, seq: int) -> dict[str, str]:
    """Return the headers of a notification, the same for each attempt."""
    headers = {
        "Content-Type": "application/json",
        "User-Agent": f"isthmus/{__version__}",
        "Idempotency-Key": f"{row.task_id}/{row.target.id}/{seq}",
    }
    target = row.target
    if target.token:
        headers["X-A2A-Notification-Token"] = target.token
    if target.scheme and target.credentials:
        headers["Authorization"] = f"{target.scheme} {target.credentials}"
    if row.uri is not None:
        headers["A2A-Extensions"] = row.uri
    return headers


def _host(target: PushTarget) -> str:
    """Return scheme, host and port of a target for the log; its path and query may hold secrets."""
    try:
        return str(origin_of(target))
    except InvalidRequest:
        return "an unusable URL"
