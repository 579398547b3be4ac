"""A budget of the bytes of large requests that are read at the same time, for each user and for the whole server.

Requests that do not fit wait, and have their turn in the order in which they came, so that small ones do not overtake a
large one all the time. A user without room keeps nobody else waiting.
"""

import asyncio
from collections import Counter
from dataclasses import dataclass, field

from isthmus.errors import IsthmusError


class NoRoomError(IsthmusError):
    """There was no room for a request in time. ``is_of_user``: because of the user's own other requests."""

    def __init__(self, *, is_of_user: bool) -> None:
        self.is_of_user = is_of_user
        whose = "you have" if is_of_user else "the server has"
        super().__init__(f"{whose} as many large requests under way as there may be; send this one again later")


class Room:
    """Bytes of the budget that a request has until :meth:`release`."""

    def __init__(self, budget: "BytesInFlight", user: str, size: int) -> None:
        self._budget = budget
        self._user = user
        self._size = size

    def release(self) -> None:
        """Give the bytes back; does nothing the second time."""
        size, self._size = self._size, 0
        if size:
            self._budget.give_back(self._user, size)


@dataclass(slots=True, eq=False)
class _Waiter:
    user: str
    size: int
    granted: "asyncio.Future[None]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class BytesInFlight:
    """The budget: at most ``total`` bytes, of which ``each`` user has at most so many.

    A request that is larger than its share is read alone.
    """

    def __init__(self, total: int, each: int) -> None:
        self._total = total
        self._each = each
        self._used: Counter[str] = Counter()
        self._waiting: list[_Waiter] = []

    @property
    def used(self) -> int:
        """Number of bytes in use."""
        return self._used.total()

    @property
    def waiting(self) -> int:
        """Number of requests that wait for room."""
        return len(self._waiting)

    async def take(self, user: str, size: int, seconds: float) -> Room:
        """Return room for a request of ``size`` bytes, which may take ``seconds`` until others have ended.

        Raises:
            NoRoomError: there was none in this time.
        """
        waiter = _Waiter(user, min(size, self._each, self._total))
        self._waiting.append(waiter)
        self._grant()
        try:
            async with asyncio.timeout(seconds):
                await waiter.granted
        except BaseException as error:
            if waiter in self._waiting:
                self._waiting.remove(waiter)
                self._grant()
            else:  # granted in the turn in which it was cancelled
                self.give_back(user, waiter.size)
            if isinstance(error, TimeoutError):
                raise NoRoomError(is_of_user=not self._fits_user(waiter)) from None
            raise
        return Room(self, user, waiter.size)

    def give_back(self, user: str, size: int) -> None:
        """Take back bytes of a user, and let those that wait have them."""
        self._used[user] -= size
        if not self._used[user]:
            del self._used[user]
        self._grant()

    def _grant(self) -> None:
        for waiter in tuple(self._waiting):
            if waiter.granted.done() or not self._fits_user(waiter):
                continue
            if self.used + waiter.size > self._total:
                return
            self._waiting.remove(waiter)
            self._used[waiter.user] += waiter.size
            waiter.granted.set_result(None)

    def _fits_user(self, waiter: _Waiter) -> bool:
        return self._used[waiter.user] + waiter.size <= self._each
