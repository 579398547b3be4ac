"""The waits between the tries of a request: back-off, the waits that a server asks for, and those for the network.

While the network is away the host of the server is asked for a connection each second. The next try starts once it
accepts one, and does not count as a further one. A wait ends early if the computer slept meanwhile.
"""

import time
from collections.abc import AsyncGenerator, Awaitable, Callable

from isthmus.models.endpoint.retry import RetryPolicy, may_be_offline
from isthmus.models.port.base import ModelError, Retrying
from isthmus.record import record
from isthmus.text.units import show_wait

PROBE_SECONDS = 1.0
"""Time in seconds between two looks at whether the network is back."""
SLICE_SECONDS = 10.0
"""Maximum time in seconds for which a wait does not look at the clock."""
BACK = "there is a connection again"
"""Reason of the try that starts because the network is back."""


@record
class WaitClock:
    """Pause, random number and clocks of the waits, so that tests can replace them.

    ``monotonic`` stops while the computer sleeps, ``now`` (Unix seconds) does not.
    """

    sleep: Callable[[float], Awaitable[None]]
    random: Callable[[], float]
    now: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic


class RequestWaits:
    """The waits of one request. ``is_reachable`` returns whether the host of the server accepts connections."""

    def __init__(self, clock: WaitClock, is_reachable: Callable[[], Awaitable[bool]]) -> None:
        self._clock = clock
        self._is_reachable = is_reachable
        self._attempt = 1
        self._waited = 0.0
        self._has_waited_offline = False

    async def after(self, error: ModelError, policy: RetryPolicy) -> AsyncGenerator[Retrying, None]:
        """Yield what is to be said about the next try, and end when it is time for it.

        Raises:
            ModelError: the error itself, if no further try or no time is left.
        """
        attempts = policy.attempts_for(error)
        left = policy.patience - self._waited
        if may_be_offline(error) and left > 0 and not await self._is_reachable():
            self._has_waited_offline = True
            yield Retrying(self._attempt + 1, attempts, left, str(error), is_offline=True)
            is_back = await self._wait_for_network(left)
            reason = BACK if is_back else f"no connection within {show_wait(policy.patience)}; this is the last try"
            yield Retrying(self._attempt + 1, attempts, 0.0, reason)
            return
        wait = policy.wait(error, self._attempt, self._clock.random(), self._waited)
        if wait is None:
            raise self._given_up(error, policy)
        self._attempt, self._waited = self._attempt + 1, self._waited + wait
        yield Retrying(self._attempt, attempts, wait, str(error))
        await self._pause(wait)

    async def _wait_for_network(self, longest: float) -> bool:
        """Return whether the network came back within ``longest`` seconds; time asleep does not count."""
        begun, slept = self._clock.monotonic(), 0.0
        while True:
            # The clock of a test may stand still.
            gone = max(slept, self._clock.monotonic() - begun)
            if gone >= longest:
                self._waited += longest
                return False
            step = min(PROBE_SECONDS, longest - gone)
            await self._clock.sleep(step)
            slept += step
            if await self._is_reachable():
                self._waited += min(longest, max(slept, self._clock.monotonic() - begun))
                return True

    async def _pause(self, seconds: float) -> None:
        """Wait, but no longer than the time by the clock on the wall, which goes on while the computer sleeps."""
        begun, awake = self._clock.now(), 0.0
        while awake < seconds:
            passed = self._clock.now() - begun
            if passed > awake + SLICE_SECONDS and passed >= seconds:
                return
            step = min(seconds - awake, SLICE_SECONDS)
            await self._clock.sleep(step)
            awake += step

    def _given_up(self, error: ModelError, policy: RetryPolicy) -> ModelError:
        if not self._has_waited_offline or not may_be_offline(error):
            return error
        waited = f"No connection came within {show_wait(policy.patience)}. Send a message to go on"
        text = f"{str(error).rstrip('.')}. {waited}"
        return ModelError(error.kind, text, status=error.status, retry_after=error.retry_after, final=error.final)
