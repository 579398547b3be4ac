"""Limits of the days of a server's users, which refuse their messages and end their work."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from isthmus.a2a.server.users.users import Caps, UserTable
from isthmus.engine.users.day_use import DayBudget, DayUse
from isthmus.journal.port.day_limits import DayLimits

if TYPE_CHECKING:
    from isthmus.engine import Engine


def limited_days(engine: "Engine", caps: Caps, users: Callable[[], UserTable] | None) -> DayUse:
    """Return the use of an engine's users by day, which from now on ends their tasks at a limit.

    ``caps`` are the limits of users for whom the table of ``users`` has none. The owner has none.
    """

    def limits_of(user: str) -> DayLimits:
        if not user:
            return DayLimits()  # Without a look at the file of users: each of the owner's turns comes here twice.
        known = UserTable() if users is None else users()
        return known.limits_of_day(user, time.time(), caps)

    engine.spending.budgets.append(DayBudget(engine.day_use, limits_of))
    return engine.day_use
