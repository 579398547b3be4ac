"""The context of a connection to a server, besides the server's own configuration."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isthmus.mcp_host.catalogue.manifests import Manifests
    from isthmus.mcp_host.diagnosis.trace import Trace
    from isthmus.network.checked_transport import AddressPolicy
    from isthmus.sandbox.finding import SandboxFinder

START_PLACES = 10
START_SECONDS = 3.0
"""Maximum time in seconds for which a starting server keeps others waiting."""


class StartLimit:
    """Limits how many programs start at the same time.

    Twenty that start at once, each an interpreter, take longer than ten and then ten; launchers such as npx with an
    empty cache do not come up at all.
    """

    def __init__(self, places: int = START_PLACES, longest: float = START_SECONDS) -> None:
        self._free = asyncio.Semaphore(places)
        self._longest = longest

    async def enter(self) -> Callable[[], None]:
        """Wait for a place, and return a function that gives it up, which must be called.

        A server that hangs gives it up by itself after a while.
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


@dataclass(frozen=True, slots=True)
class McpTimeouts:
    """Timeouts for MCP servers, besides those in the configuration of each."""

    start_delay_seconds: float = 0.1
    """Delay of a server whose catalogue is cached: callers get its tools before its program starts, which keeps the
    event loop busy for a while."""
    discover_seconds: float = 2.0
    """Maximum wait for the answer to the question before the handshake."""
    optional_listing_seconds: float = 4.0
    """Maximum wait for prompts, or resources: the tools wait with them."""
    longest_call_seconds: float = 3600.0
    """Maximum time of a call, whatever progress it reports; a longer `timeout` of the server replaces it."""
    token_seconds: float = 10.0
    """Maximum wait for an answer when a login is renewed."""
    retry_url_seconds: float = 30.0
    """Minimum delay before a URL that failed is tried again because its tools are wanted."""
    hanging_seconds: float = 4.0
    """Time after which a new server that is still connecting when the agent ends is stored as unusable."""
    late_seconds: float = 2.0
    """Time after which a failure is late: at the next start the server is not waited for."""
    report_seconds: float = 1.5
    """Interval at which the servers that are waited for are reported."""
    close_seconds: float = 1.8
    """Maximum time for a connection to end."""
    exit_seconds: tuple[float, float] = (0.7, 0.5)
    """Maximum time for a program to end after its input is closed, and then after SIGTERM."""


@dataclass(frozen=True, slots=True)
class ConnectionContext:
    """The context of a connection. ``home`` is where logins are kept; None: there are none.

    ``manifests`` None: nothing is kept from one start to the next. ``gate`` None: all programs start at once.
    ``sandbox`` None: it is looked up when a server requires it.
    ``trace`` None: messages are not traced.
    """

    environment: Mapping[str, str]
    workspace: Path
    home: Path | None = None
    why_not: "AddressPolicy | None" = None
    manifests: "Manifests | None" = None
    gate: StartLimit | None = None
    sandbox: "SandboxFinder | None" = None
    trace: "Trace | None" = None
    open_browser: Callable[[str], object] | None = None
    """Shows a page to the user, where there is one at this machine."""
    reads_freely: bool = False
    """Whether its tools that say they only read run without a question."""
    timeouts: McpTimeouts = McpTimeouts()
