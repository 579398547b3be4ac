"""Clocks that tests set: a pause moves them on at once, and things happen at the times that the test names."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

MAXIMUM_PAUSES = 100_000
"""Number of pauses after which a wait counts as endless."""


@dataclass
class FakeClock:
    """A computer's clocks in seconds. ``monotonic`` stops while it sleeps, ``now`` goes on."""

    monotonic_time: float = 1_000.0
    wall_time: float = 1_800_000_000.0
    pauses: list[float] = field(default_factory=list[float])
    events: list[tuple[float, Callable[[], object]]] = field(default_factory=list[tuple[float, Callable[[], object]]])
    began: float = 1_000.0

    def monotonic(self) -> float:
        return self.monotonic_time

    def now(self) -> float:
        return self.wall_time

    @property
    def passed(self) -> float:
        """Seconds since the clock began, without those asleep."""
        return self.monotonic_time - self.began

    def at(self, seconds: float, action: Callable[[], object]) -> None:
        """Have something done when ``seconds`` have passed; it may return an awaitable."""
        self.events.append((seconds, action))
        self.events.sort(key=lambda event: event[0])

    def sleep_computer(self, seconds: float) -> None:
        """Let the computer sleep."""
        self.wall_time += seconds

    async def sleep(self, seconds: float) -> None:
        """Move the clocks on, and do what was due meanwhile."""
        self.pauses.append(seconds)
        assert len(self.pauses) < MAXIMUM_PAUSES, "the wait does not end"
        end = self.passed + seconds
        while self.events and self.events[0][0] <= end:
            at, action = self.events.pop(0)
            self._move(max(0.0, at - self.passed))
            result = action()
            if asyncio.iscoroutine(result):
                await result
        self._move(max(0.0, end - self.passed))
        await asyncio.sleep(0)

    def _move(self, seconds: float) -> None:
        self.monotonic_time += seconds
        self.wall_time += seconds
