"""The catalogue of one server: from its own listing, or cached from its last connection.

Not here: the files of the cache, see :mod:`isthmus.mcp_host.catalogue.manifests`.
"""

import asyncio
from dataclasses import replace

from isthmus.mcp_host.catalogue.catalogue import Catalogue, CatalogueTool, catalogue_of
from isthmus.mcp_host.catalogue.listing import Listing
from isthmus.mcp_host.catalogue.manifests import Manifest
from isthmus.mcp_host.config.server_config import ServerConfig
from isthmus.mcp_host.connection.connection_context import ConnectionContext
from isthmus.mcp_host.connection.errors import ToolGoneError
from isthmus.mcp_host.connection.transport_probe import TransportChoice


class KnownCatalogue:
    """The catalogue of a server. ``is_cached``: it is from an earlier connection and has not been confirmed since."""

    def __init__(self, config: ServerConfig, context: ConnectionContext) -> None:
        self.catalogue = Catalogue()
        self.is_cached = False
        self._config = config
        self._workspace = context.workspace
        self._late_seconds = context.timeouts.late_seconds
        self._manifests = context.manifests
        self._manifest: Manifest | None = None
        self._cached_names: tuple[str, ...] = ()
        self._tools: dict[str, CatalogueTool] = {}

    def load_cached(self) -> TransportChoice | None:
        """Load the cached listing, and return the way in which the server was reached. Blocking."""
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
        """Whether the last attempt to use the server failed."""
        return self._manifest is not None and self._manifest.is_held

    @property
    def is_late(self) -> bool:
        """Whether the last attempt to use the server failed, and took long to fail."""
        return self._manifest is not None and self._manifest.is_held and self._manifest.is_late

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

    async def keep(self, listing: Listing, way: TransportChoice) -> None:
        """Store a listing for the next start, with the way in which the server was reached."""
        kept = replace(listing, discovered=None)
        await self._store(Manifest(kept, replace(way, discovered=listing.discovered), is_held=self.catalogue.is_empty))

    async def mark_unavailable(self, took: float) -> None:
        """Store for the next start that the server could not be used, and that this took `took` seconds to find out.

        At the next start its tools are not offered before it is connected; if it took long, no turn waits for it.
        """
        manifest = self._manifest or Manifest(Listing(), TransportChoice())
        await self._store(replace(manifest, is_held=True, is_late=took >= self._late_seconds))

    async def _store(self, manifest: Manifest) -> None:
        if self._manifests is None or manifest == self._manifest:
            return
        self._manifest = manifest
        await asyncio.to_thread(self._manifests.store, self._config, self._workspace, manifest)

    def _catalogue_of(self, listing: Listing) -> Catalogue:
        return catalogue_of(listing, self._config.include_tools, self._config.exclude_tools)

    def _set(self, catalogue: Catalogue) -> None:
        self.catalogue, self.is_cached = catalogue, False
        self._tools = {tool.name: tool for tool in catalogue.tools}
