"""Passes the events of a framework's run on to the generator of an AgentPort.

A framework calls tools and stores its state deep inside of its run, where nothing can be yielded. So the run is a task
of its own, and each event waits here until the generator has yielded it.
"""

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from typing import Any

from isthmus.events import AgentEvent

ENDS_WITHIN = 5.0
"""Time in seconds for a cancelled run to end; a tool in a thread may go on for longer, and nobody listens to it."""


class Relay:
    """The way of events from a framework's run to the engine, in order; made in the event loop of the engine.

    ``ends_within`` is in seconds, see :data:`ENDS_WITHIN`.
    """

    def __init__(self, ends_within: float = ENDS_WITHIN) -> None:
        self._ends_within = ends_within
        self._is_closed = False
        self._loop = asyncio.get_running_loop()
        self._waiting: asyncio.Queue[tuple[AgentEvent, asyncio.Future[None] | None] | None] = asyncio.Queue()

    async def emit(self, *events: AgentEvent) -> None:
        """Pass events on; return when the engine has taken them, so that an EXECUTING call or a record is stored.

        May be called in any event loop of this process.
        """
        for event in events:
            if asyncio.get_running_loop() is self._loop:
                await self._pass_on(event)
            else:
                await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._pass_on(event), self._loop))

    def emit_blocking(self, event: AgentEvent) -> None:
        """Pass an event on, from code without ``await``.

        In a thread of its own it returns when the engine has taken the event; in the thread of the event loop at once.
        """
        try:
            is_in_loop = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            is_in_loop = False
        if is_in_loop:
            self._waiting.put_nowait((event, None))
        else:
            asyncio.run_coroutine_threadsafe(self._pass_on(event), self._loop).result()

    async def events(self, work: Coroutine[Any, Any, None]) -> AsyncGenerator[AgentEvent, None]:
        """Run ``work`` and yield the events that it emits, then raise its exception if it failed.

        The work is cancelled if the generator is closed before.
        """
        task = asyncio.ensure_future(work)
        task.add_done_callback(lambda _: self._waiting.put_nowait(None))
        taken: asyncio.Future[None] | None = None
        try:
            while (item := await self._waiting.get()) is not None:
                event, taken = item
                yield event
                if taken is not None and not taken.done():
                    taken.set_result(None)
            await task
        finally:
            self._give_up(taken)
            task.cancel()
            task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
            await asyncio.wait([task], timeout=self._ends_within)

    def _give_up(self, taken: asyncio.Future[None] | None) -> None:
        """Cancel all that wait for events to be taken: a framework may wait for them before it ends."""
        self._is_closed = True
        if taken is not None:
            taken.cancel()
        while not self._waiting.empty():
            if (item := self._waiting.get_nowait()) is not None and item[1] is not None:
                item[1].cancel()

    async def _pass_on(self, event: AgentEvent) -> None:
        if self._is_closed:
            raise asyncio.CancelledError
        taken: asyncio.Future[None] = self._loop.create_future()
        self._waiting.put_nowait((event, taken))
        await taken
