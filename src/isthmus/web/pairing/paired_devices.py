"""The paired devices of a user: letting one in, listing and revoking them, and when each was used."""

import asyncio
import itertools
from collections.abc import Callable, Collection
from typing import Any

from isthmus.a2a.server.users.auth import Principal, Refusal
from isthmus.a2a.server.users.users import TokenEntry, UserTable
from isthmus.record import record
from isthmus.text.visible import visible_line
from isthmus.web.http.refusals import RefusalCode, refusal
from isthmus.web.pairing.devices import Devices
from isthmus.web.pairing.pairing import PairingCode

DEVICE_SECONDS = 90 * 86_400.0
"""Time in seconds after which a device has to be paired again."""
USE_SECONDS = 3_600.0
"""Time in seconds after which the use of a device is written down again."""
MAXIMUM_LABEL = 60
"""Maximum number of characters of a device's name."""
MAXIMUM_DEVICES = 50
"""Maximum number of devices of one user."""


@record
class PairedDevices:
    """The devices in a table of users. ``now`` returns the time in seconds since 1970."""

    users: Devices
    now: Callable[[], float]

    def of(self, user: str) -> list[TokenEntry]:
        """Return the devices of a user whose tokens have not expired."""
        entries = self.users.table().entries.values()
        return [entry for entry in entries if entry.device and entry.name == user and not entry.is_expired(self.now())]

    async def let_in(self, code: PairingCode, label: str) -> dict[str, Any] | Refusal:
        """Add the device that has used a code, by the name that it gives itself; return its token."""
        if code.by and code.by not in self.users.table().entries:
            return refusal(
                RefusalCode.CODE_WITHDRAWN, "the device that made this code was removed; make a new one elsewhere"
            )
        now, user = self.now(), code.user
        if len(self.of(user)) >= MAXIMUM_DEVICES:
            return refusal(
                RefusalCode.TOO_MANY_DEVICES, f"there are {MAXIMUM_DEVICES} devices already; revoke one of them first"
            )
        name = visible_line(label).strip()[:MAXIMUM_LABEL] or "a browser"

        def change(table: UserTable) -> tuple[UserTable, tuple[TokenEntry, str]]:
            own = _unlike(name, {entry.device for entry in table.entries.values() if entry.name == user})
            changed, entry, token = table.with_device(user, own, now, now + DEVICE_SECONDS, code.by)
            return changed, (entry, token)

        entry, token = await asyncio.to_thread(self.users.change, change)
        return {"token": token, "id": entry.id, "user": user, "device": entry.device, "expires": entry.expires}

    async def note_use(self, entry: TokenEntry) -> None:
        """Keep when a device was used; not more often than once an hour, since the table is a file."""
        now = self.now()
        if entry.used is None or now - entry.used >= USE_SECONDS:
            await asyncio.to_thread(self.users.change, lambda table: (table.with_use(entry.id, now), None))

    def listing(self, principal: Principal) -> dict[str, Any]:
        """Return the devices of a user as the page shows them."""
        table = self.users.table()
        shown = [
            {**shown_device(entry), "pairs": [each.id for each in table.paired_by(entry.id)]}
            for entry in self.of(principal.name)
        ]
        return {"devices": shown, "this": principal.token_id}

    async def revoke(self, user: str, device_id: str) -> dict[str, Any] | Refusal:
        """Remove a device of a user, and what it has paired."""
        if device_id not in {entry.id for entry in self.of(user)}:
            return refusal(RefusalCode.NO_SUCH_DEVICE, "you have no such device")
        gone = await asyncio.to_thread(self.users.change, lambda table: table.revoked(device_id))
        return {"revoked": device_id, "with": [entry.id for entry in gone if entry.id != device_id]}


def shown_device(entry: TokenEntry) -> dict[str, Any]:
    """Return a device as the page shows it."""
    return {
        "id": entry.id,
        "label": entry.device,
        "paired": entry.created,
        "expires": entry.expires,
        "used": entry.used,
        "pairedBy": entry.paired_by or None,
    }


def _unlike(label: str, taken: Collection[str]) -> str:
    """Return a device's label, with a number if another device of the user has it: an answer names its device."""
    numbered = (f"{label} {number}" for number in itertools.count(2))
    return next(name for name in itertools.chain([label], numbered) if name not in taken)
