"""Runs what a command does to its end, on an event loop whose end no name server holds up, and that ends when it hangs.

asyncio resolves host names in threads that the end of a program waits for, as long as the resolver takes. Here these
threads are not waited for, and have a deadline.
"""

import asyncio
import socket
from collections.abc import Coroutine
from typing import Any, TypeVar

from isthmus.app.watchdog import HANG_SECONDS, ends_when_hung
from isthmus.runtime.threads import in_thread

RESOLVE_SECONDS = 60.0
"""For the name of a host, in all; whoever connects has a deadline of its own."""

T = TypeVar("T")


class Loop(asyncio.SelectorEventLoop):
    """The usual event loop, but for how it resolves names."""

    async def getaddrinfo(
        self,
        host: bytes | str | None,
        port: bytes | str | int | None,
        *,
        family: int = 0,
        type: int = 0,  # noqa: A002 - asyncio's name
        proto: int = 0,
        flags: int = 0,
    ) -> Any:
        """See :meth:`asyncio.loop.getaddrinfo`.

        Raises:
            OSError: the name has no address, or none came in time.
        """
        return await in_thread(lambda: socket.getaddrinfo(host, port, family, type, proto, flags), RESOLVE_SECONDS)


def run(work: Coroutine[Any, Any, T], hang_seconds: float = HANG_SECONDS) -> T:
    """What `work` returns or raises; see :func:`asyncio.run`. `hang_seconds`: see :mod:`isthmus.app.watchdog`."""
    with asyncio.Runner(loop_factory=Loop) as runner, ends_when_hung(runner.get_loop(), hang_seconds):
        return runner.run(work)
