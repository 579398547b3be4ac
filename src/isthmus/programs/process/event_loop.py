"""An event loop that exits even if a name server is slow, and that a watchdog ends when it hangs; for commands.

asyncio resolves host names in threads that a program waits for at exit, however long the resolver takes. This loop
does not wait for them, and gives them a deadline.
"""

import asyncio
import socket
from collections.abc import Coroutine
from typing import Any, TypeVar

from isthmus.programs.process.watchdog import HANG_SECONDS, ends_when_hung
from isthmus.runtime.threads import in_thread

RESOLVE_SECONDS = 60.0
"""Maximum time in seconds to resolve a host name; callers that connect have their own deadlines."""

T = TypeVar("T")


class Loop(asyncio.SelectorEventLoop):
    """The usual event loop with its own resolution of host names."""

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
        """Resolve a host name, as :meth:`asyncio.loop.getaddrinfo` does.

        Raises:
            OSError: the name has no address, or the resolver did not answer in time.
        """
        return await in_thread(lambda: socket.getaddrinfo(host, port, family, type, proto, flags), RESOLVE_SECONDS)


def run_loop(work: Coroutine[Any, Any, T], hang_seconds: float = HANG_SECONDS) -> T:
    """Run ``work`` as :func:`asyncio.run` does.

    ``hang_seconds`` is the limit of :mod:`isthmus.programs.process.watchdog`.
    """
    with asyncio.Runner(loop_factory=Loop) as runner, ends_when_hung(runner.get_loop(), hang_seconds):
        return runner.run(work)
