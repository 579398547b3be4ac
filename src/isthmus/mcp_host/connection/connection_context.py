"""The context of a connection to a server, besides the server's own configuration."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from isthmus.record import record

if TYPE_CHECKING:
    from isthmus.mcp_host.catalogue.manifests import Manifests
    from isthmus.mcp_host.diagnosis.trace import Trace
    from isthmus.network.checked_transport import AddressPolicy
    from isthmus.sandbox.finding import SandboxFinder

START_PLACES = 10
START_SECONDS = 3.0
"""Maximum time in seconds that a starting server keeps its place, and other servers waiting."""


class StartLimit:
    """Limit on the number of programs that start at the same time.

    Twenty interpreters that start at once take longer than ten followed by another ten. Launchers such as npx with an
    empty cache do not start at all then.
    """

    def __init__(self, places: int = START_PLACES, longest: float = START_SECONDS) -> None:
        self._free = asyncio.Semaphore(places)
        self._longest = longest

    async def enter(self) -> Callable[[], None]:
        """Wait for a place, and return a function that the caller must call to release it.

        The place of a hanging server is released after the maximum time.
        """
        await self._free.acquire()
        is_held = True

        def leave() -> None:
            nonlocal is_held
            if is_held:
                is_held = False
                timer.cancel()
                self._free.release()

        timer = asyncio.get_running_loop().call_later(self._longest, leave)
        return leave


@record
class McpTimeouts:
    """Timeouts for MCP servers, in addition to those in each server's configuration."""

    start_delay_seconds: float = 0.1
    """Delay of a server whose catalogue is cached: callers get its tools before its program starts, which keeps the
    event loop busy for a while."""
    discover_seconds: float = 2.0
    """Maximum wait for the answer to the question before the handshake."""
    optional_listing_seconds: float = 4.0
    """Maximum wait for prompts, or for resources: the tools are not offered before."""
    longest_call_seconds: float = 3600.0
    """Maximum duration of a call, even if it reports progress; a longer `timeout` of the server replaces it."""
    token_seconds: float = 10.0
    """Maximum wait for an answer when a login is renewed."""
    retry_seconds: float = 30.0
    """Longest pause before a server that failed is tried again because a turn needs its tools; the time that it took
    to fail, if that is shorter."""
    held_seconds: float = 5.0
    """Minimum wait for a server that could not be used in the last run, unless it is known to take longer to start."""
    report_seconds: float = 1.5
    """Interval between reports of the servers that the agent is waiting for."""
    change_seconds: float = 0.1
    """Time after the result of a call in which the server may report that the call changed its tools: the model's next
    step waits for it."""
    close_seconds: float = 1.8
    """Maximum time for a connection to end."""
    exit_seconds: tuple[float, float] = (0.7, 0.5)
    """Maximum time for a program to end after its stdin is closed, and then after SIGTERM."""


@record
class ConnectionContext:
    """The context of a connection. ``home`` is the home folder that holds the logins; None if there are no logins.

    Without ``manifests``, nothing is kept from one start to the next; without ``notes_failures`` only successes are.
    Without ``gate``, all programs start at once.
    Without ``sandbox``, a sandbox is looked for when a server requires it. Without ``trace``, messages are not traced.
    """

    environment: Mapping[str, str]
    workspace: Path
    home: Path | None = None
    address_policy: "AddressPolicy | None" = None
    manifests: "Manifests | None" = None
    gate: StartLimit | None = None
    sandbox: "SandboxFinder | None" = None
    trace: "Trace | None" = None
    open_browser: Callable[[str], object] | None = None
    """Opens a page for the user; None if no user is at this machine."""
    notes_failures: bool = True
    reads_freely: bool = False
    """Whether tools that claim to be read-only run without the user's approval."""
    timeouts: McpTimeouts = McpTimeouts()
