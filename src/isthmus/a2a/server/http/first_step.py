"""Takes the first step of an awaitable at once, because its result is usually ready.

Work that is needed only before a wait (a timer, sending gathered events) can then be saved if there is no wait.
"""

from collections.abc import Awaitable, Callable, Generator
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")


class FirstStep(Generic[T]):
    """An awaitable that has begun. If ``is_done``, its result is ``result``; otherwise await :meth:`after` once.

    The constructor raises what the awaitable raises in its first step.
    """

    __slots__ = ("_steps", "_waits_for", "is_done", "result")

    def __init__(self, awaitable: Awaitable[T]) -> None:
        self._steps: Generator[Any, Any, T] = awaitable.__await__()
        self.is_done = False
        self.result = cast("T", None)
        try:
            self._waits_for: Any = self._steps.send(None)
        except StopIteration as end:
            self.is_done, self.result = True, end.value

    async def rest(self) -> T:
        """Wait for the result and return it."""
        return await self.after(_nothing)

    async def after(self, before: Callable[[], Awaitable[object]]) -> T:
        """Run ``before``, then wait for the result and return it. Errors of ``before`` are raised in the awaitable."""
        return await _Rest(self._steps, self._waits_for, before)


async def _nothing() -> None:
    pass


class _Rest(Generic[T]):
    """The remaining steps; an error in one of them, above all a cancellation, is raised in the awaitable."""

    def __init__(self, steps: Generator[Any, Any, T], waits_for: Any, before: Callable[[], Awaitable[object]]) -> None:
        self._steps = steps
        self._waits_for = waits_for
        self._before = before

    def __await__(self) -> Generator[Any, Any, T]:
        waits_for, error = self._waits_for, cast("BaseException | None", None)
        try:
            yield from self._before().__await__()
        except BaseException as raised:
            error = raised
        try:
            while True:
                if error is None:
                    try:
                        sent = yield waits_for
                    except BaseException as raised:
                        error = raised
                    else:
                        waits_for = self._steps.send(sent)
                else:
                    thrown, error = error, None
                    waits_for = self._steps.throw(thrown)
        except StopIteration as end:
            return end.value
