"""The known offer of one server: its own listing, or that of its last connection.

Deliberately not here: connecting, and the files (:mod:`isthmus.mcp_host.catalogue.manifests`).
"""

import asyncio
from dataclasses import replace

from isthmus.mcp_host.catalogue.catalogue import Catalogue, CatalogueTool, offer_of
from isthmus.mcp_host.catalogue.listing import Listing
from isthmus.mcp_host.catalogue.manifests import Manifest
from isthmus.mcp_host.config.server_config import ServerConfig
from isthmus.mcp_host.connection.connection_context import ConnectionContext
from isthmus.mcp_host.connection.errors import ToolGoneError
from isthmus.mcp_host.connection.transport_probe import TransportChoice


class KnownCatalogue:
    """``is_recalled``: it is what the server offered when it was last connected; it has not said so since."""

    def __init__(self, config: ServerConfig, context: ConnectionContext) -> None:
        self.offer = Catalogue()
        self.is_recalled = False
        self._config = config
        self._workspace = context.workspace
        self._late_seconds = context.timeouts.late_seconds
        self._manifests = context.manifests
        self._manifest: Manifest | None = None
        self._recalled_names: tuple[str, ...] = ()
        self._tools: dict[str, CatalogueTool] = {}

    def recall(self) -> TransportChoice | None:
        """Take up what was kept, and return the way that the server was reached; blocks."""
        if self._manifests is None:
            return None
        self._manifest = self._manifests.load(self._config, self._workspace)
        if self._manifest is None:
            return None
        offer = self._offer_of(self._manifest.listing)
        self._recalled_names = tuple(tool.name for tool in offer.tools)
        if not (self._manifest.is_held or offer.is_empty):
            self._set(offer)
            self.is_recalled = True
        return self._manifest.way

    @property
    def is_held(self) -> bool:
        """The server could not be used when it was last tried."""
        return self._manifest is not None and self._manifest.is_held

    @property
    def is_late(self) -> bool:
        """Whether it took long until it was known that the server could not be used, when it was last tried."""
        return self._manifest is not None and self._manifest.is_held and self._manifest.is_late

    @property
    def tool_names(self) -> tuple[str, ...]:
        """The server's names of its tools; while it cannot be used, those that it had when it was last connected."""
        return tuple(self._tools) or self._recalled_names

    def tool(self, name: str) -> CatalogueTool | None:
        """Return a tool that it offers now, by the server's own name."""
        return self._tools.get(name)

    def require(self, name: str, version: str | None) -> None:
        """Make sure that a tool is still there, and that it still is what it was; None: whatever it is.

        Raises:
            ToolGoneError: it is not; the text says what to do.
        """
        found = self._tools.get(name)
        server = f"the MCP server {self._config.name!r}"
        if found is None:
            raise ToolGoneError(f"{server} does not have the tool {name!r} any more; nothing was called")
        if version and found.version != version:
            raise ToolGoneError(
                f"{server} has changed its tool {name!r} since this call was written or approved; nothing was called. "
                "Look at its description and parameters as they are now, and call it anew"
            )

    def take(self, listing: Listing) -> None:
        """Take a new listing of the server as its offer."""
        self._set(self._offer_of(listing))
        self._recalled_names = ()

    def drop(self) -> None:
        """Remove the offer of a server that cannot be used."""
        self._set(Catalogue())

    async def keep(self, listing: Listing, way: TransportChoice) -> None:
        """Keep for the next start what was taken."""
        kept = replace(listing, discovered=None)
        await self._store(Manifest(kept, replace(way, discovered=listing.discovered), is_held=self.offer.is_empty))

    async def hold(self, took: float) -> None:
        """Keep that the server could not be used, which was known after `took` seconds.

        At the next start its tools are not offered before it is connected, and if that took long, no turn waits for it.
        """
        manifest = self._manifest or Manifest(Listing(), TransportChoice())
        await self._store(replace(manifest, is_held=True, is_late=took >= self._late_seconds))

    async def _store(self, manifest: Manifest) -> None:
        if self._manifests is None or manifest == self._manifest:
            return
        self._manifest = manifest
        await asyncio.to_thread(self._manifests.store, self._config, self._workspace, manifest)

    def _offer_of(self, listing: Listing) -> Catalogue:
        return offer_of(listing, self._config.include_tools, self._config.exclude_tools)

    def _set(self, offer: Catalogue) -> None:
        self.offer, self.is_recalled = offer, False
        self._tools = {tool.name: tool for tool in offer.tools}
