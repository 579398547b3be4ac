"""The catalogue of one server: from its own listing, or cached from its last connection; and how long to wait for it.

Not here: the files of the cache, see :mod:`isthmus.mcp_host.catalogue.manifests`.
"""

import asyncio
import math
from dataclasses import replace

from isthmus.mcp_host.catalogue.catalogue import Catalogue, CatalogueTool, catalogue_of
from isthmus.mcp_host.catalogue.listing import Listing
from isthmus.mcp_host.catalogue.manifests import Manifest
from isthmus.mcp_host.config.server_config import ServerConfig
from isthmus.mcp_host.connection.connection_context import ConnectionContext
from isthmus.mcp_host.connection.errors import ToolGoneError
from isthmus.mcp_host.connection.transport_probe import TransportChoice

USUAL_STARTS = 2.0
"""Wait for a server that could not be used the last time, as a multiple of the time that its starts take."""
LEAST_START = 0.25
"""Minimum time in seconds that counts as the duration of a start."""


class KnownCatalogue:
    """The catalogue of a server. ``is_cached``: it is from an earlier connection and has not been confirmed since."""

    def __init__(self, config: ServerConfig, context: ConnectionContext) -> None:
        self.catalogue = Catalogue()
        self.is_cached = False
        self.wait_note: str | None = None
        """Sentence on how long a turn waited for the server in vain, and why not longer."""
        self._config = config
        self._workspace = context.workspace
        self._held_seconds = context.timeouts.held_seconds
        self._manifests = context.manifests
        self._notes_failures = context.notes_failures
        self._manifest: Manifest | None = None
        self._storing = asyncio.Lock()
        self._cached_names: tuple[str, ...] = ()
        self._tools: dict[str, CatalogueTool] = {}

    def load_cached(self) -> TransportChoice | None:
        """Load the cached listing, and return the transport by which it was reached. Blocking."""
        if self._manifests is None:
            return None
        self._manifest = self._manifests.load(self._config, self._workspace)
        if self._manifest is None:
            return None
        catalogue = self._catalogue_of(self._manifest.listing)
        self._cached_names = tuple(tool.name for tool in catalogue.tools)
        if not (self._manifest.is_held or catalogue.is_empty):
            self._set(catalogue)
            self.is_cached = True
        return self._manifest.way

    @property
    def is_held(self) -> bool:
        """Whether the server could not be used in the last run."""
        return self._manifest is not None and self._manifest.is_held

    def patience(self, seconds: float) -> float:
        """Return the time in seconds that a turn waits for the server, at most `seconds`.

        It is shorter after a run without the server, but long enough for its usual start. It is not shorter after a
        run that waited less than `seconds`: so of two runs one at least waits as long as for a new server.
        """
        found = self._manifest
        if found is None or not found.is_held:
            return seconds
        if found.waited_seconds is not None and found.waited_seconds < seconds:
            return seconds
        return min(seconds, max(self._held_seconds, USUAL_STARTS * found.usual_seconds))

    @property
    def tool_names(self) -> tuple[str, ...]:
        """The server's names of its tools; while the server cannot be used, the names of the cached listing."""
        return tuple(self._tools) or self._cached_names

    def tool(self, name: str) -> CatalogueTool | None:
        """Return a tool by the server's own name; None if the server does not offer it now."""
        return self._tools.get(name)

    def require(self, name: str, version: str | None) -> None:
        """Make sure that a tool still exists and, unless `version` is None, that it has not changed.

        Raises:
            ToolGoneError: it is gone or has changed; the message tells the model how to proceed.
        """
        found = self._tools.get(name)
        server = f"the MCP server {self._config.name!r}"
        if found is None:
            raise ToolGoneError(f"{server} no longer has the tool {name!r}; nothing was called")
        if version and found.version != version:
            raise ToolGoneError(
                f"{server} has changed its tool {name!r} since this call was written or approved; nothing was called. "
                "Read its current description and parameters, and call it again"
            )

    def take(self, listing: Listing) -> None:
        """Replace the catalogue by a new listing of the server."""
        self._set(self._catalogue_of(listing))
        self._cached_names = ()

    def clear(self) -> None:
        """Empty the catalogue of a server that cannot be used."""
        self._set(Catalogue())

    async def keep(self, listing: Listing, choice: TransportChoice, took: float) -> None:
        """Store a listing for the next start, with the transport, and the time in seconds that its start took.

        A failure that was stored before counts no longer.
        """
        kept, choice = replace(listing, discovered=None), replace(choice, discovered=listing.discovered)
        usual = 2.0 ** math.ceil(math.log2(max(took, LEAST_START)))
        if self._manifest is not None and usual <= self._manifest.usual_seconds <= 4 * usual:
            usual = self._manifest.usual_seconds  # not a new file for each start
        await self._store(Manifest(kept, choice, is_held=self.catalogue.is_empty, usual_seconds=usual))

    async def mark_failed(self) -> None:
        """Store for the next start that the server could not be used.

        At the next start its tools are not offered before it is connected, and the wait for it is shorter.
        """
        await self._mark(None)

    async def note_wait(self, waited: float, seconds: float) -> None:
        """Store that a turn, which waits `seconds` for a new server, waited for `waited` seconds in vain."""
        if not self.catalogue.is_empty:
            return  # it was connected just after the wait
        self.wait_note = f"it was waited for {waited:g} s"
        if waited < seconds:
            again = f"the next run waits {seconds:g} s"
            self.wait_note += f" instead of {seconds:g} s, because it could not be used in the last run; {again}"
        await self._mark(waited)

    async def _mark(self, waited: float | None) -> None:
        if self._notes_failures:
            manifest = self._manifest or Manifest(Listing(), TransportChoice())
            await self._store(replace(manifest, is_held=True, waited_seconds=waited))

    async def _store(self, manifest: Manifest) -> None:
        if self._manifests is None or manifest == self._manifest:
            return
        self._manifest = manifest
        async with self._storing:  # in order: threads could overtake each other
            await asyncio.to_thread(self._manifests.store, self._config, self._workspace, manifest)

    def _catalogue_of(self, listing: Listing) -> Catalogue:
        return catalogue_of(listing, self._config.include_tools, self._config.exclude_tools)

    def _set(self, catalogue: Catalogue) -> None:
        self.catalogue, self.is_cached = catalogue, False
        self._tools = {tool.name: tool for tool in catalogue.tools}
