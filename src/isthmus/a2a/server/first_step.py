"""Takes the first step of an awaitable at once: mostly what is waited for is there already.

So work that waiting alone needs (a timer, sending what was gathered) is done only when there is something to wait for.
Deliberately not here: what is waited for.
"""

from collections.abc import Awaitable, Callable, Generator
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")


class FirstStep(Generic[T]):
    """An awaitable that has begun: when it ``is_done`` there is its ``result``, else :meth:`after` is awaited, once.

    Raises what the awaitable raises in its first step.
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
        """Return the result, waited for."""
        return await self.after(_nothing)

    async def after(self, before: Callable[[], Awaitable[object]]) -> T:
        """The result, waited for. ``before`` is done before that; its errors are raised in what was begun, too."""
        return await _Rest(self._steps, self._waits_for, before)


async def _nothing() -> None:
    pass


class _Rest(Generic[T]):
    """The other steps; what goes wrong at one of them, a cancellation above all, is raised in what was begun."""

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
